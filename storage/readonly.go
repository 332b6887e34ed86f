package storage

import (
	"context"
	"slices"
)

// A store opened read-only never flushes. What was replayed into it stays in its overlay, so its
// streams read that too. The overlay does not change after the replay.

// tail returns the overlay as one layer, and the ids of a collection whose rows it holds or took
// away, in order.
func (s *Store) tail(uid uint32) (all *layer, ids []uint32) {
	all = flatten(s.state.Load().layers)
	if t := all.touched()[uid]; t != nil {
		ids = all.withRows(uid, t.nodes)
	}
	return all, ids
}

// rowIn tells whether a node's row is in the layer, or was taken away by it.
func (l *layer) rowIn(k nodeKey) bool {
	n, ok := l.node(k)
	return ok && !n.recordOnly()
}

// withRows returns those of some ids whose rows are in the layer, or were taken away by it.
func (l *layer) withRows(uid uint32, ids []uint32) []uint32 {
	recordOnly := func(id uint32) bool { return !l.rowIn(nodeKey{uid, id}) }
	if !slices.ContainsFunc(ids, recordOnly) {
		return ids
	}
	return slices.DeleteFunc(slices.Clone(ids), recordOnly)
}

// tailDirty is Dirty of what the file and the overlay have together. Ids of the overlay come last.
func (s *Store) tailDirty(uid uint32, fn func(id uint32, lsn uint64) error) error {
	tail, ids := s.tail(uid)
	err := s.fileDirty("", uid, func(id uint32, lsn uint64) error {
		if tail.rowIn(nodeKey{uid, id}) {
			return nil
		}
		return fn(id, lsn)
	})
	for _, id := range ids {
		if err != nil {
			break
		}
		if n, _ := tail.node(nodeKey{uid, id}); n.record != nil {
			err = fn(id, n.lsn)
		}
	}
	return err
}

// tailRows is Rows of what the file and the overlay have together. Rows of the overlay come last,
// one per block.
func (s *Store) tailRows(ctx context.Context, uid, fromID uint32, fn func(ids []uint32, rows []float32) error) error {
	tail, ids := s.tail(uid)
	err := s.fileRows(ctx, "", uid, fromID, func(ids []uint32, rows []float32) error {
		dim, kept := len(rows)/len(ids), 0
		for i, id := range ids {
			if tail.rowIn(nodeKey{uid, id}) {
				continue
			}
			ids[kept] = id
			copy(rows[kept*dim:(kept+1)*dim], rows[i*dim:(i+1)*dim])
			kept++
		}
		if kept == 0 {
			return nil
		}
		return fn(ids[:kept], rows[:kept*dim])
	})
	for _, id := range ids {
		if err != nil {
			break
		}
		if n, _ := tail.node(nodeKey{uid, id}); n.record != nil && id >= fromID {
			err = fn([]uint32{id}, n.row)
		}
	}
	return err
}
