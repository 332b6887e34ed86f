package ivf

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/index"
)

// denied tells quickly whether a filter keeps an id. The ids that are excluded, a few hundred more in each round, are
// unrolled into a dense bitmap once a search, because the scan asks for every survivor; the other parts of a filter are
// asked as they are.
type denied struct {
	dense   bitset // of the excluded ids; nil when the ids are too sparse for it
	it      roaring.ManyIntIterator
	buffer  []uint32
	allowed *roaring.Bitmap // nil: all
	sparse  *roaring.Bitmap // excluded, when dense is nil; nil: none
	masked  *roaring.Bitmap // nil: none
}

// newDenied sizes the bitmap by the highest id of the index, but never beyond a few bytes a row: in a file of few rows
// with high ids it does without.
func newDenied(ix *Index) denied {
	d := denied{buffer: make([]uint32, 256)}
	if bytes := int64(ix.maxID)/8 + 1; bytes <= 4*int64(ix.header.rows)+1<<16 {
		d.dense = newBitset(int(ix.maxID) + 1)
	}
	return d
}

// set takes over a filter, whose bitmaps must not change until the next set.
func (d *denied) set(f *index.Filter) {
	d.allowed, d.masked, d.sparse = f.Allowed, nonEmpty(f.Masked), nil
	if d.dense == nil {
		d.sparse = nonEmpty(f.Excluded)
		return
	}
	clear(d.dense)
	if f.Excluded == nil {
		return
	}
	d.it.Initialize(f.Excluded)
	for n := d.it.NextMany(d.buffer); n > 0; n = d.it.NextMany(d.buffer) {
		for _, id := range d.buffer[:n] {
			if uint64(id) < uint64(len(d.dense))*wordBits {
				d.dense.add(int(id))
			}
		}
	}
}

func nonEmpty(b *roaring.Bitmap) *roaring.Bitmap {
	if b == nil || b.IsEmpty() {
		return nil
	}
	return b
}

// has reports whether the filter drops id, which must be one of the index.
func (d *denied) has(id uint32) bool {
	if d.dense != nil && d.dense.has(int(id)) {
		return true
	}
	return (d.allowed != nil && !d.allowed.Contains(id)) ||
		(d.masked != nil && d.masked.Contains(id)) ||
		(d.sparse != nil && d.sparse.Contains(id))
}
