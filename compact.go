package flashdb

import (
	"context"
	"fmt"
	"time"

	"github.com/flashdb/flashdb/storage"
	"github.com/flashdb/flashdb/wal"
)

// CompactOptions are the options of one Compact. The zero value, or nil, means the defaults.
type CompactOptions struct {
	// Rebuild also rebuilds each index that holds deleted or replaced rows or lacks new ones. A
	// generation is immutable, so it keeps deleted rows until the next one replaces it.
	Rebuild bool
	// Progress is called from time to time. In the stage "store", done is the bytes copied and
	// total is 0. The stages of a rebuild begin with "rebuild" and the name of the collection, and
	// are otherwise those of RebuildOptions.Progress.
	Progress func(stage string, done, total int64)
}

// A CompactResult says what a Compact did.
type CompactResult struct {
	Before, After DiskUse
	Rebuilt       []string // collections whose index was rebuilt
	Elapsed       time.Duration
}

// Compact returns the space of deleted, dropped and replaced data to the file system. bbolt reuses
// free pages but never shrinks its file. So Compact copies the bbolt file without them and puts the
// copy in its place. It also deletes the log segments that the file covers. It needs disk space for
// the copy. Reads and writes continue; flushes, rebuilds and backups wait. After a crash the
// database is as it was before, or compacted.
//
// Ids are never reused, so the id of a deleted node stays in a bitmap. It takes at most a bit or
// so, and less in a run of deleted ids.
func (db *DB) Compact(ctx context.Context, opts *CompactOptions) (CompactResult, error) {
	leave, err := db.enter()
	if err != nil {
		return CompactResult{}, err
	}
	defer leave()
	var o CompactOptions
	if opts != nil {
		o = *opts
	}
	ctx, cancel := db.untilClose(ctx)
	defer cancel()
	// A rebuild chooses the next generation number, so only one may run at a time.
	if err := db.rebuilds.take(ctx); err != nil {
		return CompactResult{}, fmt.Errorf("compact %s: %w", db.dir, err)
	}
	defer db.rebuilds.pass()
	res, err := db.compact(ctx, o)
	if err != nil {
		return CompactResult{}, fmt.Errorf("compact %s: %w", db.dir, causeOf(ctx, err))
	}
	return res, nil
}

func (db *DB) compact(ctx context.Context, o CompactOptions) (res CompactResult, err error) {
	if err := db.owned(); err != nil {
		return res, err
	}
	start := time.Now()
	if res.Before, err = db.diskUse(); err != nil {
		return res, err
	}
	if o.Rebuild {
		if res.Rebuilt, err = db.rebuildStale(ctx, o.Progress); err != nil {
			return res, err
		}
	}
	if err := db.flush(); err != nil {
		return res, err
	}
	progress := func(copied int64) {
		if o.Progress != nil {
			o.Progress("store", copied, 0)
		}
	}
	if _, _, err := db.store.Compact(ctx, db.fs, progress); err != nil {
		return res, err
	}
	if res.After, err = db.diskUse(); err != nil {
		return res, err
	}
	res.Elapsed = time.Since(start)
	db.slog.Info("compacted", "dir", db.dir, "before", res.Before.Total(), "after", res.After.Total(), "seconds", res.Elapsed.Seconds())
	return res, nil
}

// rebuildStale rebuilds every index that does not hold exactly the rows of its collection. It drops
// the index of a collection without rows.
func (db *DB) rebuildStale(ctx context.Context, progress func(string, int64, int64)) (rebuilt []string, err error) {
	if _, err := db.store.Flush(); err != nil {
		return nil, err
	}
	var infos []storage.Info
	err = db.store.View(func(v *storage.View) error {
		infos = v.Collections()
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		if info.Generation == 0 {
			continue
		}
		c, err := db.collection(info.Name)
		if err != nil {
			return rebuilt, err
		}
		if fresh, err := c.fresh(info); fresh || err != nil {
			if err != nil {
				return rebuilt, err
			}
			continue
		}
		o := RebuildOptions{Force: true}
		if progress != nil {
			o.Progress = func(stage string, done, total int64) { progress("rebuild "+c.name+": "+stage, done, total) }
		}
		res, err := c.rebuildRetried(ctx, o)
		if err == nil && !res.Built {
			err = c.retireEmpty(info)
		}
		if err != nil {
			return rebuilt, fmt.Errorf("rebuild %q: %w", c.name, err)
		}
		rebuilt = append(rebuilt, c.name)
	}
	return rebuilt, nil
}

// fresh reports whether the served generation holds exactly the rows of the store.
func (c *Collection) fresh(info storage.Info) (bool, error) {
	gen := c.openGeneration(info)
	if gen == nil {
		return false, nil
	}
	defer gen.Release()
	return c.unchangedSince(info, gen)
}

// retireEmpty drops the index of a collection that has no rows. It does nothing if a row has been
// written meanwhile.
func (c *Collection) retireEmpty(old storage.Info) error {
	return c.db.log.Locked(func(wal.LSN) error {
		if _, err := c.db.store.Flush(); err != nil {
			return err
		}
		var info storage.Info
		err := c.view(func(v *storage.View) error {
			info, _ = v.Collection(c.name)
			return nil
		})
		if err != nil || info.UID != c.uid || info.Rows > 0 {
			return err
		}
		if err := c.db.store.PublishGeneration(c.uid, 0, 0); err != nil {
			return err
		}
		// No node is live, so the delta alone serves the collection. The file is removed at once,
		// because a later rebuild may use its number again.
		retired := c.served.publish(nil, 0, 0)
		for _, number := range filesOf(old) {
			c.removeGeneration(number)
		}
		if retired == nil {
			return nil
		}
		return retired.Release()
	})
}
