package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"unicode/utf8"
)

// base64Prefix marks text that stands for bytes.
const base64Prefix = "base64:"

// Quote returns s as it travels.
func Quote(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, base64Prefix) {
		return s
	}
	return base64Prefix + base64.StdEncoding.EncodeToString([]byte(s))
}

// Unquote undoes Quote.
func Unquote(s string) (string, error) {
	text, ok := strings.CutPrefix(s, base64Prefix)
	if !ok {
		return s, nil
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("text %q: %w", s, err)
	}
	return string(b), nil
}

// A Vector is an embedding, or many in row-major order.
type Vector []float32

// MarshalJSON implements json.Marshaler.
func (v Vector) MarshalJSON() ([]byte, error) {
	if v == nil {
		return []byte("null"), nil
	}
	raw := make([]byte, 0, 4*len(v))
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	b := make([]byte, 0, 2+base64.StdEncoding.EncodedLen(len(raw)))
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, raw)
	return append(b, '"'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Vector) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '"' {
		return json.Unmarshal(b, (*[]float32)(v))
	}
	var raw []byte
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	if len(raw)%4 != 0 {
		return fmt.Errorf("a vector of %d bytes: want a multiple of 4", len(raw))
	}
	*v = make(Vector, len(raw)/4)
	for i := range *v {
		(*v)[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return nil
}

// Decode reads JSON that Encode made into the value that v points to. Strictly, a field that v does
// not have is an error.
func Decode(b []byte, v any, strict bool) error {
	tree := wordTree(b)
	if tree != nil {
		numbers, err := json.Marshal(withoutWords(tree, reflect.TypeOf(v).Elem()))
		if err != nil {
			return err
		}
		b = numbers
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the JSON object")
	}
	if tree != nil {
		setFloats(tree, reflect.ValueOf(v).Elem())
	}
	return restore(reflect.ValueOf(v).Elem())
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// opaque reports whether values of t travel as they are: they hold neither text nor floating-point
// numbers, or see to that themselves.
func opaque(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Float32, reflect.Float64, reflect.Struct, reflect.Map, reflect.Interface:
		return t.Implements(marshaler)
	case reflect.Slice, reflect.Array, reflect.Pointer:
		return t.Implements(marshaler) || opaque(t.Elem())
	}
	return true
}

// restore undoes the quoting of the text in v, which is settable.
func restore(v reflect.Value) error {
	t := v.Type()
	if opaque(t) {
		return nil
	}
	var errs []error
	switch t.Kind() {
	case reflect.String:
		s, err := Unquote(v.String())
		v.SetString(s)
		return err
	case reflect.Struct:
		for _, f := range jsonFields(t) {
			errs = append(errs, restore(v.FieldByIndex(f.index)))
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			errs = append(errs, restore(v.Index(i)))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return restore(v.Elem())
		}
	case reflect.Map:
		return restoreMap(v)
	}
	return errors.Join(errs...)
}

// restoreMap rebuilds a map, whose keys and values cannot be set in place.
func restoreMap(m reflect.Value) error {
	t := m.Type()
	whole := reflect.MakeMapWithSize(t, m.Len())
	for it := m.MapRange(); it.Next(); {
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		key.Set(it.Key())
		value.Set(it.Value())
		if err := errors.Join(restore(key), restore(value)); err != nil {
			return err
		}
		whole.SetMapIndex(key, value)
	}
	if !m.IsNil() {
		m.Set(whole)
	}
	return nil
}
