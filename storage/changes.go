package storage

import (
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// A Changes is one atomic change while it is made: a list of operations, each applied to the newest
// state. It has the getters of View. They see the operations applied so far, what was staged before
// Begin, and everything published.
//
// It belongs to the writer. It is valid until the writer calls Stage with it, or Begin, Publish,
// Discard or Close.
type Changes struct {
	reader
	own   *layer // the last of reader.layers; its bitmaps may be changed in place
	edits map[uint32]*edit
	named bool   // reader.catalog is a clone of our own
	after uint64 // LSN of the change before this one
	lsn   uint64
	slab  slab

	ownRelated map[*roaring.Bitmap]bool // those that relate made
}

// An edit is a collection that a Changes has its own copy of.
type edit struct {
	*collection
	ownTombs      bool // tombs too
	ownAttributes bool // attributes too
	ownHeld       bool // held too
}

// Begin starts a change. A change that was begun before and not staged is dropped. If the file
// cannot be read, Apply returns the error.
func (s *Store) Begin() *Changes {
	st := s.state.Load()
	c := &Changes{own: newLayer(), edits: map[uint32]*edit{}, after: st.lsn, ownRelated: map[*roaring.Bitmap]bool{}}
	c.reader = reader{file: s.path, layout: s.layout, catalog: st.catalog, layers: slices.Clip(st.layers), lender: s}
	if s.staged != nil {
		c.catalog, c.after = s.staged.catalog, s.staged.lsn
		c.layers = append(c.layers, s.staged.layer)
	}
	c.layers = append(c.layers, c.own)
	if c.err = s.db.Load().cause(); s.closed.Load() {
		c.err = ErrClosed
	}
	s.lend(c)
	return c
}

// lend ends the open Changes, and makes c the one that may open a transaction; nil is none.
func (s *Store) lend(c *Changes) {
	s.lease.Lock()
	defer s.lease.Unlock()
	if s.open != nil {
		s.open.rollback()
		s.open.ended = true
	}
	s.open = c
}

// Apply adds an operation of the log record lsn. LSNs ascend from one staged change to the next. It
// copies what it keeps of op. After an error c must not be staged.
func (c *Changes) Apply(op Op, lsn uint64) error {
	if c.err != nil {
		return c.err
	}
	if c.ended {
		panic("storage: Apply to a Changes that has ended")
	}
	if lsn <= c.after || lsn < c.lsn {
		c.fail(fmt.Errorf("apply change %d: change %d was applied before", lsn, max(c.after, c.lsn)))
		return c.err
	}
	c.lsn = lsn
	if err := op.apply(c, lsn); err != nil {
		c.fail(err)
	}
	if c.err == nil && c.catalog.byUID[op.Collection()] != nil { // it may just have been dropped
		e, err := c.edit(op.Collection())
		if err != nil {
			c.fail(err)
			return c.err
		}
		e.lsn = lsn
	}
	return c.err
}

// Err returns the first error of an operation, or the first damage that a getter found. The results
// of getters are not valid then.
func (c *Changes) Err() error { return c.err }

// NextUID returns the UID of the next collection.
func (c *Changes) NextUID() uint32 { return c.catalog.nextUID }

// ownCatalog returns a catalog that c may change.
func (c *Changes) ownCatalog() *catalog {
	if !c.named {
		c.catalog, c.named = c.catalog.clone(), true
	}
	return c.catalog
}

// edit returns a copy of a collection that c may change.
func (c *Changes) edit(uid uint32) (*edit, error) {
	if e := c.edits[uid]; e != nil {
		return e, nil
	}
	col := c.catalog.byUID[uid]
	if col == nil {
		return nil, collectionNotFound(uid)
	}
	clone := *col
	e := &edit{collection: &clone}
	c.ownCatalog().put(e.collection)
	c.edits[uid] = e
	return e, nil
}

// Stage adds a change to those that the next Publish will show to readers. Later Begins see it at
// once. It panics if an operation of c failed, or if c is not the last Changes begun.
func (s *Store) Stage(c *Changes) {
	if s.open != c {
		panic("storage: Stage of a Changes that is not the last one begun")
	}
	if c.err != nil {
		panic("storage: Stage of a Changes that failed: " + c.err.Error())
	}
	s.lend(nil)
	lsn := max(c.lsn, c.after)
	if s.staged == nil {
		s.staged = &staged{layer: c.own, catalog: c.catalog, lsn: lsn}
		return
	}
	s.staged.layer.cover(c.own)
	s.staged.catalog, s.staged.lsn = c.catalog, lsn
}

// Publish shows readers all staged changes at once. Without any it does nothing.
func (s *Store) Publish() {
	s.lend(nil)
	if s.staged == nil {
		return
	}
	s.replace(func(st *state) {
		if s.staged.layer.len() > 0 {
			st.layers = push(st.layers, s.pinned, s.staged.layer)
		}
		st.catalog, st.lsn = s.staged.catalog, s.staged.lsn
	})
	s.staged = nil
}

// Discard forgets all staged changes.
func (s *Store) Discard() {
	s.lend(nil)
	s.staged = nil
}
