package storage

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/internal/attr"
)

// match sets the bits in dst of the ids of a column of a layer whose values are in a range.
func (c *column) match(ranges []attr.Range, dst []uint64) {
	c.all(func(i int) {
		v := c.value(i)
		for _, r := range ranges {
			if r.Holds(v) {
				dst[i/64] |= 1 << (i % 64)
				return
			}
		}
	})
}

// before returns how many of the distinct values are before a cut.
func (c *storedColumn) before(cut attr.Cut) int {
	if c.kind.Fixed() {
		bits := cut.Bits()
		return sort.Search(c.n, func(at int) bool {
			x := binary.LittleEndian.Uint64(c.fixed[8*at:])
			return x > bits || (x == bits && !cut.After)
		})
	}
	text := []byte(cut.Text())
	return sort.Search(c.n, func(at int) bool {
		order := bytes.Compare(c.texts[at], text)
		return order > 0 || (order == 0 && !cut.After)
	})
}

// span returns the places of the distinct values in a range: from up to end.
func (c *storedColumn) span(r attr.Range) (from, end int) {
	end = c.n
	if r.From.Kind() != 0 {
		from = c.before(r.From)
	}
	if r.To.Kind() != 0 {
		end = c.before(r.To)
	}
	return from, end
}

// match sets the bits in dst of the ids whose values are in a range.
func (c *storedColumn) match(ranges []attr.Range, dst []uint64) {
	if len(ranges) == 1 {
		if from, end := c.span(ranges[0]); from < end {
			c.matchSpan(from, end, dst)
		}
		return
	}
	var wanted [columnIDs]bool
	any := false
	for _, r := range ranges {
		from, end := c.span(r)
		for at := from; at < end; at++ {
			wanted[at], any = true, true
		}
	}
	if !any {
		return
	}
	k := 0
	for w, word := range c.mask {
		for ; word != 0; word &= word - 1 {
			if at := c.place(k); at < len(wanted) && wanted[at] {
				dst[w] |= word & -word
			}
			k++
		}
	}
}

// matchSpan is match of the distinct values at the places from up to end.
func (c *storedColumn) matchSpan(from, end int, dst []uint64) {
	if from == 0 && end == c.n {
		for w, word := range c.mask {
			dst[w] |= word
		}
		return
	}
	k := 0
	for w, word := range c.mask {
		switch {
		case word == ^uint64(0) && !c.wide: // most columns are full
			dst[w] |= wordOf(c.places[k:k+64], uint64(from), uint64(end-from))
			k += 64
			continue
		case word == ^uint64(0):
			dst[w] |= wideWordOf(c.places[2*k:2*k+128], uint64(from), uint64(end-from))
			k += 64
			continue
		}
		for ; word != 0; word &= word - 1 {
			dst[w] |= below(uint64(c.place(k)-from), uint64(end-from)) << bits.TrailingZeros64(word)
			k++
		}
	}
}

// below returns 1 if the lower 32 bits of x are less than width, else 0. It does not branch: where
// half of the values are in the range, half of the branches would be mispredicted.
func below(x, width uint64) uint64 { return (uint64(uint32(x)) - width) >> 63 }

// wordOf returns which of 64 places are from, or less than width behind it.
func wordOf(places []byte, from, width uint64) (out uint64) {
	for i, at := range places[:64] {
		out |= below(uint64(at)-from, width) << (i & 63)
	}
	return out
}

// wideWordOf is wordOf places of two bytes.
func wideWordOf(places []byte, from, width uint64) (out uint64) {
	places = places[:128]
	for i := range 64 {
		at := uint64(places[2*i]) | uint64(places[2*i+1])<<8
		out |= below(at-from, width) << (i & 63)
	}
	return out
}

// Match returns the ids of the live nodes whose value of an attribute is in one of some ranges, as
// a bitmap of the caller's. The ranges are of the kind of the attribute.
func (r *reader) Match(uid uint32, name string, ranges []attr.Range) *roaring.Bitmap {
	col := r.catalog.byUID[uid]
	if col == nil || len(ranges) == 0 {
		return roaring.New()
	}
	if _, ok := col.attribute(name); !ok {
		return roaring.New()
	}
	words := make([]uint64, (uint64(col.nextID)+columnIDs-1)/columnIDs*columnWords)
	r.columns(uid, name, func(n uint32, c *column, stored *storedColumn) {
		at := uint64(n) * columnWords
		if at >= uint64(len(words)) {
			return // check reports it
		}
		dst := words[at : at+columnWords]
		if c != nil {
			c.match(ranges, dst)
		} else {
			stored.match(ranges, dst)
		}
	})
	return roaring.FromDense(words, false)
}
