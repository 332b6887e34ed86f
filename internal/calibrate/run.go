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

// Input says what a run measures and how long it may take.
type Input struct {
	Decoder  decoder.Decoder
	Sources  []Source // in the order of use; as many are used as there is time for
	Training []Source // other sources, for the learned seeds; may be empty
	Rows     int      // that an engine searches
	Ks       []int    // ascending; nil: 10 and 100

	// Open returns the engine of one worker. It is called once for each worker before any of them
	// starts.
	Open    func() Engine
	Workers int // number of goroutines; below 1 means one

	Time  time.Duration    // the time budget: after it no source is begun, except the first
	Clock func() time.Time // nil: time.Now

	// Progress is called after every source with the time spent and the budget. It is never called
	// by two goroutines at once. It may be nil.
	Progress func(done, total time.Duration)
}

var defaultKs = []int{10, 100}

// run is the state of a calibration.
type run struct {
	Input
	began    time.Time
	workers  []*worker
	seeds    *flashlight.Seeds // nil if none were learned
	truths   []truth           // one for each source; the first asked of them are filled
	asked    int               // number of sources that any plan was run for
	first    int               // number of sources for exploring
	tried    []*candidate      // all candidates that were run for the first sources
	costs    costs
	timed    []float64 // seconds of exact scans: one at the start, replaced by those of the final timing
	progress sync.Mutex
}

// candidate is a plan for one k, and its outcomes for the first sources in their order.
type candidate struct {
	k        int
	plan     flashlight.Plan
	outcomes []outcome
	timed    []float64 // seconds in the final timing

	// Set by assess, from the outcomes:
	cost   float64 // mean seconds for one source, estimated from its work
	mean   float64 // recall
	likely float64 // the highest bound that it may still have after all sources
	tail   float64 // the tailBound of the worst source
}

// Run runs a calibration. It returns an error when ctx ends or an engine fails.
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

// share returns the time at which this share of the budget is spent.
func (r *run) share(of float64) time.Duration { return time.Duration(of * float64(r.Time)) }

// each calls do for the numbers from from to n-1, on all workers at once, until the time is over.
// It always calls it for 0. It returns the number after the last one: do has returned for all
// before it.
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
			// A fault in the mapping of an index becomes a panic in the goroutine of the caller.
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

// report calls Progress. The deferred unlock lets the other workers continue if Progress panics.
func (r *run) report() {
	if r.Progress != nil {
		r.progress.Lock()
		defer r.progress.Unlock()
		r.Progress(min(r.elapsed(), r.Time), r.Time)
	}
}

// measure runs each candidate for the first n sources, except those it was run for before, until
// the time is over. The sources of a candidate are always the first ones, without gaps. The rows of
// a source are sampled when the source is first used.
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
			// A thorough search adds most of the best rows to the pool, even if only a few plans
			// are run.
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

// exactSeconds is the median time of an exact scan.
func (r *run) exactSeconds() float64 { return median(r.timed) }
