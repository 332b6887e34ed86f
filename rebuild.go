package flashdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/internal/failpoint"
	"github.com/flashdb/flashdb/storage"
	"github.com/flashdb/flashdb/wal"
)

// minIndexedRows is the number of rows below which Rebuild builds no index unless it is forced to,
// because an exact scan is as fast and misses nothing. A served index is rebuilt however few rows
// are left.
const minIndexedRows = 20_000

// RebuildOptions are the options of one Rebuild. The zero value, or nil, means the defaults.
type RebuildOptions struct {
	// Force builds an index also below 20,000 rows and when nothing has changed. It publishes the
	// new generation whatever its recall.
	Force bool
	// NewerOnly trains nothing. It puts the rows that are newer than the served generation into a
	// segment, which takes seconds where a rebuild takes minutes: see Options.SegmentRows. The
	// other fields but Workers are then ignored. It does nothing without a generation, and to a
	// database of format version 1 or 2.
	NewerOnly bool
	// MinDrift skips the rebuild while Drift.Moved is below it. Zero means that any change is
	// enough.
	MinDrift float64
	// Tolerance is how far the mean recall of the new generation may be below that of the served
	// one, at equal cost. Default 0.01. With 1 any recall is accepted.
	Tolerance float64
	// CalibrateTime is the longest time for which each decoder is calibrated. Zero means
	// Options.CalibrateTime. Negative means not at all, and then the recall is not compared with
	// that of the served generation either.
	CalibrateTime time.Duration
	// Workers bounds the goroutines of the build and the calibration. Default half of
	// Options.Workers, and at least one, so that queries have free cores meanwhile. If no queries
	// run, set it to the number of cores.
	Workers int
	// Lists is the number of inverted lists. Default min(n/16, 16 sqrt n) for n rows.
	Lists int
	// Bits is the number of bits of each sub-quantizer: 4 (the default) or 8.
	Bits int
	// RandomSeed is the seed of sampling and training. The same rows, seed and options give a
	// byte-identical file.
	RandomSeed uint64
	// OmitRows leaves the full rows out of the generation, so that they are on disk only once. Rows
	// to score are then read from bbolt. If a node is replaced while a query runs, the query may
	// score its new row.
	OmitRows bool
	// Progress is called from time to time from the goroutine that builds.
	Progress func(stage string, done, total int64)
}

// Validate reports every fault of the options at once.
func (o *RebuildOptions) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	if o.Workers < 0 {
		errs = append(errs, fmt.Errorf("%w: workers is %d: use a positive number, or 0 for the default", ErrInvalid, o.Workers))
	}
	if o.Lists < 0 {
		errs = append(errs, fmt.Errorf("%w: lists is %d: use a positive number, or 0 for the default", ErrInvalid, o.Lists))
	}
	if o.Bits != 0 && o.Bits != 4 && o.Bits != 8 {
		errs = append(errs, fmt.Errorf("%w: bits is %d: use 4 or 8", ErrInvalid, o.Bits))
	}
	if !(o.Tolerance >= 0 && o.Tolerance <= 1) {
		errs = append(errs, fmt.Errorf("%w: tolerance %v is outside (0, 1]", ErrInvalid, o.Tolerance))
	}
	if !(o.MinDrift >= 0) {
		errs = append(errs, fmt.Errorf("%w: drift %v is not a share of the rows: use 0 or more", ErrInvalid, o.MinDrift))
	}
	return errors.Join(errs...)
}

// A RebuildResult says what a rebuild did.
type RebuildResult struct {
	// Built says whether a new generation, or a new segment, is served. If not, Reason says why.
	Built  bool
	Reason string
	// Generation is the generation served now, or 0 without one. Segments is how many segments it
	// has: 0 unless RebuildOptions.NewerOnly is set. Rows, Lists and Bytes are those of the file
	// that was built: the generation, or the new segment.
	Generation  uint64
	Segments    int
	Rows, Lists int
	Bytes       int64
	// Calibrations are those of the decoders on the new generation.
	Calibrations []Calibration
	Elapsed      time.Duration
}

// Rebuild builds a new generation of the index from the rows of this moment and serves it. Reads
// and writes continue during it, and later writes are served from the delta. If a rebuild is
// cancelled, or its process is killed, the earlier generation stays served.
//
// Before the new generation is served, every decoder is calibrated on it (see Calibrate). Then the
// plan in use is run on both generations for the same sources. If the recall of the new one is
// lower by more than RebuildOptions.Tolerance, Rebuild returns ErrQuality and the earlier one stays
// served. A decoder that is put while the rebuild runs is calibrated once the new generation is
// served.
func (c *Collection) Rebuild(ctx context.Context, opts *RebuildOptions) (RebuildResult, error) {
	leave, err := c.db.enter()
	if err != nil {
		return RebuildResult{}, err
	}
	defer leave()
	err = opts.Validate()
	if err == nil {
		err = c.writable()
	}
	if err != nil {
		return RebuildResult{}, fmt.Errorf("rebuild %q: %w", c.name, err)
	}
	var o RebuildOptions
	if opts != nil {
		o = *opts
	}
	ctx, cancel := c.db.untilClose(ctx)
	defer cancel()

	if err := c.db.rebuilds.take(ctx); err != nil {
		return RebuildResult{}, fmt.Errorf("rebuild %q: %w", c.name, err)
	}
	defer c.db.rebuilds.pass()
	build := c.rebuildRetried
	if o.NewerOnly {
		build = c.indexNewer
	}
	res, err := build(ctx, o)
	if err != nil {
		return RebuildResult{}, fmt.Errorf("rebuild %q: %w", c.name, err)
	}
	return res, nil
}

// rebuildRetried builds, and builds once more if the rows that the build needs were deleted while
// it ran. The second attempt starts from the rows that are left.
func (c *Collection) rebuildRetried(ctx context.Context, o RebuildOptions) (RebuildResult, error) {
	res, err := c.rebuildOnce(ctx, o)
	if errors.Is(err, ivf.ErrRowsGone) {
		res, err = c.rebuildOnce(ctx, o)
	}
	return res, err
}

func (c *Collection) rebuildOnce(ctx context.Context, o RebuildOptions) (res RebuildResult, err error) {
	if err := c.db.owned(); err != nil {
		return RebuildResult{}, err
	}
	start := time.Now()
	o.Workers = cmp.Or(o.Workers, max(1, c.db.opts.Workers/2))
	defer func() {
		err = causeOf(ctx, err)
		if res.Built || err != nil {
			c.db.events.rebuildFinished(c.name, res, err)
		}
	}()
	// This generation holds every write that is acknowledged so far. Rows that are written from
	// here on have a later LSN and stay in the delta.
	buildLSN, err := c.db.store.Flush()
	if err != nil {
		return RebuildResult{}, err
	}
	info, reason, err := c.needsRebuild(o)
	if err != nil || reason != "" {
		return RebuildResult{Reason: reason, Generation: info.Generation}, err
	}
	if err := c.db.checkFolder(c.name); err != nil {
		return RebuildResult{}, err
	}
	number, err := c.nextGeneration()
	if err != nil {
		return RebuildResult{}, err
	}
	c.db.events.rebuildStarted(c.name, number)
	gen, err := buildGeneration(ctx, c.db.fs, filepath.Join(indexDir, c.name), number, storeRows{c}, ivf.BuildOptions{
		Dim:        c.schema.Dim,
		Lists:      o.Lists,
		Bits:       o.Bits,
		Seed:       o.RandomSeed,
		OmitRows:   o.OmitRows,
		Keys:       storeRows{c},
		Workers:    o.Workers,
		Collection: c.uid,
		BuildLSN:   buildLSN,
		Progress:   o.Progress,

		Rows:        int64(info.Rows),
		MemoryBytes: c.db.opts.MemoryBytes,
	})
	if err != nil {
		return RebuildResult{}, overBudget(err)
	}
	built := gen.Info()
	calibrations, err := c.qualify(ctx, gen, number, o)
	if err != nil {
		return RebuildResult{}, errors.Join(err, c.discard(gen, number))
	}
	if err := c.publish(gen, info, number, buildLSN); err != nil {
		return RebuildResult{}, err
	}
	calibrations = append(calibrations, c.calibratePut(ctx, o)...)
	return RebuildResult{
		Built:      true,
		Generation: number,
		Rows:       built.Rows,
		Lists:      built.Lists,
		Bytes:      built.Bytes,

		Calibrations: calibrations,
		Elapsed:      time.Since(start),
	}, nil
}

// overBudget says what to do if a build cannot be held to Options.MemoryBytes.
func overBudget(err error) error {
	var budget *ivf.BudgetError
	if errors.As(err, &budget) {
		return fmt.Errorf("%w: %w: raise Options.MemoryBytes, or --memory", ErrInvalid, err)
	}
	return err
}

// needsRebuild returns the state of the collection, and why no rebuild is needed. The reason is ""
// if one is needed.
func (c *Collection) needsRebuild(o RebuildOptions) (info storage.Info, reason string, err error) {
	if info, err = c.info(); err != nil {
		return info, "", err
	}
	if info.Rows == 0 {
		return info, "the collection is empty", nil
	}
	if o.Force {
		return info, "", nil
	}
	gen := c.openGeneration(info)
	switch {
	case gen != nil:
		defer gen.Release()
		if c.db.opts.LazyChecksums && gen.Verify() != nil {
			return info, "", nil
		}
	case info.Generation != 0:
		return info, "", nil // the index is damaged or missing, and is rebuilt whatever the number of rows
	case info.Rows < minIndexedRows:
		return info, fmt.Sprintf("%d rows are scanned exactly; an index is built from %d rows on, or when forced", info.Rows, minIndexedRows), nil
	}
	unchanged, err := c.unchangedSince(info, gen)
	if unchanged {
		reason = "nothing has changed since the last rebuild"
	}
	if err == nil && reason == "" && o.MinDrift > 0 {
		reason, err = c.drifted(info, o.MinDrift)
	}
	return info, reason, err
}

// unchangedSince reports whether gen, the served generation, holds exactly the rows of the store
// without segments.
func (c *Collection) unchangedSince(info storage.Info, gen *ivf.Index) (bool, error) {
	if gen == nil || gen.Info().Rows != info.Rows || len(info.Segments) > 0 {
		return false, nil
	}
	dirty := false
	err := c.dirty(func(uint32, uint64) error {
		dirty = true
		return errNoChange // one is enough
	})
	if err != nil && !errors.Is(err, errNoChange) {
		return false, err
	}
	return !dirty, nil
}

// publish makes gen the served generation in place of that of old, and of its segments. The bbolt
// transaction in it is the only commit point: after a crash before it, the earlier generation is
// served, and after it, gen.
func (c *Collection) publish(gen *ivf.Index, old storage.Info, number, buildLSN uint64) error {
	var retired *ivf.Index
	err := c.db.log.Locked(func(wal.LSN) error {
		failpoint.PublishBefore.Reach()
		if err := c.db.store.PublishGenerationOf(c.release, c.uid, number, buildLSN); err != nil {
			return err
		}
		failpoint.PublishAfter.Reach()
		retired = c.served.publish(gen, number, buildLSN)
		return nil
	})
	if err != nil {
		// The file stays, because a commit whose last sync failed may still be on disk. The next
		// open removes whichever generation is not served.
		gen.Release()
		return cmp.Or(c.db.owned(), err)
	}
	return c.retire(retired, gen, filesOf(old), filesOf(old))
}

// removeGeneration removes the file of a generation that is no longer served. It does nothing for
// 0.
func (c *Collection) removeGeneration(number uint64) {
	if number == 0 {
		return
	}
	failpoint.PublishRemove.Reach()
	err := removeGenerationFile(c.db.fs, filepath.Join(indexDir, c.name), number)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.db.slog.Warn("retired index not removed; the next open removes it", "collection", c.name, "generation", number, "err", err)
	}
}

// storeRows streams the rows and keys of a collection from bbolt, for a build.
type storeRows struct{ c *Collection }

// Rows implements ivf.RowSource.
func (s storeRows) Rows(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	return s.c.db.store.RowsOf(ctx, s.c.release, s.c.uid, 0, fn)
}

// Keys implements ivf.KeySource.
func (s storeRows) Keys(ctx context.Context, fn func(ids []uint32, keys [][]byte) error) error {
	return s.c.db.store.Keys(ctx, s.c.uid, fn)
}
