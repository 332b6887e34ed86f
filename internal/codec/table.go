package codec

import (
	"bytes"
	"errors"
	"io"
	"slices"
)

// Table reads tab-separated lines, such as node names and edges, or those of a .csv file, whose
// fields may be in double quotes. Lines may have different numbers of fields; between tabs nothing
// is quoted or escaped. Blank lines are skipped. One goroutine.
type Table struct {
	lines  *lines
	sep    byte
	pick   []int    // the columns asked for, by their place; nil: all
	split  [][]byte // of the line read last
	fields []string
	err    error
}

// TableOptions say what a table or its name do not.
type TableOptions struct {
	// Format is "tsv" or "csv". Empty: csv if the name of the file says so.
	Format string
	// Name is the file's for messages. Empty: its path.
	Name string
	// Columns are the columns to return, in this order, by the header that the first line then is.
	// Empty: all of them, and there is no header.
	Columns []string
}

// OpenTable opens a file of tab- or comma-separated lines, or a .zst or .gz of one. Nil options are
// the defaults.
func OpenTable(path string, opts *TableOptions) (*Table, error) {
	if opts == nil {
		opts = &TableOptions{}
	}
	in, err := openInput(path)
	if err != nil {
		return nil, err
	}
	in.rename(opts.Name, opts.Format)
	t, err := newTable(in, opts.Columns)
	if err != nil {
		return nil, errors.Join(err, in.close())
	}
	return t, nil
}

func newTable(in *blob, columns []string) (*Table, error) {
	l, err := openLines(in)
	if err != nil {
		return nil, err
	}
	t := &Table{lines: l, sep: '\t'}
	if in.format() == ".csv" {
		t.sep = ','
	}
	if len(columns) == 0 {
		return t, nil
	}
	header, _, err := t.Next()
	if errors.Is(err, io.EOF) {
		err = in.fault(0, "has no header")
	}
	if err != nil {
		return nil, errors.Join(err, l.stream.Close())
	}
	for _, name := range columns {
		at := slices.Index(header, name)
		if at < 0 {
			err := l.fault(0, "no column is named %s; the header has %s", quote(name), list(header))
			return nil, errors.Join(err, l.stream.Close())
		}
		t.pick = append(t.pick, at)
	}
	return t, nil
}

// ParseTable is OpenTable of the content of a file; name is for messages.
func ParseTable(name string, data []byte) (*Table, error) {
	in, err := newInput(name, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	in.close = func() error { return nil }
	return newTable(in, nil)
}

// Next returns the fields of the next line and its number, from 1. The slice is reused by the next
// call, its strings are not. At the end it returns io.EOF.
func (t *Table) Next() (fields []string, line int, err error) {
	if t.err != nil {
		return nil, 0, t.err
	}
	text, err := t.lines.read()
	if err != nil {
		t.err = err
		return nil, 0, err
	}
	t.split, t.err = t.lines.split(t.split[:0], text, t.sep)
	if t.err != nil {
		return nil, 0, t.err
	}
	t.fields = t.fields[:0]
	if t.pick == nil {
		for _, field := range t.split {
			t.fields = append(t.fields, string(field))
		}
		return t.fields, t.lines.number, nil
	}
	for _, at := range t.pick {
		if at >= len(t.split) {
			t.err = t.lines.fault(0, "%d fields, want at least %d", len(t.split), at+1)
			return nil, 0, t.err
		}
		t.fields = append(t.fields, string(t.split[at]))
	}
	return t.fields, t.lines.number, nil
}

// Close closes the file.
func (t *Table) Close() error { return t.lines.close() }
