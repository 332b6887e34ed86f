package codec

import (
	"bytes"
	"errors"
	"strings"
)

// Table reads tab-separated lines, such as node names and edges. Lines may
// have different numbers of fields; nothing is quoted or escaped. Blank lines
// are skipped. One goroutine.
type Table struct {
	lines  *lines
	fields []string
	err    error
}

// OpenTable opens a file of tab-separated lines, or a .zst or .gz of one.
func OpenTable(path string) (*Table, error) {
	in, err := openInput(path)
	if err != nil {
		return nil, err
	}
	l, err := openLines(in)
	if err != nil {
		return nil, errors.Join(err, in.close())
	}
	return &Table{lines: l}, nil
}

// ParseTable is OpenTable of the content of a file; name is for messages.
func ParseTable(name string, data []byte) (*Table, error) {
	in, err := newInput(name, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	in.close = func() error { return nil }
	l, err := openLines(in)
	if err != nil {
		return nil, err
	}
	return &Table{lines: l}, nil
}

// Next returns the fields of the next line and its number, from 1. The slice is
// reused by the next call, its strings are not. At the end it returns io.EOF.
func (t *Table) Next() (fields []string, line int, err error) {
	if t.err != nil {
		return nil, 0, t.err
	}
	text, err := t.lines.read()
	if err != nil {
		t.err = err
		return nil, 0, err
	}
	t.fields = t.fields[:0]
	for field := range strings.SplitSeq(string(text), "\t") {
		t.fields = append(t.fields, field)
	}
	return t.fields, t.lines.number, nil
}

// Close closes the file.
func (t *Table) Close() error { return t.lines.close() }
