package flashdb

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/storage"
)

// An Edge is a known link from one node to another. Source and Target are their keys. The nodes may
// be of two collections, as in a link from a user to an item. Link, Unlink and Linked are called on
// the collection of the target, which is the one that Predict is called on.
type Edge struct {
	// SourceCollection names the collection of Source; empty means that of Target.
	SourceCollection string
	Source, Target   string
	// Relation is the kind of the link, such as "treats". Empty means a link without a relation.
	// Two nodes may be linked by several relations, and also without one.
	Relation string
}

// Link stores known links to nodes of the collection. Predict leaves the linked nodes out. The
// edges are one atomic write, and every key must exist. A link that is already stored is stored
// once. A link is removed with either of its nodes or their collections.
//
// An edge from another collection, or with a relation, is refused with ErrVersion by a database
// whose flash.db is of version 1 or 2 (docs/format.md).
func (c *Collection) Link(ctx context.Context, edges ...Edge) error {
	_, err := c.write(ctx, write{kind: writeLink, edges: edges})
	return err
}

// link stores edges. In a database with releases, new ones are kept with the time now, unless they
// are trained: known to a release.
func (c *Collection) link(r *record, edges []Edge, trained bool) error {
	at := int64(0)
	if r.changes.Released() && !trained {
		at = max(1, c.db.opts.clock.now().Unix())
	}
	return c.changeLinks(r, edges, func(l storage.Link) error {
		l.Recorded = at
		return r.emit(l)
	})
}

// Unlink removes known links in one atomic write, and returns how many it removed. It ignores links
// that are not stored. Every key must exist.
func (c *Collection) Unlink(ctx context.Context, edges ...Edge) (forgotten int, err error) {
	return c.write(ctx, write{kind: writeUnlink, edges: edges})
}

func (c *Collection) unlink(r *record, edges []Edge) (forgotten int, err error) {
	err = c.changeLinks(r, edges, func(l storage.Link) error {
		if known := linksOf(r.changes, l); known != nil {
			forgotten += int(known.AndCardinality(roaring.BitmapOf(l.Targets...)))
		}
		return r.emit(storage.Unlink{UID: l.UID, Source: l.Source, To: l.To, Relation: l.Relation, Targets: l.Targets})
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

// A keyReader finds collections and nodes by name. It is a storage.View, or the storage.Changes of
// a write.
type keyReader interface {
	Collection(name string) (storage.Info, bool)
	ID(uid uint32, key string) (uint32, bool)
}

// sourcesIn returns the collection of the sources: the one of that name, or c itself where the name
// is empty.
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

// Linked returns the keys of the targets that are linked from a source, in the order in which the
// targets were inserted. The edge names the source, and Target is empty. With a Relation, only
// links of that relation count. Without one, all links count.
//
// An edge may name its Target and a Relation instead of the Source. Linked then returns the
// sources, which are nodes of SourceCollection.
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

// errReverse is returned for Reverse without a relation. Links without a relation are stored in one
// direction only.
var errReverse = fmt.Errorf("%w: reverse is the other direction of a relation: name the relation", ErrInvalid)

// validateRelation checks the name of a relation. Empty means none.
func validateRelation(name string) error {
	if name == "" {
		return nil
	}
	if err := validateKey(name); err != nil {
		return fmt.Errorf("relation: %w", err)
	}
	return nil
}

// A linkReader finds the links of a node. It is a storage.View, or the storage.Changes of a write.
type linkReader interface {
	Links(uid, id, to uint32) *roaring.Bitmap
	Related(uid, id, to uint32) []storage.Related
}

// knownLinks returns the nodes of collection to that a node is linked to. With a relation, only its
// links in one direction count. Without one, all links from the node count. It returns nil where
// there are none. The bitmap must not be changed.
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

// linksOf returns the stored links from the source of l with the relation of l, or without one
// where that is empty.
func linksOf(v linkReader, l storage.Link) *roaring.Bitmap {
	if l.Relation == "" {
		return v.Links(l.UID, l.Source, l.To)
	}
	return knownLinks(v, l.UID, l.Source, l.To, l.Relation, false)
}

// liveKeys returns the keys of the ids in links. It skips ids whose node was deleted.
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
