package storage

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/format"
)

// Info describes a collection.
type Info struct {
	UID        uint32
	Name       string
	Schema     Schema
	Count      int       // live nodes
	NextID     uint32    // id of the next new node; every id used so far is below it
	Generation uint64    // served index, 0 if none was published
	BuildLSN   uint64    // the generation holds every change up to this LSN
	Segments   []Segment // of the generation, from the oldest on; must not be changed
	Rows       int       // live nodes that have a row
	// Stamp changes whenever another release becomes the live one, and of a staged one whenever it
	// is written to. It is counted since Open.
	Stamp uint64
}

// A collection is what is kept in memory about a collection. It is small, except for about a bit
// for each deleted id. It is immutable once published. A change works on a copy.
type collection struct {
	uid    uint32
	name   string
	schema Schema
	count  int
	nextID uint32
	lsn    uint64          // of the last change since Open; not in the file
	tombs  *roaring.Bitmap // nil if no id was ever deleted
	across []uint32        // UIDs of the other collections that its nodes are, or were, linked to nodes of
	typed  bool            // its nodes have, or had, links with relations

	recorded bool // links to its nodes have been recorded with their times

	attributes []Attribute // of its nodes, by name
	attributed bool        // its nodes have, or had, attributes

	set   *rowSet         // of the live release
	held  *roaring.Bitmap // live ids that have a row in set; nil: all live ids
	stamp uint64          // see Info.Stamp
}

// A generation is what the key index of a collection holds.
type generation struct {
	number   uint64
	buildLSN uint64
	segments []Segment
}

// A Segment is an index file with rows that are newer than those of its generation. Generations and
// segments are numbered together.
type Segment struct {
	Number uint64
	LSN    uint64 // the segments up to this one hold every row written up to this LSN
}

// last returns the LSN up to which the generation and its segments hold every row.
func (g *generation) last() uint64 {
	if n := len(g.segments); n > 0 {
		return g.segments[n-1].LSN
	}
	return g.buildLSN
}

func (c *collection) info() Info {
	g := c.set.served.Load()
	rows := c.count
	if c.held != nil {
		rows = int(c.held.GetCardinality())
	}
	return Info{
		Rows:       rows,
		Stamp:      c.stamp,
		UID:        c.uid,
		Name:       c.name,
		Schema:     c.schema,
		Count:      c.count,
		NextID:     c.nextID,
		Generation: g.number,
		BuildLSN:   g.buildLSN,
		Segments:   g.segments,
	}
}

// live reports whether id belongs to a node: it does if it is below nextID and was not deleted.
func (c *collection) live(id uint32) bool {
	return id < c.nextID && (c.tombs == nil || !c.tombs.Contains(id))
}

// A catalog lists the collections. It is immutable once published. A change works on a clone.
type catalog struct {
	byUID   map[uint32]*collection
	byName  map[string]*collection
	nextUID uint32

	releases []*release // by number; none in a database that never staged one
}

func newCatalog() *catalog {
	return &catalog{byUID: map[uint32]*collection{}, byName: map[string]*collection{}, nextUID: 1}
}

func (c *catalog) clone() *catalog {
	return &catalog{byUID: maps.Clone(c.byUID), byName: maps.Clone(c.byName), nextUID: c.nextUID, releases: c.releases}
}

// put adds col, or replaces an older copy of it.
func (c *catalog) put(col *collection) {
	c.byUID[col.uid] = col
	c.byName[col.name] = col
}

func (c *catalog) remove(col *collection) {
	delete(c.byUID, col.uid)
	delete(c.byName, col.name)
}

// loadApplied reads the LSN of the last change in the file.
func loadApplied(tx *bolt.Tx, file string, l layout) (uint64, error) {
	value, err := l.top(tx.Bucket(bucketOfMeta), bucketOfMeta).get(metaApplied)
	var applied uint64
	if err == nil {
		applied, err = decodeUint64(value)
	}
	if err == nil && applied > maxLSN {
		err = format.Corrupt("", "", 0, "%d, want at most %d", applied, uint64(maxLSN))
	}
	return applied, located(err, file, "meta: applied")
}

// putState stores what meta says of the whole file: the LSN of the last change, and the UID of the
// next collection.
func (l layout) putState(tx *bolt.Tx, applied uint64, nextUID uint32) error {
	meta := l.top(tx.Bucket(bucketOfMeta), bucketOfMeta)
	var mem slab
	return errors.Join(
		meta.put(metaApplied, binary.LittleEndian.AppendUint64(nil, applied), &mem),
		meta.put(metaNext, binary.LittleEndian.AppendUint32(nil, nextUID), &mem),
	)
}

// infos describes the collections in the order they were created in.
func (c *catalog) infos() []Info {
	infos := make([]Info, 0, len(c.byUID))
	for _, col := range c.byUID {
		infos = append(infos, col.info())
	}
	slices.SortFunc(infos, func(a, b Info) int { return cmp.Compare(a.UID, b.UID) })
	return infos
}

// loadCatalog reads every collection's info, index and tombs.
func loadCatalog(tx *bolt.Tx, file string, l layout) (*catalog, error) {
	names, root := l.top(tx.Bucket(bucketOfNames), bucketOfNames), tx.Bucket(bucketOfCollections)
	if names.Bucket == nil || root == nil {
		return nil, format.Corrupt(file, "buckets", 0, "%q or %q is missing", bucketOfNames, bucketOfCollections)
	}
	cat := newCatalog()
	value, err := l.top(tx.Bucket(bucketOfMeta), bucketOfMeta).get(metaNext)
	if err == nil {
		cat.nextUID, err = decodeUint32(value)
	}
	if err != nil {
		return nil, located(err, file, "meta: next")
	}
	err = names.ForEach(func(name, stored []byte) error {
		value, err := names.open(name, stored)
		var uid uint32
		if err == nil {
			uid, err = decodeUint32(value)
		}
		if err != nil {
			return located(err, file, "names: %q", name)
		}
		col, err := loadCollection(root, file, uid, l)
		if err != nil {
			return fmt.Errorf("collection %q: %w", name, err)
		}
		if col.name != string(name) || uid >= cat.nextUID {
			return format.Corrupt(file, "names", 0, "%q leads to UID %d, that of collection %q, and the next UID is %d",
				name, uid, col.name, cat.nextUID)
		}
		cat.put(col)
		return nil
	})
	if err == nil {
		cat.releases, err = loadReleases(tx, file, l)
	}
	return cat, err
}

func loadCollection(root *bolt.Bucket, file string, uid uint32, l layout) (*collection, error) {
	var key [4]byte
	b := l.collection(root.Bucket(bigEndian(&key, uid)), uid)
	if b.Bucket == nil {
		return nil, format.Corrupt(file, "c", 0, "there is no bucket of UID %d", uid)
	}
	var col *collection
	value, err := b.get(keyInfo)
	if err == nil {
		col, err = decodeInfo(uid, value)
	}
	if err != nil {
		return nil, located(err, file, "info")
	}
	col.typed = b.Bucket.Bucket(bucketNames[typedBucket]) != nil
	col.recorded = b.Bucket.Bucket(bucketNames[recentBucket]) != nil
	if bkt := attributesBucketOf(b.Bucket); bkt != nil {
		col.attributed = true
		if col.attributes, err = loadAttributes(l.table(bkt, uid, attributesBucket)); err != nil {
			return nil, located(err, file, "attributes")
		}
	}
	if err := col.loadSet(root.Tx(), b, file); err != nil {
		return nil, err
	}
	value, err = b.get(keyTombs)
	if err == nil && value != nil {
		col.tombs, err = decodeBitmap(value)
	}
	if err != nil {
		return nil, located(err, file, "tombs")
	}
	return col, nil
}

// collectionNotFound names a collection by the only name an operation has for it.
func collectionNotFound(uid uint32) error {
	return fmt.Errorf("collection with UID %d: %w", uid, ErrNotFound)
}
