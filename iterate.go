package flashdb

import (
	"context"
	"fmt"
	"iter"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/storage"
)

// How many ids an iteration reads in one transaction. The limit keeps transactions short.
const (
	keysPerPage  = 4096
	nodesPerPage = 256
)

// Keys yields the key of every live node. What Nodes says of order, errors and writes holds here
// too.
func (c *Collection) Keys(ctx context.Context) iter.Seq2[string, error] {
	return paged(ctx, c, c.itself(), keysPerPage, func(v *storage.View, id uint32, dst []string) ([]string, error) {
		if key, ok := v.Key(c.uid, id); ok {
			dst = append(dst, key)
		}
		return dst, nil
	})
}

// RowKeys returns the keys of n nodes in the order in which they were inserted, like rows of a
// matrix. The first is that of the given row, counted from 0. A node that is replaced keeps its
// row. The row of a deleted node is not reused, and its key is empty. At the end there may be fewer
// than n keys.
func (c *Collection) RowKeys(ctx context.Context, row uint32, n int) (keys []string, err error) {
	err = c.viewed(ctx, func(v *storage.View) error {
		info, ok := v.Collection(c.name)
		if !ok || info.UID != c.uid {
			return fmt.Errorf("collection %q %w", c.name, ErrNotFound)
		}
		end := min(uint64(info.NextID), uint64(row)+uint64(max(0, n)))
		for id := uint64(row); id < end; id++ {
			key, _ := v.Key(c.uid, uint32(id))
			keys = append(keys, key)
		}
		return nil
	})
	return keys, err
}

// Nodes yields every live node in the order of insertion. An error is yielded with an empty node
// and ends the sequence. Nodes are read a few hundred at a time, so later nodes may include writes
// that were made during the loop. The body of the loop may read and write the database, but must
// not close it.
func (c *Collection) Nodes(ctx context.Context) iter.Seq2[Node, error] {
	return paged(ctx, c, c.itself(), nodesPerPage, func(v *storage.View, id uint32, dst []Node) ([]Node, error) {
		key, ok := v.Key(c.uid, id)
		if !ok {
			return dst, nil
		}
		n, err := c.node(v, id, key)
		return append(dst, n), err
	})
}

// Links yields every known link to a live node of the collection. Links from its own nodes come
// first, then those from each other collection. Links from one collection are ordered by source,
// then relation, then target. Links without a relation come first, and nodes are in the order of
// insertion. What Nodes says of errors and writes holds here too.
func (c *Collection) Links(ctx context.Context) iter.Seq2[Edge, error] {
	return func(yield func(Edge, error) bool) {
		var others []storage.Info
		err := c.viewed(ctx, func(v *storage.View) error {
			others = v.LinkingTo(c.uid)
			return nil
		})
		if err != nil {
			yield(Edge{}, err)
			return
		}
		for _, from := range append([]storage.Info{c.itself()}, others...) {
			for e, err := range c.linksFrom(ctx, from) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// linksFrom yields the links from one collection.
func (c *Collection) linksFrom(ctx context.Context, from storage.Info) iter.Seq2[Edge, error] {
	name := ""
	if from.UID != c.uid {
		name = from.Name
	}
	return paged(ctx, c, from, nodesPerPage, func(v *storage.View, id uint32, dst []Edge) ([]Edge, error) {
		source, ok := "", false
		add := func(relation string, links *roaring.Bitmap) {
			targets := liveKeys(v, c.uid, links)
			if len(targets) > 0 && !ok {
				source, ok = v.Key(from.UID, id)
			}
			for _, target := range targets {
				if ok {
					dst = append(dst, Edge{SourceCollection: name, Source: source, Target: target, Relation: relation})
				}
			}
		}
		add("", v.Links(from.UID, id, c.uid))
		for _, r := range v.Related(from.UID, id, c.uid) {
			if !r.Reverse {
				add(r.Relation, r.IDs)
			}
		}
		return dst, nil
	})
}

// paged yields what read appends for each id of the collection named by of. It reads each page of
// ids in a transaction of its own. If of is c and is dropped meanwhile, that is an error; if
// another collection is dropped, the sequence ends. No call of the database is running while it
// yields.
func paged[T any](ctx context.Context, c *Collection, of storage.Info, page uint64, read func(v *storage.View, id uint32, dst []T) ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var some []T
		next := uint64(1) // the first id that is not given out yet
		for from := uint64(0); from < next; from += page {
			err := c.viewed(ctx, func(v *storage.View) error {
				some = some[:0]
				info, ok := v.Collection(of.Name)
				switch {
				case ok && info.UID == of.UID:
					next = uint64(info.NextID)
				case of.UID == c.uid:
					return fmt.Errorf("collection %q %w", c.name, ErrNotFound)
				default:
					next = from
				}
				var err error
				for id := from; id < min(next, from+page) && err == nil; id++ {
					some, err = read(v, uint32(id), some)
				}
				return err
			})
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, x := range some {
				if !yield(x, nil) {
					return
				}
			}
		}
	}
}

// viewed calls fn with a view of the store, as a public call.
func (c *Collection) viewed(ctx context.Context, fn func(v *storage.View) error) error {
	leave, err := c.db.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.view(fn)
}

// itself returns the uid and name of c as a storage.Info.
func (c *Collection) itself() storage.Info { return storage.Info{UID: c.uid, Name: c.name} }
