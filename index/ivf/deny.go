package ivf

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/index"
)

// denied tells quickly whether a filter keeps an id. The ids that are excluded, a few hundred more
// in each round, are unrolled into a dense bitmap once a search, because the scan asks for every
// survivor; the other parts of a filter are asked as they are.
type denied struct {
	dense   bitset // of the excluded ids; nil when the ids are too sparse for it
	it      roaring.ManyIntIterator
	buffer  []uint32
	allowed *roaring.Bitmap // nil: all
	sparse  *roaring.Bitmap // excluded, when dense is nil; nil: none
	masked  *roaring.Bitmap // nil: none
}

func newDenied(ix *Index) denied {
	d := denied{buffer: make([]uint32, 256)}
	if fitsDense(ix.maxID, ix.header.rows) {
		d.dense = newBitset(int(ix.maxID) + 1)
	}
	return d
}

// fitsDense reports whether there is a dense bitmap of the ids up to maxID. It takes never more
// than a few bytes per row: a file of few rows with high ids does without. On 32 bits an int does
// not hold every id.
func fitsDense(maxID uint32, rows int) bool {
	return int64(maxID)/8+1 <= 4*int64(rows)+1<<16 && uint64(maxID) <= math.MaxInt-wordBits
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
