package storage

import (
	"encoding/binary"

	"github.com/flashdb/flashdb/internal/format"
)

// nodes writes three buckets one after the other, which uses caches better than three puts for each
// node. ids ascend.
func (w *writer) nodes(ids []uint32, all *layer) {
	if len(ids) == 0 {
		return
	}
	keys := w.table(keysBucket)
	for _, id := range ids {
		n, _ := all.node(nodeKey{w.uid, id})
		w.put(keys, bigEndian(&w.key, id), n.record)
	}
	if ids = all.withRows(w.uid, ids); len(ids) == 0 {
		return
	}
	rows, dirty := w.table(rowsBucket), w.table(dirtyBucket)
	if !w.parent.layout.blocked() {
		w.rowOfEach(rows, dirty, ids, all)
		return
	}
	size := uint32(rowsPerBlock(w.dim))
	eachBlock(ids, size, func(block uint32, ids []uint32) { w.rowBlock(rows, block, size, ids, all) })
	eachBlock(ids, dirtyBlock, func(block uint32, ids []uint32) { w.dirtyBlock(dirty, block, ids, all) })
}

// rowOfEach writes rows and dirty as they were before version 3: an entry for each id.
func (w *writer) rowOfEach(rows, dirty table, ids []uint32, all *layer) {
	for _, id := range ids {
		n, _ := all.node(nodeKey{w.uid, id})
		w.put(rows, bigEndian(&w.key, id), format.Float32Bytes(n.row))
	}
	for _, id := range ids {
		n, _ := all.node(nodeKey{w.uid, id})
		if n.record == nil {
			w.put(dirty, bigEndian(&w.key, id), nil)
			continue
		}
		w.put(dirty, bigEndian(&w.key, id), binary.LittleEndian.AppendUint64(w.number[:0], n.lsn))
	}
}

// eachBlock calls fn for each block of size ids that has some of ids, which ascend, with those.
func eachBlock(ids []uint32, size uint32, fn func(block uint32, ids []uint32)) {
	for len(ids) > 0 {
		block, n := ids[0]/size, 1
		for n < len(ids) && ids[n]/size == block {
			n++
		}
		fn(block, ids[:n])
		ids = ids[n:]
	}
}

// isNew reports whether the file has no id of a block yet.
func (w *writer) isNew(block, size uint32) bool {
	return uint64(block)*uint64(size) >= uint64(w.nextID)
}

// damaged notes an error about a block that is to be changed.
func (w *writer) damaged(b bucket, block uint32, err error) {
	w.fail(located(err, w.file, "%s: %s", b, w.parent.layout.shown(b, block)))
}

// rowBlock writes the rows of some ids of one block, and keeps those of its other ids.
func (w *writer) rowBlock(t table, block, size uint32, ids []uint32, all *layer) {
	if w.err != nil {
		return // there may be no table
	}
	var old rowBlock
	if !w.isNew(block, size) {
		var err error
		key := bigEndian(&w.key, block)
		if stored := t.Get(key); stored != nil {
			old, err = t.rowBlock(key, stored, int(size), w.dim)
		}
		if err != nil {
			w.damaged(rowsBucket, block, err)
			return
		}
	}
	const head = maskBytes + sealBytes
	stored := w.slab.alloc(head + int(size)*(4*w.dim+sealBytes))[:head]
	var mask uint64
	for i := range size {
		id := block*size + i
		if len(ids) > 0 && ids[0] == id {
			ids = ids[1:]
			n, _ := all.node(nodeKey{w.uid, id})
			if n.record == nil {
				continue
			}
			start := len(stored)
			stored = append(stored, format.Float32Bytes(n.row)...)
			stored = binary.LittleEndian.AppendUint32(stored, t.crc(bigEndian(&w.key, id), stored[start:]))
		} else if old.has(int(i)) {
			stored = append(stored, old.sealed(int(i))...) // not verified: a damaged row keeps its wrong seal
		} else {
			continue
		}
		mask |= 1 << i
	}
	key := bigEndian(&w.key, block)
	t.seal(key, binary.LittleEndian.AppendUint64(stored[:0], mask))
	w.putBlock(t, key, mask, stored)
}

// putBlock stores a sealed value of a block, or removes it if no id is left in it.
func (w *writer) putBlock(t table, key []byte, mask uint64, stored []byte) {
	switch {
	case w.err != nil:
	case mask == 0:
		w.err = t.Delete(key)
	default:
		w.err = t.Put(key, stored)
	}
}

// dirtyBlock notes the LSNs of some ids of one block.
func (w *writer) dirtyBlock(t table, block uint32, ids []uint32, all *layer) {
	if w.err != nil {
		return
	}
	var d dirtyIDs
	key := bigEndian(&w.key, block)
	if !w.isNew(block, dirtyBlock) {
		value, err := t.get(key)
		if err == nil && value != nil {
			d, err = decodeDirty(value)
		}
		if err != nil {
			w.damaged(dirtyBucket, block, err)
			return
		}
	}
	for _, id := range ids {
		i := int(id % dirtyBlock)
		if n, _ := all.node(nodeKey{w.uid, id}); n.record != nil {
			d.set(i, n.lsn)
		} else {
			d.remove(i)
		}
	}
	w.putBlock(t, key, d.mask, t.seal(key, d.encode(w.slab.alloc(d.encodedSize()+sealBytes))))
}
