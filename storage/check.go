package storage

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/format"
)

// Check reads the whole bbolt file and calls fn with one line for each violation of what the
// package comment says. It does not look at changes that have not been flushed. Flushes wait until
// it returns.
func (s *Store) Check(fn func(finding string)) {
	s.file.Lock()
	defer s.file.Unlock()
	c := &checker{place: s.place, file: s.path, layout: s.layout, report: fn, ends: map[relatedPair]uint64{}}
	if err := c.run(s.db.Load()); err != nil {
		fn(err.Error())
	}
}

// A checker looks for damage in one bbolt transaction.
type checker struct {
	place   place
	file    string
	layout  layout
	report  func(finding string)
	applied uint64
	cat     *catalog
	ends    map[relatedPair]uint64 // see sumEnds
}

func (c *checker) run(db *boltFile) error {
	err := db.view(func(tx *bolt.Tx) error {
		// The check of bbolt itself runs in a goroutine that cannot be guarded, and checks less.
		lost, err := checkPages(c.place, tx, true)
		if err != nil {
			return err
		}
		if lost > 0 {
			c.report(fmt.Sprintf("bbolt pages: %d are neither in use nor free; compacting gives them back", lost))
		}
		for _, name := range [][]byte{bucketOfMeta, bucketOfNames, bucketOfCollections} {
			if tx.Bucket(name) == nil {
				return format.Corrupt(c.file, "buckets", 0, "%q is missing", name)
			}
		}
		return c.collections(tx)
	})
	if err != nil {
		return boltError(c.file, err)
	}
	return nil
}

// collections checks that names and buckets match (invariant 1), and then each collection.
func (c *checker) collections(tx *bolt.Tx) error {
	var err error
	if c.applied, err = loadApplied(tx, c.file, c.layout); err != nil {
		return err
	}
	if c.cat, err = loadCatalog(tx, c.file, c.layout); err != nil {
		return err
	}
	defer c.bothEnds()
	c.sets(tx)
	return tx.Bucket(bucketOfCollections).ForEachBucket(func(key []byte) error {
		if len(key) != 4 {
			c.report(fmt.Sprintf("bucket %x in c: its name has %d bytes, want 4", key, len(key)))
			return nil
		}
		uid := binary.BigEndian.Uint32(key)
		col := c.cat.byUID[uid]
		if col == nil {
			c.report(fmt.Sprintf("no name leads to the collection with UID %d", uid))
			return nil
		}
		newCollectionChecker(c, tx.Bucket(bucketOfCollections).Bucket(key), col).run()
		c.releases(tx, col)
		return nil
	})
}

// A collectionChecker looks for damage in one collection.
type collectionChecker struct {
	*checker
	of      string // which release, if not the live one
	col     *collection
	buckets [bucketCount]table
	tags    map[string]*roaring.Bitmap // what is left of each tag once the nodes that say they carry it are taken out
}

func newCollectionChecker(c *checker, b *bolt.Bucket, col *collection) *collectionChecker {
	cc := &collectionChecker{checker: c, col: col, tags: map[string]*roaring.Bitmap{}}
	cc.bucketsOf(b, col.uid, false)
	if set := setBucket(b.Tx(), col.uid, col.set.uid); set != nil {
		cc.bucketsOf(set, col.set.uid, true)
	}
	return cc
}

// bucketsOf finds the buckets of the collection, or those of one of its sets.
func (c *collectionChecker) bucketsOf(b *bolt.Bucket, uid uint32, set bool) {
	for i, name := range bucketNames {
		if ofRelease[i] == set && (bucket(i) != encoderBucket || uid != c.col.uid) { // that is meta, checked as such
			c.buckets[i] = c.layout.table(b.Bucket(name), uid, bucket(i))
		}
	}
}

func (c *collectionChecker) found(text string, args ...any) {
	c.report(fmt.Sprintf("%scollection %q: ", c.of, c.col.name) + fmt.Sprintf(text, args...))
}

func (c *collectionChecker) run() {
	c.counts()
	c.loadTags()
	c.nodes()
	for _, tag := range slices.Sorted(maps.Keys(c.tags)) {
		if left := c.tags[tag]; !left.IsEmpty() {
			c.found("tags: %q has id %d, whose node does not carry it or does not exist (%d such ids)", tag, left.Minimum(), left.GetCardinality())
		}
	}
	c.ids()
	c.eachID(linksBucket, func(id uint32, key, stored []byte) {
		if value, ok := c.sound(linksBucket, key, stored); ok {
			c.links(linksBucket, id, value, c.col.nextID)
		}
	})
	c.across()
	c.typed()
	c.recent()
	c.attributes()
	c.each(metaBucket, func(key, stored []byte) { c.sound(metaBucket, key, stored) })
	c.set(c.col.set)
}

// set checks what a set has beside rows.
func (c *collectionChecker) set(s *rowSet) {
	c.dirty()
	for _, b := range []bucket{decodersBucket, encoderBucket, plansBucket} {
		c.each(b, func(key, stored []byte) { c.sound(b, key, stored) })
	}
	c.each(plansBucket, c.plans)
	c.entries()
	if g := s.served.Load(); max(g.buildLSN, g.last()) > c.applied {
		c.found("index: generation %d was built at LSN %d, the last change applied is %d", g.number, max(g.buildLSN, g.last()), c.applied)
	}
}

// sound returns a value whose checksum holds, and reports the others.
func (c *collectionChecker) sound(b bucket, key, stored []byte) ([]byte, bool) {
	value, err := c.buckets[b].open(key, stored)
	if err != nil {
		c.found("%v", located(err, c.file, "%s: %s", b, c.layout.shownKey(b, key)))
	}
	return value, err == nil
}

// entries checks the number of entries of the buckets that count them (invariant 7).
func (c *collectionChecker) entries() {
	for b, t := range c.buckets {
		if t.Bucket == nil || !t.counted || !t.layout.sealed() {
			continue
		}
		n := uint64(0)
		c.each(bucket(b), func([]byte, []byte) { n++ })
		if want := t.Sequence(); n != want {
			c.found("%s: %d entries, want %d", bucket(b), n, want)
		}
	}
}

func (c *collectionChecker) plans(name, _ []byte) {
	if b := c.buckets[decodersBucket]; b.Bucket == nil || b.Get(name) == nil {
		c.found("plans: there is no decoder %q", name)
	}
}

// counts checks what info and tombs say about each other (part of invariant 2).
func (c *collectionChecker) counts() {
	var dead uint64
	if t := c.col.tombs; t != nil && !t.IsEmpty() {
		dead = t.GetCardinality()
		if t.Maximum() >= c.col.nextID {
			c.found("tombs: id %d is deleted, and the next id is %d", t.Maximum(), c.col.nextID)
		}
	}
	if uint64(c.col.count)+dead != uint64(c.col.nextID) {
		c.found("info: %d live and %d deleted nodes do not make %d", c.col.count, dead, c.col.nextID)
	}
}

func (c *collectionChecker) loadTags() {
	c.each(tagsBucket, func(tag, stored []byte) {
		value, ok := c.sound(tagsBucket, tag, stored)
		if !ok {
			return
		}
		b, err := decodeBitmap(value)
		switch {
		case err != nil:
			c.found("tags: %q: %v", tag, err)
		case b.IsEmpty():
			c.found("tags: %q is empty", tag)
		default:
			c.tags[string(tag)] = b
		}
	})
}

// nodes walks rows and then keys (invariants 2 to 4).
func (c *collectionChecker) nodes() {
	rows := c.rows()
	nodes := 0
	c.eachID(keysBucket, func(id uint32, key, record []byte) {
		switch has, should := rows.CheckedRemove(id), c.col.held == nil || c.col.held.Contains(id); {
		case !has && should:
			c.found("rows: the row of id %d is missing", id)
		case has && !should:
			c.found("held: id %d has a row, and is not in it", id)
		}
		c.node(id, key, record)
		nodes++
	})
	for it := rows.Iterator(); it.HasNext(); {
		c.found("rows: id %d belongs to no node", it.Next())
	}
	if nodes != c.col.count {
		c.found("keys: %d nodes, info says %d", nodes, c.col.count)
	}
}

func (c *collectionChecker) node(id uint32, key, stored []byte) {
	record, ok := c.sound(keysBucket, key, stored)
	if !ok {
		return
	}
	n, err := decodeRecord(record)
	if err != nil {
		c.found("keys: id %d: %v", id, err)
		return
	}
	var value []byte
	if b := c.buckets[idsBucket]; b.Bucket != nil && n.Key != "" {
		value, err = b.get([]byte(n.Key))
	}
	if err != nil {
		c.found("%v", located(err, c.file, "ids: %q", n.Key))
	} else if got, err := decodeUint32(value); err != nil || got != id {
		c.found("ids: key %q of id %d leads to %x", n.Key, id, value)
	}
	for _, tag := range n.Tags {
		if ids := c.tags[tag]; ids == nil || !ids.CheckedRemove(id) {
			c.found("tags: %q lacks id %d, whose node carries it", tag, id)
		}
	}
}

// ids checks that there are as many keys as nodes; that each node's key leads to it was checked
// before.
func (c *collectionChecker) ids() {
	n := 0
	c.each(idsBucket, func([]byte, []byte) { n++ })
	if n != c.col.count {
		c.found("ids: %d keys, info says %d nodes", n, c.col.count)
	}
}

func (c *collectionChecker) each(b bucket, fn func(key, value []byte)) {
	if bkt := c.buckets[b]; bkt.Bucket != nil {
		cur := bkt.Cursor()
		for k, v := cur.First(); k != nil; k, v = cur.Next() {
			fn(k, v)
		}
	}
}

// eachID calls fn for the entries whose keys are live ids, and reports the others.
func (c *collectionChecker) eachID(b bucket, fn func(id uint32, key, stored []byte)) {
	c.eachNumber(b, func(id uint32, key, stored []byte) {
		if c.isLive(b, id) {
			fn(id, key, stored)
		}
	})
}

// isLive tells whether an id is that of a node, and reports it otherwise.
func (c *collectionChecker) isLive(b bucket, id uint32) bool {
	live := c.col.live(id)
	if !live {
		c.found("%s: id %d is not live", b, id)
	}
	return live
}

// eachNumber calls fn for the entries whose keys are numbers, and reports the others.
func (c *collectionChecker) eachNumber(b bucket, fn func(n uint32, key, stored []byte)) {
	c.each(b, func(key, stored []byte) {
		if len(key) != 4 {
			c.found("%s: key %x has %d bytes, want 4", b, key, len(key))
			return
		}
		fn(binary.BigEndian.Uint32(key), key, stored)
	})
}
