package graph

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/flashdb/flashdb/internal/codec"
)

// maxKey is how many bytes a key of a database may have.
const maxKey = 1024

// An Edge is one line of a file.
type Edge struct {
	Source, Target string  // keys, or numbers in decimal
	Relation       string  // empty without a column of relations
	Time           float64 // 0 without a column of times
}

// Columns name the columns of a file by its header, or by their number from 1. Empty: they are
// found out.
type Columns struct{ Source, Target, Relation, Time string }

// Layout is what was found out about a file of edges.
type Layout struct {
	Separator string // of text, in words: "tabs"; empty for other formats
	Comments  int    // lines before the first edge that are none
	Header    bool   // whether the first line names the columns
	Columns   Columns
	Unread    []string // the other columns, by the header or by their number from 1
}

// A Table gives rows of fields. The fields of a row are valid until the next call; at the end it
// returns io.EOF.
type Table interface {
	Next() (fields []string, row int, err error)
	Close() error
}

// A Reader reads the edges of one file.
type Reader struct {
	name, unit string // of the file and its lines, for messages
	layout     Layout
	next       func(*Edge) (line int, err error)
	close      func() error
	line       int
}

// ReadOptions say how the lines of a file are read. The zero value, or nil, means that it is found
// out.
type ReadOptions struct {
	Name    string // of the file, for messages; empty: its path
	Format  string // tsv, csv, jsonl, npy, npz or pt; empty: by the extension
	Columns Columns
	Times   bool // read a column of times that the header names; one in Columns is read without
}

// Open opens a list of edges.
func Open(path string, opts *ReadOptions) (*Reader, error) {
	o := opts.orDefaults(path)
	r := &Reader{name: o.Name, unit: "line"}
	var err error
	switch kind := kindOf(o.Name, o.Format); kind {
	case "npy", "npz", "pt", "pth", "safetensors":
		err = r.openArray(path, o.Columns)
	case "jsonl", "ndjson", "json":
		err = r.openJSON(path, o)
	default:
		err = r.openText(path, kind, o)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (o *ReadOptions) orDefaults(path string) ReadOptions {
	if o == nil {
		o = &ReadOptions{}
	}
	set := *o
	set.Name = cmp.Or(set.Name, path)
	return set
}

// kindOf is the format of a file, by what is said or by its name without the extension of a
// compression.
func kindOf(name, format string) string {
	if format != "" {
		return format
	}
	if at := strings.LastIndexByte(name, '#'); at > 0 {
		name = name[:at]
	}
	name = strings.ToLower(name)
	for _, suffix := range []string{".zst", ".zstd", ".gz"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return strings.TrimPrefix(filepath.Ext(name), ".")
}

// FromTable reads edges from a table whose columns have the names given; unit is what its rows are
// called.
func FromTable(t Table, unit string, header []string, opts *ReadOptions) (*Reader, error) {
	o := opts.orDefaults("")
	at, found, err := o.byName(header)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	r := &Reader{name: o.Name, unit: unit, layout: Layout{Header: true, Columns: found, Unread: at.unread(header, true)}, close: t.Close}
	r.next = func(e *Edge) (int, error) {
		fields, line, err := t.Next()
		if err != nil {
			return line, err
		}
		return line, at.fill(e, fields)
	}
	return r, nil
}

// Layout says what was found out about the file.
func (r *Reader) Layout() Layout { return r.layout }

// Next reads the next edge into e. At the end it returns io.EOF.
func (r *Reader) Next(e *Edge) error {
	*e = Edge{}
	line, err := r.next(e)
	r.line = line
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	var located *codec.Error
	if errors.As(err, &located) {
		return err
	}
	if err == nil {
		err = e.check()
	}
	if err != nil {
		return r.fault(err)
	}
	return nil
}

// fault locates an error at the line read last.
func (r *Reader) fault(err error) error {
	return fmt.Errorf("%s: %s %d: %w", r.name, r.unit, r.line, err)
}

// Close closes the file.
func (r *Reader) Close() error {
	if r.close == nil {
		return nil
	}
	return r.close()
}

// check refuses keys that no collection takes.
func (e *Edge) check() error {
	for _, key := range []string{e.Source, e.Target} {
		switch {
		case key == "":
			return errors.New("a key is empty: want a source and a target")
		case len(key) > maxKey:
			return fmt.Errorf("key %s has %d bytes, at most %d are allowed", quote(key), len(key), maxKey)
		}
	}
	return nil
}
