package storage

import (
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/internal/format"
)

func (o CreateCollection) apply(c *Changes, _ uint64) error {
	if err := CheckCollectionName(o.Name); err != nil {
		return fmt.Errorf("create collection: %w", err)
	}
	switch {
	case o.Schema.Dim < 1 || o.Schema.Dim > maxDim:
		return fmt.Errorf("create collection %q: dim is %d, want 1 to %d", o.Name, o.Schema.Dim, maxDim)
	case o.UID != c.catalog.nextUID:
		return fmt.Errorf("create collection %q: UID is %d, want %d", o.Name, o.UID, c.catalog.nextUID)
	case c.catalog.byName[o.Name] != nil:
		return fmt.Errorf("create collection %q: the name is in use", o.Name)
	case o.UID == maxID:
		return fmt.Errorf("create collection %q: no UID is left", o.Name)
	}
	col := &collection{uid: o.UID, name: o.Name, schema: o.Schema, set: newSet(o.UID)}
	cat := c.ownCatalog()
	cat.put(col)
	cat.nextUID++
	c.edits[o.UID] = &edit{collection: col}
	return nil
}

// The layers keep their entries of the collection until a flush drops them. Nobody sees these
// entries, because no collection has the UID any more.
func (o DropCollection) apply(c *Changes, _ uint64) error {
	col := c.catalog.byUID[o.UID]
	if col == nil {
		return collectionNotFound(o.UID)
	}
	c.ownCatalog().remove(col)
	c.catalog.releases = withoutCollection(c.catalog.releases, o.UID)
	delete(c.edits, o.UID)
	return c.dropLinksTo(o.UID)
}

func (o PutNode) apply(c *Changes, lsn uint64) error {
	col, err := c.edit(o.UID)
	if err != nil {
		return err
	}
	tags, err := o.check(col)
	if err != nil {
		return fmt.Errorf("put node %q into %q: %w", o.Key, col.name, err)
	}
	var old []string
	fresh := o.ID == col.nextID && o.ID <= maxID
	switch {
	case fresh:
		col.nextID++
		col.count++
		c.own.ids[nameKey{o.UID, o.Key}] = idOf{o.ID, true}
	case col.live(o.ID):
		n, ok := c.node(o.UID, o.ID)
		if !ok {
			return c.missing(col, o.ID)
		}
		if n.Key != o.Key {
			return fmt.Errorf("put node %q into %q: id %d belongs to %q", o.Key, col.name, o.ID, n.Key)
		}
		old = n.Tags
	default:
		return fmt.Errorf("put node %q into %q: id %d is deleted, or not the next one, which is %d", o.Key, col.name, o.ID, col.nextID)
	}
	col.hold(o.ID)
	c.own.nodes[nodeKey{o.UID, o.ID}] = node{
		record: appendRecord(c.slab.alloc(recordSize(o.Key, tags, o.Payload)), o.Key, tags, o.Payload),
		row:    c.slab.row(o.Row),
		lsn:    lsn,
	}
	if err := c.replaceAttributes(col, o.ID, fresh, o.Attributes); err != nil {
		return fmt.Errorf("put node %q into %q: %w", o.Key, col.name, err)
	}
	return c.retag(o.UID, o.ID, old, tags)
}

// check returns the tags sorted and without duplicates.
func (o PutNode) check(col *edit) (tags []string, err error) {
	if err := checkName("key", o.Key); err != nil {
		return nil, err
	}
	if len(o.Row) != col.schema.Dim {
		return nil, fmt.Errorf("row has %d values, want %d", len(o.Row), col.schema.Dim)
	}
	if err := checkBlob("payload", len(o.Payload)); err != nil {
		return nil, err
	}
	return checkTags(o.Tags)
}

// checkTags returns tags sorted and without duplicates.
func checkTags(tags []string) ([]string, error) {
	for _, tag := range tags {
		if err := checkName("tag", tag); err != nil {
			return nil, err
		}
	}
	if len(tags) < 2 {
		return tags, nil
	}
	tags = slices.Clone(tags)
	slices.Sort(tags)
	return slices.Compact(tags), nil
}

// missing reports a live node without a record, unless the reason is known already.
func (c *Changes) missing(col *edit, id uint32) error {
	c.damaged(col.uid, keysBucket, id, format.Corrupt("", "", 0, "the live node is missing"))
	return c.err
}

// retag moves a node from its old tags to its new ones, both sorted.
func (c *Changes) retag(uid, id uint32, from, to []string) error {
	for _, tag := range from {
		if _, keep := slices.BinarySearch(to, tag); !keep {
			c.ownTag(uid, tag).Remove(id)
			c.dropEmptyTag(uid, tag)
		}
	}
	for _, tag := range to {
		if _, had := slices.BinarySearch(from, tag); !had {
			c.ownTag(uid, tag).Add(id)
		}
	}
	return c.err
}

// ownTag returns the bitmap of a tag for changing in place: the one this change made already, or a
// copy.
func (c *Changes) ownTag(uid uint32, tag string) *roaring.Bitmap {
	k := nameKey{uid, tag}
	b := c.own.tags[k]
	if b == nil {
		b = copyBitmap(c.tag(uid, tag))
		c.own.tags[k] = b
	}
	return b
}

func (c *Changes) dropEmptyTag(uid uint32, tag string) {
	if k := (nameKey{uid, tag}); c.own.tags[k].IsEmpty() {
		c.own.tags[k] = nil
	}
}

// copyBitmap returns a copy of b, or a new bitmap if it is nil.
func copyBitmap(b *roaring.Bitmap) *roaring.Bitmap {
	if b == nil {
		return roaring.New()
	}
	return b.Clone()
}

func (o DeleteNode) apply(c *Changes, _ uint64) error {
	col, err := c.edit(o.UID)
	if err != nil {
		return err
	}
	if !col.live(o.ID) {
		return fmt.Errorf("delete node with id %d from %q: %w", o.ID, col.name, ErrNotFound)
	}
	n, ok := c.node(o.UID, o.ID)
	if !ok {
		return c.missing(col, o.ID)
	}
	k := nodeKey{o.UID, o.ID}
	c.own.nodes[k] = node{}
	c.dropLinks(col, o.ID)
	c.own.ids[nameKey{o.UID, n.Key}] = idOf{}
	if !col.ownTombs {
		col.tombs, col.ownTombs = copyBitmap(col.tombs), true
	}
	for _, a := range slices.Clone(col.attributes) {
		c.removeAttribute(col, o.ID, a.Name)
	}
	col.tombs.Add(o.ID)
	col.unhold(o.ID)
	col.count--
	return c.retag(o.UID, o.ID, n.Tags, nil)
}

func (o PutDecoder) apply(c *Changes, _ uint64) error {
	if err := c.putBlob(blobKey{o.UID, decodersBucket, o.Name}, "decoder", o.Blob); err != nil {
		return err
	}
	c.dropPlans(o.UID, o.Name)
	return nil
}

func (o DropDecoder) apply(c *Changes, _ uint64) error {
	col, err := c.edit(o.UID)
	if err != nil {
		return err
	}
	if c.blob(o.UID, decodersBucket, o.Name) == nil {
		return fmt.Errorf("drop decoder %q of %q: %w", o.Name, col.name, ErrNotFound)
	}
	c.own.blobs[blobKey{o.UID, decodersBucket, o.Name}] = nil
	c.dropPlans(o.UID, o.Name)
	return nil
}

// dropPlans removes the plans of a decoder that was dropped or replaced. It does not read them:
// damage in derived data must not keep a decoder from being replaced.
func (c *Changes) dropPlans(uid uint32, name string) {
	c.own.blobs[blobKey{uid, plansBucket, name}] = nil
}

func (o SetPlans) apply(c *Changes, _ uint64) error {
	col := c.catalog.byUID[o.UID]
	if col == nil {
		return collectionNotFound(o.UID)
	}
	if c.blob(o.UID, decodersBucket, o.Name) == nil {
		return fmt.Errorf("set plans of decoder %q of %q: %w", o.Name, col.name, ErrNotFound)
	}
	return c.putBlob(blobKey{o.UID, plansBucket, o.Name}, "plans", o.Blob)
}

func (o SetMeta) apply(c *Changes, _ uint64) error {
	return c.putBlob(blobKey{o.UID, metaOf(o.Name), o.Name}, "meta", []byte(o.Value))
}

func (c *Changes) putBlob(k blobKey, what string, blob []byte) error {
	if c.catalog.byUID[k.uid] == nil {
		return collectionNotFound(k.uid)
	}
	if err := checkName(what+" name", k.name); err != nil {
		return err
	}
	if err := checkBlob(what, len(blob)); err != nil {
		return err
	}
	c.own.blobs[k] = append([]byte{}, blob...) // not nil, even if blob is empty
	return nil
}
