package codec

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// jsonWriter writes what jsonRows reads.
type jsonWriter struct {
	w   *bufio.Writer
	buf []byte
}

func (j *jsonWriter) Write(embedding []float32, row Row) error {
	b := append(j.buf[:0], '{')
	b = appendJSON(b, "key", row.Key)
	b = append(b, `,"embedding":[`...)
	for i, v := range embedding {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(v), 'g', -1, 32)
	}
	b = append(b, ']')
	if len(row.Tags) > 0 {
		tags, err := json.Marshal(row.Tags)
		if err != nil {
			return err
		}
		b = append(append(b, `,"tags":`...), tags...)
	}
	if len(row.Attributes) > 0 {
		attributes, err := json.Marshal(jsonAttributes(row.Attributes))
		if err != nil {
			return err
		}
		b = append(append(b, `,"attributes":`...), attributes...)
	}
	if len(row.Payload) > 0 {
		b = appendJSON(append(b, ','), "payload", string(row.Payload))
	}
	b = append(b, '}', '\n')
	j.buf = b
	if len(b) > maxLine {
		return fmt.Errorf("its line has %d bytes; at most %d are read again: write .parquet", len(b), maxLine)
	}
	_, err := j.w.Write(b)
	return err
}

// jsonAttributes are attributes as jsonRows reads them.
func jsonAttributes(all map[string]any) map[string]any {
	out := make(map[string]any, len(all))
	for name, x := range all {
		switch of := x.(type) {
		case time.Time:
			x = map[string]time.Time{"time": of}
		case string:
			if beginsWithDay(of) { // and may be read as a time
				x = map[string]string{"string": of}
			}
		}
		out[name] = x
	}
	return out
}

func beginsWithDay(text string) bool {
	if len(text) < len(time.DateOnly) {
		return false
	}
	_, err := time.Parse(time.DateOnly, text[:len(time.DateOnly)])
	return err == nil
}

// appendJSON appends a field of text, or of base64 where the text is not UTF-8.
func appendJSON(b []byte, name, text string) []byte {
	if !utf8.ValidString(text) {
		b = append(b, `"`+name+`_base64":"`...)
		return append(base64.StdEncoding.AppendEncode(b, []byte(text)), '"')
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("codec: encode a string: " + err.Error()) // no string can fail
	}
	return append(append(b, `"`+name+`":`...), quoted...)
}

func (j *jsonWriter) Close() error { return j.w.Flush() }

// csvWriter writes what csvRows reads, with a header: key, tags, payload, attributes such as
// @price:number, e0, e1 and so on. An attribute that is the empty string is not there.
type csvWriter struct {
	w   *bufio.Writer
	sep byte
	buf []byte

	attributes []Attribute
}

func newCSVWriter(w *bufio.Writer, sep byte, dim int, attributes []Attribute) (*csvWriter, error) {
	c := &csvWriter{w: w, sep: sep, attributes: attributes}
	c.buf = fmt.Appendf(c.buf, "key%ctags%cpayload", sep, sep)
	for _, a := range attributes {
		var err error
		if c.buf, err = appendField(append(c.buf, sep), "@"+a.Name+":"+a.Type, sep); err != nil {
			return nil, fmt.Errorf("attribute %s %w", quote(a.Name), err)
		}
	}
	for i := range dim {
		c.buf = fmt.Appendf(c.buf, "%ce%d", sep, i)
	}
	c.buf = append(c.buf, '\n')
	_, err := w.Write(c.buf)
	return c, err
}

func (c *csvWriter) Write(embedding []float32, row Row) (err error) {
	c.buf = c.buf[:0]
	for i, field := range []struct{ what, text string }{{"key", row.Key}, {"tags", JoinTags(row.Tags)}, {"payload", string(row.Payload)}} {
		if i > 0 {
			c.buf = append(c.buf, c.sep)
		}
		if c.buf, err = appendField(c.buf, field.text, c.sep); err != nil {
			return fmt.Errorf("its %s %w", field.what, err)
		}
	}
	for _, a := range c.attributes {
		if c.buf, err = appendField(append(c.buf, c.sep), attributeField(row.Attributes[a.Name]), c.sep); err != nil {
			return fmt.Errorf("its attribute %s %w", quote(a.Name), err)
		}
	}
	for _, v := range embedding {
		c.buf = strconv.AppendFloat(append(c.buf, c.sep), float64(v), 'g', -1, 32)
	}
	c.buf = append(c.buf, '\n')
	if len(c.buf) > maxLine {
		return fmt.Errorf("its line has %d bytes; at most %d are read again: write .parquet", len(c.buf), maxLine)
	}
	_, err = c.w.Write(c.buf)
	return err
}

// attributeField is the text of an attribute, empty for none.
func attributeField(x any) string {
	switch x := x.(type) {
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(x)
	case time.Time:
		return x.Format(time.RFC3339Nano)
	case string:
		return x
	}
	return ""
}

func (c *csvWriter) Close() error { return c.w.Flush() }

// appendField appends a field of a line, in quotes where a comma or a quote in it demands them.
func appendField(b []byte, text string, sep byte) ([]byte, error) {
	switch {
	case strings.ContainsAny(text, "\r\n"):
		return b, errors.New("holds a line end, which a line of a table cannot: write .jsonl or .parquet")
	case sep == '\t' && strings.Contains(text, "\t"):
		return b, errors.New("holds a tab, which separates the fields: write .csv, .jsonl or .parquet")
	case sep == ',' && strings.ContainsAny(text, `,"`):
		b = append(b, '"')
		b = append(b, strings.ReplaceAll(text, `"`, `""`)...)
		return append(b, '"'), nil
	}
	return append(b, text...), nil
}

// TableWriter writes lines of fields that OpenTable reads.
type TableWriter struct {
	w   *bufio.Writer
	sep byte
	buf []byte
}

// NewTableWriter begins a table of format tsv or csv, without a header.
func NewTableWriter(w io.Writer, format string) (*TableWriter, error) {
	sep := map[string]byte{"tsv": '\t', "csv": ','}[format]
	if sep == 0 {
		return nil, fmt.Errorf("format %s is no table; want tsv or csv", quote(format))
	}
	return &TableWriter{w: bufio.NewWriterSize(w, 1<<16), sep: sep}, nil
}

// Write adds a line.
func (t *TableWriter) Write(fields ...string) (err error) {
	t.buf = t.buf[:0]
	for i, field := range fields {
		if i > 0 {
			t.buf = append(t.buf, t.sep)
		}
		if t.buf, err = appendField(t.buf, field, t.sep); err != nil {
			return fmt.Errorf("%s %w", quote(field), err)
		}
	}
	if len(bytes.TrimSpace(t.buf)) == 0 {
		return errors.New("a line of nothing but spaces would not be read again: write .parquet")
	}
	_, err = t.w.Write(append(t.buf, '\n'))
	return err
}

// Close writes what is left.
func (t *TableWriter) Close() error { return t.w.Flush() }
