package flashdb

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/storage"
)

// An Edge is a known link from Source to Target, two keys. A link may lead from a node of one
// collection to a node of another, as from a user to an item. It is recorded, read and forgotten
// through the collection of its target, the one that is predicted in.
type Edge struct {
	// SourceCollection names the collection of Source; empty means that of Target.
	SourceCollection string
	Source, Target   string
	// Relation says what the link is, as "treats", where links are of several kinds; empty is none.
	// Two nodes may be linked by several relations, and by none beside them.
	Relation string
}

// Link records that sources are known to be linked to nodes of the collection, so that Predict does
// not recommend them again. The edges are one atomic write; every key must exist. Linking twice is
// linking once. A link ends when one of its nodes or their collections is deleted.
//
// An edge from another collection, or with a relation, is refused with ErrVersion by a database
// whose flash.db is of version 1 or 2 (docs/format.md).
func (c *Collection) Link(ctx context.Context, edges ...Edge) error {
	_, err := c.write(ctx, write{kind: writeLink, edges: edges})
	return err
}

func (c *Collection) link(r *record, edges []Edge) error {
	return c.changeLinks(r, edges, func(l storage.Link) error { return r.emit(l) })
}

// Unlink forgets known links in one atomic write, and returns how many there were. A link that is
// not known is passed over; every key must exist.
func (c *Collection) Unlink(ctx context.Context, edges ...Edge) (forgotten int, err error) {
	return c.write(ctx, write{kind: writeUnlink, edges: edges})
}

func (c *Collection) unlink(r *record, edges []Edge) (forgotten int, err error) {
	err = c.changeLinks(r, edges, func(l storage.Link) error {
		if known := linksOf(r.changes, l); known != nil {
			forgotten += int(known.AndCardinality(roaring.BitmapOf(l.Targets...)))
		}
		return r.emit(storage.Unlink(l))
	})
	return forgotten, err
}

// changeLinks calls change with the edges as ids, once for each source.
func (c *Collection) changeLinks(r *record, edges []Edge, change func(storage.Link) error) error {
	links, err := c.resolveEdges(r.changes, edges)
	if err != nil {
		return err
	}
	for _, l := range links {
		if err := change(l); err != nil {
			return err
		}
	}
	return nil
}

// resolveEdges returns the edges as ids: one storage.Link for each source and relation, in the
// order of their first edges.
func (c *Collection) resolveEdges(v keyReader, edges []Edge) (links []storage.Link, err error) {
	type sourceID struct {
		uid, id  uint32
		relation string
	}
	at := map[sourceID]int{} // in links
	from := c.itself()
	for i, e := range edges {
		if err := validateRelation(e.Relation); err != nil {
			return nil, fmt.Errorf("edge %q -> %q: %w", e.Source, e.Target, err)
		}
		if i == 0 || e.SourceCollection != edges[i-1].SourceCollection {
			if from, err = c.sourcesIn(v, e.SourceCollection); err != nil {
				return nil, fmt.Errorf("edge %q -> %q: %w", e.Source, e.Target, err)
			}
		}
		source, ok := v.ID(from.UID, e.Source)
		if !ok {
			return nil, fmt.Errorf("edge %q -> %q: %w", e.Source, e.Target, noNodeIn(from.Name, e.Source))
		}
		target, ok := v.ID(c.uid, e.Target)
		if !ok {
			return nil, fmt.Errorf("edge %q -> %q: %w", e.Source, e.Target, c.noNode(e.Target))
		}
		key := sourceID{from.UID, source, e.Relation}
		n, ok := at[key]
		if !ok {
			n = len(links)
			at[key] = n
			links = append(links, storage.Link{UID: from.UID, Source: source, To: c.uid, Relation: e.Relation})
		}
		links[n].Targets = append(links[n].Targets, target)
	}
	return links, nil
}

// A keyReader is what finds collections and nodes by name: a storage.View, or the storage.Changes
// of a batch.
type keyReader interface {
	Collection(name string) (storage.Info, bool)
	ID(uid uint32, key string) (uint32, bool)
}

// sourcesIn returns the collection whose nodes are sources: the one of that name, or c itself where
// it is empty.
func (c *Collection) sourcesIn(v keyReader, name string) (storage.Info, error) {
	if name == "" {
		name = c.name
	}
	info, ok := v.Collection(name)
	if !ok || (name == c.name && info.UID != c.uid) {
		return storage.Info{}, fmt.Errorf("collection %q %w", name, ErrNotFound)
	}
	return info, nil
}

func noNodeIn(collection, key string) error {
	return fmt.Errorf("node %q %w in collection %q", key, ErrNotFound, collection)
}

// Linked returns the targets of the known edges from a source, in the order in which the nodes were
// inserted. The edge names the source; with a Relation, edges of that relation alone count, and
// without one edges of any and of none.
//
// Of an edge that names its Target and a Relation in place of the Source, Linked returns the
// sources: nodes of SourceCollection.
func (c *Collection) Linked(ctx context.Context, of Edge) (keys []string, err error) {
	switch {
	case of.Source != "" && of.Target != "":
		return nil, fmt.Errorf("links in %q: %w: source %q and target %q are given: leave out what Linked is to find", c.name, ErrInvalid, of.Source, of.Target)
	case of.Target != "" && of.Relation == "":
		return nil, fmt.Errorf("links in %q: %w: target %q without a relation: sources are found by the relation that they have to it", c.name, ErrInvalid, of.Target)
	}
	err = c.viewed(ctx, func(v *storage.View) error {
		from, err := c.sourcesIn(v, of.SourceCollection)
		if err != nil {
			return err
		}
		of, asked, found := of, from, c.itself()
		if of.Target != "" {
			asked, found, of.Source = found, from, of.Target
		}
		id, ok := v.ID(asked.UID, of.Source)
		if !ok {
			return noNodeIn(asked.Name, of.Source)
		}
		keys = liveKeys(v, found.UID, knownLinks(v, asked.UID, id, found.UID, of.Relation, of.Target != ""))
		return nil
	})
	return keys, err
}

// errReverse refuses the other direction of links that are not told apart by a relation.
var errReverse = fmt.Errorf("%w: reverse is the other direction of a relation: name the relation", ErrInvalid)

// validateRelation refuses what cannot be the name of a relation; empty is none.
func validateRelation(name string) error {
	if name == "" {
		return nil
	}
	if err := validateKey(name); err != nil {
		return fmt.Errorf("relation: %w", err)
	}
	return nil
}

// linkReader is what finds the links of a node: a storage.View, or the storage.Changes of a batch.
type linkReader interface {
	Links(uid, id, to uint32) *roaring.Bitmap
	Related(uid, id, to uint32) []storage.Related
}

// knownLinks returns the nodes of collection to that a node is linked to: by one relation, in one
// direction, or, where that is empty, by any and by none. It returns nil where there are none. The
// bitmap must not be changed.
func knownLinks(v linkReader, uid, id, to uint32, relation string, reverse bool) *roaring.Bitmap {
	related := v.Related(uid, id, to)
	if relation != "" {
		for _, r := range related {
			if r.Relation == relation && r.Reverse == reverse {
				return r.IDs
			}
		}
		return nil
	}
	all := v.Links(uid, id, to)
	owned := false
	for _, r := range related {
		switch {
		case r.Reverse:
		case all == nil:
			all = r.IDs
		case !owned:
			all, owned = roaring.Or(all, r.IDs), true
		default:
			all.Or(r.IDs)
		}
	}
	return all
}

// linksOf returns the links that are there of those from the source of l, of its relation alone.
func linksOf(v linkReader, l storage.Link) *roaring.Bitmap {
	if l.Relation == "" {
		return v.Links(l.UID, l.Source, l.To)
	}
	return knownLinks(v, l.UID, l.Source, l.To, l.Relation, false)
}

// liveKeys returns the keys of those of the ids that have a node. One deleted since has none.
func liveKeys(v *storage.View, uid uint32, links *roaring.Bitmap) (keys []string) {
	if links == nil {
		return nil
	}
	for it := links.Iterator(); it.HasNext(); {
		if key, ok := v.Key(uid, it.Next()); ok {
			keys = append(keys, key)
		}
	}
	return keys
}
