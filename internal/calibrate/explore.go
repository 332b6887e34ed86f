package calibrate

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
)

// explore learns seeds. Then it runs plans of the grid for the first sources, as many as there is
// time for. It first compares the seeds, then the anchor rules of later rounds with the best seed,
// then the amounts of work with the best rule and the two best seeds.
func (r *run) explore(ctx context.Context) error {
	seeds, under := map[int][]rule{}, map[int]rule{}
	steps := []func(k int, before []*candidate) []flashlight.Plan{
		func(k int, _ []*candidate) (plans []flashlight.Plan) {
			for _, seed := range firstSeeds(r.seeds.Len() > 0, r.Decoder.Spec().Kind == decoder.MoL) {
				plans = append(plans, anchorRules[0].seeded(seed).plans(seedAmounts(k, r.Rows), r.Rows)...)
			}
			return plans
		},
		func(k int, before []*candidate) (plans []flashlight.Plan) {
			seeds[k] = ranked(before, k)
			for _, rule := range anchorRules {
				plans = append(plans, rule.seeded(seeds[k][0].seed).plans(ruleAmounts(k, r.Rows), r.Rows)...)
			}
			return plans
		},
		func(k int, before []*candidate) []flashlight.Plan {
			under[k] = append(ranked(before, k), seeds[k][0])[0]
			plans := []flashlight.Plan{flashlight.DefaultPlan(k, r.Rows)}
			for _, of := range seeds[k][:min(2, len(seeds[k]))] {
				plans = append(plans, under[k].seeded(of.seed).plans(amounts(k, r.Rows), r.Rows)...)
			}
			return plans
		},
	}
	if r.Decoder.Bind(nil, r.Sources[0].Vector).Linear() { // one query vector is enough for a linear decoder
		steps = steps[:1]
		steps[0] = func(k int, _ []*candidate) []flashlight.Plan { return linearPlans(k, r.Rows) }
	} else if err := r.learn(ctx); err != nil {
		return err
	}
	var before []*candidate
	for _, step := range steps {
		from := len(r.tried)
		if err := r.try(ctx, r.share(exploreShare), func(k int) []flashlight.Plan { return step(k, before) }); err != nil {
			return err
		}
		before = r.tried[from:]
	}
	return nil
}

// learn searches thoroughly for each training source, as long as there is time, and makes seeds
// from the results. A decoder whose gradients cannot be used for it gets no seeds. For some
// decoders the ones seed finds none of the best rows, and seeds learned from its searches would not
// either. Then each search starts from the best rows of a small sample.
func (r *run) learn(ctx context.Context) error {
	all := r.Training[:min(len(r.Training), TrainSources)]
	lost, err := r.onesIsLost(ctx, all[:min(len(all), startTries)])
	if err != nil {
		return err
	}
	learned := make([]flashlight.Prototype, len(all))
	n, err := r.each(ctx, 0, len(all), r.share(trainShare), func(w *worker, i int) (err error) {
		q := w.query(&all[i], r.Ks[len(r.Ks)-1])
		q.Plan = flashlight.LearnPlan(r.Rows)
		if lost {
			if q.Start, err = w.promising(ctx, &all[i], i); err != nil {
				return err
			}
		}
		w.engine.Search.Reset()
		learned[i], err = w.executor.Learn(ctx, all[i].ID, &q, w.engine.Search, w.engine.Rows)
		return err
	})
	if errors.Is(err, flashlight.ErrNotSeparable) {
		return nil
	}
	if err == nil {
		if r.seeds = flashlight.NewSeeds(r.Decoder.Dim(), learned[:n]); r.seeds.Len() == 0 {
			r.seeds = nil
		}
	}
	return err
}

// onesIsLost reports whether searches from the ones seed find, on average over some sources, less
// than the share startFound of the best rows that they and a small sample have found.
func (r *run) onesIsLost(ctx context.Context, sources []Source) (bool, error) {
	found := make([]float64, len(sources))
	n, err := r.each(ctx, 0, len(sources), r.share(trainShare), func(w *worker, i int) error {
		t := truth{size: startRows}
		if err := w.sampleFew(ctx, &sources[i], i, &t); err != nil {
			return err
		}
		q := w.query(&sources[i], startRows)
		q.Plan = flashlight.LearnPlan(r.Rows)
		w.engine.Search.Reset()
		hits, _, err := w.executor.Run(ctx, &q, w.engine.Search, w.engine.Rows, nil)
		scores := make([]float32, len(hits))
		for j, h := range hits {
			t.add(h)
			scores[j] = h.Score
		}
		found[i] = t.recall(scores, startRows)
		return err
	})
	return n > 0 && Mean(found[:n]) < startFound, err
}

// refine tries plans that are not in the grid: between the cheapest point that reaches a target and
// the point before it, and beyond the last point if none does. It reports whether it tried any new
// plan.
func (r *run) refine(ctx context.Context, frontiers []Frontier) (more bool, err error) {
	plans := map[int][]flashlight.Plan{}
	for _, f := range frontiers {
		for _, target := range targets {
			i := slices.IndexFunc(f.Points, func(p Point) bool { return p.Bound >= target })
			if last := len(f.Points) - 1; i < 0 && last >= 0 {
				plans[f.K] = append(plans[f.K], beyond(f.Points[last].Plan)...)
			} else if i >= 0 {
				for _, p := range f.Points[max(0, i-1) : i+1] {
					plans[f.K] = append(plans[f.K], between(p.Plan)...)
				}
			}
		}
	}
	n := len(r.tried)
	err = r.try(ctx, r.share(raceShare), func(k int) []flashlight.Plan { return plans[k] })
	return len(r.tried) > n, err
}

// try runs the plans that of returns for each k, for the first sources, some plans at a time, while
// there is time. It adds them to r.tried, and fits the costs to all outcomes. The very first plans
// run for at least one source even without time. How many sources they had time for is how many all
// later plans get.
func (r *run) try(ctx context.Context, until time.Duration, of func(k int) []flashlight.Plan) error {
	untried := r.untried(of)
	if len(untried) == 0 {
		return nil
	}
	for some := range slices.Chunk(untried, exploreChunk) {
		first := len(r.tried) == 0
		if !first && r.elapsed() >= until {
			break
		}
		if err := r.measure(ctx, some, r.first, until); err != nil {
			return err
		}
		if first {
			r.first = r.asked
		}
		r.tried = append(r.tried, slices.DeleteFunc(some, func(c *candidate) bool { return len(c.outcomes) < r.first })...)
	}
	r.costs = fitCosts(r.tried)
	r.assess(r.tried)
	return nil
}

// untried returns candidates for the plans that of returns, taking one for each k in turns. It
// leaves out plans that were tried before and those that are likely to take too long.
func (r *run) untried(of func(k int) []flashlight.Plan) (all []*candidate) {
	type key struct {
		k    int
		plan flashlight.Plan
	}
	known := map[key]bool{}
	for _, c := range r.tried {
		known[key{c.k, c.plan}] = true
	}
	left := make([][]flashlight.Plan, len(r.Ks))
	for i, k := range r.Ks {
		left[i] = of(k)
	}
	for more := true; more; {
		more = false
		for i, k := range r.Ks {
			if len(left[i]) == 0 {
				continue
			}
			c := &candidate{k: k, plan: left[i][0]}
			left[i], more = left[i][1:], true
			if !known[key{k, c.plan}] && r.costs.foretell(c.plan, r.Rows) <= r.worthwhile(k) {
				all = append(all, c)
			}
			known[key{k, c.plan}] = true
		}
	}
	return all
}

// affordable returns how many seconds a plan may take for one source: at most as many as the exact
// scan, and as there is time for with every source.
func (r *run) affordable() float64 {
	return min(r.exactSeconds(), costliest*r.Time.Seconds()*float64(len(r.workers))/float64(len(r.Sources)))
}

// worthwhile returns how many of them a plan for k may take: at most ample times those of a plan
// that found everything for all sources asked so far.
func (r *run) worthwhile(k int) float64 {
	most := r.affordable()
	for _, c := range r.tried {
		if c.k == k && c.mean == 1 && len(c.outcomes) >= r.asked {
			most = min(most, ample*c.cost)
		}
	}
	return most
}

// ranked orders the rules of the plans tried for k by the summed recall of these plans, best first.
// Rules whose sums differ by less than about recallStep are ordered by cost.
func ranked(tried []*candidate, k int) (rules []rule) {
	recalls, seconds := map[rule]float64{}, map[rule]float64{}
	for _, c := range tried {
		if c.k != k {
			continue
		}
		of := rule{c.plan.Seed, c.plan.AnchorsFrom, c.plan.Anchors}
		if !slices.Contains(rules, of) {
			rules = append(rules, of)
		}
		recalls[of] += c.mean
		seconds[of] += c.cost
	}
	slices.SortStableFunc(rules, func(a, b rule) int {
		steps := func(r rule) float64 { return math.Round(recalls[r] / recallStep) }
		return cmp.Or(cmp.Compare(steps(b), steps(a)), cmp.Compare(seconds[a], seconds[b]))
	})
	return rules
}
