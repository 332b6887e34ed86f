package flashlight

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/index"
)

const (
	// exactBlock is the number of rows that a worker takes at a time.
	exactBlock = 512
	// exactRun is the least number of neighbouring rows that are scored in place. Shorter runs are
	// copied together first.
	exactRun = 128
)

// block is a run of rows for one worker, a part of a block of Rows.
type block struct {
	ids  []uint32
	rows []float32 // row-major, len(ids) x dim
}

// Exact scores every row that the filters of q allow and appends the best q.K hits to dst, best
// first. The caller's goroutine reads the rows, and as many goroutines as workers says score them;
// 0 means GOMAXPROCS. The answer does not depend on their number. Exact ignores q.Plan and does not
// add to q.Excluded. If ctx ends, it returns an error and no partial answer.
func Exact(ctx context.Context, q *Query, r Rows, workers int, dst []index.Hit) ([]index.Hit, Report, error) {
	plan := q.Plan
	plan.Method = MethodExact
	if err := (&Query{Bound: q.Bound, K: q.K, Plan: plan}).validate(r.Dim()); err != nil {
		return dst, Report{}, fmt.Errorf("flashlight: %w", err)
	}
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	sc := startScan(q, r.Dim(), workers)
	err := sc.run(ctx, r)
	if err != nil {
		return dst, Report{}, fmt.Errorf("flashlight: exact scan: %w", err)
	}
	best, scored := sc.merge()
	report := Report{Plan: plan, Stop: StopExact, RowsScored: scored}
	hits, cut := applyMinScore(best.Sorted(dst), len(dst), q.MinScore)
	if cut {
		report.Stop = StopMinScore
	}
	return hits, report, nil
}

// scan is the state of an exact scan.
type scan struct {
	work    chan block
	wg      sync.WaitGroup
	workers []exactWorker
	panics  chan any // the first panic of a worker
}

// startScan starts the workers, which stop when work is closed.
func startScan(q *Query, dim, workers int) *scan {
	sc := &scan{work: make(chan block), workers: make([]exactWorker, workers), panics: make(chan any, 1)}
	for i := range sc.workers {
		w := &sc.workers[i]
		*w = exactWorker{bound: q.Bound, filter: index.Filter{Allowed: q.Allowed, Excluded: q.Excluded}, dim: dim}
		w.top.Reset(q.K)
		sc.wg.Go(func() { sc.drain(w) })
	}
	return sc
}

// drain lets w scan blocks until there are no more. A fault in a mapped file becomes a panic. A
// worker that panics discards the remaining blocks, and run passes the panic on to the caller.
func (sc *scan) drain(w *exactWorker) {
	defer func() {
		if p := recover(); p != nil {
			select {
			case sc.panics <- p:
			default:
			}
			for range sc.work {
			}
		}
	}()
	debug.SetPanicOnFault(true)
	for b := range sc.work {
		w.scan(b)
	}
	w.flush()
}

// run passes blocks to the workers and always waits for them. It panics if a worker did, so a guard
// of the calling goroutine covers the workers too.
func (sc *scan) run(ctx context.Context, r Rows) error {
	defer func() {
		close(sc.work)
		sc.wg.Wait()
		select {
		case p := <-sc.panics:
			panic(p)
		default:
		}
	}()
	return sc.feed(ctx, r)
}

// feed passes the rows to the workers in blocks.
func (sc *scan) feed(ctx context.Context, r Rows) error {
	dim := r.Dim()
	return r.Rows(ctx, func(ids []uint32, rows []float32) error {
		for len(ids) > 0 {
			n := min(exactBlock, len(ids))
			sc.work <- block{ids[:n], rows[:n*dim]}
			ids, rows = ids[n:], rows[n*dim:]
		}
		return ctx.Err()
	})
}

// merge merges the results of the workers. It also returns the number of rows scored.
func (sc *scan) merge() (best *index.TopK, scored int) {
	best = &sc.workers[0].top
	for i := range sc.workers {
		w := &sc.workers[i]
		scored += w.scored
		if i == 0 {
			continue
		}
		for _, h := range w.top.Sorted(nil) {
			best.Offer(h.ID, h.Score)
		}
	}
	return best, scored
}

// exactWorker scores blocks and keeps the best.
type exactWorker struct {
	bound   decoder.Bound
	filter  index.Filter
	dim     int
	top     index.TopK
	scored  int
	scratch decoder.Scratch
	scores  []float32
	// Rows of short runs, waiting to be scored together.
	ids  []uint32
	rows []float32
}

// scan scores the rows of b that match the filter, a run of neighbours at a time.
func (w *exactWorker) scan(b block) {
	for i := 0; i < len(b.ids); {
		if !w.filter.Keep(b.ids[i]) {
			i++
			continue
		}
		j := i + 1
		for j < len(b.ids) && w.filter.Keep(b.ids[j]) {
			j++
		}
		ids, rows := b.ids[i:j], b.rows[i*w.dim:j*w.dim]
		if j-i >= exactRun {
			w.score(ids, rows)
		} else {
			w.collect(ids, rows)
		}
		i = j
	}
}

// collect copies the rows of a short run aside, until there are enough to score.
func (w *exactWorker) collect(ids []uint32, rows []float32) {
	if w.rows == nil {
		w.ids, w.rows = make([]uint32, 0, exactBlock), make([]float32, 0, exactBlock*w.dim)
	}
	if len(w.ids)+len(ids) > exactBlock {
		w.flush()
	}
	w.ids, w.rows = append(w.ids, ids...), append(w.rows, rows...)
}

// flush scores the rows that collect put aside.
func (w *exactWorker) flush() {
	w.score(w.ids, w.rows)
	w.ids, w.rows = w.ids[:0], w.rows[:0]
}

func (w *exactWorker) score(ids []uint32, rows []float32) {
	w.scores = sized(w.scores, len(ids))
	w.bound.Score(&w.scratch, w.scores, rows)
	for i, id := range ids {
		w.top.Offer(id, w.scores[i])
	}
	w.scored += len(ids)
}

// applyMinScore drops the hits after the first n whose scores are below least or NaN. It reports
// whether there were any.
func applyMinScore(hits []index.Hit, n int, least *float32) ([]index.Hit, bool) {
	end := len(hits)
	for least != nil && end > n && !(hits[end-1].Score >= *least) {
		end--
	}
	return hits[:end], end < len(hits)
}
