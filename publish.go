package flashdb

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/flashdb/flashdb/storage"
)

// PublishOptions are the options of one Publish. The zero value, or nil, means the defaults.
type PublishOptions struct {
	// Force publishes without a comparison.
	Force bool
	// Compare are the options of the comparison with the live release.
	Compare CompareOptions
}

// A PublishResult says what a Publish did.
type PublishResult struct {
	// Former is the release that was live before. It is kept, so that Rollback can go back to it.
	Former string
	// Dropped is the release that was the former one before, and empty without one.
	Dropped string
	// Comparison is that with the live release, and nil with PublishOptions.Force.
	Comparison *Comparison
	// Switch is how long writes waited.
	Switch time.Duration
}

// Publish makes a staged release the live one, in all of its collections at once, and keeps the one
// that was live as the former one. The one that was the former one before is dropped. Each query
// runs on one release from the row of its source to its last score, whichever collections it reads.
// No query fails or waits. The switch is one transaction, whose time does not depend on the number
// of rows. After a crash either release is live, as a whole.
//
// Before that, the release is compared with the live one: see CompareRelease. If it is worse,
// Publish returns ErrQuality and the comparison, and the release stays staged.
//
// A node without an embedding in the release keeps its tags, payload and links. It is not
// predicted, and a query from it returns ErrNotFound, until Upsert stores one.
func (db *DB) Publish(ctx context.Context, name string, opts *PublishOptions) (res PublishResult, err error) {
	err = db.releaseCall(ctx, "publish", name, func(ctx context.Context) error {
		var o PublishOptions
		if opts != nil {
			o = *opts
		}
		r := &Release{db, name}
		names, err := r.collections()
		if err != nil {
			return err
		}
		if !o.Force {
			c, err := db.compareRelease(ctx, name, o.Compare)
			if err != nil {
				return err
			}
			res.Comparison = &c
			if len(c.Worse) > 0 {
				return fmt.Errorf("%w: it stays staged: %s; find out why, or publish all the same with Force or a larger Tolerance", ErrQuality, strings.Join(c.Worse, "; "))
			}
		}
		if err := db.rebuilds.take(ctx); err != nil {
			return err
		}
		defer db.rebuilds.pass()
		if res.Former, res.Dropped, err = db.stateNames(); err != nil {
			return err
		}
		res.Switch, err = db.switchTo(ctx, name, names, func() error { return db.store.PublishRelease(name, db.opts.clock.now()) })
		if err != nil {
			return err
		}
		db.slog.Info("release published", "dir", db.dir, "release", name, "former", res.Former, "seconds", res.Switch.Seconds())
		db.closeStaged(func(k stagedKey) bool { return k.release == name || k.release == res.Dropped })
		if err := db.tidy(); err != nil { // it is published all the same
			db.slog.Warn("former release not removed; the next open removes it", "dir", db.dir, "release", res.Dropped, "err", err)
		}
		return nil
	})
	outcome(&db.metrics.publishes, &db.metrics.publishErrors, err)
	return res, err
}

// Rollback makes the former release the live one again, as Publish does, and returns its name. What
// was live is staged then, and can be published again. Embeddings and decoders that were written
// since Publish are of the release that was live then. It returns ErrNotFound if no former release
// is kept.
func (db *DB) Rollback(ctx context.Context) (name string, err error) {
	err = db.releaseCall(ctx, "roll back to the former", "", func(ctx context.Context) error {
		if err := db.rebuilds.take(ctx); err != nil {
			return err
		}
		defer db.rebuilds.pass()
		_, former, err := db.stateNames()
		if err != nil {
			return err
		}
		if former == "" {
			return fmt.Errorf("%w: none is kept, since none was published or it was dropped", ErrNotFound)
		}
		var names []string
		err = db.store.View(func(v *storage.View) error {
			for _, r := range v.Releases() {
				if r.Name != former {
					continue
				}
				for _, info := range r.Collections {
					names = append(names, info.Name)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		_, err = db.switchTo(ctx, former, names, func() (err error) {
			name, err = db.store.RollBack(db.opts.clock.now())
			return err
		})
		if err != nil {
			return err
		}
		db.metrics.rollbacks.Add(1)
		db.slog.Info("release rolled back", "dir", db.dir, "release", former)
		db.closeStaged(func(k stagedKey) bool { return k.release == former })
		return nil
	})
	return name, err
}

// stateNames returns the names of the live and the former release, which are empty without one.
func (db *DB) stateNames() (live, former string, err error) {
	err = db.store.View(func(v *storage.View) error {
		for _, r := range v.Releases() {
			switch r.State {
			case storage.Live:
				live = r.Name
			case storage.Former:
				former = r.Name
			}
		}
		return nil
	})
	return live, former, err
}

// switchTo makes a release live by fn, and returns how long writes waited. What queries need of it
// is opened before, for the collections that are queried.
func (db *DB) switchTo(ctx context.Context, release string, names []string, fn func() error) (waited time.Duration, err error) {
	handles := map[string]*Collection{}
	for _, name := range names {
		c, err := db.collectionOf(release, name)
		if err != nil {
			return 0, err
		}
		live, err := db.collection(name)
		if err != nil {
			return 0, err
		}
		if live.served.inUse() {
			if err := c.open(ctx); err != nil {
				return 0, err
			}
		}
		handles[name] = c
	}
	err = db.reshape(func() error {
		start := time.Now()
		defer func() { waited = time.Since(start) }()
		if err := fn(); err != nil {
			return err
		}
		for name, c := range handles {
			info, _, _ := db.store.Collection(name)
			if live := db.loaded(c.uid); live != nil && live.release == "" {
				live.become(c, info.Stamp)
			}
		}
		return nil
	})
	return waited, err
}

// inUse reports whether a query has opened the collection.
func (s *served) inUse() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table != nil
}
