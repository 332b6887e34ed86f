package codec

import (
	"bytes"
	"errors"
)

// Lines reads a text file line by line: what separates its fields is for the caller to find out.
// Blank lines are skipped. One goroutine.
type Lines struct{ lines *lines }

// OpenLines opens a text file, or a .zst or .gz of one. name is the file's for messages; empty: its
// path.
func OpenLines(path, name string) (*Lines, error) {
	in, err := openInput(path)
	if err != nil {
		return nil, err
	}
	in.rename(name, "")
	l, err := openLines(in)
	if err != nil {
		return nil, errors.Join(err, in.close())
	}
	return &Lines{l}, nil
}

// ParseLines is OpenLines of the content of a file; name is for messages.
func ParseLines(name string, data []byte) (*Lines, error) {
	in, err := newInput(name, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	in.close = func() error { return nil }
	l, err := openLines(in)
	if err != nil {
		return nil, err
	}
	return &Lines{l}, nil
}

// Next returns the next line without its end, and its number from 1. It is valid until the next
// call. At the end it returns io.EOF.
func (l *Lines) Next() (text []byte, number int, err error) {
	text, err = l.lines.read()
	return text, l.lines.number, err
}

// Split appends the fields of the line that Next returned last. They share its memory. With a comma
// a field may be in double quotes, as in a .csv file.
func (l *Lines) Split(fields [][]byte, line []byte, separator byte) ([][]byte, error) {
	return l.lines.split(fields, line, separator)
}

// Close closes the file.
func (l *Lines) Close() error { return l.lines.close() }
