package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// jsonRows streams JSON lines:
//
//	{"key": "a", "embedding": [0.1, -2], "tags": ["x"], "payload": {"any": "JSON"}}
//
// There may also be "attributes", an object of numbers, strings, bools and times, a time as
// {"time": "2025-01-01T10:00:00Z"}. All but the embedding may be left out. A key may be an integer.
// A payload that is a string stands for its text, any other for its JSON as written. JSON holds
// Unicode only: bytes that are not stand in "key_base64" and "payload_base64", in place of the
// fields of that name. Other fields are refused, so that a misspelt one does not get lost.
type jsonRows struct {
	lines *lines
	dim   int
	named []string // fields that are attributes
	ahead *jsonRow // the first line, read at opening to learn the width
	buf   []float32
	err   error
}

type jsonRow struct {
	Key       json.RawMessage `json:"key"`
	Embedding floatList       `json:"embedding"`
	Tags      []string        `json:"tags"`
	Payload   json.RawMessage `json:"payload"`

	KeyBase64     *[]byte `json:"key_base64"`
	PayloadBase64 []byte  `json:"payload_base64"`

	Attributes map[string]json.RawMessage `json:"attributes"`
}

func newJSONRows(in *blob, named []string) (RowReader, error) {
	l, err := openLines(in)
	if err != nil {
		return nil, err
	}
	r := &jsonRows{lines: l, named: named}
	if r.ahead, err = r.read(); err != nil {
		if errors.Is(err, io.EOF) {
			err = in.fault(0, "holds no rows")
		}
		return nil, errors.Join(err, l.stream.Close())
	}
	r.dim = len(r.ahead.Embedding)
	return r, nil
}

func (r *jsonRows) Dim() int         { return r.dim }
func (r *jsonRows) Count() int64     { return -1 }
func (r *jsonRows) Position() string { return r.lines.position() }
func (r *jsonRows) Close() error     { return r.lines.close() }

func (r *jsonRows) Next(dst []float32) (Row, error) {
	if r.err != nil {
		return Row{}, r.err
	}
	parsed := r.ahead
	r.ahead = nil
	if parsed == nil {
		if parsed, r.err = r.read(); r.err != nil {
			return Row{}, r.err
		}
	}
	var row Row
	if row, r.err = parsed.row(); r.err != nil {
		r.err = r.lines.fault(0, "%w", r.err)
		return Row{}, r.err
	}
	copy(dst[:r.dim], parsed.Embedding)
	return row, nil
}

// read parses the next line and checks its width.
func (r *jsonRows) read() (*jsonRow, error) {
	line, err := r.lines.read()
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(line) {
		return nil, r.lines.fault(0, "not UTF-8")
	}
	parsed := &jsonRow{Embedding: r.buf[:0]}
	line, fields, err := r.takeNamed(line)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(parsed); err != nil {
		if _, name, ok := strings.Cut(err.Error(), "json: unknown field "); ok {
			return nil, r.lines.fault(jsonOffset(err, dec), "unknown field %s: the fields are key, embedding, tags, attributes and payload", name)
		}
		return nil, r.lines.fault(jsonOffset(err, dec), "%w", noEOF(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, r.lines.fault(int(dec.InputOffset()), "text after the JSON object")
	}
	for name, value := range fields {
		if parsed.Attributes == nil {
			parsed.Attributes = map[string]json.RawMessage{}
		}
		parsed.Attributes[name] = value
	}
	r.buf = parsed.Embedding
	switch n := len(parsed.Embedding); {
	case n == 0:
		return nil, r.lines.fault(0, `no values under "embedding"`)
	case r.dim > 0 && n != r.dim:
		return nil, r.lines.fault(0, "the embedding has %d values, the first had %d", n, r.dim)
	}
	return parsed, nil
}

// takeNamed takes the fields that are attributes out of a line.
func (r *jsonRows) takeNamed(line []byte) (rest []byte, fields map[string]json.RawMessage, err error) {
	if len(r.named) == 0 {
		return line, nil, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(line, &all); err != nil {
		return nil, nil, r.lines.fault(0, "%w", err)
	}
	fields = map[string]json.RawMessage{}
	for _, name := range r.named {
		if value, ok := all[name]; ok {
			fields[name] = value
			delete(all, name)
		}
	}
	rest, err = json.Marshal(all)
	return rest, fields, err
}

// attributes returns the values of attributes.
func (j *jsonRow) attributes() (map[string]any, error) {
	var all map[string]any
	for name, text := range j.Attributes {
		var x any
		var ok bool
		if err := json.Unmarshal(text, &x); err != nil {
			return nil, fmt.Errorf("attribute %s: %w", quote(name), err)
		}
		switch of := x.(type) {
		case nil:
			continue
		case []any:
			return nil, fmt.Errorf("attribute %s is a list: want a number, string, bool or time", quote(name))
		case string:
			x = Text(of)
		case map[string]any:
			if x, ok = typedText(of); !ok {
				return nil, fmt.Errorf(`attribute %s is an object: a time is {"time": "2025-01-01T10:00:00Z"}, a string that looks like one {"string": "2025-01-01"}`, quote(name))
			}
		}
		if all == nil {
			all = map[string]any{}
		}
		all[name] = x
	}
	return all, nil
}

// typedText returns the value of an object that gives the type of a text.
func typedText(of map[string]any) (x any, ok bool) {
	if len(of) != 1 {
		return nil, false
	}
	if text, ok := of["string"].(string); ok {
		return text, true
	}
	text, _ := of["time"].(string)
	t, err := time.Parse(time.RFC3339Nano, text)
	return t, err == nil
}

// jsonOffset finds where in the line a JSON error lies.
func jsonOffset(err error, dec *json.Decoder) int {
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return int(syntax.Offset)
	case errors.As(err, &mistyped):
		return int(mistyped.Offset)
	}
	return int(dec.InputOffset())
}

func (j *jsonRow) row() (Row, error) {
	attributes, err := j.attributes()
	if err != nil {
		return Row{}, err
	}
	row := Row{Tags: j.Tags, Payload: j.PayloadBase64, Attributes: attributes}
	if j.KeyBase64 != nil {
		row.Key, row.HasKey = string(*j.KeyBase64), true
	}
	if (j.KeyBase64 != nil && !absent(j.Key)) || (j.PayloadBase64 != nil && !absent(j.Payload)) {
		return Row{}, errors.New("a key or a payload stands there twice, as it is and in base64")
	}
	if !absent(j.Key) {
		row.HasKey = true
		if j.Key[0] == '"' {
			if err := json.Unmarshal(j.Key, &row.Key); err != nil {
				return Row{}, fmt.Errorf("key: %w", err)
			}
		} else if _, err := strconv.ParseInt(string(j.Key), 10, 64); err == nil {
			row.Key = string(j.Key)
		} else {
			return Row{}, fmt.Errorf("key %s: want a string or an integer", quote(string(j.Key)))
		}
	}
	switch {
	case absent(j.Payload):
	case j.Payload[0] == '"':
		var text string
		if err := json.Unmarshal(j.Payload, &text); err != nil {
			return Row{}, fmt.Errorf("payload: %w", err)
		}
		row.Payload = []byte(text)
	default:
		row.Payload = j.Payload
	}
	return row, nil
}

func absent(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

// floatList parses an array of numbers straight to float32, several times faster than by
// reflection.
type floatList []float32

// UnmarshalJSON appends to the memory of f. b is valid JSON: the decoder has seen to that.
func (f *floatList) UnmarshalJSON(b []byte) error {
	values := (*f)[:0]
	if b[0] != '[' {
		return errors.New(`"embedding" is not an array of numbers`)
	}
	for at := 1; ; {
		for isBetween(b[at]) {
			at++
		}
		if b[at] == ']' {
			*f = values
			return nil
		}
		if len(values) == maxDim {
			return fmt.Errorf("embedding of more than %d values", maxDim)
		}
		end := at
		for b[end] != ']' && !isBetween(b[end]) {
			end++
		}
		v, err := strconv.ParseFloat(string(b[at:end]), 32)
		if err != nil {
			return fmt.Errorf("embedding[%d]: %s is not a float32", len(values), quote(string(b[at:end])))
		}
		values = append(values, float32(v))
		at = end
	}
}

// isBetween tells what may stand between the numbers of an array.
func isBetween(c byte) bool {
	return c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n'
}
