package ivf

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/flashdb/flashdb/index"
)

const (
	// largeScan is the number of codes in the visited lists, times the queries, from which on
	// several goroutines share a scan: a hundred microseconds of work, fifty times what it takes to
	// start one.
	largeScan = 1 << 17
	// runLists is the number of lists that a goroutine takes at a time.
	runLists = 64
	// leadShare is the part of the lists of a large scan, as 1 in so many, that is scanned first.
	leadShare = 32
)

// worker is what one goroutine scans with.
type worker struct {
	s      *Search
	best   []*index.Best // of each query
	codes  int           // scanned
	pos    []uint32
	sums   []uint16
	scores []float32
	start  func() // run, made once since every use of a method as a function allocates
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
	next    atomic.Int64 // first list, as an index of Search.lists, that nobody has taken
	running sync.WaitGroup
}

// scanShared scans the lists that were not scanned first, by as many goroutines as Workers and the
// work allow. What it finds does not depend on how many: each list is passed over or not by
// thresholds that are fixed before, and the best of all candidates are the best of the best of each
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
		defer s.shared.running.Wait() // also when a fault in the mapping makes this goroutine panic
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

// run is a goroutine of a shared scan. A fault in the mapping is a panic, which scanShared passes
// on to its caller.
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
