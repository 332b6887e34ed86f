package calibrate

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// race asks ever more sources by ever fewer plans (successive halving). One safe plan for each k
// comes first, so that something is known whatever the time. Then, for every k and target, the
// cheapest plan that may still reach the target is asked about twice as many sources as before,
// until it is shown to reach it or to fail. In the time left, plans between those on a frontier are
// tried likewise.
func (r *run) race(ctx context.Context) error {
	until := r.share(raceShare)
	if err := r.measure(ctx, r.safe(), len(r.Sources), r.share(safeShare)); err != nil {
		return err
	}
	for r.elapsed() < until {
		next := r.undecided()
		if len(next) == 0 {
			if more, err := r.refine(ctx); err != nil || !more {
				return err
			}
			continue
		}
		to := r.asked // all there was time for
		for _, c := range next {
			to = min(to, 2*len(c.outcomes))
		}
		next = slices.DeleteFunc(next, func(c *candidate) bool { return len(c.outcomes) >= to })
		if err := r.measure(ctx, next, to, until); err != nil {
			return err
		}
	}
	return nil
}

// safe returns for every k the plan that found most of those worth their time. Of plans that found
// as much it is the one that did most work: few sources do not tell a recall of .99 from one of
// .999.
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

// undecided returns, for every k and target, the cheapest candidate that may reach the target and
// has not been asked about all sources. Where one that has reaches the target, only cheaper ones
// are in question. It looks for what reaches the target on average, and for what fails no source
// either.
func (r *run) undecided() (all []*candidate) {
	r.assess(r.tried)
	for _, f := range r.frontiers(r.tried) {
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
			var next, even *candidate
			for _, c := range r.tried {
				if c.k != f.K || len(c.outcomes) >= r.asked {
					continue
				}
				if c.likely >= target && c.cost < limit {
					next, limit = c, c.cost
				}
				if min(c.likely, c.tail) >= target && c.cost < evenLimit {
					even, evenLimit = c, c.cost
				}
			}
			for _, c := range []*candidate{next, even} {
				if c != nil && !slices.Contains(all, c) {
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// assess sums up what the candidates found so far, by what is known of the truths by now.
func (r *run) assess(candidates []*candidate) {
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
		c.likely = min(1, c.mean+2*math.Sqrt(squares)/max(1, float64(len(recalls))-1))
		c.tail = tailBound(1, slices.Min(recalls), c.k)
	}
}
