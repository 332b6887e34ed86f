package calibrate

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// race runs fewer and fewer plans for more and more sources (successive halving). It begins with
// one safe plan for each k, so that there is a result even if time runs out. Then, for every k and
// target, it runs one plan that may reach the target for twice as many sources as before, until the
// plan is shown to reach it or to fail: see pick. Next to a plan that reaches a target it tries
// plans between those of the grid.
func (r *run) race(ctx context.Context) error {
	until := r.share(raceShare)
	safe := r.safe()
	for i, c := range safe {
		safe[i] = r.doubled(c)
	}
	if err := r.measure(ctx, safe, len(r.Sources), r.share(safeShare)); err != nil {
		return err
	}
	for r.elapsed() < until {
		r.assess(r.tried)
		frontiers := r.frontiers(r.tried)
		more, err := r.refine(ctx, frontiers)
		if err != nil {
			return err
		}
		if more { // costs were fitted anew
			frontiers = r.frontiers(r.tried)
		}
		next := r.undecided(frontiers)
		if len(next) == 0 && !more {
			return nil
		}
		for len(next) > 0 { // those asked about as many sources together
			seen := len(next[0].outcomes)
			var same []*candidate
			same, next = split(next, func(c *candidate) bool { return len(c.outcomes) == seen })
			if err := r.measure(ctx, same, min(2*seen, r.asked), until); err != nil {
				return err
			}
		}
	}
	return nil
}

// safe returns, for every k, the plan with the highest recall of those that are not too costly (see
// worthwhile). Of plans with equal recall it takes the costliest, because few sources cannot tell a
// recall of .99 from one of .999.
func (r *run) safe() (safe []*candidate) {
	for _, k := range r.Ks {
		var best *candidate
		most := r.worthwhile(k)
		for _, c := range r.tried {
			if c.k != k || (best != nil && c.cost > most) {
				continue
			}
			if best == nil || best.cost > most || cmp.Or(cmp.Compare(c.mean, best.mean), cmp.Compare(c.cost, best.cost)) > 0 {
				best = c
			}
		}
		if best != nil {
			safe = append(safe, best)
		}
	}
	return safe
}

// doubled returns a candidate with twice the rows per round and twice the search set, if it costs
// at most half of what a plan may cost, or else c. The first sources seldom show how much work the
// poorest sources need.
func (r *run) doubled(c *candidate) *candidate {
	plan := c.plan
	plan.PerRound, plan.Probes = 2*plan.PerRound, plan.Probes.Scale(2)
	if c.cost == 0 || r.costs.foretell(plan, r.Rows) > r.affordable()/2 {
		return c
	}
	double := &candidate{k: c.k, plan: plan}
	r.tried = append(r.tried, double)
	return double
}

// undecided returns, for every k and target, a candidate whose bound may reach the target and that
// has not been run for all sources. Once a plan is shown to reach the target, only cheaper ones
// count. It also returns one that may satisfy tailBound too, and that costs at most evenPrice times
// as much: see Frontier.Choose.
func (r *run) undecided(frontiers []Frontier) (all []*candidate) {
	_, open := split(r.tried, func(c *candidate) bool { return len(c.outcomes) >= r.asked })
	for _, f := range frontiers {
		for _, target := range targets {
			limit, evenLimit := r.exactSeconds(), r.exactSeconds()
			for _, p := range f.Points {
				if p.Bound >= target {
					limit = min(limit, p.Seconds)
				}
				if f.even(p) >= target {
					evenLimit = min(evenLimit, p.Seconds)
				}
			}
			next := pick(open, f.K, limit, func(c *candidate) bool { return c.likely >= target })
			if next != nil && !slices.Contains(all, next) {
				all = append(all, next)
			}
			even := pick(open, f.K, min(evenLimit, evenPrice*limit), func(c *candidate) bool {
				return min(c.likely, c.tail) >= target
			})
			if even != nil && limit < r.exactSeconds() && !slices.Contains(all, even) {
				all = append(all, even)
			}
		}
	}
	return all
}

// pick returns the most promising of the fit candidates for k that cost less than the limit, or
// nil. That is the one run for most sources; of several, the most likely one; of equals, the
// costliest. It only looks at those that cost no more than the geometric mean of the limit and of
// the cheapest. So a plan that reaches the target is known early, and each further one costs much
// less.
func pick(of []*candidate, k int, limit float64, fit func(*candidate) bool) (best *candidate) {
	least := limit
	for _, c := range of {
		if c.k == k && c.cost < least && fit(c) {
			least = c.cost
		}
	}
	if least == limit {
		return nil
	}
	for _, c := range of {
		if c.k != k || c.cost > math.Sqrt(least*limit) || !fit(c) {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(len(c.outcomes), len(best.outcomes)),
			cmp.Compare(c.likely, best.likely), cmp.Compare(c.cost, best.cost)) > 0 {
			best = c
		}
	}
	return best
}

// split returns the candidates for which is holds, and the others.
func split(all []*candidate, is func(*candidate) bool) (yes, no []*candidate) {
	for _, c := range all {
		if is(c) {
			yes = append(yes, c)
		} else {
			no = append(no, c)
		}
	}
	return yes, no
}

// assess summarises the outcomes of the candidates so far, by the truths known by now.
func (r *run) assess(candidates []*candidate) {
	missing := map[int]float64{}
	for _, k := range r.Ks {
		missing[k], _ = r.missing(k)
	}
	all := float64(len(r.Sources))
	for _, c := range candidates {
		recalls := r.recalls(c)
		if len(recalls) == 0 {
			continue
		}
		c.cost, c.mean = r.costs.of(c), Mean(recalls)
		squares := 0.0
		for _, recall := range recalls {
			squares += (recall - c.mean) * (recall - c.mean)
		}
		n, worst := float64(len(recalls)), slices.Min(recalls)
		deviation := math.Sqrt(squares / max(1, n-1))
		// By how much the bound of all sources is lower than their mean: see LowerBound.
		lower := normal95*deviation/math.Sqrt(all) + max(unseenGap, c.mean-worst)/all
		c.likely = min(1, c.mean+2*deviation/math.Sqrt(n)) - missing[c.k] - lower
		c.tail = tailBound(1, worst, c.k)
	}
}
