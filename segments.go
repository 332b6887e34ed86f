package flashdb

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/internal/failpoint"
	"github.com/flashdb/flashdb/storage"
	"github.com/flashdb/flashdb/wal"
)

// Rows that are newer than a generation are in the delta, where each query scans them. Once there
// are Options.SegmentRows of them, they move into a segment in the background: an index file like a
// generation, built with its centroids and codebooks. Queries search the generation and its
// segments as one index. A rebuild replaces them all.

const (
	// defaultSegmentRows is that of Options.SegmentRows. A scan of as many rows of 64 dimensions
	// takes about as long as the search of an index of 800,000 rows with its default plan.
	defaultSegmentRows = 16 << 10
	// segmentTier is how many times as many rows an older segment must have to stay apart from the
	// newer ones. So n rows are in about log(n) segments, and a row is written as many times.
	segmentTier = 3
)

// indexNewer is a rebuild with RebuildOptions.NewerOnly.
func (c *Collection) indexNewer(ctx context.Context, o RebuildOptions) (RebuildResult, error) {
	if !c.db.store.Segmented() {
		return RebuildResult{Reason: "a database of format version 1 or 2 has no segments: restore a backup of it, or rebuild"}, nil
	}
	res, err := c.addSegment(ctx, 1, cmp.Or(o.Workers, max(1, c.db.opts.Workers/2)), true)
	return res, causeOf(ctx, err)
}

// addSegment builds and publishes a segment of the rows in the delta, if there are at least as many
// as that, and an index is served. With merge, the rows of segments of about the same size go into
// it as well; the caller then holds all of db.rebuilds, else its segments.
func (c *Collection) addSegment(ctx context.Context, least uint64, workers int, merge bool) (res RebuildResult, err error) {
	if err := c.db.owned(); err != nil {
		return res, err
	}
	start := time.Now()
	upTo, err := c.db.store.Flush()
	if err != nil {
		return res, err
	}
	info, err := c.info()
	if err != nil || info.Generation == 0 {
		return RebuildResult{Reason: "there is no index as yet"}, err
	}
	res.Generation, res.Reason = info.Generation, "no rows are newer than the index"
	ids, err := c.newerIDs(upTo)
	if err != nil {
		return res, err
	}
	if n := ids.GetCardinality(); n < least {
		c.wrote(int(n)) // they are still there, and were counted for this segment
		return res, nil
	}
	files, err := c.files(info)
	if err != nil {
		return res, err
	}
	defer releaseFiles(files)
	kept := len(info.Segments)
	if merge {
		kept = tiers(files[1:], int(ids.GetCardinality()))
		for _, of := range files[1+kept:] {
			ids.AddMany(of.IDs())
		}
	}
	number, err := c.nextGeneration()
	if err != nil {
		return res, err
	}
	built, err := c.buildSegment(ctx, number, files[0], ids, upTo, workers)
	if errors.Is(err, ivf.ErrRowsGone) { // all of them were deleted meanwhile
		return res, nil
	}
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, built.Release()) }()
	segments := append(slices.Clone(info.Segments[:kept]), storage.Segment{Number: number, LSN: upTo})
	if err := c.publishSegments(info, append(slices.Clip(files[:1+kept]), built), segments); err != nil {
		return res, err
	}
	of := built.Info()
	res.Built, res.Reason, res.Segments = true, "", len(segments)
	res.Rows, res.Lists, res.Bytes, res.Elapsed = of.Rows, of.Lists, of.Bytes, time.Since(start)
	c.db.events.segmentBuilt(c.name, of.Rows, len(segments), res.Elapsed)
	return res, nil
}

// files opens the files of the served generation. The caller releases them.
func (c *Collection) files(info storage.Info) ([]*ivf.Index, error) {
	if files := c.served.files(info.Generation); files != nil {
		return files, nil
	}
	return c.db.mapFiles(info)
}

// nextGeneration returns the number of the next index file.
func (c *Collection) nextGeneration() (uint64, error) {
	last, err := c.lastGeneration()
	return freeGeneration(c.db.fs, filepath.Join(indexDir, c.name), max(last, c.merged.Load())+1), err
}

// newerIDs returns the ids in the delta whose rows were written up to an LSN.
func (c *Collection) newerIDs(upTo uint64) (*roaring.Bitmap, error) {
	ids := roaring.New()
	err := c.dirty(func(id uint32, lsn uint64) error {
		if lsn <= upTo {
			ids.Add(id)
		}
		return nil
	})
	return ids, err
}

// tiers returns how many of the oldest segments stay as they are, if as many newer rows come. The
// others are merged.
func tiers(segments []*ivf.Index, newer int) (kept int) {
	kept = len(segments)
	for kept > 0 && (newer == 0 || segments[kept-1].Info().Rows < segmentTier*newer) {
		kept--
		newer += segments[kept].Info().Rows
	}
	return kept
}

// dirty calls fn for the rows in the delta that have been flushed: see storage.Store.Dirty.
func (c *Collection) dirty(fn func(id uint32, lsn uint64) error) error {
	err := c.db.store.DirtyOf(c.release, c.uid, fn)
	if errors.Is(err, storage.ErrNotFound) {
		return c.gone()
	}
	return err
}

// buildSegment builds a segment of the rows that the ids have in the store.
func (c *Collection) buildSegment(ctx context.Context, number uint64, like *ivf.Index, ids *roaring.Bitmap, upTo uint64, workers int) (*ivf.Index, error) {
	return buildGeneration(ctx, c.db.fs, filepath.Join(indexDir, c.name), number, rowsOf{c, ids}, ivf.BuildOptions{
		Dim:        c.schema.Dim,
		Like:       like,
		Workers:    workers,
		Collection: c.uid,
		BuildLSN:   upTo,

		Rows:        int64(ids.GetCardinality()),
		MemoryBytes: c.db.opts.MemoryBytes,
	})
}

// publishSegments replaces the segments of the served generation. files are the generation and
// those segments.
func (c *Collection) publishSegments(info storage.Info, files []*ivf.Index, segments []storage.Segment) error {
	// Deletes up to the LSN of the newest segment must be known. Later ones are in the delta too.
	joined, err := c.db.join(c.release, info.UID, files)
	if err != nil {
		return err
	}
	upTo := segments[len(segments)-1].LSN
	var retired *ivf.Index
	err = c.db.log.Locked(func(wal.LSN) error {
		failpoint.PublishBefore.Reach()
		if err := c.db.store.PublishSegments(c.release, c.uid, info.Generation, segments); err != nil {
			return err
		}
		failpoint.PublishAfter.Reach()
		retired = c.served.extend(joined, info.Generation, upTo)
		return nil
	})
	if err != nil {
		// The file stays: see publish.
		return errors.Join(cmp.Or(c.db.owned(), err), joined.Release())
	}
	gone := slices.DeleteFunc(slices.Clone(info.Segments), func(s storage.Segment) bool { return slices.Contains(segments, s) })
	return c.retire(retired, joined, filesOf(info), numbersOf(gone))
}

// filesOf returns the numbers of the files of a generation: its own, and those of its segments.
func filesOf(info storage.Info) []uint64 {
	return append([]uint64{info.Generation}, numbersOf(info.Segments)...)
}

func numbersOf(segments []storage.Segment) (numbers []uint64) {
	for _, s := range segments {
		numbers = append(numbers, s.Number)
	}
	return numbers
}

// retire releases an index that is served no longer, and removes those of its files that are gone:
// once the last query has released them. numbers are those of all its files. If nothing was open,
// retired is nil, or is the index that was to replace it.
func (c *Collection) retire(retired, by *ivf.Index, numbers, gone []uint64) error {
	if retired == nil || retired == by {
		for _, number := range gone {
			c.removeGeneration(number)
		}
	} else {
		for i, of := range retired.Files() {
			if number := numbers[i]; slices.Contains(gone, number) {
				of.OnRetire(func() { c.removeGeneration(number) })
			}
		}
	}
	if retired == nil {
		return nil
	}
	return retired.Release()
}

// mapFiles opens the files of the served generation: its own, and those of its segments.
func (db *DB) mapFiles(info storage.Info) (files []*ivf.Index, err error) {
	if err := db.checkFolder(info.Name); err != nil {
		return nil, err
	}
	wanted := append([]storage.Segment{{Number: info.Generation, LSN: info.BuildLSN}}, info.Segments...)
	for _, w := range wanted {
		of, err := db.mapFile(info, w.Number, w.LSN)
		if err != nil {
			releaseFiles(files)
			return nil, err
		}
		files = append(files, of)
	}
	return files, nil
}

func releaseFiles(files []*ivf.Index) {
	for _, of := range files {
		_ = of.Release() // another holder, or the end of the process, reports what cannot be unmapped
	}
}

// join returns one index of a generation and its segments. Rows are hidden in each file if a later
// one has the id, or if the node was deleted.
func (db *DB) join(release string, uid uint32, files []*ivf.Index) (*ivf.Index, error) {
	later := roaring.New()
	err := db.store.ViewOf(release, func(v *storage.View) error {
		if tombs := v.Tombs(uid); tombs != nil {
			later.Or(tombs)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	parts := make([]ivf.Segment, len(files))
	for i, of := range slices.Backward(files) {
		parts[i] = ivf.Segment{Index: of, Hidden: later.Clone()}
		later.AddMany(of.IDs())
	}
	return ivf.Join(parts)
}

// rowsOf streams the rows that some ids have in the store, for a build. It passes over those
// without one.
type rowsOf struct {
	c   *Collection
	ids *roaring.Bitmap
}

// Rows implements ivf.RowSource.
func (s rowsOf) Rows(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	const page = 1024 // ids read in one transaction
	dim := s.c.schema.Dim
	wanted, ids, rows := make([]uint32, page), make([]uint32, 0, page), make([]float32, page*dim)
	for it := s.ids.ManyIterator(); ; {
		n := it.NextMany(wanted)
		if n == 0 {
			return nil
		}
		ids = ids[:0]
		runtime.Gosched() // for queries beside the build
		err := s.c.view(func(v *storage.View) error {
			for _, id := range wanted[:n] {
				at := len(ids) * dim
				if v.Row(rows[at:at+dim], s.c.uid, id) {
					ids = append(ids, id)
				}
			}
			return ctx.Err()
		})
		if err == nil && len(ids) > 0 {
			err = fn(ids, rows[:len(ids)*dim])
		}
		if err != nil {
			return err
		}
	}
}
