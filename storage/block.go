package storage

import (
	"encoding/binary"
	"iter"
	"math/bits"

	"github.com/flashdb/flashdb/internal/format"
)

// A block is what bbolt holds of neighbouring ids in one value, from version 3 of the layout on:
// the ids n*size to (n+1)*size-1 for block n. It begins with a mask of 8 bytes, bit i for id
// n*size+i, of which one is set at least; what follows is only there for ids whose bit is set, in
// their order.

const (
	maskBytes = 8
	maxIDs    = 64 // in a block: the bits of a mask

	dirtyBlock = 64 // ids in a block of bucket dirty
)

// rowsPerBlock returns how many ids a block of bucket rows has. It is part of the layout.
//
// A leaf page of bbolt has at least two values, and a changed row costs the write of a page. So of
// the sizes with which two or more blocks fit a page of 8 KiB, it is the one with which most rows
// fit, and of those the largest. A row of which two do not fit such a page has a block of its own.
func rowsPerBlock(dim int) int {
	const page = 8<<10 - 16                         // without its header
	const overhead = 16 + 4 + maskBytes + sealBytes // bbolt's entry and the key; the mask and its seal
	best, fit := 1, 0
	for blocks := 2; blocks <= 16; blocks++ {
		size := min((page/blocks-overhead)/(4*dim+sealBytes), maxIDs)
		if blocks*size > fit {
			best, fit = size, blocks*size
		}
	}
	return best
}

// decodeMask reads the mask of a block of size ids.
func decodeMask(value []byte, size int) (uint64, error) {
	if len(value) < maskBytes {
		return 0, format.Corrupt("", "value", 0, "%d bytes, want at least the %d of a mask", len(value), maskBytes)
	}
	mask := binary.LittleEndian.Uint64(value)
	if mask == 0 || bits.Len64(mask) > size {
		return 0, format.Corrupt("", "value", 0, "mask %#x, want some of the lowest %d bits", mask, size)
	}
	return mask, nil
}

// A rowBlock is a block of bucket rows. The mask and each row have their own seals, so that reading
// a row reads no other. It shares memory with the value it was read from.
type rowBlock struct {
	mask  uint64
	rows  []byte // those of the ids whose bit is set, in order, each with its seal
	width int    // of a row with its seal
}

// rowBlock reads what bbolt has under a key of bucket rows, but no row of it.
func (t table) rowBlock(key, stored []byte, size, dim int) (rowBlock, error) {
	const head = maskBytes + sealBytes
	b := rowBlock{width: 4*dim + sealBytes}
	value, err := t.open(key, stored[:min(head, len(stored))])
	if err == nil {
		b.mask, err = decodeMask(value, size)
	}
	if err != nil {
		return rowBlock{}, err
	}
	b.rows = stored[head:]
	if want := b.width * bits.OnesCount64(b.mask); len(b.rows) != want {
		return rowBlock{}, format.Corrupt("", "value", t.offset(stored), "%d bytes of rows, want %d", len(b.rows), want)
	}
	return b, nil
}

// has tells whether the i-th id of the block is in it.
func (b rowBlock) has(i int) bool { return b.mask>>i&1 != 0 }

// all returns the places of the ids that are in the block.
func (b rowBlock) all() iter.Seq[int] { return bitsOf(b.mask) }

// sealed returns the row of the i-th id, which must be in the block, with its seal.
func (b rowBlock) sealed(i int) []byte {
	at := bits.OnesCount64(b.mask&(1<<i-1)) * b.width
	return b.rows[at : at+b.width : at+b.width]
}

// row returns the verified row of the i-th id, which must be in the block. It is sealed under its
// id. Key is scratch.
func (b rowBlock) row(t table, key *[4]byte, id uint32, i int) ([]byte, error) {
	return t.open(bigEndian(key, id), b.sealed(i))
}

func bitsOf(mask uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; mask != 0; mask &= mask - 1 {
			if !yield(bits.TrailingZeros64(mask)) {
				return
			}
		}
	}
}

// idInBlock returns the i-th id of a block of size ids.
func idInBlock(block uint32, size, i int) (uint32, error) {
	id := uint64(block)*uint64(size) + uint64(i)
	if id > maxID {
		return 0, format.Corrupt("", "value", 0, "id %d, want at most %d", id, uint64(maxID))
	}
	return uint32(id), nil
}

// A dirtyIDs is a decoded block of bucket dirty. Most blocks come from one batch and state its LSN
// once: the value is the mask and either one LSN for all, or one for each, 8 bytes each.
type dirtyIDs struct {
	mask uint64
	lsns [dirtyBlock]uint64 // by bit
}

func decodeDirty(value []byte) (d dirtyIDs, err error) {
	mask, err := decodeMask(value, dirtyBlock)
	if err != nil {
		return d, err
	}
	lsns, ids := value[maskBytes:], bits.OnesCount64(mask)
	if len(lsns) != 8 && len(lsns) != 8*ids {
		return d, format.Corrupt("", "value", 0, "%d bytes of LSNs, want 8 or %d", len(lsns), 8*ids)
	}
	d.mask = mask
	for i := range bitsOf(mask) {
		d.lsns[i] = binary.LittleEndian.Uint64(lsns)
		if len(lsns) > 8 {
			lsns = lsns[8:]
		}
	}
	return d, nil
}

func (d *dirtyIDs) set(i int, lsn uint64) { d.mask, d.lsns[i] = d.mask|1<<i, lsn }

func (d *dirtyIDs) remove(i int) { d.mask &^= 1 << i }

// same tells whether all LSNs are equal.
func (d *dirtyIDs) same() bool {
	for i := range bitsOf(d.mask) {
		if d.lsns[i] != d.lsns[bits.TrailingZeros64(d.mask)] {
			return false
		}
	}
	return true
}

// encodedSize returns how many bytes encode appends.
func (d *dirtyIDs) encodedSize() int {
	switch {
	case d.mask == 0:
		return 0
	case d.same():
		return maskBytes + 8
	}
	return maskBytes + 8*bits.OnesCount64(d.mask)
}

// encode appends the value, or nothing if no id is in d.
func (d *dirtyIDs) encode(dst []byte) []byte {
	if d.mask == 0 {
		return dst
	}
	dst = binary.LittleEndian.AppendUint64(dst, d.mask)
	stated := d.mask
	if d.same() {
		stated &= -stated // the lowest bit
	}
	for i := range bitsOf(stated) {
		dst = binary.LittleEndian.AppendUint64(dst, d.lsns[i])
	}
	return dst
}
