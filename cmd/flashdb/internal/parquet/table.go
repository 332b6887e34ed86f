package parquet

import (
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Table reads a few columns of strings or integers row by row, such as the two of edges.
type Table struct {
	file    *file
	cursors []*cursor
	fields  []string
	row     int
	err     error
}

// OpenTable opens the named columns of a file, or those the file has if none is named. name is the
// file's for messages.
func OpenTable(path, name string, columns []string) (*Table, error) {
	f, err := open(path, name)
	if err != nil {
		return nil, err
	}
	t, err := newTable(f, columns)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return t, nil
}

func newTable(f *file, columns []string) (table *Table, err error) {
	defer f.guard(&err)
	t := &Table{file: f}
	if len(columns) == 0 {
		for _, leaf := range f.leaves {
			columns = append(columns, leaf.Path()[0])
		}
	}
	for _, name := range columns {
		leaf, err := f.find(name, "a string, bytes or an integer", isKey)
		if err != nil {
			return nil, f.fault(err)
		}
		t.cursors = append(t.cursors, newCursor(f, leaf))
	}
	return t, nil
}

// Next returns the fields of the next row and its number, from 1. The slice is reused. At the end
// it returns io.EOF.
func (t *Table) Next() (fields []string, row int, err error) {
	if t.err != nil {
		return nil, 0, t.err
	}
	defer func() { t.err = err }()
	defer t.file.guard(&err)
	t.fields = t.fields[:0]
	for i, c := range t.cursors {
		text, err := t.field(c)
		if errors.Is(err, io.EOF) && i == 0 && int64(t.row) == t.file.pq.NumRows() {
			return nil, 0, io.EOF
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("truncated: the footer says %d rows", t.file.pq.NumRows())
			}
			return nil, 0, t.file.fault(fmt.Errorf("row %d: %w", t.row+1, err))
		}
		t.fields = append(t.fields, text)
	}
	t.row++
	return t.fields, t.row, nil
}

func (t *Table) field(c *cursor) (string, error) {
	values, err := c.next(1)
	if err != nil {
		return "", err
	}
	if values[0].null {
		return "", fmt.Errorf("column %s is null", strconv.Quote(c.name))
	}
	return c.text(&values[0]), nil
}

// Close closes the file.
func (t *Table) Close() error {
	for _, c := range t.cursors {
		c.close()
	}
	return t.file.close()
}

// Columns lists the columns of a file that OpenTable reads, in order. name is the file's for
// messages.
func Columns(path, name string) (names []string, err error) {
	f, err := open(path, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	for _, leaf := range f.leaves {
		if isKey(leaf) {
			names = append(names, leaf.Path()[0])
		}
	}
	return names, nil
}
