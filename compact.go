package flashdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flashdb/flashdb/storage"
	"github.com/flashdb/flashdb/wal"
)

// CompactOptions refine one Compact. The zero value, or nil, means the defaults.
type CompactOptions struct {
	// Rebuild also builds the index of each collection anew that has one which holds deleted or
	// replaced rows: a generation is immutable, and keeps them until the next.
	Rebuild bool
	// Progress is called now and then: with the bytes kept and 0 for the stage "store", and as
	// RebuildOptions.Progress for the others.
	Progress func(stage string, done, total int64)
}

// A CompactResult says what a Compact did.
type CompactResult struct {
	Before, After DiskUse
	Rebuilt       []string // collections whose index was built anew
	Elapsed       time.Duration
}

// Compact gives the room of what was deleted, dropped or replaced back to the file system: bbolt
// reuses such pages and never returns them, so the bbolt file is copied and replaced; log segments
// that are in it are dropped. It needs room for the copy. Reads and writes go on; flushes, rebuilds
// and backups wait. A crash at any moment leaves the database as it was or compacted.
//
// Ids are never reused, so a deleted node leaves its id in a bitmap: a bit and less, as runs are
// kept short.
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
	// A rebuild publishes by a generation's number, which one at a time may take.
	if err := db.rebuilds.take(ctx); err != nil {
		return CompactResult{}, fmt.Errorf("compact %s: %w", db.dir, err)
	}
	defer db.rebuilds.pass()
	res, err := db.compact(ctx, o)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
			err = cause
		}
		return CompactResult{}, fmt.Errorf("compact %s: %w", db.dir, err)
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

// rebuildStale builds anew every index that does not hold exactly the rows of its collection, and
// drops those of collections without rows.
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
			err = c.retireEmpty(info.Generation)
		}
		if err != nil {
			return rebuilt, fmt.Errorf("rebuild %q: %w", c.name, err)
		}
		rebuilt = append(rebuilt, c.name)
	}
	return rebuilt, nil
}

// fresh tells whether the served generation holds exactly the rows of the store.
func (c *Collection) fresh(info storage.Info) (bool, error) {
	gen := c.openGeneration(info)
	if gen == nil {
		return false, nil
	}
	defer gen.Release()
	return c.unchangedSince(info, gen)
}

// retireEmpty makes a collection without rows one without an index. If a row came meanwhile it does
// nothing.
func (c *Collection) retireEmpty(number uint64) error {
	return c.db.log.Locked(func(wal.LSN) error {
		if _, err := c.db.store.Flush(); err != nil {
			return err
		}
		var info storage.Info
		err := c.db.store.View(func(v *storage.View) error {
			info, _ = v.Collection(c.name)
			return nil
		})
		if err != nil || info.UID != c.uid || info.Count > 0 {
			return err
		}
		if err := c.db.store.PublishGeneration(c.uid, 0, 0); err != nil {
			return err
		}
		// Nothing is live, so that the delta alone is right as it is. The file goes at once: once
		// the number is free, a rebuild may take it again.
		retired := c.served.publish(nil, 0, 0)
		c.removeGeneration(number)
		if retired == nil {
			return nil
		}
		return retired.Release()
	})
}
