package storage

import (
	"errors"
	"strings"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/format"
)

// A rowSet is what one release has of one collection: rows, their LSNs, decoders, plans, encoder
// and generation. Each is referenced once: by its collection, if it is of the live release, or by
// one release.
//
// The first set of a collection has the UID of the collection and lies in its bucket. Others have
// UIDs of their own and lie in the bucket sets. As the checksums of values cover the UID, a set
// becomes that of the collection without a change to any of its values.
type rowSet struct {
	uid uint32

	// All copies of the catalog share these: they change beside the writer.
	served atomic.Pointer[generation]
	// Of a set that is not live: the ids that have a row. Ids deleted since may be among them.
	held  atomic.Pointer[roaring.Bitmap]
	stamp atomic.Uint64 // see Info.Stamp
}

func newSet(uid uint32) *rowSet {
	s := &rowSet{uid: uid}
	s.served.Store(&generation{})
	return s
}

// ofRelease are the buckets of a set.
var ofRelease = [bucketCount]bool{rowsBucket: true, dirtyBucket: true, decodersBucket: true, plansBucket: true, encoderBucket: true}

// ownBuckets are those of them that hold nothing else: that of the encoder is meta.
var ownBuckets = []bucket{rowsBucket, dirtyBucket, decodersBucket, plansBucket}

// encoderPrefix begins the names of the meta values that belong to a release.
const encoderPrefix = "flashdb.encoder"

// metaOf returns the bucket that a meta value is in.
func metaOf(name string) bucket {
	if strings.HasPrefix(name, encoderPrefix) {
		return encoderBucket
	}
	return metaBucket
}

// setBucket returns the bucket of a set of a collection, or nil.
func setBucket(tx *bolt.Tx, uid, set uint32) *bolt.Bucket {
	var key [4]byte
	top := bucketOfSets
	if set == uid {
		top = bucketOfCollections
	}
	if b := tx.Bucket(top); b != nil {
		return b.Bucket(bigEndian(&key, set))
	}
	return nil
}

// loadSet reads which set of a collection is live, and what is kept in memory of it. b is the
// bucket of the collection.
func (c *collection) loadSet(tx *bolt.Tx, b table, file string) error {
	set := c.uid
	value, err := b.get(keySet)
	if err == nil && value != nil {
		set, err = decodeUint32(value)
	}
	if err != nil {
		return located(err, file, "set")
	}
	c.set, c.held, err = loadRowSet(tx, b.layout, file, c.uid, set)
	return err
}

// loadRowSet reads what is kept in memory of a set.
func loadRowSet(tx *bolt.Tx, l layout, file string, uid, set uint32) (s *rowSet, held *roaring.Bitmap, err error) {
	s = newSet(set)
	bkt := setBucket(tx, uid, set)
	if bkt == nil {
		return nil, nil, format.Corrupt(file, "sets", 0, "there is no set with UID %d", set)
	}
	b := l.collection(bkt, set)
	value, err := b.get(keyIndex)
	if err == nil && value != nil {
		var g generation
		g, err = decodeGeneration(value)
		s.served.Store(&g)
	}
	if err != nil {
		return nil, nil, located(err, file, "index")
	}
	value, err = b.get(keyHeld)
	if err == nil && value != nil {
		held, err = decodeBitmap(value)
	}
	return s, held, located(err, file, "held")
}

// setOf returns the set that r sees of a collection, or nil.
func (r *reader) setOf(uid uint32) *rowSet {
	if r.as != nil {
		if s := r.as.sets[uid]; s != nil {
			return s
		}
	}
	if col := r.catalog.byUID[uid]; col != nil {
		return col.set
	}
	return nil
}

// redirected tells whether r sees another set than the live one in a bucket. The layers hold
// changes of the live one.
func (r *reader) redirected(uid uint32, b bucket) bool {
	return r.as != nil && ofRelease[b] && r.as.sets[uid] != nil
}

// ofRelease returns what r sees of a collection whose live state is info.
func (r *reader) ofRelease(info Info) Info {
	if !r.redirected(info.UID, rowsBucket) {
		return info
	}
	set := r.as.sets[info.UID]
	g := set.served.Load()
	info.Generation, info.BuildLSN, info.Segments = g.number, g.buildLSN, g.segments
	info.Rows = int(set.rows(r.catalog.byUID[info.UID]).GetCardinality())
	info.Stamp = set.stamp.Load()
	return info
}

// rows returns the ids of live nodes that have a row in a set that is not live.
func (s *rowSet) rows(of *collection) *roaring.Bitmap {
	held := s.held.Load()
	if of.tombs == nil {
		return held.Clone()
	}
	return roaring.AndNot(held, of.tombs)
}

// RowIDs returns the ids of the live nodes that have a row, or nil if all have one. The bitmap must
// not be changed.
func (r *reader) RowIDs(uid uint32) *roaring.Bitmap {
	col := r.catalog.byUID[uid]
	switch {
	case col == nil:
		return nil
	case r.redirected(uid, rowsBucket):
		return r.as.sets[uid].rows(col)
	}
	return col.held
}

// hold notes that a node has a row in the live set.
func (e *edit) hold(id uint32) {
	if e.held != nil && !e.held.Contains(id) {
		e.ownedHeld().Add(id)
	}
}

// holdRange is hold of n consecutive ids.
func (e *edit) holdRange(first uint32, n int) {
	if e.held != nil {
		e.ownedHeld().AddRange(uint64(first), uint64(first)+uint64(n))
	}
}

// unhold notes that a node has no row any more.
func (e *edit) unhold(id uint32) {
	if e.held != nil && e.held.Contains(id) {
		e.ownedHeld().Remove(id)
	}
}

// ownedHeld returns the bitmap for changing in place.
func (e *edit) ownedHeld() *roaring.Bitmap {
	if !e.ownHeld {
		e.held, e.ownHeld = e.held.Clone(), true
	}
	return e.held
}

// in returns the bucket in which a bucket of the collection is.
func (w *writer) in(b bucket) table {
	if ofRelease[b] {
		return w.set
	}
	return w.parent
}

// putHeld stores which ids have a row in a set.
func (w *writer) putHeld(set table, held *roaring.Bitmap) {
	value, err := encodeBitmap(held)
	w.fail(err)
	w.put(set, keyHeld, value)
}

// setWriter returns a writer of a set that is not live.
func (l layout) setWriter(tx *bolt.Tx, file string, col *collection, set uint32) *writer {
	w := &writer{file: file, uid: set, dim: col.schema.Dim, nextID: maxID + 1} // rows of any id may be there
	bkt := setBucket(tx, col.uid, set)
	if bkt == nil {
		w.err = format.Corrupt(file, "sets", 0, "there is no set with UID %d", set)
		return w
	}
	w.set = l.collection(bkt, set)
	w.parent = w.set
	return w
}

// takeOut removes the rows of deleted nodes from the sets that are not live. ids ascend.
func (w *writer) takeOut(releases []*release, ids []uint32, all *layer) {
	var dead []uint32
	for _, r := range releases {
		set := r.sets[w.uid]
		if set == nil || r.state == stateDropping || w.err != nil {
			continue
		}
		if dead == nil {
			dead = []uint32{}
			for _, id := range ids {
				if n, _ := all.node(nodeKey{w.uid, id}); n.record == nil {
					dead = append(dead, id)
				}
			}
		}
		if len(dead) == 0 {
			return
		}
		of := w.parent.layout.setWriter(w.parent.Tx(), w.file, &collection{uid: w.uid, schema: Schema{Dim: w.dim}}, set.uid)
		of.rowBlocks(dead, newLayer())
		w.fail(of.err)
	}
}

// rowBlocks writes the rows and LSNs of some ids, which ascend: of those that the layer does not
// mention, none is left.
func (w *writer) rowBlocks(ids []uint32, all *layer) {
	if len(ids) == 0 {
		return
	}
	rows, dirty := w.table(rowsBucket), w.table(dirtyBucket)
	size := uint32(rowsPerBlock(w.dim))
	eachBlock(ids, size, func(block uint32, ids []uint32) { w.rowBlock(rows, block, size, ids, all) })
	eachBlock(ids, dirtyBlock, func(block uint32, ids []uint32) { w.dirtyBlock(dirty, block, ids, all) })
}

// dropSet removes a set and all it holds.
func (l layout) dropSet(tx *bolt.Tx, uid, set uint32) error {
	var key [4]byte
	if set != uid {
		sets := tx.Bucket(bucketOfSets)
		if sets == nil || sets.Bucket(bigEndian(&key, set)) == nil {
			return nil // a crash came between this and the end of the release
		}
		return sets.DeleteBucket(bigEndian(&key, set))
	}
	bkt := setBucket(tx, uid, set)
	if bkt == nil {
		return nil
	}
	for _, b := range ownBuckets {
		if bkt.Bucket(bucketNames[b]) == nil {
			continue
		}
		if err := bkt.DeleteBucket(bucketNames[b]); err != nil {
			return err
		}
	}
	return errors.Join(bkt.Delete(keyIndex), bkt.Delete(keyHeld), bkt.Delete(keyEmbedded), l.dropEncoder(bkt, uid))
}

// dropEncoder removes the meta values of the first set of a collection.
func (l layout) dropEncoder(bkt *bolt.Bucket, uid uint32) error {
	meta := bkt.Bucket(bucketNames[encoderBucket])
	if meta == nil {
		return nil
	}
	var names [][]byte
	c := meta.Cursor()
	for k, _ := c.Seek([]byte(encoderPrefix)); k != nil && strings.HasPrefix(string(k), encoderPrefix); k, _ = c.Next() {
		names = append(names, append([]byte(nil), k...)) // a cursor must not be used beside deletes
	}
	t := l.table(meta, uid, encoderBucket)
	for _, name := range names {
		if err := t.put(name, nil, &slab{}); err != nil {
			return err
		}
	}
	return nil
}

// dropSets removes all sets of a collection that is dropped but the one in its own bucket.
func (c *catalog) dropSets(tx *bolt.Tx, uid uint32) error {
	var errs []error
	drop := func(set uint32) {
		if set != uid {
			errs = append(errs, layout(0).dropSet(tx, uid, set))
		}
	}
	drop(c.byUID[uid].set.uid)
	for _, r := range c.releases {
		if set := r.sets[uid]; set != nil {
			drop(set.uid)
		}
	}
	return errors.Join(errs...)
}
