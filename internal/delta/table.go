// Package delta holds the rows that are newer than the served generation of a collection, in
// memory, so that a node is found from the moment it is written and gone from the moment it is
// deleted, with or without an index.
//
// A Table is written by one side and read by another. Rows live in chunks that are only appended
// to; a row that is put again gets a new slot and its old slot is marked dead. A Snapshot is a
// length, the chunks up to it and copy-on-write clones of two bitmaps (dead slots, masked ids), so
// taking one copies no rows and a later write cannot be seen in it. While nothing is written every
// caller gets the same Snapshot.
//
// A Table is safe for concurrent use. Each call is atomic by itself; a caller that must show
// several changes at once keeps others from taking a Snapshot between them. A Snapshot is immutable
// and safe for concurrent use.
package delta

import (
	"fmt"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
)

const (
	chunkFloats  = 1 << 16 // floats in a chunk (256 KiB), as far as the least number of rows allows
	minChunkRows = 16
)

// chunk is a fixed run of slots. Its slices are allocated whole and filled in slot order; readers
// look only at slots below the length of their Snapshot.
type chunk struct {
	ids  []uint32
	rows []float32 // row-major, len(ids) x dim
}

// change is the newest change of an id.
type change struct {
	lsn  uint64
	slot uint32 // of its row, when live
	live bool   // false: deleted
}

// Table is the set of changes that the served generation does not hold.
type Table struct {
	dim       int
	chunkRows int

	mu      sync.RWMutex // guards the fields below
	chunks  []*chunk
	slots   int               // slots in use
	epoch   int               // number of times the slots were renumbered
	changes map[uint32]change // newest change of every id that was put or deleted
	masked  *roaring.Bitmap   // keys of changes
	dead    *roaring.Bitmap   // slots whose row was put again or deleted
	current *Snapshot         // nil when something changed after the last Snapshot
}

// New returns an empty table of rows of dim floats. It panics when dim < 1.
func New(dim int) *Table {
	if dim < 1 {
		panic("delta: New needs dim >= 1")
	}
	t := &Table{dim: dim, chunkRows: max(minChunkRows, chunkFloats/dim)}
	t.clear()
	return t
}

// clear forgets everything. Snapshots keep what they have.
func (t *Table) clear() {
	t.chunks, t.slots = nil, 0
	t.epoch++
	t.changes = make(map[uint32]change)
	t.masked, t.dead = newBitmap(), newBitmap()
	t.current = nil
}

// newBitmap returns an empty bitmap whose clones share its containers until one side changes them.
func newBitmap() *roaring.Bitmap {
	b := roaring.New()
	b.SetCopyOnWrite(true)
	return b
}

// freeze returns a clone of b for readers. The clone itself is not copy-on-write: cloning it again
// would otherwise write its bookkeeping, which concurrent readers must not do.
func freeze(b *roaring.Bitmap) *roaring.Bitmap {
	c := b.Clone()
	c.SetCopyOnWrite(false)
	return c
}

// Put records that id has this row since lsn. The row is copied. It panics when the row has the
// wrong length.
func (t *Table) Put(id uint32, row []float32, lsn uint64) {
	if len(row) != t.dim {
		panic(fmt.Sprintf("delta: put id %d: row of %d floats in a table of %d", id, len(row), t.dim))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bury(id)
	t.append(id, row, lsn)
	t.masked.Add(id)
	t.compact()
	t.current = nil
}

// Delete records that id has no row since lsn, whether or not the table holds one.
func (t *Table) Delete(id uint32, lsn uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bury(id)
	t.changes[id] = change{lsn: lsn}
	t.masked.Add(id)
	t.compact()
	t.current = nil
}

// bury marks the slot of id dead, if it has one.
func (t *Table) bury(id uint32) {
	if c, ok := t.changes[id]; ok && c.live {
		t.dead.Add(c.slot)
	}
}

// append writes the row in the next slot and makes it the newest change of id.
func (t *Table) append(id uint32, row []float32, lsn uint64) {
	i := t.slots % t.chunkRows
	if i == 0 {
		t.chunks = append(t.chunks, &chunk{
			ids:  make([]uint32, t.chunkRows),
			rows: make([]float32, t.chunkRows*t.dim),
		})
	}
	c := t.chunks[len(t.chunks)-1]
	c.ids[i] = id
	copy(c.rows[i*t.dim:], row)
	t.changes[id] = change{lsn: lsn, slot: uint32(t.slots), live: true}
	t.slots++
}

// compact drops dead slots once they are most of the table, so that a node written again and again
// does not grow it.
func (t *Table) compact() {
	if t.slots >= 2*t.chunkRows && 2*t.dead.GetCardinality() > uint64(t.slots) {
		t.renumber(func(uint64) bool { return true })
	}
}

// Retire forgets every put and delete with an LSN of at most upTo: a generation that holds them is
// served from now on. Changes after upTo stay, and so does the masking of their ids.
func (t *Table) Retire(upTo uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renumber(func(lsn uint64) bool { return lsn > upTo })
	t.current = nil
}

// renumber gives new numbers to the slots: the newest change of every id stays if keep says so of
// its LSN, everything else goes.
func (t *Table) renumber(keep func(lsn uint64) bool) {
	chunks, slots, dead, changes := t.chunks, t.slots, t.dead, t.changes
	t.clear()
	for slot := range slots {
		c, i := chunks[slot/t.chunkRows], slot%t.chunkRows
		if dead.Contains(uint32(slot)) {
			continue
		}
		if id := c.ids[i]; keep(changes[id].lsn) {
			t.append(id, c.rows[i*t.dim:(i+1)*t.dim], changes[id].lsn)
		}
	}
	for id, c := range changes {
		if !keep(c.lsn) {
			continue
		}
		t.masked.Add(id)
		if !c.live {
			t.changes[id] = c
		}
	}
}

// Snapshot returns the table as it is now.
func (t *Table) Snapshot() *Snapshot {
	t.mu.RLock()
	s := t.current
	t.mu.RUnlock()
	if s != nil {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		t.current = &Snapshot{
			table:  t,
			epoch:  t.epoch,
			chunks: t.chunks[:len(t.chunks):len(t.chunks)],
			slots:  t.slots,
			masked: freeze(t.masked),
			dead:   freeze(t.dead),
		}
	}
	return t.current
}

// find returns the slot of the row of id in s. It is not sure when the table has changed too much
// since s was taken.
func (t *Table) find(s *Snapshot, id uint32) (slot int, found, sure bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c := t.changes[id]
	if c.live && s.epoch == t.epoch && int(c.slot) < s.slots {
		return int(c.slot), true, true
	}
	return 0, false, s == t.current
}
