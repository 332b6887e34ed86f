package flashdb

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/storage"
)

// mergedAtOnce is the least number of segments that are merged in the background.
const mergedAtOnce = 4

// A grower is the goroutines that build segments, and merge them. A merge takes long, and meanwhile
// the delta must not grow.
type grower struct {
	work            sync.WaitGroup
	growing, merges queue
}

// A queue is collections that wait for a goroutine.
type queue struct {
	mu     sync.Mutex
	waits  []*Collection
	filled chan struct{}
}

func newQueue() queue { return queue{filled: make(chan struct{}, 1)} }

func (g *grower) start(db *DB) {
	g.growing, g.merges = newQueue(), newQueue()
	if db.opts.SegmentRows < 0 || db.opts.ReadOnly || !db.store.Segmented() {
		return
	}
	g.work.Go(func() { g.growing.serve(db, (*Collection).grow) })
	g.work.Go(func() { g.merges.serve(db, (*Collection).mergeSegments) })
}

// wait waits for the goroutines, which end when the database is closed.
func (g *grower) wait() { g.work.Wait() }

// add puts a collection into the queue. It never blocks.
func (q *queue) add(c *Collection) {
	q.mu.Lock()
	if !slices.Contains(q.waits, c) {
		q.waits = append(q.waits, c)
	}
	q.mu.Unlock()
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

func (q *queue) next() *Collection {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waits) == 0 {
		return nil
	}
	c := q.waits[0]
	q.waits = q.waits[1:]
	return c
}

// serve calls fn with each collection, until the database is closed.
func (q *queue) serve(db *DB, fn func(*Collection, context.Context) error) {
	for {
		select {
		case <-db.closing.Done():
			return
		case <-q.filled:
		}
		for c := q.next(); c != nil; c = q.next() {
			err := fn(c, db.closing)
			if err != nil && db.closing.Err() == nil && !errors.Is(err, ErrNotFound) {
				db.slog.Warn("segment not built or merged", "dir", db.dir, "collection", c.name, "err", err)
			}
		}
	}
}

// wrote counts rows that were put into the live release, and asks for a segment once there are
// enough.
func (c *Collection) wrote(rows int) {
	if c.release != "" || c.db.opts.SegmentRows < 0 || rows == 0 {
		return
	}
	if c.newer.Add(int64(rows)) >= c.segmentRows() {
		c.newer.Store(0)
		c.db.grower.growing.add(c)
	}
}

// segmentRows returns how many newer rows become a segment. With a budget for memory they hold at
// most a quarter of it, but for the smallest budgets.
func (c *Collection) segmentRows() int64 {
	const least = 256 // smaller segments cost more than a scan of their rows
	rows := int64(c.db.opts.SegmentRows)
	if budget := c.db.opts.MemoryBytes; budget > 0 {
		rows = min(rows, max(least, budget/4/int64(4*c.schema.Dim)))
	}
	return rows
}

// grow builds a segment of the rows in the delta, if there are at least half of segmentRows. There
// may be fewer than were written, because a node counts once however often it was written, and
// because a segment that was built late took some of them. If all were needed, the delta would grow
// to twice as many.
func (c *Collection) grow(ctx context.Context) error {
	if err := c.db.rebuilds.segments.take(ctx); err != nil {
		return err
	}
	defer c.db.rebuilds.segments.pass()
	res, err := c.addSegment(ctx, uint64(max(1, c.segmentRows()/2)), max(1, c.db.opts.Workers/2), false)
	if res.Segments >= mergedAtOnce {
		c.db.grower.merges.add(c)
	}
	return err
}

// mergeSegments merges the newest segments into one, if there are enough of about the same size.
// Further segments may be published meanwhile.
func (c *Collection) mergeSegments(ctx context.Context) error {
	err := c.db.rebuilds.merge(ctx, c.merge)
	if errors.Is(err, errMergeCancelled) {
		return nil // the next segment asks for it again
	}
	return err
}

func (c *Collection) merge(ctx context.Context) (err error) {
	start := time.Now()
	info, files, number, err := c.toMerge(ctx)
	if err != nil || files == nil {
		return err
	}
	defer releaseFiles(files)
	first := tiers(files[1:], 0)
	ids := roaring.New()
	for _, of := range files[1+first:] {
		ids.AddMany(of.IDs())
	}
	upTo := info.Segments[len(info.Segments)-1].LSN
	built, err := c.buildSegment(ctx, number, files[0], ids, upTo, max(1, c.db.opts.Workers/2))
	if errors.Is(err, ivf.ErrRowsGone) {
		return nil // they were all deleted
	}
	if err != nil {
		return causeOf(ctx, err)
	}
	defer func() { err = errors.Join(err, built.Release()) }()
	if err := c.db.rebuilds.segments.take(ctx); err != nil {
		built.OnRetire(func() { c.removeGeneration(number) })
		return err
	}
	defer c.db.rebuilds.segments.pass()
	return c.publishMerge(info.Segments[first:], storage.Segment{Number: number, LSN: upTo}, built, start)
}

// toMerge opens the files of the served generation if some of its segments are to be merged, and
// chooses the number of the merge.
func (c *Collection) toMerge(ctx context.Context) (info storage.Info, files []*ivf.Index, number uint64, err error) {
	if err := c.db.rebuilds.segments.take(ctx); err != nil {
		return info, nil, 0, err
	}
	defer c.db.rebuilds.segments.pass()
	if err := c.db.owned(); err != nil {
		return info, nil, 0, err
	}
	if info, err = c.info(); err != nil || len(info.Segments) < mergedAtOnce {
		return info, nil, 0, err
	}
	if files, err = c.files(info); err != nil {
		return info, nil, 0, err
	}
	if len(info.Segments)-tiers(files[1:], 0) >= mergedAtOnce {
		number, err = c.nextGeneration()
	}
	if number == 0 || err != nil {
		releaseFiles(files)
		return info, nil, 0, err
	}
	c.merged.Store(number)
	return info, files, number, nil
}

// publishMerge replaces segments by the one that they were merged into. Further ones may have been
// published behind them.
func (c *Collection) publishMerge(merged []storage.Segment, by storage.Segment, built *ivf.Index, start time.Time) error {
	info, err := c.info()
	at := slices.Index(info.Segments, merged[0])
	var files []*ivf.Index
	if err == nil && at >= 0 {
		files, err = c.files(info)
	}
	if files == nil {
		built.OnRetire(func() { c.removeGeneration(by.Number) })
		return err
	}
	defer releaseFiles(files)
	segments := slices.Replace(slices.Clone(info.Segments), at, at+len(merged), by)
	all := slices.Replace(slices.Clone(files), 1+at, 1+at+len(merged), built)
	if err := c.publishSegments(info, all, segments); err != nil {
		return err
	}
	c.db.events.segmentsMerged(c.name, built.Info().Rows, len(segments), time.Since(start))
	return nil
}
