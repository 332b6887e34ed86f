package calibrate

import (
	"context"
	"slices"
	"time"
)

// promises are the recalls that a frontier should offer a plan for, if any plan reaches them: first the one that queries
// ask for when nothing else is said.
var promises = []float64{.98, .99, .95, .9}

// revive gives candidates that were dropped another chance, now that the truths are known: where no plan of those raced
// reaches a promise, it looks for the cheapest that does, halving the range of costs. What was explored on a few easy
// sources, on which much found everything, may have gone on with the wrong ones. It returns all that have seen every source.
func (r *run) revive(ctx context.Context, explored, raced []*candidate) ([]*candidate, error) {
	turns := len(promises) * len(r.Ks)
	for _, promise := range promises {
		for _, k := range r.Ks {
			turn := (r.raceUntil() - r.elapsed()) / time.Duration(turns)
			turns--
			if turn <= 0 || r.reaches(raced, k, promise) || PerfectBound(len(r.truths), k) < promise {
				continue
			}
			found, err := r.search(ctx, r.rivals(explored, raced, k), k, promise, r.elapsed()+turn)
			if err != nil {
				return nil, err
			}
			raced = append(raced, found...)
		}
	}
	return raced, nil
}

// reaches tells whether a candidate for k reaches a recall.
func (r *run) reaches(raced []*candidate, k int, recall float64) bool {
	return slices.ContainsFunc(raced, func(c *candidate) bool {
		return c.k == k && c.cost < r.exactSeconds() && r.point(c).Bound >= recall
	})
}

// rivals returns the explored candidates for k that are cheaper than the scan and were not raced to the end, by ascending
// cost, the best of every small step of it.
func (r *run) rivals(explored, raced []*candidate, k int) []*candidate {
	exact := r.exactSeconds()
	of := slices.DeleteFunc(slices.Clone(explored), func(c *candidate) bool {
		return c.k != k || c.cost >= exact || slices.Contains(raced, c)
	})
	slices.SortStableFunc(of, func(a, b *candidate) int { return compare(a.cost, b.cost) })
	const step = 1.15
	var best []*candidate
	from := 0.0
	for _, c := range of {
		n := len(best)
		switch {
		case n == 0 || c.cost > step*from:
			best = append(best, c)
			from = c.cost
		case c.better(best[n-1]):
			best[n-1] = c
		}
	}
	return best
}

// better tells whether c found more than d on the sources that both have seen, or as much by more work.
func (c *candidate) better(d *candidate) bool {
	n := min(len(c.outcomes), len(d.outcomes))
	of, than := candidate{outcomes: c.outcomes[:n]}, candidate{outcomes: d.outcomes[:n]}
	if of.mean() != than.mean() {
		return of.mean() > than.mean()
	}
	return of.scored() > than.scored()
}

// search asks rivals, by ascending cost, about the sources they have not seen: those in the middle first, then cheaper ones
// after one that reaches the promise and dearer ones after one that does not. More work does not always find more: if
// nothing was found on the way, the others follow, the dearest first. It returns those that have seen all sources.
func (r *run) search(ctx context.Context, rivals []*candidate, k int, promise float64, until time.Duration) (seen []*candidate, err error) {
	reached := false
	try := func(at int) (bool, error) {
		c := rivals[at]
		rivals[at] = nil
		if err := r.catchUp(ctx, c, promise); err != nil || len(c.outcomes) < len(r.truths) {
			return false, err
		}
		seen = append(seen, c)
		ok := r.reaches(seen[len(seen)-1:], k, promise)
		reached = reached || ok
		return ok, nil
	}
	for low, high := 0, len(rivals); low < high && r.elapsed() < until; {
		at := (low + high) / 2
		ok, err := try(at)
		if err != nil {
			return nil, err
		}
		if ok {
			high = at
		} else {
			low = at + 1
		}
	}
	for at := len(rivals) - 1; at >= 0 && !reached && r.elapsed() < until; at-- {
		if rivals[at] != nil {
			if _, err := try(at); err != nil {
				return nil, err
			}
		}
	}
	return seen, nil
}

// catchUp asks a candidate about the sources it has not seen, a part at a time for as long as it may keep the promise.
func (r *run) catchUp(ctx context.Context, c *candidate, promise float64) error {
	all := len(r.truths)
	for _, n := range []int{all / 8, all / 4, all / 2, all} {
		if n > len(c.outcomes) && c.hopeful() >= promise {
			if err := r.measure(ctx, []*candidate{c}, n, r.raceUntil()); err != nil {
				return err
			}
		}
	}
	r.setCosts([]*candidate{c})
	return nil
}
