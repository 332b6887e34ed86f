package storage

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// A layer holds the newest state of everything that some consecutive changes touched. It belongs to
// the Changes that builds it, and is immutable from Publish on. Everything else is as in the layers
// below it, and below those as in bbolt.
type layer struct {
	nodes   map[nodeKey]node
	ids     map[nameKey]idOf
	links   map[linkKey]*roaring.Bitmap // nil: none any more
	typed   map[linkKey][]Related       // nil: none any more
	recent  map[recentKey]*recent
	tags    map[nameKey]*roaring.Bitmap // nil: no node carries the tag any more
	columns map[columnKey]*column       // nil: no node of it has the attribute any more
	blobs   map[blobKey][]byte          // nil: none any more

	runs []*run    // by UID and first id; what nodes and ids say of their nodes is newer
	keys *keyTable // of runs; nil if there are none

	bytes int64 // estimate of the memory held, set by Publish
}

type nodeKey struct{ uid, id uint32 }

type nameKey struct {
	uid  uint32
	name string
}

// A blobKey names a value in a bucket whose values this package does not interpret: decoders, meta
// and plans.
type blobKey struct {
	uid  uint32
	in   bucket
	name string
}

// A node is a record and the row that came with it. Both are nil if the node was deleted. The row
// alone is nil if only the record changed: then the row, and the LSN of it, are those of a layer
// below or of bbolt.
type node struct {
	record []byte // as appendRecord makes it
	row    []float32
	lsn    uint64 // of the row
}

// recordOnly reports whether the row of n is in a layer below or in bbolt.
func (n node) recordOnly() bool { return n.record != nil && n.row == nil }

// over returns n, with the row of an older state of the node if n has none.
func (n node) over(older node) node {
	if n.recordOnly() {
		n.row, n.lsn = older.row, older.lsn
	}
	return n
}

// An idOf is what a key leads to.
type idOf struct {
	id   uint32
	live bool // false: the key was deleted
}

func newLayer() *layer {
	return &layer{
		nodes:   map[nodeKey]node{},
		ids:     map[nameKey]idOf{},
		links:   map[linkKey]*roaring.Bitmap{},
		typed:   map[linkKey][]Related{},
		recent:  map[recentKey]*recent{},
		tags:    map[nameKey]*roaring.Bitmap{},
		columns: map[columnKey]*column{},
		blobs:   map[blobKey][]byte{},
	}
}

// len returns how many things l mentions.
func (l *layer) len() int {
	n := len(l.nodes) + len(l.ids) + len(l.links) + len(l.typed) + len(l.recent) + len(l.tags) + len(l.columns) + len(l.blobs)
	for _, r := range l.runs {
		n += r.len()
	}
	return n
}

// node returns what l says of a node, if it mentions it.
func (l *layer) node(k nodeKey) (node, bool) {
	n, ok := l.nodes[k]
	if ok && !n.recordOnly() {
		return n, true
	}
	if r := findRun(l.runs, k.uid, k.id); r != nil {
		put := r.node(k.id)
		if !ok {
			return put, true
		}
		return n.over(put), true
	}
	return n, ok
}

// id returns what l says of a key, if it mentions it.
func (l *layer) id(k nameKey, hash uint32) (idOf, bool) {
	if len(l.ids) > 0 {
		if v, ok := l.ids[k]; ok {
			return v, true
		}
	}
	if l.keys == nil {
		return idOf{}, false
	}
	id, ok := l.keys.find(hash, func(id uint32) bool {
		r := findRun(l.runs, k.uid, id)
		return r != nil && r.key(int(id-r.first)) == k.name
	})
	return idOf{id, ok}, ok
}

// cover lays the newer layer over l. It changes l.
func (l *layer) cover(newer *layer) {
	for k, n := range newer.nodes {
		l.nodes[k] = n.over(l.nodes[k])
	}
	cover(l.ids, newer.ids)
	cover(l.links, newer.links)
	cover(l.typed, newer.typed)
	cover(l.recent, newer.recent)
	cover(l.tags, newer.tags)
	cover(l.columns, newer.columns)
	cover(l.blobs, newer.blobs)
	l.join(l, newer)
}

// join sets the runs of l to those of two layers.
func (l *layer) join(older, newer *layer) {
	l.runs, l.keys = joinRuns(older.runs, newer.runs), joinTables(older.keys, newer.keys)
}

// addRun adds a run with the table of its keys, which l takes. It changes l, whose own runs and
// keys must be no other layer's too: a batch may add thousands of runs, and each costs what it
// holds.
func (l *layer) addRun(r *run, keys *keyTable) {
	at, _ := searchRun(l.runs, r.uid, r.first)
	l.runs = slices.Insert(l.runs, at, r)
	if l.keys == nil || l.keys.room() < keys.used {
		l.keys = joinTables(l.keys, keys)
		return
	}
	l.keys.insertAll(keys)
}

func cover[K comparable, V any](older, newer map[K]V) {
	for k, v := range newer {
		older[k] = v
	}
}

// absorb lays l over the older layer. It changes l.
func (l *layer) absorb(older *layer) {
	for k, old := range older.nodes {
		if n, ok := l.nodes[k]; ok {
			old = n.over(old)
		}
		l.nodes[k] = old
	}
	absorb(l.ids, older.ids)
	absorb(l.links, older.links)
	absorb(l.typed, older.typed)
	absorb(l.recent, older.recent)
	absorb(l.tags, older.tags)
	absorb(l.columns, older.columns)
	absorb(l.blobs, older.blobs)
	l.join(older, l)
}

func absorb[K comparable, V any](newer, older map[K]V) {
	for k, v := range older {
		if _, ok := newer[k]; !ok {
			newer[k] = v
		}
	}
}

// push returns the layers with l on top. Their order is oldest first. It merges so that each layer
// is larger than the one above it: there are at most about log2 of the number of changes, and every
// entry is copied about that often. The first pinned layers are left as they are, for a flush is
// writing them. It changes l, and no other layer.
func push(layers []*layer, pinned int, l *layer) []*layer {
	n := len(layers)
	for n > pinned && layers[n-1].len() <= l.len() {
		l.absorb(layers[n-1])
		n--
	}
	l.bytes = l.size()
	return append(layers[:n:n], l)
}

// entryBytes is what an entry of a map costs beside what it points to, roughly.
const entryBytes = 96

// size estimates the memory of l.
func (l *layer) size() int64 {
	n := int64(len(l.nodes)+len(l.ids)+len(l.links)+len(l.typed)+len(l.recent)+len(l.tags)+len(l.columns)+len(l.blobs)) * entryBytes
	for _, r := range l.runs {
		n += r.size()
	}
	for _, v := range l.nodes {
		n += int64(len(v.record) + 4*len(v.row))
	}
	for k := range l.ids {
		n += int64(len(k.name))
	}
	for _, b := range l.links {
		n += bitmapBytes(b)
	}
	for _, all := range l.typed {
		for _, r := range all {
			n += entryBytes/2 + bitmapBytes(r.IDs)
		}
	}
	for _, r := range l.recent {
		n += int64(4*r.n + entryBytes/2*len(r.groups))
	}
	for k, b := range l.tags {
		n += int64(len(k.name)) + bitmapBytes(b)
	}
	for _, c := range l.columns {
		if c != nil {
			n += c.size()
		}
	}
	for k, v := range l.blobs {
		n += int64(len(k.name) + len(v))
	}
	return n
}

func bitmapBytes(b *roaring.Bitmap) int64 {
	if b == nil {
		return 0
	}
	return int64(b.GetSizeInBytes())
}

// flatten returns one layer with the contents of layers, which are oldest first. It changes none of
// them.
func flatten(layers []*layer) *layer {
	switch len(layers) {
	case 0:
		return newLayer()
	case 1:
		return layers[0]
	}
	all := newLayer()
	for _, l := range layers {
		all.cover(l)
	}
	return all
}
