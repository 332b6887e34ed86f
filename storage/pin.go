package storage

import (
	"context"
	"errors"
	"runtime"
	"sync"
)

// A Pin keeps what was published when it was made. Any number of Views can be taken of it, one at a
// time, until Close. It is safe for concurrent use.
//
// A Pin costs what it keeps. Pages of the bbolt file that hold something newer or deleted since are
// not used again, so the file grows with what is written. Changes that were not flushed by
// then stay in memory. After a Compact the disk has the old file, too.
//
// Unlike a transaction of bbolt, a Pin stops nobody: the file can grow and be compacted. See
// boltFile.freeMapping. On Windows, where an open file cannot be replaced, Compact is refused.
type Pin struct {
	store *Store

	mu      sync.Mutex // one View at a time: a transaction of bbolt belongs to one goroutine
	layers  []*layer
	catalog *catalog
	reading reading
	closed  bool
}

// Pin returns a Pin of what is published now. It must be closed before the Store.
func (s *Store) Pin() (*Pin, error) {
	for {
		st, r, err := s.snapshot()
		if err != nil {
			return nil, err
		}
		if r.db.pin() {
			r.db.freeMapping()
			return &Pin{store: s, layers: st.layers, catalog: st.catalog.frozen(), reading: r}, nil
		}
		if err := r.tx.Rollback(); err != nil { // Compact is about to close this file
			return nil, err
		}
		runtime.Gosched()
	}
}

// frozen returns c as it is now: what the live sets serve changes in place.
func (c *catalog) frozen() *catalog {
	c = c.clone()
	c.byName = make(map[string]*collection, len(c.byUID))
	for _, col := range c.byUID {
		clone := *col
		clone.set = newSet(col.set.uid)
		clone.set.served.Store(col.set.served.Load())
		c.put(&clone)
	}
	return c
}

// View calls fn with a View of what was published when the Pin was made: see Store.View. fn must
// take no other View of the Pin.
func (p *Pin) View(fn func(*View) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	db := p.reading.db
	if err := db.cause(); err != nil {
		return err
	}
	db.holdMapping()
	defer db.freeMapping()
	s := p.store
	if s.closed.Load() { // the file is not mapped any more
		return ErrClosed
	}
	v := &View{reader{file: s.path, layout: s.layout, catalog: p.catalog, layers: p.layers, reading: p.reading}}
	err := v.guarded(fn)
	v.ended = true
	if v.err != nil {
		return v.err
	}
	return err
}

// Rows is Store.Rows as of the Pin. Of rows that were not flushed then, it sees the older ones that
// they replaced.
func (p *Pin) Rows(ctx context.Context, uid, fromID uint32, fn func(ids []uint32, rows []float32) error) error {
	return p.store.rowsIn(ctx, p.View, uid, fromID, fn)
}

// Liveness returns the Liveness of a collection as of the Pin.
func (p *Pin) Liveness(uid uint32) Liveness {
	return Liveness{p.catalog.byUID[uid]}
}

// Close releases what the Pin keeps. It waits for a View under way. A second Close returns
// ErrClosed.
func (p *Pin) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	p.closed = true
	p.reading.db.holdMapping() // the end of a transaction releases the lock
	err := errors.Join(p.reading.tx.Rollback(), p.reading.db.unpin())
	p.layers, p.reading = nil, reading{}
	return err
}
