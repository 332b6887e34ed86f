package flashdb

import (
	"context"
	"fmt"
	"iter"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/storage"
)

// How many ids an iteration reads in one transaction, so that none is open for long.
const (
	keysPerPage  = 4096
	nodesPerPage = 256
)

// Keys yields the key of every live node, under the rules of Nodes.
func (c *Collection) Keys(ctx context.Context) iter.Seq2[string, error] {
	return paged(ctx, c, c.itself(), keysPerPage, func(v *storage.View, id uint32, dst []string) ([]string, error) {
		if key, ok := v.Key(c.uid, id); ok {
			dst = append(dst, key)
		}
		return dst, nil
	})
}

// RowKeys returns the keys of at most n nodes by the order in which they were inserted, as the rows
// of a matrix are numbered: from row on, counted from 0. A node that is replaced keeps its row. The
// row of a deleted node is not used again, and its key is empty. Fewer than n are returned at the
// end.
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

// Nodes yields every live node in id order, which is the order of insertion. A failure is yielded
// with an empty node and ends the sequence. What is written meanwhile may be seen from some page of
// a few hundred ids on. The body of the loop may read and write the database, but must not close
// it.
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

// Links yields every known link between live nodes that leads into the collection, under the rules
// of Nodes: those from its own nodes, by the id of the source, the relation, none first, and the id
// of the target, and then those from each other collection.
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

// paged yields what read appends for each id of a collection, a page of ids in a read transaction
// of its own. It is c, or another one, which ends the sequence when it is dropped. No call is under
// way while it yields.
func paged[T any](ctx context.Context, c *Collection, of storage.Info, page uint64, read func(v *storage.View, id uint32, dst []T) ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var some []T
		next := uint64(1) // the first id that was not given out
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

// viewed calls fn with what is committed, as a call of its own.
func (c *Collection) viewed(ctx context.Context, fn func(v *storage.View) error) error {
	leave, err := c.db.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.db.store.View(fn)
}

// itself names the collection as the storage does.
func (c *Collection) itself() storage.Info { return storage.Info{UID: c.uid, Name: c.name} }
