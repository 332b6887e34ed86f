package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Encode returns the JSON of v, with text quoted and words where JSON has no number. Functions have
// no JSON, and fields of them are left out. A nil v is an empty object.
func Encode(v any) ([]byte, error) {
	if v == nil {
		return []byte("{}"), nil
	}
	return appendValue(nil, reflect.ValueOf(v))
}

func appendValue(b []byte, v reflect.Value) ([]byte, error) {
	if opaque(v.Type()) {
		return appendPlain(b, v.Interface())
	}
	switch v.Kind() {
	case reflect.String:
		return appendPlain(b, Quote(v.String()))
	case reflect.Float32, reflect.Float64:
		if word, special := Word(v.Float()); special {
			return appendPlain(b, word)
		}
		return appendPlain(b, v.Interface()) // with the digits that its type needs
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(b, "null"...), nil
		}
		return appendValue(b, v.Elem())
	case reflect.Struct:
		return appendStruct(b, v)
	case reflect.Map:
		return appendMap(b, v)
	case reflect.Slice:
		if v.IsNil() {
			return append(b, "null"...), nil
		}
	}
	b = append(b, '[') // a slice or an array
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendValue(b, v.Index(i)); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// appendPlain is for what package encoding/json writes as it should be.
func appendPlain(b []byte, v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	return append(b, raw...), err
}

func appendStruct(b []byte, v reflect.Value) (_ []byte, err error) {
	b = append(b, '{')
	first := true
	for _, f := range jsonFields(v.Type()) {
		inner := v.FieldByIndex(f.index)
		if f.omitEmpty && empty(inner) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(append(b, f.key...), ':')
		if b, err = appendValue(b, inner); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// appendMap writes a map by its sorted keys.
func appendMap(b []byte, v reflect.Value) (_ []byte, err error) {
	if v.IsNil() {
		return append(b, "null"...), nil
	}
	values := make(map[string]reflect.Value, v.Len())
	for it := v.MapRange(); it.Next(); {
		key := keyText(it.Key())
		if it.Key().Kind() == reflect.String {
			key = Quote(key)
		}
		values[key] = it.Value()
	}
	b = append(b, '{')
	for i, key := range slices.Sorted(maps.Keys(values)) {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendPlain(b, key); err != nil {
			return nil, err
		}
		if b, err = appendValue(append(b, ':'), values[key]); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// keyText returns the key of a map, a text or an integer, as text.
func keyText(key reflect.Value) string {
	if key.Kind() == reflect.String {
		return key.String()
	}
	return fmt.Sprint(key.Interface())
}

// empty is what omitempty means.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// A jsonField is a field of a struct that travels.
type jsonField struct {
	name      string
	key       []byte // name as JSON
	index     []int
	typ       reflect.Type
	omitEmpty bool
}

var fieldsOf sync.Map // of []jsonField by reflect.Type

// jsonFields lists the fields of a struct that JSON shows, those of embedded structs among them.
func jsonFields(t reflect.Type) []jsonField {
	if known, ok := fieldsOf.Load(t); ok {
		return known.([]jsonField)
	}
	var fields []jsonField
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Type.Kind() == reflect.Func || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		key, _ := json.Marshal(name)
		fields = append(fields, jsonField{name, key, f.Index, f.Type, slices.Contains(strings.Split(options, ","), "omitempty")})
	}
	fieldsOf.Store(t, fields)
	return fields
}
