package ivf

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/index"
)

// denied is a filter in a form for fast lookups. Each search expands the excluded and the allowed
// ids into a dense bitmap, because the scan looks up every candidate. A filter that allows few ids
// has a low threshold, so that most codes of the visited lists are candidates. The other parts of
// the filter stay roaring bitmaps.
type denied struct {
	dense   bitset // ids that are excluded or not allowed; nil if the ids are too sparse for it
	words   bitset // memory of set
	rows    int    // of the index
	it      roaring.ManyIntIterator
	buffer  []uint32
	allowed *roaring.Bitmap // nil means all, or that they are in dense
	sparse  *roaring.Bitmap // excluded ids if dense is nil; nil means none
	masked  *roaring.Bitmap // nil means none
}

func newDenied(ix *Index) denied {
	d := denied{buffer: make([]uint32, 256), rows: ix.header.rows}
	if fitsDense(ix.maxID, ix.header.rows) {
		d.dense = newBitset(int(ix.maxID) + 1)
	}
	return d
}

// fitsDense reports whether a dense bitmap of the ids up to maxID takes at most a few bytes per
// row. With few rows and high ids it would take more. On 32-bit systems an int does not hold every
// id.
func fitsDense(maxID uint32, rows int) bool {
	return int64(maxID)/8+1 <= 4*int64(rows)+1<<16 && uint64(maxID) <= math.MaxInt-wordBits
}

// set sets the filter. Its bitmaps must not change until the next set.
func (d *denied) set(f *index.Filter) {
	d.allowed, d.masked, d.sparse = f.Allowed, nonEmpty(f.Masked), nil
	if d.dense == nil {
		d.sparse = nonEmpty(f.Excluded)
		return
	}
	clear(d.dense)
	if d.allowed != nil {
		d.allow()
	}
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

// allow drops the ids that are not allowed, unless the allowed ones are too sparse for it.
func (d *denied) allow() {
	size := 0
	if !d.allowed.IsEmpty() {
		if !fitsDense(d.allowed.Maximum(), d.rows) {
			return
		}
		size = int(d.allowed.DenseSize())
	}
	if cap(d.words) < size {
		d.words = make(bitset, size)
	}
	d.words = d.words[:size]
	clear(d.words)
	d.allowed.WriteDenseTo(d.words)
	for i := range d.dense {
		d.dense[i] = ^uint64(0)
		if i < size {
			d.dense[i] = ^d.words[i]
		}
	}
	d.allowed = nil
}

func nonEmpty(b *roaring.Bitmap) *roaring.Bitmap {
	if b == nil || b.IsEmpty() {
		return nil
	}
	return b
}

// has reports whether the filter drops id, which must be an id of the index.
func (d *denied) has(id uint32) bool {
	if d.dense != nil && d.dense.has(int(id)) {
		return true
	}
	return (d.allowed != nil && !d.allowed.Contains(id)) ||
		(d.masked != nil && d.masked.Contains(id)) ||
		(d.sparse != nil && d.sparse.Contains(id))
}
