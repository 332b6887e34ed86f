package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/flashdb/flashdb/internal/codec"
)

// openJSON opens a file of one object per line. Its first object names the columns.
func (r *Reader) openJSON(path string, o ReadOptions) error {
	sample, _, err := readSample(path, r.name, 1)
	if err != nil {
		return err
	}
	first, err := jsonFields(sample.text[0])
	if err != nil {
		return fmt.Errorf("%s: line 1: %w", r.name, err)
	}
	at, found, err := o.byName(first)
	if err != nil {
		return fmt.Errorf("%s: line 1: %w", r.name, err)
	}
	r.layout = Layout{Columns: found, Unread: at.unread(first, true)}
	lines, err := codec.OpenLines(path, r.name)
	if err != nil {
		return err
	}
	names := []string{found.Source, found.Target, found.Relation, found.Time}
	at = places{0, 1, -1, -1}
	if found.Relation != "" {
		at.relation = 2
	}
	if found.Time != "" {
		at.time = 3
	}
	r.close = lines.Close
	r.next = func(e *Edge) (int, error) {
		line, number, err := lines.Next()
		if err != nil {
			return number, err
		}
		object, err := parseJSON(line)
		if err != nil {
			return number, err
		}
		fields, err := object.texts(names)
		if err != nil {
			return number, err
		}
		return number, at.fill(e, fields)
	}
	return nil
}

// jsonFields are the names of an object's fields, in its order.
func jsonFields(line []byte) (names []string, err error) {
	wrong := errors.New(`want one object per line, such as {"source": "a", "target": "b"}`)
	d := json.NewDecoder(bytes.NewReader(line))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, wrong
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, wrong
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, wrong
		}
		names = append(names, name.(string)) // of an object
	}
	if _, err := d.Token(); err != nil && !errors.Is(err, io.EOF) {
		return nil, wrong
	}
	return names, nil
}

// isObject tells whether a line of a text is a JSON object, or begins a list of them.
func isObject(line []byte) bool {
	line = bytes.TrimSpace(line)
	return bytes.HasPrefix(line, []byte("{\"")) || bytes.HasPrefix(line, []byte("[{\"")) || bytes.Equal(line, []byte("[{"))
}

// A jsonLine is the object of a line.
type jsonLine map[string]json.RawMessage

func parseJSON(line []byte) (object jsonLine, err error) {
	if err := json.Unmarshal(line, &object); err != nil {
		return nil, errors.New(`want one object per line, such as {"source": "a", "target": "b"}`)
	}
	return object, nil
}

// texts are the fields that have these names, as text; "" for an empty name.
func (object jsonLine) texts(names []string) ([]string, error) {
	values := make([]string, len(names))
	for i, name := range names {
		if name == "" {
			continue
		}
		raw, ok := object[name]
		if !ok {
			return nil, fmt.Errorf("no field is %s", quote(name))
		}
		var err error
		if values[i], err = jsonText(name, raw); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// jsonText is a value of a field as text.
func jsonText(name string, raw json.RawMessage) (text string, err error) {
	switch {
	case len(raw) > 0 && raw[0] == '"':
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", fmt.Errorf("field %s: %w", quote(name), err)
		}
		return text, nil
	case len(raw) > 0 && slices.Contains([]byte("-0123456789"), raw[0]):
		return string(raw), nil
	}
	return "", fmt.Errorf("field %s is %s: want text or a number", quote(name), quote(string(raw)))
}
