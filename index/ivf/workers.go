package ivf

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/flashdb/flashdb/index"
)

const (
	// largeScan is the least number of codes in the visited lists, times the query vectors, for
	// which several goroutines share a scan. It is a hundred microseconds of work, fifty times what
	// it takes to start a goroutine.
	largeScan = 1 << 17
	// runLists is the number of lists that a goroutine takes at a time.
	runLists = 64
	// In a large scan, one in leadShare of the lists is scanned first.
	leadShare = 32
)

// worker is the state of one goroutine of a scan.
type worker struct {
	s      *Search
	best   []*index.Best // of each query
	codes  int           // scanned
	pos    []uint32
	sums   []uint16
	scores []float32
	start  func() // run as a function value, made once because making it allocates
	panics any    // what run panicked with
}

func newWorker(s *Search) *worker {
	w := &worker{s: s, pos: make([]uint32, scanCodes), sums: make([]uint16, scanCodes), scores: make([]float32, scanCodes)}
	w.start = w.run
	return w
}

// shared is a scan that several goroutines work on.
type shared struct {
	ctx     context.Context
	queries []queryVector
	next    atomic.Int64 // index into Search.lists of the first list that no goroutine has taken
	running sync.WaitGroup
}

// scanShared scans the lists that were not scanned first, with as many goroutines as Workers and
// the work allow. The result does not depend on their number: whether a list is skipped depends on
// thresholds that are fixed before, and the best candidates are merged from those of each
// goroutine.
func (s *Search) scanShared(ctx context.Context, queries []queryVector) {
	s.shared.ctx, s.shared.queries = ctx, queries
	s.shared.next.Store(0)
	workers := max(1, min(s.Workers, len(s.lists)/runLists))
	for len(s.workers) < workers {
		s.workers = append(s.workers, newWorker(s))
	}
	for _, w := range s.workers[1:workers] {
		for len(w.best) < len(queries) {
			w.best = append(w.best, index.NewBest(1))
		}
		for i := range queries {
			w.best[i].Reset(queries[i].best.Size())
			w.best[i].Raise(queries[i].floor)
		}
		s.shared.running.Add(1)
		go w.start()
	}
	func() {
		defer s.shared.running.Wait() // also if a fault in the mapping makes this goroutine panic
		s.workers[0].scanRuns()
	}()
	s.shared.ctx, s.shared.queries = nil, nil
	for _, w := range s.workers[1:workers] {
		if p := w.panics; p != nil {
			w.panics = nil
			panic(p)
		}
		for i := range queries {
			for _, c := range w.best[i].Kept() {
				queries[i].best.Offer(c)
			}
		}
	}
}

// run is the body of a goroutine of a shared scan. A fault in the mapping becomes a panic, which
// scanShared passes on to its caller.
func (w *worker) run() {
	defer func() {
		w.panics = recover()
		w.s.shared.running.Done()
	}()
	debug.SetPanicOnFault(true)
	w.scanRuns()
}

// scanRuns scans runs of lists until none is left.
func (w *worker) scanRuns() {
	s, sh := w.s, &w.s.shared
	for sh.ctx.Err() == nil {
		end := int(sh.next.Add(runLists))
		if end-runLists >= len(s.lists) {
			return
		}
		run := s.lists[end-runLists : min(end, len(s.lists))]
		for at, l := range run {
			w.prefetch(sh.queries, run, at+aheadLists)
			for i := range sh.queries {
				if q := &sh.queries[i]; !q.first[l] {
					w.scanList(q, w.best[i], q.floor, int(l))
				}
			}
		}
	}
}
