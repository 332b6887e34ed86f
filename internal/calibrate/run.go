package calibrate

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
)

// Input is what a run measures, and how long it may take.
type Input struct {
	Decoder  decoder.Decoder
	Sources  []Source // in random order; as many are used as there is time for
	Training []Source // others, for the learned seeds; may be empty
	Rows     int      // that an engine searches
	Ks       []int    // ascending; nil: 10 and 100

	// Open returns the engine of one worker. It is called Workers times before any of them works.
	Open    func() Engine
	Workers int // goroutines; below 1: one

	Time  time.Duration    // the time budget: no source is begun after it, except for the first
	Clock func() time.Time // nil: time.Now

	// Progress is called after every source, with times; it is never called by two goroutines at
	// once. It may be nil.
	Progress func(done, total time.Duration)
}

var defaultKs = []int{10, 100}

// run is a calibration under way.
type run struct {
	Input
	began    time.Time
	workers  []*worker
	seeds    *flashlight.Seeds // nil: none are learned
	truths   []truth           // of all sources; those of the first asked are known
	asked    int               // sources that were asked by any plan
	first    int               // sources of exploring
	tried    []*candidate      // all that the first sources were asked by
	costs    costs
	timed    []float64 // seconds of exact scans: one, until those of the final timing
	progress sync.Mutex
}

// candidate is a plan for one k and its outcomes on the first sources, in their order.
type candidate struct {
	k        int
	plan     flashlight.Plan
	outcomes []outcome
	timed    []float64 // seconds in the final timing

	// Of the outcomes, by assess:
	cost   float64 // seconds per source by its work, to compare it by
	mean   float64 // recall
	likely float64 // the highest bound that is not unlikely after all sources
	tail   float64 // what the worst source allows at most: see tailBound
}

// Run measures. It returns an error when ctx ends, or when an engine fails.
func Run(ctx context.Context, in Input) (*Result, error) {
	r, err := newRun(in)
	if err != nil {
		return nil, err
	}
	if err := r.timeScan(ctx, &r.Sources[0]); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	certain := r.certain(r.workers[0].sampler.ranked(), r.exactSeconds()/float64(r.Rows))
	for _, w := range r.workers {
		w.sampler.certain = certain
	}
	err = r.explore(ctx)
	if err == nil {
		err = r.race(ctx)
	}
	var best []*candidate
	if err == nil {
		best, err = r.time(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	return &Result{run: r, Calibration: Calibration{
		Rows: r.Rows, Sources: r.asked, ExactSeconds: r.exactSeconds(), Frontiers: r.frontiers(best), Seeds: r.seeds,
	}}, nil
}

func newRun(in Input) (*run, error) {
	switch {
	case len(in.Sources) == 0:
		return nil, errors.New("calibrate: no sources")
	case in.Rows < 1:
		return nil, errors.New("calibrate: no rows")
	}
	if in.Clock == nil {
		in.Clock = time.Now
	}
	if in.Ks == nil {
		in.Ks = defaultKs
	}
	r := &run{Input: in, began: in.Clock(), truths: make([]truth, len(in.Sources)), first: min(exploreSources, len(in.Sources))}
	for i := range r.truths {
		r.truths[i].size = in.Ks[len(in.Ks)-1]
	}
	for range max(1, in.Workers) {
		r.workers = append(r.workers, newWorker(in.Open(), in.Decoder, in.Rows, in.Clock))
	}
	sm := newSampler(r.workers[0].engine)
	for _, w := range r.workers {
		w.sampler = sm
	}
	return r, nil
}

func (r *run) elapsed() time.Duration { return r.Clock().Sub(r.began) }

// share returns the time at which so much of the budget is over.
func (r *run) share(of float64) time.Duration { return time.Duration(of * float64(r.Time)) }

// each calls do for from, from+1 and so on up to n, on all workers at once, until the time is over,
// though always for 0. It returns the number after the last one begun: all before it are done.
func (r *run) each(ctx context.Context, from, n int, until time.Duration, do func(w *worker, i int) error) (int, error) {
	var mu sync.Mutex // guards the next three
	next, failed, panicked := from, error(nil), any(nil)
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next >= n || failed != nil || panicked != nil || (next > 0 && r.elapsed() >= until) {
			return 0, false
		}
		next++
		return next - 1, true
	}
	var workers sync.WaitGroup
	for _, w := range r.workers {
		workers.Go(func() {
			// A fault in the mapping of an index is a panic, and the caller's.
			defer func() {
				if p := recover(); p != nil {
					mu.Lock()
					panicked = p
					mu.Unlock()
				}
			}()
			debug.SetPanicOnFault(true)
			for i, ok := take(); ok; i, ok = take() {
				err := do(w, i)
				if err == nil {
					err = ctx.Err()
				}
				if err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
				r.report()
			}
		})
	}
	workers.Wait()
	if panicked != nil {
		panic(panicked)
	}
	return next, failed
}

// report tells how far the run has come. Progress is the caller's and may panic: the other workers
// must not wait for it then.
func (r *run) report() {
	if r.Progress != nil {
		r.progress.Lock()
		defer r.progress.Unlock()
		r.Progress(min(r.elapsed(), r.Time), r.Time)
	}
}

// measure asks each candidate about the sources it has not seen, up to the first n, until the time
// is over. What a candidate has seen is always the first sources, without a gap. A source is
// sampled when it is first asked.
func (r *run) measure(ctx context.Context, candidates []*candidate, n int, until time.Duration) error {
	if len(candidates) == 0 {
		return nil
	}
	from := n
	seen := make([]int, len(candidates))
	for i, c := range candidates {
		seen[i] = len(c.outcomes)
		from = min(from, seen[i])
		c.outcomes = append(c.outcomes, make([]outcome, max(0, n-seen[i]))...)
	}
	asked := r.asked
	end, err := r.each(ctx, from, n, until, func(w *worker, i int) error {
		s, t := &r.Sources[i], &r.truths[i]
		if i >= asked {
			if err := w.sample(ctx, s, i, t); err != nil {
				return err
			}
			// One thorough search, so that the pool of few plans lacks little.
			if _, err := w.ask(ctx, s, t, t.size, flashlight.LearnPlan(r.Rows), nil); err != nil {
				return err
			}
		}
		for j, c := range candidates {
			if i < seen[j] {
				continue
			}
			o, err := w.ask(ctx, s, t, c.k, c.plan, r.seeds)
			if err != nil {
				return err
			}
			c.outcomes[i] = o
		}
		return nil
	})
	for i, c := range candidates {
		c.outcomes = c.outcomes[:max(seen[i], min(end, len(c.outcomes)))]
	}
	r.asked = max(r.asked, end)
	return err
}

// exactSeconds is what an exact scan takes.
func (r *run) exactSeconds() float64 { return median(r.timed) }
