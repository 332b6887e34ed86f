package storage

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/internal/attr"
	"github.com/flashdb/flashdb/internal/format"
)

// Values of an attribute lie in columns of neighbouring ids, one value of bbolt each: column n of
// an attribute has those of the ids n*columnIDs to (n+1)*columnIDs-1.
//
//	+--------+---------------------+------------------+-----------------+------------------------------+
//	| kind,  | mask, 128 bytes:    | distinct values, | these values,   | for each id in the mask the  |
//	| 1 byte | bit i for i-th id   | varint           | ascending       | place of its value among them |
//	+--------+---------------------+------------------+-----------------+------------------------------+
//
// A value is 8 bytes, little-endian, whose order is that of the values (attr.Value.Bits), or a
// string. A place is 1 byte, or 2 where there are more than 256 values. So a column is an index of
// itself: a range of values is found by a search in a sorted list, and the ids of it by a
// comparison of small integers. What a query needs is read from bbolt as it lies there: nothing is
// held in memory.

const (
	columnIDs   = 1 << 10 // part of the layout
	columnWords = columnIDs / 64
	columnMask  = columnIDs / 8 // bytes
)

// A columnKey names a column.
type columnKey struct {
	uid  uint32
	name string
	n    uint32
}

func columnOf(uid uint32, name string, id uint32) columnKey {
	return columnKey{uid, name, id / columnIDs}
}

// compare orders the columns of one collection as bbolt does.
func (k columnKey) compare(o columnKey) int {
	if c := strings.Compare(k.name, o.name); c != 0 {
		return c
	}
	return int(int64(k.n) - int64(o.n))
}

// appendTo appends the key in bucket attributes. A name has no zero byte.
func (k columnKey) appendTo(b []byte) []byte {
	return binary.BigEndian.AppendUint32(appendAttributeKey(b, k.name), k.n)
}

// A column is the values of an attribute as a layer holds them. It is immutable once published.
type column struct {
	kind  attr.Kind
	mask  [columnWords]uint64
	fixed []uint64 // columnIDs of them, of a kind that is fixed
	texts []string // of a String
}

func newColumn(kind attr.Kind) *column {
	c := &column{kind: kind}
	if kind.Fixed() {
		c.fixed = make([]uint64, columnIDs)
	} else {
		c.texts = make([]string, columnIDs)
	}
	return c
}

func (c *column) clone() *column {
	clone := *c
	clone.fixed, clone.texts = slices.Clone(c.fixed), slices.Clone(c.texts)
	return &clone
}

func (c *column) has(i int) bool { return c.mask[i/64]>>(i%64)&1 != 0 }

func (c *column) empty() bool { return c.mask == [columnWords]uint64{} }

// value returns the value of the i-th id, which must have one.
func (c *column) value(i int) attr.Value {
	if !c.kind.Fixed() {
		v, _ := attr.OfString(c.texts[i])
		return v
	}
	v, _ := attr.OfBits(c.kind, c.fixed[i])
	return v
}

func (c *column) set(i int, v attr.Value) {
	c.mask[i/64] |= 1 << (i % 64)
	if c.kind.Fixed() {
		c.fixed[i] = v.Bits()
	} else {
		c.texts[i] = v.Text()
	}
}

func (c *column) remove(i int) {
	c.mask[i/64] &^= 1 << (i % 64)
	if !c.kind.Fixed() {
		c.texts[i] = ""
	}
}

// size estimates the memory of c.
func (c *column) size() int64 {
	n := int64(columnMask + 8*len(c.fixed) + 16*len(c.texts) + 64)
	for _, s := range c.texts {
		n += int64(len(s))
	}
	return n
}

// all calls fn for the places of the ids that have a value.
func (c *column) all(fn func(i int)) {
	for w, word := range c.mask {
		for ; word != 0; word &= word - 1 {
			fn(64*w + bits.TrailingZeros64(word))
		}
	}
}

// encode returns the value that bbolt gets.
func (c *column) encode() []byte {
	b := make([]byte, 0, 1+columnMask+4+10*columnIDs)
	b = append(b, byte(c.kind))
	for _, w := range c.mask {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	if c.kind.Fixed() {
		sorted := make([]uint64, 0, columnIDs)
		c.all(func(i int) { sorted = append(sorted, c.fixed[i]) })
		slices.Sort(sorted)
		sorted = slices.Compact(sorted)
		b = binary.AppendUvarint(b, uint64(len(sorted)))
		for _, x := range sorted {
			b = binary.LittleEndian.AppendUint64(b, x)
		}
		return appendPlaces(b, c, c.fixed, sorted)
	}
	sorted := make([]string, 0, columnIDs)
	c.all(func(i int) { sorted = append(sorted, c.texts[i]) })
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	b = binary.AppendUvarint(b, uint64(len(sorted)))
	for _, s := range sorted {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return appendPlaces(b, c, c.texts, sorted)
}

// appendPlaces appends the place of each value among the sorted ones.
func appendPlaces[V uint64 | string](b []byte, c *column, values, sorted []V) []byte {
	c.all(func(i int) {
		at, _ := slices.BinarySearch(sorted, values[i])
		b = append(b, byte(at))
		if len(sorted) > wideColumn {
			b = append(b, byte(at>>8))
		}
	})
	return b
}

// wideColumn is up to how many distinct values a place is one byte.
const wideColumn = 256

// A storedColumn is a column as bbolt has it, whose parts have been found and whose lengths fit. It
// shares memory with the value.
type storedColumn struct {
	kind   attr.Kind
	mask   [columnWords]uint64
	count  int      // values
	n      int      // distinct values
	fixed  []byte   // these, ascending
	texts  [][]byte // or these; they share memory with the value
	places []byte
	wide   bool
}

// readColumn finds the parts of a value of bucket attributes.
func readColumn(value []byte) (c storedColumn, err error) {
	err = c.read(value)
	return c, err
}

// read is readColumn into c, whose memory it reuses. It does not look at the order of the values,
// which column does.
func (c *storedColumn) read(value []byte) error {
	*c = storedColumn{texts: c.texts[:0]}
	r := format.NewReader("", "value", 0, value)
	c.kind = attr.Kind(r.Uint8())
	if r.Err() == nil && !c.kind.Valid() {
		r.Fail("attribute of unknown %v", c.kind)
	}
	mask := r.Bytes(columnMask)
	if r.Err() != nil {
		return r.Err()
	}
	for i := range c.mask {
		c.mask[i] = binary.LittleEndian.Uint64(mask[8*i:])
		c.count += bits.OnesCount64(c.mask[i])
	}
	switch {
	case c.kind.Fixed():
		c.n = r.Count(8)
		c.fixed = r.Bytes(8 * c.n)
	default:
		c.n = r.Count(1)
		if c.n <= c.count {
			for range c.n {
				c.texts = append(c.texts, r.Blob())
			}
		}
	}
	if r.Err() == nil && (c.n == 0 || c.n > c.count) {
		r.Fail("%d distinct values of %d ids", c.n, c.count)
	}
	if r.Err() != nil {
		return r.Err()
	}
	c.wide = c.n > wideColumn
	width := 1
	if c.wide {
		width = 2
	}
	c.places = r.Bytes(width * c.count)
	return r.End()
}

// place returns the place of the value of the k-th id that has one.
func (c *storedColumn) place(k int) int {
	if c.wide {
		return int(binary.LittleEndian.Uint16(c.places[2*k:]))
	}
	return int(c.places[k])
}

// has reports whether the i-th id has a value, and how many ids before it do.
func (c *storedColumn) has(i int) (before int, ok bool) {
	for _, w := range c.mask[:i/64] {
		before += bits.OnesCount64(w)
	}
	word := c.mask[i/64]
	return before + bits.OnesCount64(word&(1<<(i%64)-1)), word>>(i%64)&1 != 0
}

// distinct returns the value at a place.
func (c *storedColumn) distinct(at int) (attr.Value, error) {
	if at >= c.n {
		return attr.Value{}, format.Corrupt("", "value", 0, "value %d of %d", at, c.n)
	}
	var v attr.Value
	var err error
	if c.kind.Fixed() {
		v, err = attr.OfBits(c.kind, binary.LittleEndian.Uint64(c.fixed[8*at:]))
	} else {
		v, err = attr.OfString(string(c.texts[at]))
	}
	if err != nil {
		return v, format.Corrupt("", "value", 0, "%w", err)
	}
	return v, nil
}

// values returns the distinct values, ascending.
func (c *storedColumn) values() ([]attr.Value, error) {
	all := make([]attr.Value, c.n)
	for at := range all {
		v, err := c.distinct(at)
		if err != nil {
			return nil, err
		}
		if at > 0 && attr.Compare(all[at-1], v) >= 0 {
			return nil, format.Corrupt("", "value", 0, "value %d is not above the one before it", at)
		}
		all[at] = v
	}
	return all, nil
}

// column returns c as a column of a layer, after a check of all of it.
func (c *storedColumn) column() (*column, error) {
	values, err := c.values()
	if err != nil {
		return nil, err
	}
	out := newColumn(c.kind)
	out.mask = c.mask
	used := make([]bool, c.n)
	k := 0
	out.all(func(i int) {
		at := c.place(k)
		k++
		if at >= c.n {
			err = format.Corrupt("", "value", 0, "value %d of %d", at, c.n)
			return
		}
		used[at] = true
		out.set(i, values[at])
	})
	if err == nil && slices.Contains(used, false) {
		err = format.Corrupt("", "value", 0, "value %d is that of no id", slices.Index(used, false))
	}
	return out, err
}
