package parquet

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// cursor reads the values of one leaf column, row by row, across pages and row groups. It holds the
// page it is in, its dictionary and one row.
type cursor struct {
	file     *file
	leaf     *parquet.Column
	physical physical
	unsigned bool   // its integers are
	name     string // of the top-level column
	group    int    // the row group being read
	codec    format.CompressionCodec
	at, end  int64 // what is left of its pages, bytes of the file
	values   int64 // it should still have

	dictionary *dictionary
	page       *page // nil between pages
	zstd       *zstd.Decoder
	head       []byte // room for a page header

	ahead value // the first value of the next row, if begun
	begun bool  // ahead is there
	done  bool
	row   []value // of the row returned last; its bytes are valid until the next
}

func newCursor(f *file, leaf *parquet.Column) *cursor {
	return &cursor{
		file: f, leaf: leaf, physical: physicalOf(leaf.Type()), unsigned: isUnsigned(leaf.Type()), name: leaf.Path()[0],
		group: -1, head: make([]byte, 0, 512),
	}
}

// repeated tells whether a row may have more than one value.
func (c *cursor) repeated() bool { return c.leaf.MaxRepetitionLevel() > 0 }

// next returns the values of the next row: at least one, which may be null. At the end it is
// io.EOF.
func (c *cursor) next(limit int) ([]value, error) {
	c.row = c.row[:0]
	size := 0
	for {
		if !c.begun {
			err := c.read()
			if errors.Is(err, io.EOF) && len(c.row) > 0 {
				return c.row, nil
			}
			if err != nil {
				return nil, err
			}
			c.begun = true
		}
		switch begins := c.ahead.rep == 0; {
		case begins && len(c.row) > 0:
			return c.row, nil
		case !begins && len(c.row) == 0:
			return nil, c.fault(errors.New("damaged: values that belong to no row"))
		case len(c.row) == limit:
			return nil, fmt.Errorf("column %s: more than %d values", strconv.Quote(c.name), limit)
		}
		if size += len(c.ahead.bytes); size > maxText {
			return nil, fmt.Errorf("column %s: more than %d bytes in one row", strconv.Quote(c.name), maxText)
		}
		c.row = append(c.row, c.ahead)
		c.begun = false
	}
}

// read decodes one value into ahead. At the end of the column it is io.EOF.
func (c *cursor) read() error {
	for c.page == nil || c.page.left == 0 {
		if err := c.nextPage(); err != nil {
			return err
		}
	}
	p := c.page
	p.left--
	c.ahead = value{}
	rep, err := level(p.reps, c.leaf.MaxRepetitionLevel())
	if err != nil {
		return c.fault(err)
	}
	def, err := level(p.defs, c.leaf.MaxDefinitionLevel())
	if err != nil {
		return c.fault(err)
	}
	c.ahead.rep = rep
	if c.ahead.null = def < c.leaf.MaxDefinitionLevel(); c.ahead.null {
		return nil
	}
	if err = p.values.next(&c.ahead); err == nil {
		err = c.file.spend(int64(len(c.ahead.bytes)))
	}
	if err != nil {
		return c.fault(err)
	}
	return nil
}

// nextPage opens the next page, of the next row group where one ends.
func (c *cursor) nextPage() error {
	c.page = nil
	if c.done {
		return io.EOF
	}
	if c.at == c.end {
		if c.values != 0 {
			return c.fault(fmt.Errorf("damaged: %d values are missing, or too many", c.values))
		}
		return c.nextGroup()
	}
	p, next, err := c.readPage(c.at, c.end)
	if err != nil {
		return c.fault(fmt.Errorf("page at byte %d: %w", c.at, err))
	}
	c.page, c.at = p, next
	if p != nil {
		c.values -= p.left
	}
	return nil
}

// nextGroup finds the pages of the next row group.
func (c *cursor) nextGroup() error {
	groups := c.file.pq.Metadata().RowGroups
	for c.group++; c.group < len(groups) && groups[c.group].NumRows == 0; c.group++ { // it may name no pages
	}
	if c.done = c.group >= len(groups); c.done {
		return io.EOF
	}
	c.dictionary = nil
	var err error
	if c.at, c.end, err = c.chunk(groups[c.group].Columns); err != nil {
		c.at, c.end = 0, 0
		return c.fault(err)
	}
	return nil
}

// chunk returns where the pages of the column lie in a row group.
func (c *cursor) chunk(columns []format.ColumnChunk) (start, end int64, err error) {
	if c.leaf.Index() >= len(columns) {
		return 0, 0, errors.New("damaged: a row group without all its columns")
	}
	chunk := &columns[c.leaf.Index()]
	if chunk.FilePath != "" {
		return 0, 0, errors.New("its data is in another file, which is not supported")
	}
	m := &chunk.MetaData
	start = m.DataPageOffset
	if m.DictionaryPageOffset > 0 && m.DictionaryPageOffset < start {
		start = m.DictionaryPageOffset
	}
	if start < 4 || m.TotalCompressedSize < 0 || start > c.file.size || m.TotalCompressedSize > c.file.size-start {
		return 0, 0, fmt.Errorf("damaged: pages of %d bytes at byte %d of a file of %d", m.TotalCompressedSize, start, c.file.size)
	}
	c.codec, c.values = m.Codec, m.NumValues
	return start, start + m.TotalCompressedSize, nil
}

func (c *cursor) fault(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("row group %d, column %s: %w", c.group, strconv.Quote(c.name), err)
}

func (c *cursor) close() {
	if c != nil && c.zstd != nil {
		c.zstd.Close()
	}
}

// floats appends a row of numbers to dst.
func (c *cursor) floats(dst []float32, values []value) ([]float32, error) {
	for i := range values {
		if values[i].null {
			return nil, fmt.Errorf("column %s: value %d is null", strconv.Quote(c.name), i)
		}
		dst = append(dst, values[i].number)
	}
	return dst, nil
}

// text is a value of a column of strings, bytes or integers.
func (c *cursor) text(v *value) string {
	switch {
	case c.physical.size == 0:
		return string(v.bytes)
	case !c.unsigned:
		return strconv.FormatInt(v.whole, 10)
	case c.physical.size == 4:
		return strconv.FormatUint(uint64(uint32(v.whole)), 10)
	}
	return strconv.FormatUint(uint64(v.whole), 10)
}

// isUnsigned tells a UINT_32 or UINT_64, which is stored as the signed integer of the same bits.
func isUnsigned(t parquet.Type) bool {
	if l := t.LogicalType(); l != nil {
		integer, isInteger := l.Value.(*format.IntType)
		return isInteger && !integer.IsSigned
	}
	return false
}

// half widens an IEEE half precision number.
func half(h uint16) float32 {
	sign := float32(1)
	if h>>15 != 0 {
		sign = -1
	}
	exponent, mantissa := int(h>>10)&31, float64(h&1023)
	switch exponent {
	case 0:
		return sign * float32(math.Ldexp(mantissa, -24))
	case 31:
		if mantissa != 0 {
			return float32(math.NaN())
		}
		return sign * float32(math.Inf(1))
	}
	return sign * float32(math.Ldexp(1024+mantissa, exponent-25))
}

// What a leaf can hold.

// isNumbers: parquet-go does not keep what a fixed-length byte array stands for, so halves are
// looked up in the footer.
func (f *file) isNumbers(c *parquet.Column) bool {
	if c.MaxRepetitionLevel() != 1 {
		return false
	}
	kind := c.Type().Kind()
	return kind == parquet.Float || kind == parquet.Double || (kind == parquet.FixedLenByteArray && f.halves[c.Index()])
}

// halfLeaves are the indexes of the leaf columns of float16.
func halfLeaves(schema []format.SchemaElement) map[int]bool {
	halves := map[int]bool{}
	leaf := 0
	for _, e := range schema {
		if !e.Type.Valid {
			continue
		}
		if _, isHalf := e.LogicalType.Value.(*format.Float16Type); isHalf && e.TypeLength.V == 2 {
			halves[leaf] = true
		}
		leaf++
	}
	return halves
}

func isText(c *parquet.Column) bool { return c.Type().Kind() == parquet.ByteArray }

func isKey(c *parquet.Column) bool {
	kind := c.Type().Kind()
	return c.MaxRepetitionLevel() == 0 && (kind == parquet.ByteArray || kind == parquet.Int32 || kind == parquet.Int64)
}

// leaves are the leaf columns of a file in order.
func leaves(c *parquet.Column) (all []*parquet.Column) {
	if c.Leaf() {
		return []*parquet.Column{c}
	}
	for _, child := range c.Columns() {
		all = append(all, leaves(child)...)
	}
	return all
}

// find returns the one leaf below a top-level column, if it holds what it should.
func (f *file) find(name, what string, fits func(*parquet.Column) bool) (*parquet.Column, error) {
	var found []*parquet.Column
	for _, leaf := range f.leaves {
		if leaf.Path()[0] == name {
			found = append(found, leaf)
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("no column is named %s; the file has %s", strconv.Quote(name), f.columns())
	case len(found) > 1 || !fits(found[0]):
		return nil, fmt.Errorf("column %s (%s) is not %s", strconv.Quote(name), found[0], what)
	}
	return found[0], nil
}

// byName is find for a column that may be absent under its usual name.
func (f *file) byName(fits func(*parquet.Column) bool, names ...string) *parquet.Column {
	for _, name := range names {
		if c, err := f.find(name, "", fits); err == nil {
			return c
		}
	}
	return nil
}

// columns lists the top-level columns for a message.
func (f *file) columns() string {
	var names []string
	for _, leaf := range f.leaves {
		if name := strconv.Quote(leaf.Path()[0]); !slices.Contains(names, name) && len(names) < 12 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
