package flashdb

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/storage"
)

// An Edge is a known link from Source to Target, by key.
type Edge struct{ Source, Target string }

// Link records that source is known to be linked to each target, so that
// Predict does not recommend them again. The batch is one atomic write; every key
// must exist. Linking twice is linking once.
func (c *Collection) Link(ctx context.Context, source string, targets ...string) error {
	return c.LinkAll(ctx, edgesFrom(source, targets)...)
}

// LinkAll records many known links in one atomic write.
func (c *Collection) LinkAll(ctx context.Context, edges ...Edge) error {
	_, err := c.write(ctx, write{kind: writeLink, edges: edges})
	return err
}

func (c *Collection) link(r *record, edges []Edge) error {
	return c.changeLinks(r, edges, func(source uint32, targets []uint32) storage.Op {
		return storage.Link{UID: c.uid, Source: source, Targets: targets}
	})
}

// Unlink forgets known links in one atomic write. A link that is not known is
// passed over; every key must exist.
func (c *Collection) Unlink(ctx context.Context, source string, targets ...string) error {
	_, err := c.UnlinkAll(ctx, edgesFrom(source, targets)...)
	return err
}

// UnlinkAll forgets many known links in one atomic write, and returns how many
// there were. A link that is not known is passed over; every key must exist.
func (c *Collection) UnlinkAll(ctx context.Context, edges ...Edge) (forgotten int, err error) {
	return c.write(ctx, write{kind: writeUnlink, edges: edges})
}

func (c *Collection) unlink(r *record, edges []Edge) (forgotten int, err error) {
	err = c.changeLinks(r, edges, func(source uint32, targets []uint32) storage.Op {
		if known := r.changes.Links(c.uid, source); known != nil {
			forgotten += int(known.AndCardinality(roaring.BitmapOf(targets...)))
		}
		return storage.Unlink{UID: c.uid, Source: source, Targets: targets}
	})
	return forgotten, err
}

func edgesFrom(source string, targets []string) []Edge {
	edges := make([]Edge, len(targets))
	for i, t := range targets {
		edges[i] = Edge{Source: source, Target: t}
	}
	return edges
}

// changeLinks resolves edges to ids and emits one operation a source, sources
// in the order of their first edge.
func (c *Collection) changeLinks(r *record, edges []Edge, op func(source uint32, targets []uint32) storage.Op) error {
	targets := map[uint32][]uint32{}
	var sources []uint32
	for _, e := range edges {
		s, ok := r.changes.ID(c.uid, e.Source)
		if !ok {
			return fmt.Errorf("edge %q -> %q: node %q %w", e.Source, e.Target, e.Source, ErrNotFound)
		}
		t, ok := r.changes.ID(c.uid, e.Target)
		if !ok {
			return fmt.Errorf("edge %q -> %q: node %q %w", e.Source, e.Target, e.Target, ErrNotFound)
		}
		if targets[s] == nil {
			sources = append(sources, s)
		}
		targets[s] = append(targets[s], t)
	}
	for _, s := range sources {
		if err := r.emit(op(s, targets[s])); err != nil {
			return err
		}
	}
	return nil
}

// Linked returns the keys that key is known to be linked to, in id order.
func (c *Collection) Linked(ctx context.Context, key string) (keys []string, err error) {
	err = c.viewed(ctx, func(v *storage.View) error {
		id, ok := v.ID(c.uid, key)
		if !ok {
			return c.noNode(key)
		}
		links := v.Links(c.uid, id)
		if links == nil {
			return nil
		}
		for it := links.Iterator(); it.HasNext(); {
			// A target deleted since has no node any more.
			if key, ok := v.Key(c.uid, it.Next()); ok {
				keys = append(keys, key)
			}
		}
		return nil
	})
	return keys, err
}
