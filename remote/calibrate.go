package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/calibrate"
)

// CalibrateOptions are the options of one Calibrate. The zero value, or nil, means the defaults.
type CalibrateOptions struct {
	Decoder string // empty means the only one
	// SourceCollection names the collection of the sources, where it is another one, which was
	// pushed together with this one.
	SourceCollection string
	Sources          int // to measure with. Default 100
	Training         int // other sources, to learn seeds from. Default 128
	RandomSeed       uint64
	// Progress is called from time to time.
	Progress func(stage string, done, total int64)
}

// What a calibration tries.
const (
	defaultSources  = 100
	defaultTraining = 128
	firstSources    = 8   // asked of every plan; twice as many of those that remain, and so on
	seedRows        = 50  // best rows of a source over which its learned gradient is a mean
	stopTail        = .03 // flashlight.Plan.Tail of plans of two rounds
)

// targets are the recalls that plans are sought for.
var targets = []float64{.9, .95, .98, .99}

// Calibrate measures which recall plans reach, and how long they take over this engine, and stores
// the result. Predict chooses its plan by it. Half of the sources are drawn evenly, half in
// proportion to their known links.
//
// It reads all rows twice: to draw the sources, and to score them exactly for every source. The
// rows that are best for the training sources also give the learned seeds.
func (c *Collection) Calibrate(ctx context.Context, opts *CalibrateOptions) (of flashdb.Calibration, err error) {
	var o CalibrateOptions
	if opts != nil {
		o = *opts
	}
	o.Sources, o.Training = cmp.Or(o.Sources, defaultSources), cmp.Or(o.Training, defaultTraining)
	if o.Sources < 2 || o.Training < 0 {
		return of, fmt.Errorf("calibrate %q: %w: sources are %d and training sources %d: want at least 2 and 0", c.name, flashdb.ErrInvalid, o.Sources, o.Training)
	}
	err = c.on(ctx, func(s *served) error {
		of, err = c.calibrate(ctx, s, &o)
		return err
	})
	if err != nil {
		return of, fmt.Errorf("calibrate %q: %w", c.name, err)
	}
	return of, nil
}

// A trial is a plan for one k and what was measured of it.
type trial struct {
	k       int
	plan    flashlight.Plan
	recalls []float64
	seconds []float64
	scored  int
}

func (c *Collection) calibrate(ctx context.Context, s *served, o *CalibrateOptions) (flashdb.Calibration, error) {
	none := flashdb.Calibration{}
	t, err := s.decoder(o.Decoder)
	if err != nil {
		return none, err
	}
	rng := rand.New(rand.NewPCG(o.RandomSeed, 1))
	progress := func(stage string, done, total int64) {
		if o.Progress != nil {
			o.Progress(stage, done, total)
		}
	}
	asked, training, err := c.drawSources(ctx, s, t, o, rng)
	if err != nil {
		return none, err
	}
	began := time.Now()
	ks := []int{10, 100}
	all := slices.Concat(asked, training)
	err = c.answers(ctx, s, t, all, ks[len(ks)-1], true, func(done int64) { progress("exact answers", done, int64(s.rows)) })
	if err != nil {
		return none, err
	}
	p := &plans{}
	p.Rows, p.Sources, p.SourcesFrom = s.rows, len(asked), o.SourceCollection
	p.ExactSeconds = time.Since(began).Seconds() / float64(len(all))
	p.Seeds, p.seedKeys = learned(s.Dim, training)
	for _, k := range ks {
		f, err := c.frontier(ctx, s, t, k, asked, p, o, progress)
		if err != nil {
			return none, err
		}
		p.Frontiers = append(p.Frontiers, f)
	}
	if err := c.storePlans(ctx, s.ID, t.name, p); err != nil {
		return none, err
	}
	return shown(c.name, t.name, p), c.Reload(ctx)
}

// drawSources returns sources to measure with and other ones to learn from.
func (c *Collection) drawSources(ctx context.Context, s *served, t *trained, o *CalibrateOptions, rng *rand.Rand) (asked, training []*asker, err error) {
	from := s.name
	if o.SourceCollection != "" && o.SourceCollection != c.name {
		version, ok := s.Sources[o.SourceCollection]
		if !ok {
			return nil, nil, fmt.Errorf("%w: collection %q was not pushed together with this one", flashdb.ErrInvalid, o.SourceCollection)
		}
		from = Name{Collection: o.SourceCollection, Version: version}
	} else {
		o.SourceCollection = ""
	}
	n := o.Sources + o.Training
	even, err := c.sample(ctx, from, n, rng)
	if err != nil {
		return nil, nil, err
	}
	byLinks, err := c.linkedSources(ctx, o.SourceCollection, n, rng)
	if err != nil {
		return nil, nil, err
	}
	var keys []string
	taken := map[string]bool{}
	for i := range n {
		for _, of := range [][]string{even, byLinks} {
			if i < len(of) && !taken[of[i]] {
				taken[of[i]] = true
				keys = append(keys, of[i])
			}
		}
	}
	all, err := c.askersOf(ctx, s, t, keys[:min(n, len(keys))], &flashdb.PredictOptions{SourceCollection: o.SourceCollection}, rng)
	if err != nil {
		return nil, nil, err
	}
	if len(all) < 2 {
		return nil, nil, fmt.Errorf("%w: there are %d sources, and 2 are needed", flashdb.ErrInvalid, len(all))
	}
	asked = all[:min(o.Sources, max(2, len(all)/2+1))]
	return asked, all[len(asked):], nil
}

// learned returns seeds from the exact answers of sources, and the keys of these, or nil for a
// decoder that needs none.
func learned(dim int, training []*asker) (*flashlight.Seeds, []string) {
	var prototypes []flashlight.Prototype
	var keys []string
	var scratch decoder.Scratch
	for _, a := range training {
		bound, ok := a.bound.(decoder.Separable)
		if !ok || a.bound.Linear() {
			return nil, nil
		}
		var rows []float32
		hits := a.best.Sorted(nil)
		for _, h := range hits[:min(seedRows, len(hits))] {
			rows = append(rows, a.rows[h.ID]...)
		}
		if len(rows) == 0 {
			continue
		}
		p := flashlight.Prototype{ID: uint32(len(keys)), Source: a.vector, Gradient: make([]float32, dim)}
		bound.GradientZ(&scratch, p.Gradient, rows, nil)
		prototypes, keys = append(prototypes, p), append(keys, a.key)
	}
	seeds := flashlight.NewSeeds(dim, prototypes)
	if seeds.Len() == 0 {
		return nil, nil
	}
	return seeds, keys
}

// grid returns the plans that are tried for k.
func grid(k, rows int, linear, seeds bool) (all []flashlight.Plan) {
	first := []flashlight.Seed{flashlight.SeedOnes}
	if seeds {
		first = append(first, flashlight.SeedLearned, flashlight.SeedLearnedOnes)
	}
	for _, perRound := range []int{2 * k, 3 * k, 5 * k, 10 * k, 500} {
		for _, effort := range []int{1, 2, 5} {
			share := min(1, float64(effort*perRound)/float64(max(1, rows)))
			for _, seed := range first {
				p := flashlight.DefaultPlan(k, rows)
				p.Seed, p.Rounds, p.PerRound, p.Growth, p.Probes = seed, 1, perRound, 1, index.Probes{Share: share}
				all = append(all, p)
				if linear {
					break
				}
				p.Rounds, p.Tail = 2, stopTail
				all = append(all, p)
				p.Rounds, p.Tail = 3, 0
				all = append(all, p)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b flashlight.Plan) int { return cmp.Compare(a.PerRound, b.PerRound) })
	return slices.Compact(all)
}

// frontier measures plans for k on more and more sources, and drops those that no target needs.
func (c *Collection) frontier(ctx context.Context, s *served, t *trained, k int, asked []*asker, p *plans, o *CalibrateOptions, progress func(string, int64, int64)) (calibrate.Frontier, error) {
	var alive []*trial
	for _, plan := range grid(k, s.rows, asked[0].bound.Linear(), p.Seeds.Len() > 0) {
		alive = append(alive, &trial{k: k, plan: plan})
	}
	q := &query{}
	for n := min(firstSources, len(asked)); ; n = min(2*n, len(asked)) {
		for i, trial := range alive {
			progress(fmt.Sprintf("plans for k = %d, %d sources", k, n), int64(i), int64(len(alive)))
			for _, a := range asked[len(trial.recalls):n] {
				if err := c.try(ctx, s, t, q, a, trial, p.Seeds, o.SourceCollection); err != nil {
					return calibrate.Frontier{}, err
				}
			}
		}
		if n == len(asked) {
			break
		}
		alive = promising(alive)
	}
	var points []calibrate.Point
	for _, trial := range alive {
		points = append(points, trial.point())
	}
	return calibrate.NewFrontier(k, points), nil
}

// try runs a plan for a source.
func (c *Collection) try(ctx context.Context, s *served, t *trained, q *query, a *asker, trial *trial, seeds *flashlight.Seeds, from string) error {
	began := time.Now()
	res, err := c.answer(ctx, s, q, a.key, nil, trial.k, &flashdb.PredictOptions{
		Decoder: t.name, Relation: a.relation, Reverse: a.reverse, SourceCollection: from, Plan: &trial.plan,
	}, seeds)
	if err == nil {
		err = ctx.Err()
	}
	if errors.Is(err, flashdb.ErrNotFound) && !errors.Is(err, errGone) { // deleted meanwhile
		return fmt.Errorf("source %q was deleted during the calibration: begin again: %w", a.key, err)
	}
	if err != nil {
		return err
	}
	trial.recalls = append(trial.recalls, a.recall(res.Hits, trial.k))
	trial.seconds = append(trial.seconds, time.Since(began).Seconds())
	trial.scored += res.Stats.RowsScored
	return nil
}

// median returns the median time of a plan, because a network has outliers.
func (t *trial) median() float64 {
	sorted := slices.Sorted(slices.Values(t.seconds))
	return sorted[len(sorted)/2]
}

// likely is the highest mean recall that the plan may have after all sources.
func (t *trial) likely() float64 {
	mean, squares := calibrate.Mean(t.recalls), 0.0
	for _, r := range t.recalls {
		squares += (r - mean) * (r - mean)
	}
	n := float64(len(t.recalls))
	return mean + 2*math.Sqrt(squares/n/n) + .01/n
}

// point summarises a trial.
func (t *trial) point() calibrate.Point {
	sorted := slices.Sorted(slices.Values(t.recalls))
	return calibrate.Point{
		Plan: t.plan, Mean: calibrate.Mean(sorted), Bound: calibrate.LowerBound(sorted, t.k),
		P5: sorted[len(sorted)/20], Worst: sorted[0],
		RowsScored: float64(t.scored) / float64(len(sorted)), Seconds: t.median(),
	}
}

// promising returns, for each target, the cheapest trials that may reach it and the cheapest that
// miss at most half of what they may, so that some are left if the first ones fail. It also returns
// the best one of all.
func promising(trials []*trial) []*trial {
	const some = 4 // for each target
	slices.SortStableFunc(trials, func(a, b *trial) int { return cmp.Compare(a.median(), b.median()) })
	keep := map[*trial]bool{}
	best := slices.MaxFunc(trials, func(a, b *trial) int {
		return cmp.Or(cmp.Compare(calibrate.Mean(a.recalls), calibrate.Mean(b.recalls)), cmp.Compare(b.median(), a.median()))
	})
	keep[best] = true
	for _, target := range targets {
		likely, safe := 0, 0
		for _, t := range trials {
			if likely < some && t.likely() >= target {
				keep[t] = true
				likely++
			}
			if safe < some && calibrate.Mean(t.recalls) >= (1+target)/2 {
				keep[t] = true
				safe++
			}
		}
	}
	return slices.DeleteFunc(trials, func(t *trial) bool { return !keep[t] })
}

// shown returns a calibration as flashdb does.
func shown(collection, decoder string, p *plans) flashdb.Calibration {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	of := flashdb.Calibration{
		Decoder: decoder, SourceCollection: cmp.Or(p.SourcesFrom, collection), Rows: p.Rows, Sources: p.Sources,
		Exact: seconds(p.ExactSeconds), Seeds: p.Seeds.Len(),
	}
	for _, f := range p.Frontiers {
		frontier := flashdb.Frontier{K: f.K}
		for _, q := range f.Points {
			frontier.Plans = append(frontier.Plans, flashdb.PlanPoint{
				Plan: q.Plan, Mean: q.Mean, P5: q.P5, Worst: q.Worst, Bound: q.Bound, RowsScored: q.RowsScored, Time: seconds(q.Seconds),
			})
		}
		of.Frontiers = append(of.Frontiers, frontier)
	}
	return of
}

// Calibrations returns what Calibrate has measured on the live version, one for each decoder that
// was measured.
func (c *Collection) Calibrations() (all []flashdb.Calibration) {
	s := c.current()
	for _, name := range slices.Sorted(maps.Keys(s.decoders)) {
		if t := s.decoders[name]; t.plans != nil {
			all = append(all, shown(c.name, name, t.plans))
		}
	}
	return all
}
