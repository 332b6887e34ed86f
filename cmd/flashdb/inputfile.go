package main

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/parquet"
	"github.com/flashdb/flashdb/internal/codec"
)

const (
	formatParquet = "parquet"
	formatCSV     = "csv"
	formatTSV     = "tsv"
	standardInput = "-"
)

// An inputFile is a file to import: one that the user names, or a copy of what cannot be read twice
// or at any place, standard input and compressed Parquet.
type inputFile struct {
	name     string // for messages
	path     string
	format   string // "" where the name says it
	identity string // tells this content from another
	copied   bool
}

// formats are the values of --format.
func formats() []string { return append(codec.Formats(), formatParquet) }

// openInput finds the file of an argument. The caller calls remove.
func (a *app) openInput(arg, format string) (*inputFile, error) {
	if format != "" && !slices.Contains(formats(), format) {
		return nil, fmt.Errorf("--format %s is not known; want one of %s", format, strings.Join(formats(), ", "))
	}
	f := &inputFile{name: arg, path: arg, format: format}
	if arg == standardInput {
		if format == "" {
			return nil, fmt.Errorf("standard input has no name to tell its format: give --format, one of %s", strings.Join(formats(), ", "))
		}
		f.name = "standard input"
		return f, f.copy(a.in)
	}
	if f.isParquet() && isCompressed(arg) {
		r, err := codec.OpenStream(arg)
		if err != nil {
			return nil, err
		}
		return f, errors.Join(f.copy(r), r.Close())
	}
	path, _, _ := strings.Cut(arg, "#")
	if info, err := os.Stat(path); err == nil {
		f.identity = fmt.Sprintf("%d bytes of %s", info.Size(), info.ModTime().UTC())
	}
	return f, nil
}

// copy keeps r in a temporary file.
func (f *inputFile) copy(r io.Reader) (err error) {
	t, err := os.CreateTemp("", "flashdb-import-*")
	if err != nil {
		return err
	}
	f.path, f.copied = t.Name(), true
	sum := crc32.NewIEEE()
	n, err := io.Copy(io.MultiWriter(t, sum), r)
	f.identity = fmt.Sprintf("%d bytes, checksum %08x", n, sum.Sum32())
	if err = errors.Join(err, t.Close()); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", f.name, err), f.remove())
	}
	return nil
}

// remove takes a copy away.
func (f *inputFile) remove() error {
	if !f.copied {
		return nil
	}
	return os.Remove(f.path)
}

func isCompressed(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".zst") || strings.HasSuffix(name, ".gz")
}

// extension is that of a file without that of its compression, in lower case and without its dot.
func extension(name string) string {
	name = strings.ToLower(name)
	if isCompressed(name) {
		name = strings.TrimSuffix(name, filepath.Ext(name))
	}
	return strings.TrimPrefix(filepath.Ext(name), ".")
}

// kind is the format that was said, or that of the name.
func (f *inputFile) kind() string { return cmp.Or(f.format, extension(f.name)) }

func (f *inputFile) isParquet() bool { return f.kind() == formatParquet }

// hasColumns tells whether the format has room for keys, tags, attributes and payloads.
func (f *inputFile) hasColumns() bool {
	return codec.HasKeys(f.kind()) || f.kind() == "ndjson" || f.isParquet()
}

// rows opens the embeddings.
func (f *inputFile) rows(columns codec.Columns) (codec.RowReader, error) {
	if f.isParquet() {
		return parquet.OpenRows(f.path, f.name, columns)
	}
	opts := &codec.RowOptions{Format: f.format, Columns: columns}
	if f.copied {
		opts.Name = f.name
	}
	return codec.OpenRows(f.path, opts)
}

// A tableReader returns lines of fields; see codec.Table.
type tableReader interface {
	Next() (fields []string, line int, err error)
	Close() error
}

// A tableFile is a file of lines of fields.
type tableFile struct {
	name string // for messages
	unit string // what its lines are called: line or row
	open func() (tableReader, error)
}

// tableAt is a file of tab-separated lines, or of comma-separated ones if it is named so.
func tableAt(path string) tableFile {
	return tableFile{path, "line", func() (tableReader, error) { return codec.OpenTable(path, nil) }}
}

// table is the file as one of lines of the named columns, or of all.
func (f *inputFile) table(columns []string) (tableFile, error) {
	if f.isParquet() {
		return tableFile{f.name, "row", func() (tableReader, error) { return parquet.OpenTable(f.path, f.name, columns) }}, nil
	}
	if f.format != "" && f.format != formatCSV && f.format != formatTSV {
		return tableFile{}, fmt.Errorf("--format %s holds no table; want %s, %s or %s", f.format, formatTSV, formatCSV, formatParquet)
	}
	opts := &codec.TableOptions{Format: f.format, Columns: columns}
	if f.copied {
		opts.Name = f.name
	}
	return tableFile{f.name, "line", func() (tableReader, error) { return codec.OpenTable(f.path, opts) }}, nil
}
