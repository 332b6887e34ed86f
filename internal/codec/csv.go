package codec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// csvRows streams comma- or tab-separated numbers, one row per line, with an optional header and
// optional columns of keys, tags and payloads:
//
//   - The first line is a header if columns are named, if its first field is empty, "key", "id" or
//     "name" (in any case), or if any later field is not a number.
//   - The column of keys is the one named; else the first, if a header says so in one of those ways
//     or if its first value is not a number.
//   - The columns of tags and of payloads are those named; else those under "tags" and "payload" in
//     a header whose first column holds the keys.
//   - The columns of attributes are those named, and in a header whose first column holds the keys
//     those whose names begin with @, such as "@price:number", as flashdb writes them.
//   - All others hold one value of the embedding each.
//
// Tags are separated by semicolons, or a JSON array of strings. With commas a field may be in
// double quotes, a quote within written twice; it must end on its line.
type csvRows struct {
	lines  *lines
	sep    byte
	roles  []csvRole // of the columns; values beyond
	keyed  bool
	dim    int
	names  []string // of the columns that are attributes
	fields [][]byte // of the line read last
	ahead  bool     // fields holds the first row, not yet returned
	err    error
}

// csvRole is what a column holds.
type csvRole uint8

const (
	csvValue csvRole = iota
	csvKey
	csvTags
	csvPayload
	csvAttribute
)

func newCSVRows(in *blob, sep byte, columns Columns) (RowReader, error) {
	l, err := openLines(in)
	if err != nil {
		return nil, err
	}
	c := &csvRows{lines: l, sep: sep}
	if err := c.open(columns); err != nil {
		if errors.Is(err, io.EOF) {
			err = in.fault(0, "holds no rows")
		}
		return nil, errors.Join(err, l.stream.Close())
	}
	return c, nil
}

// open reads the header, if there is one, and the first row.
func (c *csvRows) open(columns Columns) error {
	if err := c.read(); err != nil {
		return err
	}
	named := slices.Contains([]string{"", "key", "id", "name"}, strings.ToLower(string(bytes.TrimSpace(c.fields[0]))))
	c.roles = make([]csvRole, len(c.fields))
	if !columns.none() || named || slices.ContainsFunc(c.fields[1:], func(field []byte) bool { return !isNumber(field) }) {
		if err := c.header(columns, named); err != nil {
			return err
		}
		if err := c.read(); err != nil {
			return err
		}
		if len(c.fields) != len(c.roles) {
			return c.lines.fault(0, "%d fields, the header has %d", len(c.fields), len(c.roles))
		}
	}
	if columns.Key == "" && c.roles[0] == csvValue && (named || (columns.none() && !isNumber(c.fields[0]))) {
		c.roles[0] = csvKey
	}
	for _, role := range c.roles {
		c.keyed = c.keyed || role == csvKey
		if role == csvValue {
			c.dim++
		}
	}
	if c.dim < 1 {
		if bytes.Contains(c.fields[0], []byte(";")) {
			return c.lines.fault(0, "a key without values: the fields are separated by semicolons, and must be by commas")
		}
		return c.lines.fault(0, "a key without values")
	}
	c.ahead = true
	return nil
}

// header gives the columns their roles by their names.
func (c *csvRows) header(columns Columns, keyFirst bool) error {
	tags, payload := columns.Tags, columns.Payload
	if keyFirst {
		tags, payload = cmp.Or(tags, "tags"), cmp.Or(payload, "payload")
	}
	for _, w := range []struct {
		name string
		role csvRole
		must bool
	}{
		{columns.Key, csvKey, true}, {tags, csvTags, columns.Tags != ""}, {payload, csvPayload, columns.Payload != ""},
	} {
		if w.name == "" {
			continue
		}
		at, found := -1, 0
		for i, field := range c.fields {
			if string(bytes.TrimSpace(field)) == w.name {
				at, found = i, found+1
			}
		}
		switch {
		case found > 1:
			return c.lines.fault(0, "%d columns are named %s", found, quote(w.name))
		case found == 1 && c.roles[at] != csvValue:
			return c.lines.fault(0, "column %s is named for two things", quote(w.name))
		case found == 1:
			c.roles[at] = w.role
		case w.must:
			return c.lines.fault(0, "no column is named %s; the header has %s", quote(w.name), list(texts(c.fields)))
		}
	}
	return c.attributes(columns.Attributes, keyFirst)
}

// attributes gives the columns of attributes their role.
func (c *csvRows) attributes(named []string, keyFirst bool) error {
	c.names = make([]string, len(c.fields))
	for _, name := range named {
		at := slices.IndexFunc(c.fields, func(field []byte) bool { return string(bytes.TrimSpace(field)) == name })
		switch {
		case at < 0:
			return c.lines.fault(0, "no column is named %s; the header has %s", quote(name), list(texts(c.fields)))
		case c.roles[at] != csvValue:
			return c.lines.fault(0, "column %s is named for two things", quote(name))
		}
		c.roles[at], c.names[at] = csvAttribute, name
	}
	for at, field := range c.fields {
		if name, ok := strings.CutPrefix(string(field), "@"); ok && keyFirst && c.roles[at] == csvValue {
			c.roles[at], c.names[at] = csvAttribute, name
		}
	}
	return nil
}

func texts(fields [][]byte) []string {
	s := make([]string, len(fields))
	for i, f := range fields {
		s[i] = string(f)
	}
	return s
}

func (c *csvRows) Dim() int         { return c.dim }
func (c *csvRows) Count() int64     { return -1 }
func (c *csvRows) Position() string { return c.lines.position() }
func (c *csvRows) Close() error     { return c.lines.close() }

func (c *csvRows) Next(dst []float32) (Row, error) {
	if c.err != nil {
		return Row{}, c.err
	}
	if !c.ahead {
		if c.err = c.read(); c.err != nil {
			return Row{}, c.err
		}
	}
	c.ahead = false
	var row Row
	row, c.err = c.row(dst[:c.dim])
	return row, c.err
}

// row takes the fields apart; values go to dst.
func (c *csvRows) row(dst []float32) (Row, error) {
	row := Row{HasKey: c.keyed}
	if len(c.fields) != len(c.roles) {
		extra := len(c.roles) - c.dim
		return Row{}, c.lines.fault(0, "%d values, the first row has %d", len(c.fields)-extra, c.dim)
	}
	n := 0
	for i, field := range c.fields {
		switch c.roles[i] {
		case csvKey:
			row.Key = string(field)
		case csvPayload:
			row.Payload = bytes.Clone(field)
		case csvAttribute:
			if len(field) == 0 {
				continue // the node has none
			}
			if row.Attributes == nil {
				row.Attributes = map[string]any{}
			}
			row.Attributes[c.names[i]] = Field(field)
		case csvTags:
			tags, err := SplitTags(string(field))
			if err != nil {
				return Row{}, c.lines.fault(0, "field %d: %w", i+1, err)
			}
			row.Tags = tags
		default:
			v, err := strconv.ParseFloat(string(bytes.TrimSpace(field)), 32)
			if err != nil {
				return Row{}, c.lines.fault(0, "field %d: %s is not a float32", i+1, quote(string(field)))
			}
			dst[n] = float32(v)
			n++
		}
	}
	return row, nil
}

// SplitTags reads the tags of one field: separated by semicolons, or as a JSON array of strings.
// Space around a tag is not part of it; empty ones are none.
func SplitTags(field string) (tags []string, err error) {
	if strings.HasPrefix(field, "[") {
		if err := json.Unmarshal([]byte(field), &tags); err != nil {
			return nil, fmt.Errorf("tags %s: want a JSON array of strings, or tags separated by semicolons", quote(field))
		}
		return tags, nil
	}
	for tag := range strings.SplitSeq(field, ";") {
		if tag = strings.TrimSpace(tag); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags, nil
}

// JoinTags is the field that SplitTags reads as these tags.
func JoinTags(tags []string) string {
	joined := strings.Join(tags, ";")
	if back, err := SplitTags(joined); err == nil && slices.Equal(back, tags) && !strings.ContainsAny(joined, "\t\r\n") {
		return joined
	}
	encoded, err := json.Marshal(tags)
	if err != nil {
		panic("codec: encode strings: " + err.Error()) // no string can fail
	}
	return string(encoded)
}

// read splits the next line into fields. They share the memory of the line.
func (c *csvRows) read() error {
	line, err := c.lines.read()
	if err != nil {
		return err
	}
	c.fields, err = c.lines.split(c.fields[:0], line, c.sep)
	return err
}

// split appends the fields of the line read last.
func (l *lines) split(fields [][]byte, line []byte, sep byte) ([][]byte, error) {
	for {
		if len(fields) > maxDim {
			return fields, l.fault(0, "more than %d fields", maxDim)
		}
		if sep == ',' && len(line) > 0 && line[0] == '"' {
			field, rest, ok := unquote(line)
			if !ok {
				return fields, l.fault(0, "field %d: its quotes do not end before a comma or the end of the line", len(fields)+1)
			}
			fields = append(fields, field)
			if rest == nil {
				return fields, nil
			}
			line = rest
			continue
		}
		field, rest, more := bytes.Cut(line, []byte{sep})
		fields = append(fields, field)
		if !more {
			return fields, nil
		}
		line = rest
	}
}

// unquote takes a quoted field off the front of line, in place. rest is what follows the comma
// after it, nil at the end of the line.
func unquote(line []byte) (field, rest []byte, ok bool) {
	field = line[1:1]
	for i := 1; i < len(line); i++ {
		switch {
		case line[i] != '"':
			field = append(field, line[i])
		case i+1 == len(line):
			return field, nil, true
		case line[i+1] == ',':
			return field, line[i+2:], true
		case line[i+1] == '"':
			field = append(field, '"')
			i++
		default:
			return nil, nil, false
		}
	}
	return nil, nil, false
}

func isNumber(field []byte) bool {
	_, err := strconv.ParseFloat(string(bytes.TrimSpace(field)), 32)
	return err == nil || errors.Is(err, strconv.ErrRange)
}
