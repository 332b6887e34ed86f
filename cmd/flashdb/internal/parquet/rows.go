package parquet

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/flashdb/flashdb/internal/codec"
)

// maxDim is the widest row read.
const maxDim = 1 << 20

// file is an open file whose footer has been checked.
type file struct {
	name   string // for messages
	f      *os.File
	at     io.ReaderAt
	size   int64
	pq     *parquet.File
	leaves []*parquet.Column
	halves map[int]bool // by the index of the leaf: its values are float16
	left   int64        // bytes its pages may still expand to
}

// spend counts what pages expand to.
func (f *file) spend(n int64) error {
	if f.left -= n; f.left < 0 {
		return fmt.Errorf("the file expands to more than %d bytes (256 MiB + 256 x its size): refused as a decompression bomb", codec.PassLimit(f.size))
	}
	return nil
}

func open(path, name string) (*file, error) {
	f, size, err := codec.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = path
	}
	opened, err := newFile(f, size, name)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	opened.f = f
	return opened, nil
}

func newFile(at io.ReaderAt, size int64, name string) (opened *file, err error) {
	f := &file{name: name, at: at, size: size, left: codec.PassLimit(size)}
	defer f.guard(&err)
	if err := checkFooter(at, size); err != nil {
		return nil, f.fault(err)
	}
	if f.pq, err = parquet.OpenFile(at, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true)); err != nil {
		return nil, f.fault(err)
	}
	f.leaves = leaves(f.pq.Root())
	f.halves = halfLeaves(f.pq.Metadata().Schema)
	return f, nil
}

func (f *file) fault(err error) error { return fmt.Errorf("%s: %w", f.name, err) }

// guard turns a panic of parquet-go, which a damaged file can cause, into an error.
func (f *file) guard(err *error) {
	if p := recover(); p != nil {
		*err = f.fault(fmt.Errorf("damaged: %v", p))
	}
}

func (f *file) close() error {
	if f.f == nil {
		return nil
	}
	return f.f.Close()
}

// Rows streams the embeddings of a file. It is a codec.RowReader.
type Rows struct {
	file       *file
	embedding  *cursor
	key        *cursor // the next three are nil where the file has no such column
	tags       *cursor
	payload    *cursor
	attributes []attribute
	ahead      []float32 // the first row, read at opening to learn the width
	values     []float32
	dim        int
	row        int64 // the next row
	err        error
}

var _ codec.RowReader = (*Rows)(nil)

// OpenRows opens the embeddings of a file. Columns that are not named have their usual names: key,
// id or name; tags; payload; and the embedding is the only column of lists of numbers. name is the
// file's for messages; empty, its path.
func OpenRows(path, name string, columns codec.Columns) (*Rows, error) {
	f, err := open(path, name)
	if err != nil {
		return nil, err
	}
	r, err := newRows(f, columns)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return r, nil
}

func newRows(f *file, columns codec.Columns) (rows *Rows, err error) {
	defer f.guard(&err)
	r := &Rows{file: f}
	if err := r.choose(columns); err != nil {
		return nil, f.fault(err)
	}
	first, err := r.embedding.next(maxDim)
	if errors.Is(err, io.EOF) {
		return nil, f.fault(errors.New("holds no rows"))
	}
	if err == nil {
		r.ahead, err = r.embedding.floats(nil, first)
	}
	if err != nil {
		return nil, f.fault(fmt.Errorf("row 0: %w", err))
	}
	r.dim = len(r.ahead)
	return r, nil
}

// choose finds the columns.
func (r *Rows) choose(columns codec.Columns) (err error) {
	f := r.file
	var embedding *parquet.Column
	if columns.Embedding != "" {
		if embedding, err = f.find(columns.Embedding, "a list of float, double or float16", f.isNumbers); err != nil {
			return err
		}
	} else {
		for _, leaf := range f.leaves {
			if !f.isNumbers(leaf) {
				continue
			}
			if embedding != nil {
				return fmt.Errorf("columns %s and %s are both lists of numbers: name the embedding", strconv.Quote(embedding.Path()[0]), strconv.Quote(leaf.Path()[0]))
			}
			embedding = leaf
		}
		if embedding == nil {
			return fmt.Errorf("no column is a list of float, double or float16; the file has %s", f.columns())
		}
	}
	r.embedding = newCursor(f, embedding)
	return r.chooseTexts(columns)
}

// chooseTexts finds the columns beside the embedding.
func (r *Rows) chooseTexts(columns codec.Columns) (err error) {
	f := r.file
	isPayload := func(c *parquet.Column) bool { return isText(c) && c.MaxRepetitionLevel() == 0 }
	isTags := func(c *parquet.Column) bool { return isText(c) && c.MaxRepetitionLevel() <= 1 }
	for _, w := range []struct {
		to    **cursor
		name  string
		what  string
		fits  func(*parquet.Column) bool
		usual []string
	}{
		{&r.key, columns.Key, "a string, bytes or an integer", isKey, []string{"key", "id", "name"}},
		{&r.tags, columns.Tags, "a string or a list of strings", isTags, []string{"tags"}},
		{&r.payload, columns.Payload, "a string or bytes", isPayload, []string{"payload"}},
	} {
		leaf := f.byName(w.fits, w.usual...)
		if w.name != "" {
			if leaf, err = f.find(w.name, w.what, w.fits); err != nil {
				return err
			}
		}
		if leaf != nil {
			*w.to = newCursor(f, leaf)
		}
	}
	return r.chooseAttributes(columns.Attributes)
}

// Dim is the number of values of an embedding.
func (r *Rows) Dim() int { return r.dim }

// Count is the number of rows the footer gives.
func (r *Rows) Count() int64 { return r.file.pq.NumRows() }

// Position names the row returned last.
func (r *Rows) Position() string { return fmt.Sprintf("row %d", r.row-1) }

// Close closes the file.
func (r *Rows) Close() error {
	for _, c := range []*cursor{r.embedding, r.key, r.tags, r.payload} {
		c.close()
	}
	for _, a := range r.attributes {
		a.close()
	}
	return r.file.close()
}

// Next decodes the next row into dst[:Dim()]. At the end it returns io.EOF.
func (r *Rows) Next(dst []float32) (row codec.Row, err error) {
	if r.err != nil {
		return codec.Row{}, r.err
	}
	defer func() { r.err = err }()
	defer r.file.guard(&err)
	if err := r.next(dst[:r.dim]); err != nil {
		if !errors.Is(err, io.EOF) {
			return codec.Row{}, r.file.fault(fmt.Errorf("row %d: %w", r.row, err))
		}
		if r.row != r.Count() {
			return codec.Row{}, r.file.fault(fmt.Errorf("truncated: %d rows, the footer says %d", r.row, r.Count()))
		}
		return codec.Row{}, io.EOF
	}
	if row, err = r.meta(); err != nil {
		return codec.Row{}, r.file.fault(fmt.Errorf("row %d: %w", r.row, err))
	}
	r.row++
	return row, nil
}

// next reads the embedding.
func (r *Rows) next(dst []float32) error {
	if r.ahead != nil {
		copy(dst, r.ahead)
		r.ahead = nil
		return nil
	}
	values, err := r.embedding.next(maxDim)
	if err != nil {
		return err
	}
	if r.values, err = r.embedding.floats(r.values[:0], values); err != nil {
		return err
	}
	if len(r.values) != r.dim {
		return fmt.Errorf("%d values, the first row has %d", len(r.values), r.dim)
	}
	copy(dst, r.values)
	return nil
}

// meta reads the other columns.
func (r *Rows) meta() (row codec.Row, err error) {
	single := func(c *cursor) (text string, null bool, err error) {
		values, err := c.next(1)
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("column %s: ends before the others", strconv.Quote(c.name))
		}
		if err != nil {
			return "", false, err
		}
		return c.text(&values[0]), values[0].null, nil
	}
	if r.key != nil {
		null := false
		if row.Key, null, err = single(r.key); err != nil {
			return row, err
		}
		if null {
			return row, errors.New("the key is null")
		}
		row.HasKey = true
	}
	if r.payload != nil {
		text, null, err := single(r.payload)
		if err != nil {
			return row, err
		}
		if !null {
			row.Payload = []byte(text)
		}
	}
	if r.tags != nil {
		if row.Tags, err = r.readTags(); err != nil {
			return row, err
		}
	}
	row.Attributes, err = r.readAttributes()
	return row, err
}

func (r *Rows) readTags() (tags []string, err error) {
	values, err := r.tags.next(maxDim)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("column %s: ends before the others", strconv.Quote(r.tags.name))
	}
	if err != nil {
		return nil, err
	}
	for i := range values {
		v := &values[i]
		switch {
		case v.null:
		case r.tags.repeated():
			tags = append(tags, r.tags.text(v))
		default:
			return codec.SplitTags(r.tags.text(v))
		}
	}
	return tags, nil
}
