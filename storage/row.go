package storage

import (
	"fmt"

	"github.com/flashdb/flashdb/internal/format"
)

// Row copies the row of a live node to dst, whose length must be the collection's dimension.
func (r *reader) Row(dst []float32, uid, id uint32) bool {
	col := r.catalog.byUID[uid]
	if col == nil {
		return false
	}
	if len(dst) != col.schema.Dim {
		panic(fmt.Sprintf("storage: row of %d values read into %d", col.schema.Dim, len(dst)))
	}
	k := nodeKey{uid, id}
	if r.redirected(uid, rowsBucket) {
		return col.live(id) && r.row(dst, uid, id)
	}
	for i := len(r.layers) - 1; i >= 0; i-- {
		if n, ok := r.layers[i].node(k); ok && !n.recordOnly() {
			copy(dst, n.row)
			return n.record != nil
		}
	}
	return r.row(dst, uid, id)
}

// row copies the row that bbolt has of a node to dst.
func (r *reader) row(dst []float32, uid, id uint32) bool {
	if !r.layout.blocked() {
		value := r.get(uid, rowsBucket, bigEndian(&r.key, id))
		if value != nil && len(value) != 4*len(dst) {
			r.damaged(uid, rowsBucket, id, format.Corrupt("", "", 0, "%d bytes, want %d", len(value), 4*len(dst)))
			return false
		}
		copy(dst, format.Float32s(value))
		return value != nil
	}
	if !r.acquire() {
		return false
	}
	defer r.release()
	defer r.db.guard(&r.err)
	defer faults(faults(true))
	if r.rowInBlock(dst, uid, id) {
		return true
	}
	r.uid = 0 // see get
	return r.err == nil && r.rowInBlock(dst, uid, id)
}

// rowInBlock copies the row of a node from its block in bbolt to dst. It may panic.
func (r *reader) rowInBlock(dst []float32, uid, id uint32) bool {
	t, size := r.table(uid, rowsBucket), rowsPerBlock(len(dst))
	if t.Bucket == nil {
		return false
	}
	block := id / uint32(size)
	key := bigEndian(&r.key, block)
	stored := t.Get(key)
	if stored == nil {
		return false
	}
	b, err := t.rowBlock(key, stored, size, len(dst))
	if err != nil {
		r.damaged(uid, rowsBucket, r.layout.shown(rowsBucket, block), err)
		return false
	}
	i := int(id % uint32(size))
	if !b.has(i) {
		return false
	}
	row, err := b.row(t, &r.key, id, i)
	if err != nil {
		r.damaged(uid, rowsBucket, id, err)
		return false
	}
	copy(dst, format.Float32s(row))
	return true
}
