package storage

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/internal/format"
)

// rows checks the rows and returns the ids that have one, whether or not the row is sound.
func (c *collectionChecker) rows() *roaring.Bitmap {
	found := roaring.New()
	dim := c.col.schema.Dim
	if !c.layout.blocked() {
		c.eachNumber(rowsBucket, func(id uint32, key, stored []byte) {
			found.Add(id)
			if value, ok := c.sound(rowsBucket, key, stored); ok {
				c.row(id, value)
			}
		})
		return found
	}
	size := rowsPerBlock(dim)
	c.eachBlock(rowsBucket, size, found, func(block uint32, key, stored []byte) (uint64, error) {
		t := c.buckets[rowsBucket]
		b, err := t.rowBlock(key, stored, size, dim)
		var rowKey [4]byte
		for i := range b.all() {
			id, _ := idInBlock(block, size, i) // looked at by eachBlock
			if value, err := b.row(t, &rowKey, id, i); err != nil {
				c.found("%v", located(err, c.file, "rows: %d", id))
			} else {
				c.row(id, value)
			}
		}
		return b.mask, err
	})
	return found
}

// eachBlock calls fn for the blocks of a bucket. fn returns the mask of the ids in a block, and
// these are added to found. A damaged block is reported once. All live ids that it could hold count
// as found, so that they are not reported again one by one.
func (c *collectionChecker) eachBlock(b bucket, size int, found *roaring.Bitmap, fn func(block uint32, key, stored []byte) (mask uint64, err error)) {
	c.eachNumber(b, func(block uint32, key, stored []byte) {
		if _, err := idInBlock(block, size, 0); err != nil {
			c.found("%v", located(err, c.file, "%s: block %d", b, block))
			return
		}
		mask, err := fn(block, key, stored)
		if err != nil {
			c.found("%v", located(err, c.file, "%s: block %d", b, block))
			mask = 1<<size - 1
		}
		for i := range bitsOf(mask) {
			id, beyond := idInBlock(block, size, i)
			if beyond == nil && (err == nil || c.col.live(id)) {
				found.Add(id)
			}
		}
	})
}

func (c *collectionChecker) row(id uint32, value []byte) {
	if len(value) != 4*c.col.schema.Dim {
		c.found("rows: the row of id %d has %d bytes, want %d", id, len(value), 4*c.col.schema.Dim)
		return
	}
	if i := firstNonFinite(format.Float32s(value)); i >= 0 {
		c.found("rows: value %d of id %d is not a finite number", i, id)
	}
}

// dirty checks that dirty ids are live and that their LSNs are not above applied (invariants 5 and
// 6).
func (c *collectionChecker) dirty() {
	if !c.layout.blocked() {
		c.eachID(dirtyBucket, func(id uint32, key, stored []byte) {
			if value, ok := c.sound(dirtyBucket, key, stored); ok {
				lsn, err := decodeUint64(value)
				if err != nil {
					c.found("dirty: id %d: %v", id, err)
				}
				c.dirtySince(id, lsn)
			}
		})
		return
	}
	ids := roaring.New()
	c.eachBlock(dirtyBucket, dirtyBlock, ids, func(block uint32, key, stored []byte) (uint64, error) {
		value, err := c.buckets[dirtyBucket].open(key, stored)
		if err != nil {
			return 0, err
		}
		d, err := decodeDirty(value)
		for i := range bitsOf(d.mask) {
			c.dirtySince(block*dirtyBlock+uint32(i), d.lsns[i])
		}
		return d.mask, err
	})
	for it := ids.Iterator(); it.HasNext(); {
		c.isLive(dirtyBucket, it.Next())
	}
}

func (c *collectionChecker) dirtySince(id uint32, lsn uint64) {
	if lsn > c.applied {
		c.found("dirty: id %d has LSN %d, the last change applied is %d", id, lsn, c.applied)
	}
}
