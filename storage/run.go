package storage

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"unsafe"
)

// A run holds the nodes that one change put under new consecutive ids: rows and records one after
// the other. Entries of a map would cost more than the rows. A layer has runs beside its maps.
// Entries of the maps are newer than those of the runs. No layer below has a key or an id of a run.
// A run is immutable once its change is staged.
type run struct {
	uid, first uint32
	dim        int
	lsn        uint64
	rows       []float32 // row-major, n x dim
	records    []byte    // one after the other, each as appendRecord makes it
	ends       []int     // of each record in records
}

// rowBytes is what an id of a run costs beside row and record: its end, and two slots of a
// keyTable.
const rowBytes = 8 + 2*8

func (r *run) len() int { return len(r.ends) }

func (r *run) size() int64 { return int64(4*len(r.rows) + len(r.records) + rowBytes*len(r.ends)) }

// node returns what the run holds of id, which must be in it.
func (r *run) node(id uint32) node {
	i := int(id - r.first)
	return node{record: r.record(i), row: r.rows[i*r.dim : (i+1)*r.dim : (i+1)*r.dim], lsn: r.lsn}
}

func (r *run) record(i int) []byte {
	start := 0
	if i > 0 {
		start = r.ends[i-1]
	}
	return r.records[start:r.ends[i]:r.ends[i]]
}

// key returns the key of the i-th record. It shares the run's memory, which never changes.
func (r *run) key(i int) string {
	record := r.record(i)
	n, at := binary.Uvarint(record)
	key := record[at : at+int(n)]
	return unsafe.String(unsafe.SliceData(key), len(key))
}

// add appends a node with sorted tags.
func (r *run) add(o PutNode, tags []string) {
	r.rows = append(r.rows, o.Row...)
	r.records = appendRecord(r.records, o.Key, tags, o.Payload)
	r.ends = append(r.ends, len(r.records))
}

// findRun returns the run that holds an id, or nil. Runs are in order, see joinRuns.
func findRun(runs []*run, uid, id uint32) *run {
	i, exact := searchRun(runs, uid, id)
	if !exact {
		i--
	}
	if i < 0 || runs[i].uid != uid || uint64(id) >= uint64(runs[i].first)+uint64(runs[i].len()) {
		return nil
	}
	return runs[i]
}

// searchRun returns where in runs, which are in order, a run that begins with an id is or belongs.
func searchRun(runs []*run, uid, first uint32) (at int, exact bool) {
	return slices.BinarySearchFunc(runs, nodeKey{uid, first}, func(r *run, k nodeKey) int {
		return cmp.Or(cmp.Compare(r.uid, k.uid), cmp.Compare(r.first, k.id))
	})
}

// joinRuns returns the runs of two layers by UID and first id. It changes neither.
func joinRuns(a, b []*run) []*run {
	if len(a) == 0 || len(b) == 0 {
		return append(a[:len(a):len(a)], b...)
	}
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(r, s *run) int { return cmp.Or(cmp.Compare(r.uid, s.uid), cmp.Compare(r.first, s.first)) })
	return all
}

// A keyTable finds the ids of the keys in some runs: a hash table of 4 bytes of a key's hash and
// its id, which only the runs can confirm.
type keyTable struct {
	slots []uint64 // hash<<32 | id; a power of two, at most half in use
	used  int
}

// emptySlot is no id's: ids are at most maxID.
const emptySlot = 1<<64 - 1

func newKeyTable(n int) *keyTable {
	size := 16
	for size < 2*n {
		size *= 2
	}
	t := &keyTable{slots: make([]uint64, size)}
	for i := range t.slots {
		t.slots[i] = emptySlot
	}
	return t
}

var keySeed = maphash.MakeSeed()

// hashKey returns the hash of a key for keyTables.
func hashKey(uid uint32, key string) uint32 {
	return uint32(maphash.String(keySeed, key)) + uid*0x9e3779b1
}

// insert adds a key that is not there. There must be room.
func (t *keyTable) insert(hash, id uint32) {
	mask := uint32(len(t.slots) - 1)
	at := hash & mask
	for ; t.slots[at] != emptySlot; at = (at + 1) & mask {
	}
	t.slots[at] = uint64(hash)<<32 | uint64(id)
	t.used++
}

// find returns the id under hash that is confirmed.
func (t *keyTable) find(hash uint32, is func(id uint32) bool) (id uint32, ok bool) {
	mask := uint32(len(t.slots) - 1)
	for at := hash & mask; t.slots[at] != emptySlot; at = (at + 1) & mask {
		if slot := t.slots[at]; uint32(slot>>32) == hash && is(uint32(slot)) {
			return uint32(slot), true
		}
	}
	return 0, false
}

// joinTables returns a table of what is in two, either of which may be nil. It changes neither.
func joinTables(a, b *keyTable) *keyTable {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	all := newKeyTable(a.used + b.used)
	for _, t := range []*keyTable{a, b} {
		all.insertAll(t)
	}
	return all
}

// insertAll adds what is in another table. There must be room.
func (t *keyTable) insertAll(other *keyTable) {
	for _, slot := range other.slots {
		if slot != emptySlot {
			t.insert(uint32(slot>>32), uint32(slot))
		}
	}
}

// room returns how many keys can be added.
func (t *keyTable) room() int { return len(t.slots)/2 - t.used }
