package flashdb

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/flashdb/flashdb/internal/delta"
	"github.com/flashdb/flashdb/storage"
	"github.com/flashdb/flashdb/wal"
)

// A stagedKey names a collection in a release that is not live.
type stagedKey struct {
	release string
	uid     uint32
}

// releaseCall runs a public call on a release, alone among those.
func (db *DB) releaseCall(ctx context.Context, verb, name string, fn func(ctx context.Context) error) error {
	leave, err := db.enter()
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := db.untilClose(ctx)
	defer cancel()
	if err = db.writable(); err == nil {
		err = db.releasing.take(ctx)
	}
	if err == nil {
		err = fn(ctx)
		db.releasing.pass()
	}
	if err == nil {
		return nil
	}
	err = causeOf(ctx, err)
	if name == "" { // the former one, whichever that is
		return fmt.Errorf("%s release: %w", verb, releaseError(err))
	}
	return fmt.Errorf("%s release %q: %w", verb, name, releaseError(err))
}

// releaseError gives errors of the store the sentinels of this package.
func releaseError(err error) error {
	for from, to := range map[error]error{storage.ErrState: ErrInvalid, storage.ErrReleaseExists: ErrExists, storage.ErrNotFound: ErrNotFound} {
		if errors.Is(err, from) && !errors.Is(err, to) {
			return fmt.Errorf("%w: %w", to, err)
		}
	}
	return err
}

// reshape runs fn, which changes what is live or staged, while no batch is published and everything
// is flushed. Most is flushed before, so that writers wait for little.
func (db *DB) reshape(fn func() error) error {
	if err := db.owned(); err != nil {
		return err
	}
	if err := db.flush(); err != nil {
		return err
	}
	return db.log.Locked(func(wal.LSN) error {
		if _, err := db.store.Flush(); err != nil {
			return db.cannotFlush(err)
		}
		return fn()
	})
}

// tidy removes what dropped releases had: their rows, and the files of their indexes. The caller
// holds db.rebuilds, so that no file is being built.
func (db *DB) tidy() error {
	if !db.store.Dropping() {
		return nil
	}
	if err := db.purge(); err != nil {
		return err
	}
	kept, err := db.keptGenerations()
	if err != nil {
		return err
	}
	for name, generations := range kept {
		if _, left := sweepGenerations(db.fs, filepath.Join(indexDir, name), generations...); len(left) > 0 {
			db.slog.Warn("files of a dropped release not removed; the next open removes them", "collection", name, "err", errors.Join(left...))
		}
	}
	return nil
}

// purge removes the rows of dropped releases from the store. A crash may have come between.
func (db *DB) purge() error {
	if !db.store.Dropping() {
		return nil
	}
	if err := db.store.Purge(); err != nil {
		return err
	}
	return db.reshape(db.store.Forget)
}

// staged returns the handle on a collection of a staged release.
func (r *Release) staged(collection string) (*Collection, error) {
	c, err := r.db.collectionOf(r.name, collection)
	if err != nil {
		return nil, err
	}
	if c.release == "" {
		return nil, fmt.Errorf("%w: the release does not name collection %q", ErrInvalid, collection)
	}
	return c, nil
}

// collections returns the names of the collections of a release that is not live.
func (r *Release) collections() (names []string, err error) {
	err = r.db.store.View(func(v *storage.View) error {
		for _, rel := range v.Releases() {
			if rel.Name != r.name {
				continue
			}
			if rel.State != storage.Staged {
				return fmt.Errorf("%w: it is %v", ErrInvalid, rel.State)
			}
			for _, info := range rel.Collections {
				names = append(names, info.Name)
			}
			return nil
		}
		return fmt.Errorf("release %w", ErrNotFound)
	})
	return names, err
}

// collectionOf returns the handle on a collection as a release has it. If the release has nothing
// of its own of the collection, that is the handle on the live one.
func (db *DB) collectionOf(release, name string) (*Collection, error) {
	live, err := db.collection(name)
	if err != nil {
		return nil, err
	}
	var own, found bool
	var info storage.Info
	err = db.store.View(func(v *storage.View) error {
		for _, r := range v.Releases() {
			if r.Name != release {
				continue
			}
			found = true
			for _, of := range r.Collections {
				if of.UID == live.uid && r.State != storage.Live {
					own, info = true, of
				}
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, fmt.Errorf("release %q %w", release, ErrNotFound)
	case !own:
		return live, nil
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	k := stagedKey{release, live.uid}
	c := db.staged[k]
	if c == nil {
		if c, err = db.handle(info, release); err != nil {
			return nil, err
		}
		_, c.served.lsn, _ = db.store.Collection(name) // see collection
		c.served.stamp = info.Stamp
		db.staged[k] = c
	}
	return c, nil
}

// loadedStaged returns the open handles on a collection in releases that are not live.
func (db *DB) loadedStaged(uid uint32) (all []*Collection) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for k, c := range db.staged {
		if k.uid == uid {
			all = append(all, c)
		}
	}
	return all
}

// closeStaged closes the handles on releases that are not live for which which returns true.
func (db *DB) closeStaged(which func(stagedKey) bool) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for k, c := range db.staged {
		if which(k) {
			delete(db.staged, k)
			c.close()
		}
	}
}

// view calls fn with a view of the store as the handle sees it.
func (c *Collection) view(fn func(v *storage.View) error) error {
	if c.frozen != nil {
		return c.frozen.snapshot.view(fn)
	}
	err := c.db.store.ViewOf(c.release, fn)
	if c.release != "" && errors.Is(err, storage.ErrNotFound) {
		return c.gone()
	}
	return err
}

// sibling returns another collection as of the same release or snapshot.
func (c *Collection) sibling(name string) (*Collection, error) {
	if c.frozen != nil {
		return c.frozen.snapshot.Collection(name)
	}
	if c.release == "" {
		return c.db.collection(name)
	}
	return c.db.collectionOf(c.release, name)
}

// writable returns an error for a handle on a release that is not live, or of a snapshot.
func (c *Collection) writable() error {
	if c.frozen != nil {
		return fmt.Errorf("%w: the handle is of a snapshot, which is only read: use that of DB.Collection", ErrInvalid)
	}
	if c.release != "" {
		return fmt.Errorf("%w: the handle is on release %q, which is only read: use the methods of Release", ErrInvalid, c.release)
	}
	return nil
}

// putStaged writes to the staged release of the handle.
func (c *Collection) putStaged(ops ...storage.Op) error {
	if err := c.db.store.PutStaged(c.release, ops...); err != nil {
		return err
	}
	return c.refresh(false)
}

// refresh makes the handle see what was put into the staged release. Rows are loaded again by the
// next query.
func (c *Collection) refresh(rows bool) error {
	info, err := c.info()
	if err != nil {
		return err
	}
	c.forgetDecoders()
	if !rows {
		c.served.restamp(info.Stamp)
		return nil
	}
	if gen := c.served.reset(info.Stamp); gen != nil {
		return gen.Release()
	}
	return nil
}

func (s *served) restamp(stamp uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stamp = stamp
}

// forgetDecoders drops all parsed decoders.
func (c *Collection) forgetDecoders() {
	c.decodersMu.Lock()
	defer c.decodersMu.Unlock()
	clear(c.decoders)
	c.only = nil
}

// applyDeletes applies a durable batch to the handle on a release that is not live: nodes that are
// deleted are deleted from it too, and nothing else concerns it.
func (c *Collection) applyDeletes(ops []storage.Op, lsn uint64) {
	c.served.update(lsn, func(t *delta.Table) {
		for _, op := range ops {
			if op, ok := op.(storage.DeleteNode); ok {
				t.Delete(op.ID, lsn)
			}
		}
	})
}

// lastGeneration returns the highest number of a generation that any release has.
func (c *Collection) lastGeneration() (last uint64, err error) {
	kept, err := c.db.keptGenerations()
	for _, n := range kept[c.name] {
		last = max(last, n)
	}
	return last, err
}

// open makes the handle ready for queries, so that the first one does not wait.
func (c *Collection) open(ctx context.Context) error {
	p, err := c.pin(ctx)
	if err == nil {
		p.release()
	}
	return err
}

// become makes the live handle serve what a release that has become live has. staged is the handle
// on it, or nil. It runs while no batch is published, after the store has changed. Queries that
// have begun go on with what they have pinned; one that begins meanwhile waits for this, which
// takes microseconds.
func (c *Collection) become(staged *Collection, stamp uint64) {
	c.decodersMu.Lock()
	clear(c.decoders)
	c.only = nil
	if staged != nil {
		staged.decodersMu.Lock()
		for name, t := range staged.decoders {
			c.decoders[name] = t
		}
		staged.decodersMu.Unlock()
	}
	c.decodersMu.Unlock()
	var from *served
	if staged != nil {
		from = &staged.served
	}
	if gen := c.served.replace(from, stamp); gen != nil {
		if err := gen.Release(); err != nil {
			c.db.slog.Warn("release index", "collection", c.name, "err", err)
		}
	}
	c.newer.Store(0)
	c.wrote(c.served.newerRows()) // after its index was built: they become a segment now
}

// newerRows returns how many rows are in the delta, 0 if it is not open.
func (s *served) newerRows() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.table == nil {
		return 0
	}
	return s.table.Snapshot().Len()
}
