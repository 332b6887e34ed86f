package storage

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	bolt "go.etcd.io/bbolt"
)

// A linkKey names the links of one node to the nodes of one collection: its own, or another.
type linkKey struct{ uid, to, id uint32 }

// linksOf returns the key of links from a node of collection uid to nodes of collection to, where 0
// means uid.
func linksOf(uid, id, to uint32) linkKey {
	if to == 0 {
		to = uid
	}
	return linkKey{uid, to, id}
}

func (o Link) links() linkKey   { return linksOf(o.UID, o.Source, o.To) }
func (o Unlink) links() linkKey { return linksOf(o.UID, o.Source, o.To) }

// across tells whether the links lead to another collection.
func (k linkKey) across() bool { return k.to != k.uid }

// bucket returns the bucket that holds the links.
func (k linkKey) bucket() bucket {
	if k.across() {
		return acrossBucket
	}
	return linksBucket
}

// acrossKeyBytes is the length of a key of bucket across: the UID of the other collection and the
// id.
const acrossKeyBytes = 8

// appendTo appends the key in the bucket.
func (k linkKey) appendTo(b []byte) []byte {
	if k.across() {
		b = binary.BigEndian.AppendUint32(b, k.to)
	}
	return binary.BigEndian.AppendUint32(b, k.id)
}

// compare orders the links of one collection as each of the two buckets does.
func (k linkKey) compare(o linkKey) int {
	return cmp.Or(cmp.Compare(k.to, o.to), cmp.Compare(k.id, o.id))
}

// links returns a bitmap that must not be changed, or nil. Of a collection that was dropped there
// is none.
func (r *reader) links(k linkKey) *roaring.Bitmap {
	if r.catalog.byUID[k.uid] == nil || r.catalog.byUID[k.to] == nil {
		return nil
	}
	for i := len(r.layers) - 1; i >= 0; i-- {
		if b, ok := r.layers[i].links[k]; ok {
			return b
		}
	}
	return r.bitmap(k.uid, k.bucket(), k.appendTo(r.linkKey[:0]))
}

// Links returns the ids in collection to that node id of collection uid is linked to, deleted ones
// included, or nil if there are none. The two collections may be the same. The bitmap must not be
// changed.
func (r *reader) Links(uid, id, to uint32) *roaring.Bitmap { return r.links(linksOf(uid, id, to)) }

// LinkingTo returns the other collections whose nodes are, or once were, linked to nodes of
// collection to, in the order they were created in. Those that such a link with a relation leads to
// are among them.
func (r *reader) LinkingTo(to uint32) []Info {
	var infos []Info
	for _, info := range r.catalog.infos() {
		if slices.Contains(r.catalog.byUID[info.UID].across, to) {
			infos = append(infos, info)
		}
	}
	return infos
}

// ownLinks returns a bitmap for changing in place.
func (c *Changes) ownLinks(k linkKey) *roaring.Bitmap {
	b := c.own.links[k]
	if b == nil {
		b = copyBitmap(c.links(k))
		c.own.links[k] = b
	}
	return b
}

// dropLinks removes the links that start at a node. It does not look whether there are any.
func (c *Changes) dropLinks(col *edit, id uint32) {
	c.own.links[linksOf(col.uid, id, 0)] = nil
	for _, to := range col.across {
		c.own.links[linksOf(col.uid, id, to)] = nil
	}
	c.dropRelated(col, id)
}

// dropLinksTo removes the record that other collections have links to one that was dropped. A flush
// removes these links from the file. Until then nobody sees those in the layers.
func (c *Changes) dropLinksTo(uid uint32) error {
	var linking []uint32
	for _, other := range c.catalog.byUID {
		if slices.Contains(other.across, uid) {
			linking = append(linking, other.uid)
		}
	}
	for _, other := range linking {
		e, err := c.edit(other)
		if err != nil {
			return err
		}
		e.across = slices.DeleteFunc(slices.Clone(e.across), func(to uint32) bool { return to == uid })
	}
	return nil
}

func (o Link) apply(c *Changes, _ uint64) error {
	col, err := c.edit(o.UID)
	if err != nil {
		return err
	}
	k := o.links()
	to := c.catalog.byUID[k.to]
	if to == nil {
		return collectionNotFound(k.to)
	}
	if !col.live(o.Source) {
		return fmt.Errorf("link in %q: node with id %d: %w", col.name, o.Source, ErrNotFound)
	}
	for _, id := range o.Targets {
		if !to.live(id) {
			return fmt.Errorf("link to %q: node with id %d: %w", to.name, id, ErrNotFound)
		}
	}
	if len(o.Targets) == 0 {
		return c.err
	}
	if (k.across() || o.Relation != "" || o.Recorded != 0) && !c.layout.blocked() {
		what := "to another collection"
		switch {
		case o.Relation != "":
			what = "with a relation"
		case o.Recorded != 0:
			what = "with a time"
		}
		return fmt.Errorf("link from %q to %q: %w", col.name, to.name, c.layout.needsBlocks(c.file, "links "+what))
	}
	if o.Relation != "" {
		return c.linkRelated(o, col)
	}
	if k.across() {
		if !slices.Contains(col.across, k.to) {
			col.across = append(slices.Clone(col.across), k.to)
		}
	}
	links := c.ownLinks(k)
	if o.Recorded != 0 {
		return c.keepRecent(k, "", o.Recorded, addNew(links, o.Targets))
	}
	links.AddMany(o.Targets)
	return c.err
}

// linkRelated adds links with a relation, whose nodes are live.
func (c *Changes) linkRelated(o Link, col *edit) error {
	k := o.links()
	if err := checkName("relation", o.Relation); err != nil {
		return fmt.Errorf("link from %q: %w", col.name, err)
	}
	to, err := c.edit(k.to)
	if err != nil {
		return err
	}
	c.mayRelate(col, to)
	c.mayRelate(to, col)
	if o.Recorded != 0 {
		if err := c.keepRecent(k, o.Relation, o.Recorded, addNew(copyBitmap(relatedBy(&c.reader, k, o.Relation)), o.Targets)); err != nil {
			return err
		}
	}
	c.relateBoth(k, o.Relation, false, o.Targets)
	return c.err
}

func (o Unlink) apply(c *Changes, _ uint64) error {
	col, err := c.edit(o.UID)
	if err != nil {
		return err
	}
	if !col.live(o.Source) {
		return fmt.Errorf("unlink in %q: node with id %d: %w", col.name, o.Source, ErrNotFound)
	}
	k := o.links()
	if o.Relation != "" {
		c.relateBoth(k, o.Relation, true, o.Targets)
		return c.err
	}
	if c.links(k) == nil {
		return c.err
	}
	links := c.ownLinks(k)
	for _, t := range o.Targets {
		links.Remove(t)
	}
	if links.IsEmpty() {
		c.own.links[k] = nil
	}
	return c.err
}

// links writes links, in order, to collections that exist.
func (w *writer) links(keys []linkKey, cat *catalog, all *layer) {
	var t table
	in := bucketCount // of t
	for _, k := range keys {
		if cat.byUID[k.to] == nil {
			continue // dropped since
		}
		if b := k.bucket(); b != in {
			t, in = w.table(b), b
		}
		var value []byte
		if links := all.links[k]; links != nil {
			var err error
			value, err = encodeBitmap(links)
			w.fail(err)
		}
		w.put(t, k.appendTo(w.linkKey[:0]), value)
	}
}

// dropLinks removes the links to collections that were dropped: those that before names and now
// does not.
func (w *writer) dropLinks(before, now *collection) {
	if before == nil {
		return
	}
	for _, to := range before.across {
		if w.err == nil && !slices.Contains(now.across, to) {
			w.dropLinksTo(acrossBucket, to)
			w.dropLinksTo(typedBucket, to)
		}
	}
	if len(before.across) > 0 && len(now.across) == 0 && w.err == nil && w.parent.Bucket.Bucket(bucketNames[acrossBucket]) != nil {
		w.err = w.parent.DeleteBucket(bucketNames[acrossBucket])
	}
}

// dropLinksTo removes the links to one collection from a bucket, where there is one.
func (w *writer) dropLinksTo(b bucket, to uint32) {
	if w.err != nil || w.parent.Bucket.Bucket(bucketNames[b]) == nil {
		return
	}
	t := w.table(b)
	if w.err != nil {
		return
	}
	var keys [][]byte
	cur := t.Cursor()
	for k, _ := cur.Seek(binary.BigEndian.AppendUint32(nil, to)); len(k) == acrossKeyBytes && binary.BigEndian.Uint32(k) == to; k, _ = cur.Next() {
		keys = append(keys, slices.Clone(k)) // a cursor must not be used beside deletes
	}
	for _, k := range keys {
		w.put(t, k, nil)
	}
}

// putVersion raises the version of a file that has links to other collections or with relations,
// attributes, releases, index segments, or times of links. Programs of earlier versions would lose
// them.
func (s *Store) putVersion(tx *bolt.Tx, cat *catalog) error {
	needed := cat.needed()
	if needed == 0 {
		return nil
	}
	return needed.putFormat(tx)
}

// needed returns the version of a file that holds the catalog, 0 for that it was created with.
func (c *catalog) needed() (needed layout) {
	for _, col := range c.byUID {
		switch {
		case col.attributed:
			needed = max(needed, versionAttributed)
		case col.typed:
			needed = max(needed, versionTyped)
		case len(col.across) > 0:
			needed = max(needed, versionAcross)
		}
		if col.recorded {
			needed = versionRecent
		}
	}
	for _, r := range c.releases {
		needed = max(needed, versionSets)
		if r.cut != r.created {
			needed = versionRecent
		}
	}
	if c.segmented() {
		needed = max(needed, versionSegments)
	}
	return needed
}

// putFormat makes l the version of the file.
func (l layout) putFormat(tx *bolt.Tx) error {
	return tx.Bucket(bucketOfMeta).Put(metaFormat, binary.LittleEndian.AppendUint32(nil, uint32(l)))
}

// across checks the links to other collections.
func (c *collectionChecker) across() {
	for _, to := range c.col.across {
		if to == c.col.uid || c.cat.byUID[to] == nil {
			c.found("info: it has links to the collection with UID %d, and there is no other one of that", to)
		}
	}
	c.each(acrossBucket, func(key, stored []byte) {
		if len(key) != acrossKeyBytes {
			c.found("across: key %x has %d bytes, want %d", key, len(key), acrossKeyBytes)
			return
		}
		uid, id := binary.BigEndian.Uint32(key), binary.BigEndian.Uint32(key[4:])
		if !slices.Contains(c.col.across, uid) {
			c.found("across: id %d has links to the collection with UID %d, and info does not say so", id, uid)
			return
		}
		to := c.cat.byUID[uid]
		if to == nil || !c.isLive(acrossBucket, id) {
			return
		}
		if value, ok := c.sound(acrossBucket, key, stored); ok {
			c.links(acrossBucket, id, value, to.nextID)
		}
	})
}

// links checks the links of one id, to ids below next.
func (c *collectionChecker) links(b bucket, id uint32, value []byte, next uint32) {
	m, err := decodeBitmap(value)
	switch {
	case err != nil:
		c.found("%s: id %d: %v", b, id, err)
	case m.IsEmpty():
		c.found("%s: those of id %d are empty", b, id)
	case m.Maximum() >= next:
		c.found("%s: id %d is linked to id %d, and the next id is %d", b, id, m.Maximum(), next)
	}
}
