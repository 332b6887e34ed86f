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
}

// LinkedOptions refine one Linked. The zero value, or nil, means the defaults.
type LinkedOptions struct {
	// SourceCollection names the collection of the source; empty means the one that is asked.
	SourceCollection string
}

// Link records that sources are known to be linked to nodes of the collection, so that Predict does
// not recommend them again. The edges are one atomic write; every key must exist. Linking twice is
// linking once. A link ends when one of its nodes or their collections is deleted.
//
// An edge from another collection is refused with ErrVersion by a database whose flash.db is of
// version 1 or 2 (docs/format.md).
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
		if known := r.changes.Links(l.UID, l.Source, l.To); known != nil {
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

// resolveEdges returns the edges as ids: one storage.Link for each source, in the order of their
// first edges.
func (c *Collection) resolveEdges(v keyReader, edges []Edge) (links []storage.Link, err error) {
	type sourceID struct{ uid, id uint32 }
	at := map[sourceID]int{} // in links
	from := c.itself()
	for i, e := range edges {
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
		key := sourceID{from.UID, source}
		n, ok := at[key]
		if !ok {
			n = len(links)
			at[key] = n
			links = append(links, storage.Link{UID: from.UID, Source: source, To: c.uid})
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

// Linked returns the keys of the collection's nodes that a source is known to be linked to, in id
// order.
func (c *Collection) Linked(ctx context.Context, source string, opts *LinkedOptions) (keys []string, err error) {
	var o LinkedOptions
	if opts != nil {
		o = *opts
	}
	err = c.viewed(ctx, func(v *storage.View) error {
		from, err := c.sourcesIn(v, o.SourceCollection)
		if err != nil {
			return err
		}
		id, ok := v.ID(from.UID, source)
		if !ok {
			return noNodeIn(from.Name, source)
		}
		keys = c.linkedKeys(v, from.UID, id)
		return nil
	})
	return keys, err
}

// linkedKeys returns the keys of the collection that a node is linked to. A target deleted since
// has no node any more.
func (c *Collection) linkedKeys(v *storage.View, from, id uint32) (keys []string) {
	links := v.Links(from, id, c.uid)
	if links == nil {
		return nil
	}
	for it := links.Iterator(); it.HasNext(); {
		if key, ok := v.Key(c.uid, it.Next()); ok {
			keys = append(keys, key)
		}
	}
	return keys
}
