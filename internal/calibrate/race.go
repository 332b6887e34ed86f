package calibrate

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"
)

// race asks all sources by ever fewer plans (successive halving): first by one safe plan for each
// k, so that something is known whatever the time; then, in stages, by those that found most for
// their cost; and while there is time, by the cheapest that may still reach a target.
func (r *run) race(ctx context.Context, tried []*candidate) error {
	n := len(r.Sources)
	if err := r.measure(ctx, r.safe(tried), n, r.share(safeShare)); err != nil {
		return err
	}
	n = r.asked // all there was time for
	for i := range stages {
		to := int(stages[i] * float64(n))
		until := r.elapsed() + time.Duration(stageShare(i)*float64(r.share(raceShare)-r.elapsed()))
		for some := range slices.Chunk(r.survivors(tried, to), raceChunk) {
			if r.elapsed() >= until {
				break
			}
			if err := r.measure(ctx, some, to, r.share(raceShare)); err != nil {
				return err
			}
		}
	}
	for r.elapsed() < r.share(raceShare) {
		next := r.undecided(tried)
		if len(next) == 0 {
			return nil
		}
		to := n
		for _, c := range next {
			to = min(to, 2*len(c.outcomes))
		}
		next = slices.DeleteFunc(next, func(c *candidate) bool { return len(c.outcomes) >= to })
		if err := r.measure(ctx, next, to, r.share(raceShare)); err != nil {
			return err
		}
	}
	return nil
}

// stageShare returns the part of the time left that a stage may take: stages have time by the
// square roots of their sources, so that neither the many plans at the start nor the many sources
// at the end take it all, and what comes after them has as much as the last.
func stageShare(stage int) float64 {
	size := func(i int) float64 {
		if i == 0 {
			return math.Sqrt(stages[0])
		}
		return math.Sqrt(stages[i] - stages[i-1])
	}
	sum := size(len(stages) - 1)
	for i := stage; i < len(stages); i++ {
		sum += size(i)
	}
	return size(stage) / sum
}

// safe returns for every k the plan that found most of those worth their time. Of plans that found
// as much it is the one that did most work: few sources do not tell a recall of .99 from one of
// .999.
func (r *run) safe(tried []*candidate) (safe []*candidate) {
	r.assess(tried)
	for _, k := range r.Ks {
		var best *candidate
		most := r.worthwhile(tried, k)
		for _, c := range tried {
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

// survivors returns the candidates that have not been asked about so many sources, those that
// matter most first, of all k in turns.
func (r *run) survivors(tried []*candidate, to int) []*candidate {
	lists := make([][]*candidate, len(r.Ks))
	for i, k := range r.Ks {
		lists[i] = r.ranking(tried, k)
	}
	return slices.DeleteFunc(interleave(lists), func(c *candidate) bool { return len(c.outcomes) >= to })
}

// ranking orders the candidates for k and sets their places: first come, of those that no other
// beats in cost and recall (the Pareto frontier), the ones next to where it crosses a target; then
// those further off, and those of the frontier that is left when the first is taken away, and so
// on. Recall is the mean, and then what is left of it for the sake of the worst source; the better
// place counts. What costs as much as the exact scan, or recalls too little, is left out.
func (r *run) ranking(tried []*candidate, k int) (all []*candidate) {
	r.assess(tried)
	exact := r.exactSeconds()
	all = slices.DeleteFunc(slices.Clone(tried), func(c *candidate) bool {
		return c.k != k || c.cost >= exact || c.likely < leastRecall
	})
	slices.SortStableFunc(all, func(a, b *candidate) int { return cmp.Compare(a.cost, b.cost) })
	for _, c := range all {
		c.place = math.MaxInt
	}
	for _, recall := range []func(*candidate) float64{meanRecall, evenRecall} {
		left := all
		for layer := 0; len(left) > 0; layer++ {
			var front []*candidate
			front, left = split(left, recall)
			for at, steps := range stepsToTargets(front, recall) {
				front[at].place = min(front[at].place, steps+layerSteps*layer)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *candidate) int { return cmp.Compare(a.place, b.place) })
	return all
}

func meanRecall(c *candidate) float64 { return c.mean }

func evenRecall(c *candidate) float64 { return c.even }

// stepsToTargets returns for each candidate of a frontier, cheapest first, how far it is from the
// first that misses half of what a target allows to: bounds lie below means.
func stepsToTargets(front []*candidate, recall func(*candidate) float64) []int {
	steps := slices.Repeat([]int{len(front)}, len(front))
	for _, target := range targets {
		crossing := slices.IndexFunc(front, func(c *candidate) bool { return recall(c) >= (1+target)/2 })
		if crossing < 0 {
			crossing = len(front) - 1
		}
		for at := range steps {
			steps[at] = min(steps[at], max(at-crossing, crossing-at))
		}
	}
	return steps
}

// split returns the candidates of which no cheaper one found more, one of each step of the cost,
// and the others; of is sorted by cost. Of those of a step it takes the one that found most, and of
// several the costliest: where few sources do not tell plans apart, more work is the safer bet.
func split(of []*candidate, recall func(*candidate) float64) (front, others []*candidate) {
	most := 0.0
	for from := 0; from < len(of); {
		to, best := from, from
		for ; to < len(of) && of[to].cost <= costStep*of[from].cost; to++ {
			if recall(of[to]) >= recall(of[best]) {
				best = to
			}
		}
		for i := from; i < to; i++ {
			if i == best && recall(of[i]) >= most {
				front, most = append(front, of[i]), recall(of[i])
			} else {
				others = append(others, of[i])
			}
		}
		from = to
	}
	return front, others
}

// undecided returns, for every k and target, the cheapest candidate that may reach the target and
// has not been asked about all sources. Where one that has reaches the target, only cheaper ones
// are in question. First it looks for what reaches the target on average, then for what fails no
// source either.
func (r *run) undecided(tried []*candidate) (all []*candidate) {
	r.assess(tried)
	for _, target := range targets {
		for _, k := range r.Ks {
			for _, even := range []bool{false, true} {
				next := r.cheapestUndecided(tried, k, target, even)
				if next != nil && !slices.Contains(all, next) {
					all = append(all, next)
				}
			}
		}
	}
	return all
}

func (r *run) cheapestUndecided(tried []*candidate, k int, target float64, even bool) (next *candidate) {
	limit := r.exactSeconds()
	for _, c := range tried {
		if c.k != k || c.cost >= limit || len(c.outcomes) < r.asked {
			continue
		}
		p := r.point(c)
		bound := p.Bound
		if even {
			bound = Frontier{K: k}.even(p)
		}
		if bound >= target {
			limit = c.cost
		}
	}
	for _, c := range tried {
		likely := c.likely
		if even && c.even < c.mean { // its worst source is known
			likely = min(likely, c.even)
		}
		if c.k == k && c.cost < limit && len(c.outcomes) < r.asked && likely >= target && (next == nil || c.cost < next.cost) {
			next = c
		}
	}
	return next
}

// assess sums up what the candidates found so far, by what is known of the truths by now.
func (r *run) assess(candidates []*candidate) {
	for _, c := range candidates {
		n := float64(len(c.outcomes))
		recalls := r.recalls(c)
		if len(recalls) == 0 {
			continue
		}
		c.cost, c.mean = r.costs.of(c), meanOf(recalls)
		squares := 0.0
		for _, recall := range recalls {
			squares += (recall - c.mean) * (recall - c.mean)
		}
		c.even = min(c.mean, tailBound(1, slices.Min(recalls), c.k)) // the worst source only gets worse
		c.likely = min(1, c.mean+2*math.Sqrt(squares)/max(1, n-1))
	}
}
