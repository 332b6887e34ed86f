package parquet

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// cursor reads the values of one leaf column, row by row, across pages and row groups.
type cursor struct {
	file  *file
	leaf  *parquet.Column
	name  string // of the top-level column
	group int    // the row group being read
	pages parquet.Pages
	page  parquet.ValueReader // nil between pages
	buf   []parquet.Value
	at, n int // the values of buf not yet returned
	end   bool
	row   []parquet.Value // of the row returned last; its bytes are valid until the next
}

// valuesHeld is how many values of a column are decoded at a time.
const valuesHeld = 1024

func newCursor(f *file, leaf *parquet.Column) *cursor {
	return &cursor{file: f, leaf: leaf, name: leaf.Path()[0], group: -1, buf: make([]parquet.Value, valuesHeld)}
}

// repeated tells whether a row may have more than one value.
func (c *cursor) repeated() bool { return c.leaf.MaxRepetitionLevel() > 0 }

// null tells whether a value stands for a null or an empty list.
func (c *cursor) null(v parquet.Value) bool { return v.DefinitionLevel() < c.leaf.MaxDefinitionLevel() }

// next returns the values of the next row: at least one, which may be null. At the end it is io.EOF.
func (c *cursor) next(limit int) ([]parquet.Value, error) {
	c.row = c.row[:0]
	for {
		if c.at == c.n {
			if err := c.fill(); err != nil {
				if errors.Is(err, io.EOF) && len(c.row) > 0 {
					return c.row, nil
				}
				return nil, err
			}
			continue
		}
		v := c.buf[c.at]
		if len(c.row) > 0 && v.RepetitionLevel() == 0 {
			return c.row, nil
		}
		if len(c.row) == limit {
			return nil, fmt.Errorf("column %s: more than %d values", strconv.Quote(c.name), limit)
		}
		if c.leaf.Type().Kind() == parquet.ByteArray || c.leaf.Type().Kind() == parquet.FixedLenByteArray {
			v = v.Clone() // the page it points into may end inside the row
		}
		c.row = append(c.row, v)
		c.at++
	}
}

// fill decodes more values, from the next page or row group where one ends.
func (c *cursor) fill() error {
	for {
		if c.end {
			return io.EOF
		}
		if c.page != nil {
			n, err := c.page.ReadValues(c.buf)
			if n > 0 {
				c.at, c.n = 0, n
				return nil
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return c.fault(err)
			}
			c.page = nil
		}
		if c.pages == nil {
			if err := c.nextGroup(); err != nil {
				return err
			}
			continue
		}
		page, err := c.pages.ReadPage()
		if errors.Is(err, io.EOF) {
			err = c.pages.Close()
			c.pages = nil
		}
		if err != nil {
			return c.fault(err)
		}
		if page != nil {
			c.page = page.Values()
		}
	}
}

// nextGroup opens the pages of the next row group.
func (c *cursor) nextGroup() error {
	groups := c.file.pq.RowGroups()
	for c.group++; c.group < len(groups) && groups[c.group].NumRows() == 0; c.group++ { // it may name no pages
	}
	if c.group >= len(groups) {
		c.end = true
		return nil
	}
	if err := checkPages(c.file.at, c.file.size, c.file.pq, c.group, c.leaf.Index()); err != nil {
		return c.fault(err)
	}
	c.pages = groups[c.group].ColumnChunks()[c.leaf.Index()].Pages()
	return nil
}

func (c *cursor) fault(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("row group %d, column %s: %w", c.group, strconv.Quote(c.name), err)
}

func (c *cursor) close() error {
	if c == nil || c.pages == nil {
		return nil
	}
	return c.pages.Close()
}

// floats decodes a row of numbers into dst and returns them.
func (c *cursor) floats(dst []float32, values []parquet.Value) ([]float32, error) {
	kind := c.leaf.Type().Kind()
	for i, v := range values {
		if c.null(v) {
			return nil, fmt.Errorf("column %s: value %d is null", strconv.Quote(c.name), i)
		}
		switch kind {
		case parquet.Float:
			dst = append(dst, v.Float())
		case parquet.Double:
			dst = append(dst, float32(v.Double()))
		default:
			b := v.ByteArray()
			if len(b) != 2 {
				return nil, fmt.Errorf("column %s: a half of %d bytes", strconv.Quote(c.name), len(b))
			}
			dst = append(dst, half(uint16(b[0])|uint16(b[1])<<8))
		}
	}
	return dst, nil
}

// text is a value of a column of strings, bytes or integers.
func (c *cursor) text(v parquet.Value) string {
	switch c.leaf.Type().Kind() {
	case parquet.Int32:
		return strconv.FormatInt(int64(v.Int32()), 10)
	case parquet.Int64:
		return strconv.FormatInt(v.Int64(), 10)
	}
	return string(v.ByteArray())
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

// isNumbers: parquet-go does not keep what a fixed-length byte array stands for, so halves are looked up in the footer.
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
