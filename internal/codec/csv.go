package codec

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// csvRows streams comma- or tab-separated numbers, one row a line, with an
// optional header and an optional first column of keys:
//
//   - The first line is a header if its first field is empty, "key", "id" or
//     "name" (in any case), or if any later field is not a number.
//   - The first column holds keys if a header says so in one of those ways, or
//     if its first value is not a number.
//
// With commas a field may be in double quotes, a quote within written twice;
// it must end on its line.
type csvRows struct {
	lines  *lines
	sep    byte
	keyed  bool
	dim    int
	fields [][]byte // of the line read last
	ahead  bool     // fields holds the first row, not yet returned
	err    error
}

func newCSVRows(in *blob, sep byte) (RowReader, error) {
	l, err := openLines(in)
	if err != nil {
		return nil, err
	}
	c := &csvRows{lines: l, sep: sep}
	if err := c.open(); err != nil {
		if errors.Is(err, io.EOF) {
			err = in.fault(0, "holds no rows")
		}
		return nil, errors.Join(err, l.stream.Close())
	}
	return c, nil
}

// open reads the header, if there is one, and the first row.
func (c *csvRows) open() error {
	if err := c.read(); err != nil {
		return err
	}
	named := slices.Contains([]string{"", "key", "id", "name"}, strings.ToLower(string(bytes.TrimSpace(c.fields[0]))))
	columns := 0
	if named || slices.ContainsFunc(c.fields[1:], func(field []byte) bool { return !isNumber(field) }) {
		columns = len(c.fields)
		if err := c.read(); err != nil {
			return err
		}
		if len(c.fields) != columns {
			return c.lines.fault(0, "%d fields, the header has %d", len(c.fields), columns)
		}
	}
	c.keyed = named || !isNumber(c.fields[0])
	c.dim = len(c.fields)
	if c.keyed {
		c.dim--
	}
	if c.dim < 1 {
		return c.lines.fault(0, "a key without values")
	}
	c.ahead = true
	return nil
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
	row := Row{HasKey: c.keyed}
	values := c.fields
	if c.keyed {
		row.Key = string(values[0])
		values = values[1:]
	}
	if len(values) != c.dim {
		c.err = c.lines.fault(0, "%d values, the first row has %d", len(values), c.dim)
		return Row{}, c.err
	}
	dst = dst[:c.dim]
	for i, field := range values {
		v, err := strconv.ParseFloat(string(bytes.TrimSpace(field)), 32)
		if err != nil {
			c.err = c.lines.fault(0, "field %d: %s is not a float32", len(c.fields)-len(values)+i+1, quote(string(field)))
			return Row{}, c.err
		}
		dst[i] = float32(v)
	}
	return row, nil
}

// read splits the next line into fields. They share the memory of the line.
func (c *csvRows) read() error {
	line, err := c.lines.read()
	if err != nil {
		return err
	}
	c.fields = c.fields[:0]
	for {
		if len(c.fields) > maxDim {
			return c.lines.fault(0, "more than %d values", maxDim)
		}
		if c.sep == ',' && len(line) > 0 && line[0] == '"' {
			field, rest, ok := unquote(line)
			if !ok {
				return c.lines.fault(0, "field %d: its quotes do not end before a comma or the end of the line", len(c.fields)+1)
			}
			c.fields = append(c.fields, field)
			if rest == nil {
				return nil
			}
			line = rest
			continue
		}
		field, rest, more := bytes.Cut(line, []byte{c.sep})
		c.fields = append(c.fields, field)
		if !more {
			return nil
		}
		line = rest
	}
}

// unquote takes a quoted field off the front of line, in place. rest is what
// follows the comma after it, nil at the end of the line.
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
