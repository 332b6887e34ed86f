package calibrate

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
)

// Input is what a run measures, and how long it may take.
type Input struct {
	Decoder decoder.Decoder
	Sources []Source // in random order; as many are used as there is time for
	Rows    int      // that an engine searches
	Ks      []int    // ascending; nil: 10 and 100

	// Open returns the engine of one worker. It is called Workers times before any of them works.
	Open    func() Engine
	Workers int // goroutines; below 1: one

	Time  time.Duration    // the box: no source is begun after it, except for the first
	Clock func() time.Time // nil: time.Now

	// Progress is called after every source, with times; it is never called by two goroutines at once. It may be nil.
	Progress func(done, total time.Duration)
}

var defaultKs = []int{10, 100}

// exploreSources are asked by every plan of the grid, as far as exploreShare of the box allows.
const (
	exploreSources = 6
	exploreShare   = 0.2
	easyShare      = 0.3 // where truths are cheap: those of all sources take less than easyTruths of the box
	easyTruths     = 0.1
	growthShare    = 0.02 // more, for search sets that are all there at once
	// raceShare is the part of the box that is over when the race is. Truths may take truthShare of the race, or
	// fewTruthShare as long as they are fewer than fewSources; plans that are raced from the start plansShare of the
	// rest, and those dropped too early what is left.
	raceShare     = 0.92
	truthShare    = 0.5
	fewTruthShare = 0.75
	fewSources    = 64
	plansShare    = 0.55
)

// A Result is a calibration and what it was taken from.
type Result struct {
	Calibration
	run *run
}

// run is a calibration under way.
type run struct {
	Input
	began    time.Time
	askers   []*asker
	truths   []truth // of the first sources
	work     work
	timed    []float64 // seconds of the exact scans of the last heat
	progress sync.Mutex
}

// candidate is a plan for one k and its outcomes on the first sources, in their order.
type candidate struct {
	k        int
	plan     flashlight.Plan
	outcomes []outcome
	cost     float64   // seconds a source by its work, to compare it by
	timed    []float64 // seconds in the last heat
}

// Run measures. It returns an error when ctx ends, or when an engine fails.
func Run(ctx context.Context, in Input) (*Result, error) {
	r, err := newRun(in)
	if err != nil {
		return nil, err
	}
	explored, err := r.explore(ctx)
	if err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	r.judge(explored)
	raced, err := r.race(ctx, explored)
	if err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	raced, err = r.revive(ctx, explored, raced)
	if err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	if err := r.heat(ctx, raced); err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	return r.result(raced), nil
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
	r := &run{Input: in, began: in.Clock()}
	for range max(1, in.Workers) {
		r.askers = append(r.askers, newAsker(in.Open(), in.Decoder, in.Clock))
	}
	return r, nil
}

func (r *run) elapsed() time.Duration { return r.Clock().Sub(r.began) }

// measure asks the sources from the number that the candidates have seen up to n, at most, and scans those exactly that
// were not yet. The sources it had time for are a prefix, and all candidates have seen them in the end.
func (r *run) measure(ctx context.Context, candidates []*candidate, n int, until time.Duration) error {
	if len(candidates) == 0 {
		return nil
	}
	from := len(candidates[0].outcomes)
	for _, c := range candidates {
		c.outcomes = append(c.outcomes, make([]outcome, max(0, n-from))...)
	}
	scanned := len(r.truths)
	r.truths = append(r.truths, make([]truth, max(0, n-scanned))...)
	var mu sync.Mutex // guards the next four
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
	for _, a := range r.askers {
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
				if err := r.one(ctx, a, i, i >= scanned, candidates); err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	if panicked != nil {
		panic(panicked)
	}
	for _, c := range candidates {
		c.outcomes = c.outcomes[:next]
	}
	r.truths = r.truths[:max(scanned, next)]
	return failed
}

// one scans source i if that is due, and asks it.
func (r *run) one(ctx context.Context, a *asker, i int, scan bool, candidates []*candidate) (err error) {
	s := &r.Sources[i]
	if scan {
		if r.truths[i], err = a.scan(ctx, s, r.Ks[len(r.Ks)-1]); err != nil {
			return err
		}
	}
	for _, c := range candidates {
		if c.outcomes[i], err = a.ask(ctx, s, &r.truths[i], c.k, c.plan); err != nil {
			return err
		}
	}
	r.report()
	return ctx.Err() // a plan cut short by a deadline is no measurement
}

// exactSeconds is the median cost of an exact scan, of those of the last heat once there are any.
func (r *run) exactSeconds() float64 {
	if len(r.timed) > 0 {
		return median(r.timed)
	}
	seconds := make([]float64, len(r.truths))
	for i := range r.truths {
		seconds[i] = r.truths[i].seconds
	}
	return median(seconds)
}

// truthSeconds is the mean cost of a truth, what a clock that others share takes into account too.
func (r *run) truthSeconds() float64 {
	sum := 0.0
	for i := range r.truths {
		sum += r.truths[i].seconds
	}
	return sum / float64(max(1, len(r.truths)))
}

// result makes frontiers of the candidates that were raced to the end.
func (r *run) result(raced []*candidate) *Result {
	res := &Result{run: r, Calibration: Calibration{
		Rows: r.Rows, Sources: len(r.truths), ExactSeconds: r.exactSeconds(),
	}}
	for _, k := range r.Ks {
		var points []Point
		for _, c := range raced {
			if c.k != k || len(c.outcomes) < len(r.truths) {
				continue
			}
			if p := r.point(c); p.Seconds < res.ExactSeconds {
				points = append(points, p)
			}
		}
		res.Frontiers = append(res.Frontiers, frontier(k, points))
	}
	return res
}

// point sums the outcomes up. A plan must do for the sources of every draw: its bound is never above their means.
func (r *run) point(c *candidate) Point {
	p := Point{Plan: c.plan}
	n := len(c.outcomes)
	recalls, seconds := make([]float64, n), make([]float64, n)
	for i, o := range c.outcomes {
		recalls[i], seconds[i] = o.recall, o.seconds
		p.RowsScored += float64(o.scored) / float64(n)
		p.CodesScanned += float64(o.codes) / float64(n)
	}
	p.Bound = LowerBound(recalls, c.k)
	for drawn := range draws {
		var of []float64
		for i, recall := range recalls {
			if r.Sources[i].Drawn == drawn {
				of = append(of, recall)
			}
		}
		if len(of) > 0 {
			p.Bound = min(p.Bound, meanOf(of))
		}
	}
	slices.Sort(recalls)
	p.Mean, p.P5, p.Worst = meanOf(recalls), quantile(recalls, 0.05), recalls[0]
	if p.Seconds = median(seconds); len(c.timed) > 0 {
		p.Seconds = median(c.timed)
	}
	return p
}

// Recalls asks the sources of the calibration by one more plan in another engine, of the same rows or of others, and
// returns the share found of each one's exact k best, which k must have been calibrated for.
func (r *Result) Recalls(ctx context.Context, e Engine, k int, p flashlight.Plan) ([]float64, error) {
	a := newAsker(e, r.run.Decoder, r.run.Clock)
	recalls := make([]float64, r.Sources)
	for i := range recalls {
		o, err := a.ask(ctx, &r.run.Sources[i], &r.run.truths[i], k, p)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("calibrate: %w", err)
		}
		recalls[i] = o.recall
	}
	return recalls, nil
}

// report tells how far the run is. Progress is the caller's and may panic: the other workers must not wait for it then.
func (r *run) report() {
	if r.Progress == nil {
		return
	}
	r.progress.Lock()
	defer r.progress.Unlock()
	r.Progress(min(r.elapsed(), r.Time), r.Time)
}
