package calibrate

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"
)

// targets are the recalls that plans are kept for: those that may be asked for, and a little beyond, as bounds lie below
// means.
var targets = []float64{.8, .9, .95, .97, .98, .985, .99, .995, .998, .999, 1}

const (
	keepMost = 12  // plans a target are raced at most
	costStep = 1.5 // for every such step of the cost the best plan is raced
	enough   = 0.99
	// cheapMost is up to which place plans for a k are raced whatever time there is, if they take less than a cheapShare of
	// the exact scan. A short box would otherwise race the dearest plan alone.
	cheapMost  = 6
	cheapShare = 1. / 20
)

// race asks the further sources by ever fewer candidates and returns those that have seen all there was time for. How
// many sources that will be is settled first, so that truths take their share of the time and no more; then, at 12, 24,
// 48 ... of them, as many candidates go on as there is time for.
func (r *run) race(ctx context.Context, candidates []*candidate) ([]*candidate, error) {
	goal := r.goal()
	for {
		seen := len(r.truths)
		stages := stagesTo(seen, goal)
		if len(stages) == 0 {
			return candidates, nil
		}
		candidates = r.promising(candidates, r.budget(seen, stages))
		if len(candidates) == 0 || r.elapsed() >= r.raceUntil() {
			return candidates, nil
		}
		if err := r.measure(ctx, candidates, stages[0], r.raceUntil()); err != nil {
			return nil, err
		}
		r.setCosts(candidates)
		if len(r.truths) < stages[0] {
			return candidates, nil // no time for more
		}
	}
}

// goal returns how many sources there is time to know the truth of: half of the time that is left for as many as there
// are, more of it for as many as it takes to promise anything.
func (r *run) goal() int {
	left, truth := r.coreSeconds(r.raceUntil()), r.truthSeconds()
	if truth == 0 {
		return len(r.Sources)
	}
	seen := float64(len(r.truths))
	n := max(seen+truthShare*left/truth, min(fewSources, seen+fewTruthShare*left/truth))
	return int(min(n, float64(len(r.Sources))))
}

// coreSeconds returns the time left until then on all cores.
func (r *run) coreSeconds(until time.Duration) float64 {
	return max(0, (until-r.elapsed()).Seconds()) * float64(len(r.askers))
}

// stagesTo returns the numbers of sources after which candidates are dropped, up to goal: doubling, without a short last one.
func stagesTo(seen, goal int) (stages []int) {
	for n := 2 * max(seen, exploreSources); seen < goal; n *= 2 {
		if 3*n/2 > goal {
			n = goal
		}
		stages = append(stages, n)
		seen = n
	}
	return stages
}

// budget returns the seconds that all plans together may take a source in the next stage. Time is set aside for the
// truths of all stages and for revive; the rest is dealt out by their sizes' square roots, so that neither the many
// sources at the end nor the many plans at the start take it all.
func (r *run) budget(seen int, stages []int) float64 {
	last := stages[len(stages)-1]
	share := plansShare
	if last <= fewSources { // no time for plans that were dropped
		share = 1
	}
	left := share * (r.coreSeconds(r.raceUntil()) - float64(last-seen)*r.truthSeconds())
	weights, from := 0.0, seen
	for _, to := range stages {
		weights += math.Sqrt(float64(to - from))
		from = to
	}
	size := float64(stages[0] - seen)
	return left * math.Sqrt(size) / weights / size
}

// promising returns the candidates to go on with, those that matter most first, as many as take so many seconds a source,
// and at least one for every k, the surest. However much these take, half of the time is for the others; and the next few
// that cost next to nothing beside a truth go on in any case.
func (r *run) promising(candidates []*candidate, seconds float64) []*candidate {
	lists := make([][]*candidate, len(r.Ks))
	for i, k := range r.Ks {
		lists[i] = r.ranked(candidates, k)
	}
	var kept []*candidate
	least := seconds / 2
	for i, c := range interleave(lists) {
		if i == len(lists) {
			seconds = max(seconds, least)
		}
		cheap := i < cheapMost*len(lists) && c.cost < cheapShare*r.exactSeconds()
		if c.cost <= seconds || i < len(lists) || cheap {
			seconds -= c.cost
			kept = append(kept, c)
		}
	}
	return kept
}

// ranked returns the candidates for k that are worth going on with, in the order of worth. First come, for every cost in
// steps of a half, those that found most, or did most where several found as much: few sources cannot tell a recall of
// .99 from one of .999, and the dearer plan is the safer bet; the dearest of them is the very first. Then, in turns for every
// target, the cheapest that may reach it. Plans as dear as the exact scan are of no use.
func (r *run) ranked(candidates []*candidate, k int) []*candidate {
	exact := r.exactSeconds()
	var of []*candidate
	for _, c := range candidates {
		if c.k == k && c.cost < exact {
			of = append(of, c)
		}
	}
	slices.SortStableFunc(of, func(a, b *candidate) int { return cmp.Compare(a.cost, b.cost) })
	kept := steps(of, exact)
	if n := len(kept); n > 1 { // whatever time there is, the surest is raced
		kept = slices.Insert(kept[:n-1], 0, kept[n-1])
	}
	known := map[*candidate]bool{}
	for _, c := range kept {
		known[c] = true
	}
	next := make([]int, len(targets)) // of of, a target
	for range keepMost {
		for i, target := range targets {
			for ; next[i] < len(of); next[i]++ {
				if c := of[next[i]]; c.hopeful() >= target {
					next[i]++
					if !known[c] {
						known[c] = true
						kept = append(kept, c)
					}
					break
				}
			}
		}
	}
	return kept
}

// steps returns the best of every step of the cost; of is sorted by it.
func steps(of []*candidate, exact float64) (best []*candidate) {
	most := 0.0
	for from := 0; from < len(of); {
		to, found := from+1, of[from]
		for ; to < len(of) && of[to].cost < costStep*of[from].cost; to++ {
			if c := of[to]; cmp.Or(cmp.Compare(c.mean(), found.mean()), cmp.Compare(c.scored(), found.scored())) >= 0 {
				found = c
			}
		}
		if found.mean() >= most && (most < enough || found.cost < exact/2) {
			most = found.mean()
			best = append(best, found)
		}
		from = to
	}
	return best
}
