package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
)

// JSON has no number for an infinity or a NaN. They travel as text, by the words that Protocol
// Buffers uses in JSON, and that the number parsers of most languages read. The types of requests
// and results have fields of plain floats, which package encoding/json fills from numbers alone, so
// the words are put in and taken out in the tree of a JSON text, beside the Go value.

// Word returns the word for a float, if JSON has no number for it.
func Word(f float64) (word string, special bool) {
	switch {
	case math.IsInf(f, 1):
		return "Infinity", true
	case math.IsInf(f, -1):
		return "-Infinity", true
	case math.IsNaN(f):
		return "NaN", true
	}
	return "", false
}

// floatOf undoes Word.
func floatOf(tree any) (f float64, special bool) {
	switch tree {
	case "Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	case "NaN":
		return math.NaN(), true
	}
	return 0, false
}

// parseTree reads one JSON value, with its numbers as they are written.
func parseTree(b []byte) (tree any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the JSON object")
	}
	return tree, nil
}

// wordTree returns the tree of a JSON text that may have words for floats, or nil: most have none,
// and what is no JSON is told by who decodes it.
func wordTree(b []byte) any {
	if !bytes.Contains(b, []byte(`Infinity"`)) && !bytes.Contains(b, []byte(`"NaN"`)) {
		return nil
	}
	tree, err := parseTree(b)
	if err != nil {
		return nil
	}
	return tree
}

// withoutWords returns a copy of a tree in which zeros stand for the words, where a value of type t
// has a float.
func withoutWords(tree any, t reflect.Type) any {
	if opaque(t) {
		return tree
	}
	switch t.Kind() {
	case reflect.Float32, reflect.Float64:
		if _, special := floatOf(tree); special {
			return json.Number("0")
		}
	case reflect.Pointer:
		return withoutWords(tree, t.Elem())
	case reflect.Slice, reflect.Array:
		list, _ := tree.([]any)
		list = slices.Clone(list)
		for i := range list {
			list[i] = withoutWords(list[i], t.Elem())
		}
		if list != nil {
			return list
		}
	case reflect.Map, reflect.Struct:
		table, _ := tree.(map[string]any)
		if table == nil {
			return tree
		}
		table = maps.Clone(table)
		if t.Kind() == reflect.Map {
			for key := range table {
				table[key] = withoutWords(table[key], t.Elem())
			}
			return table
		}
		for _, f := range jsonFields(t) {
			if inner, ok := table[f.name]; ok {
				table[f.name] = withoutWords(inner, f.typ)
			}
		}
		return table
	}
	return tree
}

// setFloats sets the floats of v, which has the JSON that tree is of, to the words in the tree.
func setFloats(tree any, v reflect.Value) {
	if opaque(v.Type()) || tree == nil {
		return
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		if f, special := floatOf(tree); special {
			v.SetFloat(f)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			setFloats(tree, v.Elem())
		}
	case reflect.Slice, reflect.Array:
		if list, ok := tree.([]any); ok {
			for i := range min(len(list), v.Len()) {
				setFloats(list[i], v.Index(i))
			}
		}
	case reflect.Struct:
		if table, ok := tree.(map[string]any); ok {
			for _, f := range jsonFields(v.Type()) {
				if inner, ok := table[f.name]; ok {
					setFloats(inner, v.FieldByIndex(f.index))
				}
			}
		}
	case reflect.Map:
		if table, ok := tree.(map[string]any); ok {
			setMapFloats(table, v)
		}
	}
}

// setMapFloats is setFloats for a map, whose values cannot be set in place.
func setMapFloats(table map[string]any, m reflect.Value) {
	for it := m.MapRange(); it.Next(); {
		inner, ok := table[keyText(it.Key())] // as it is in the tree, before restore
		if !ok {
			continue
		}
		value := reflect.New(m.Type().Elem()).Elem()
		value.Set(it.Value())
		setFloats(inner, value)
		m.SetMapIndex(it.Key(), value)
	}
}
