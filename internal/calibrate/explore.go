package calibrate

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/flashdb/flashdb/flashlight"
)

// explore learns seeds, asks the first sources by the plans of the grid, as many as there is time
// for, and returns those asked: first the seeds are compared, then the anchor rules of later
// rounds, then the amounts of work under the best of both, and then search sets of other sizes for
// the plans that did best.
func (r *run) explore(ctx context.Context) ([]*candidate, error) {
	if r.linear() {
		return r.try(ctx, nil, r.candidates(linearPlans))
	}
	if err := r.learn(ctx); err != nil {
		return nil, err
	}
	tried, err := r.try(ctx, nil, r.candidates(func(k, rows int) (plans []flashlight.Plan) {
		for _, seed := range firstSeeds(r.seeds.Len() > 0) {
			plans = append(plans, anchorRules[0].seeded(seed).plans(seedAmounts(k, rows), rows)...)
		}
		return plans
	}))
	if err != nil {
		return nil, err
	}
	best := map[int][]flashlight.Seed{}
	for _, k := range r.Ks {
		best[k] = ranked(tried, k, func(p flashlight.Plan) flashlight.Seed { return p.Seed })
	}
	compared := len(tried)
	tried, err = r.try(ctx, tried, r.candidates(func(k, rows int) (plans []flashlight.Plan) {
		for _, way := range anchorRules {
			plans = append(plans, way.seeded(best[k][0]).plans(ruleAmounts(k, rows), rows)...)
		}
		return plans
	}))
	if err != nil {
		return nil, err
	}
	byRule := tried[compared:]
	if tried, err = r.try(ctx, tried, r.candidates(defaultPlans)); err != nil {
		return nil, err
	}
	for place := range 2 {
		tried, err = r.try(ctx, tried, r.candidates(func(k, rows int) []flashlight.Plan {
			under := anchorRules[0]
			if of := ranked(byRule, k, ruleOf); len(of) > 0 {
				under = of[0]
			}
			return under.seeded(best[k][min(place, len(best[k])-1)]).plans(amounts(k, rows), rows)
		}))
		if err != nil {
			return nil, err
		}
	}
	refined := map[int][]flashlight.Plan{}
	for _, k := range r.Ks {
		for _, c := range r.ranking(tried, k) {
			if c.place < layerSteps*refineSteps {
				refined[k] = append(refined[k], between(c.plan)...)
			}
		}
	}
	return r.try(ctx, tried, r.candidates(func(k, _ int) []flashlight.Plan { return refined[k] }))
}

// linear tells whether the decoder has one query that does it all.
func (r *run) linear() bool {
	return r.Decoder.Bind(nil, r.Sources[0].Vector).Linear()
}

// ruleOf returns the anchor rule of a plan, without its seed.
func ruleOf(p flashlight.Plan) rule { return rule{from: p.AnchorsFrom, anchors: p.Anchors} }

// candidates returns what of gives for every k, one of each in turns.
func (r *run) candidates(of func(k, rows int) []flashlight.Plan) []*candidate {
	lists := make([][]*candidate, len(r.Ks))
	for i, k := range r.Ks {
		for _, p := range of(k, r.Rows) {
			lists[i] = append(lists[i], &candidate{k: k, plan: p})
		}
	}
	return interleave(lists)
}

// try asks the first sources by candidates that are not among those tried, some at a time, while
// there is time. It returns both, and fits the costs of work to them. Those of the first chunk are
// always asked about one source, and decide about how many all are. Candidates that cost too much
// are left out once costs are known.
func (r *run) try(ctx context.Context, tried, all []*candidate) ([]*candidate, error) {
	type key struct {
		k    int
		plan flashlight.Plan
	}
	known := map[key]bool{}
	for _, c := range tried {
		known[key{c.k, c.plan}] = true
	}
	all = slices.DeleteFunc(all, func(c *candidate) bool {
		twice := known[key{c.k, c.plan}]
		known[key{c.k, c.plan}] = true
		return twice || r.costs.foretell(c.plan, r.Rows) > r.worthwhile(tried, c.k)
	})
	n := min(exploreSources, len(r.Sources))
	for some := range slices.Chunk(all, exploreChunk) {
		until := r.exploreUntil()
		if len(tried) > 0 {
			if n = r.asked; r.elapsed() >= until {
				break
			}
			until = r.Time
		}
		if err := r.measure(ctx, some, min(exploreFirst, n), until); err != nil {
			return nil, err
		}
		some = r.hopeful(tried, some)
		if err := r.measure(ctx, some, n, until); err != nil {
			return nil, err
		}
		tried = append(tried, slices.DeleteFunc(some, func(c *candidate) bool { return len(c.outcomes) < r.asked })...)
	}
	r.costs = fitCosts(tried)
	r.assess(tried)
	return tried, nil
}

// hopeful returns the candidates that may yet come to a frontier: not those that one of those tried
// beats on their first sources at much less cost, nor those that recall too little. Where both
// found everything, nothing is decided. Before costs are known it returns all.
func (r *run) hopeful(tried, some []*candidate) (kept []*candidate) {
	if r.costs == (costs{}) {
		return some
	}
	r.assess(some)
	for _, c := range some {
		beaten := c.likely < leastRecall
		for _, d := range tried {
			if d.k == c.k && exploreStep*d.cost < c.cost && len(d.outcomes) >= len(c.outcomes) {
				first := candidate{k: d.k, outcomes: d.outcomes[:len(c.outcomes)]}
				mean := meanOf(r.recalls(&first))
				beaten = beaten || mean > c.mean || (mean == c.mean && mean < 1)
			}
		}
		if !beaten {
			kept = append(kept, c)
		}
	}
	return kept
}

// exploreUntil returns the time at which exploring ends: early enough for all sources to be asked
// by the safe plans, which is guessed to take half as long again as sampling them.
func (r *run) exploreUntil() time.Duration {
	need := 1.5 * meanOf(r.truthSeconds[:r.asked]) * float64(len(r.Sources)) / float64(len(r.workers))
	return min(r.share(exploreShare), max(r.share(exploreLeast), r.share(safeShare)-time.Duration(need*float64(time.Second))))
}

// worthwhile returns the seconds a source that a plan for k may take: no more than the exact scan,
// nor than there is time for with every source, nor than several times those of a plan that found
// everything.
func (r *run) worthwhile(tried []*candidate, k int) float64 {
	if len(tried) == 0 {
		return math.Inf(1)
	}
	most := min(r.exactSeconds(), costliest*r.Time.Seconds()*float64(len(r.workers))/float64(len(r.Sources)))
	for _, c := range tried {
		if c.k == k && c.mean == 1 {
			most = min(most, ample*c.cost)
		}
	}
	return most
}

// interleave takes one of each list in turns.
func interleave(lists [][]*candidate) (all []*candidate) {
	for i := 0; ; i++ {
		n := len(all)
		for _, l := range lists {
			if i < len(l) {
				all = append(all, l[i])
			}
		}
		if len(all) == n {
			return all
		}
	}
}

// ranked orders what the plans tried for k differ in by the recall of those plans, taken together;
// of those that recall the same, give or take recallStep, the cheaper is better.
func ranked[T comparable](tried []*candidate, k int, of func(flashlight.Plan) T) []T {
	type tally struct {
		of              T
		recall, seconds float64
	}
	var all []tally
	for _, c := range tried {
		if c.k != k {
			continue
		}
		i := slices.IndexFunc(all, func(t tally) bool { return t.of == of(c.plan) })
		if i < 0 {
			i = len(all)
			all = append(all, tally{of: of(c.plan)})
		}
		all[i].recall += c.mean
		all[i].seconds += c.cost
	}
	slices.SortStableFunc(all, func(a, b tally) int {
		return cmp.Or(cmp.Compare(math.Round(b.recall/recallStep), math.Round(a.recall/recallStep)), cmp.Compare(a.seconds, b.seconds))
	})
	ranked := make([]T, len(all))
	for i := range all {
		ranked[i] = all[i].of
	}
	return ranked
}
