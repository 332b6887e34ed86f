package flashlight

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/index"
)

// exactBlock is the number of rows that a worker scores at a time.
const exactBlock = 512

// block is a run of rows on its way to a worker.
type block struct {
	ids    []uint32
	rows   []float32 // row-major, len(ids) x dim
	scores []float32
}

// Exact scores every row that the filters of q allow and appends the best q.K hits to dst, best first. Rows are read by
// the caller's goroutine and scored by workers of them (0: GOMAXPROCS); the answer does not depend on how many. It is
// the oracle that Executor.Run is measured against, and reads nothing of q.Plan. q.Excluded is not added to. A context
// that ends is an error: there is no partial answer.
func Exact(ctx context.Context, q *Query, r Rows, workers int, dst []index.Hit) ([]index.Hit, Report, error) {
	plan := q.Plan
	plan.Mode = ModeExact
	if err := (&Query{Bound: q.Bound, K: q.K, Plan: plan}).validate(r.Dim()); err != nil {
		return dst, Report{}, fmt.Errorf("flashlight: %w", err)
	}
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	sc := startScan(q, r.Dim(), workers)
	scored, err := sc.feed(ctx, r)
	best := sc.stop()
	if err != nil {
		return dst, Report{}, fmt.Errorf("flashlight: exact scan: %w", err)
	}
	report := Report{Plan: plan, Stop: StopExact, RowsScored: scored}
	hits, cut := applyMinScore(best.Sorted(dst), len(dst), q.MinScore)
	if cut {
		report.Stop = StopMinScore
	}
	return hits, report, nil
}

// scan is an exact scan under way.
type scan struct {
	q    *Query
	dim  int
	work chan *block
	idle chan *block // room for all blocks
	wg   sync.WaitGroup
	tops []index.TopK // one a worker
}

// startScan starts the workers, which stop when work is closed.
func startScan(q *Query, dim, workers int) *scan {
	sc := &scan{
		q:    q,
		dim:  dim,
		work: make(chan *block),
		idle: make(chan *block, workers+1),
		tops: make([]index.TopK, workers),
	}
	for range workers + 1 { // one is being filled while all workers work
		sc.idle <- &block{} // memory comes with the first rows
	}
	for w := range sc.tops {
		sc.tops[w].Reset(q.K)
		sc.wg.Go(func() { sc.run(&sc.tops[w]) })
	}
	return sc
}

// run scores blocks until there are no more.
func (sc *scan) run(top *index.TopK) {
	var scratch decoder.Scratch
	for b := range sc.work {
		b.scores = sized(b.scores, len(b.ids))
		sc.q.Bound.Score(&scratch, b.scores, b.rows)
		for i, id := range b.ids {
			top.Offer(id, b.scores[i])
		}
		sc.idle <- b
	}
}

// empty returns a block that no worker uses, once there is one.
func (sc *scan) empty() *block {
	b := <-sc.idle
	if b.rows == nil {
		b.ids, b.rows = make([]uint32, 0, exactBlock), make([]float32, 0, exactBlock*sc.dim)
	}
	b.ids, b.rows = b.ids[:0], b.rows[:0]
	return b
}

// feed copies the rows that the filters allow into blocks for the workers, and returns how many there are.
func (sc *scan) feed(ctx context.Context, r Rows) (scored int, err error) {
	filter := index.Filter{Allowed: sc.q.Allowed, Excluded: sc.q.Excluded}
	b := sc.empty()
	flush := func() {
		scored += len(b.ids)
		sc.work <- b
		b = sc.empty()
	}
	err = r.Rows(ctx, func(ids []uint32, rows []float32) error {
		for i, id := range ids {
			if !filter.Keep(id) {
				continue
			}
			b.ids = append(b.ids, id)
			b.rows = append(b.rows, rows[i*sc.dim:(i+1)*sc.dim]...)
			if len(b.ids) == exactBlock {
				flush()
			}
		}
		return ctx.Err()
	})
	if err == nil && len(b.ids) > 0 {
		flush()
	}
	return scored, err
}

// stop ends the workers and merges what they found.
func (sc *scan) stop() *index.TopK {
	close(sc.work)
	sc.wg.Wait()
	best := &sc.tops[0]
	for w := range sc.tops[1:] {
		for _, h := range sc.tops[1+w].Sorted(nil) {
			best.Offer(h.ID, h.Score)
		}
	}
	return best
}

// applyMinScore drops the hits after the first n that score less than least, and reports whether there were any.
func applyMinScore(hits []index.Hit, n int, least *float32) ([]index.Hit, bool) {
	end := len(hits)
	for least != nil && end > n && hits[end-1].Score < *least {
		end--
	}
	return hits[:end], end < len(hits)
}
