package calibrate

import (
	"cmp"
	"math"
	"slices"

	"github.com/flashdb/flashdb/flashlight"
)

// A Calibration says what plans achieve for one decoder on one generation.
type Calibration struct {
	// What was measured. The caller sets these, and uses the calibration only where they still
	// hold.
	Generation  uint64
	BuildLSN    uint64
	Decoder     uint64 // hash of the decoder's blob
	SourcesFrom string // collection that the sources are from; "": the one that was asked

	Rows         int        // searched
	Sources      int        // asked, by every plan of every frontier
	ExactSeconds float64    // median of an exact scan, of one core
	Frontiers    []Frontier // by ascending K

	// Seeds are those that plans with a learned seed need; nil where none were learned.
	Seeds *flashlight.Seeds
}

// A Frontier is the plans worth choosing for one k: each costs more than the one before it and has
// a higher bound.
type Frontier struct {
	K      int
	Points []Point
}

// A Point is a plan and what it achieved.
type Point struct {
	Plan flashlight.Plan
	// Recall over the sources: mean, 5th percentile, worst; and what may be promised: a lower 95%
	// bound of the mean, which is not above the mean of any draw of sources (see Pick).
	Mean, P5, Worst, Bound float64
	// Of the relations with at least relationSources sources, the one with the lowest mean recall,
	// and that mean; none of a decoder without relations.
	Relation     string
	RelationMean float64
	// Means per source.
	RowsScored, CodesScanned float64
	// Seconds of one core, the mean of the sources.
	Seconds float64
}

// For returns the frontier for the k best: that of the smallest calibrated k that is not less, or
// of the largest. It returns false when there is none.
func (c *Calibration) For(k int) (Frontier, bool) {
	for _, f := range c.Frontiers {
		if f.K >= k {
			return f, true
		}
	}
	if n := len(c.Frontiers); n > 0 {
		return c.Frontiers[n-1], true
	}
	return Frontier{}, false
}

// Choose returns the cheapest point whose bound reaches the recall, or false and the best point
// when none does. A point that fails some sources (see tailBound) or a relation (see relationBound)
// gives way to the cheapest that does not, if that one costs no more than evenPrice allows.
func (f Frontier) Choose(recall float64) (p Point, ok bool) {
	for _, q := range f.Points {
		switch {
		case ok && q.Seconds > evenPrice*p.Seconds:
			return p, true
		case f.even(q) >= recall:
			return q, true
		case !ok && (q.Bound >= recall || q.Bound >= p.Bound):
			p, ok = q, q.Bound >= recall
		}
	}
	return p, ok
}

// even is the bound of a point, or less for the sake of its poorest sources and relation.
func (f Frontier) even(p Point) float64 {
	return min(p.Bound, tailBound(p.P5, p.Worst, f.K), p.relationBound())
}

// relationBound is the highest recall that a plan is taken for where a costlier one may do better
// by its poorest relation.
func (p Point) relationBound() float64 {
	if p.Relation == "" {
		return 1
	}
	return max(0, 1-(1-p.RelationMean)/relationMisses)
}

// tailBound is the highest recall that a plan with this 5th percentile and worst is taken for where
// a costlier one may do better by the poorest sources. One of k nodes may be missing in any case.
func tailBound(p5, worst float64, k int) float64 {
	allowed := func(recall, misses float64) float64 {
		if recall >= 1-1.5/float64(k) {
			return 1
		}
		return 1 - (1-recall)/misses
	}
	return max(0, min(allowed(p5, tailMisses), allowed(worst, worstMisses)))
}

// Scaled returns the point for a k beyond that of the frontier: rows per round grow with k, and
// probes with its square root, as the rows sought lie deeper and wider. Its recalls are not
// measured any more.
func (f Frontier) Scaled(p Point, k int) Point {
	if k <= f.K {
		return p
	}
	by := float64(k) / float64(f.K)
	p.Plan.PerRound = int(min(math.MaxInt32, math.Ceil(float64(p.Plan.PerRound)*by)))
	if !p.Plan.Probes.All() {
		p.Plan.Probes = p.Plan.Probes.Scale(math.Sqrt(by))
	}
	p.RowsScored *= by
	p.CodesScanned *= math.Sqrt(by)
	p.Seconds *= by
	return p
}

// frontier returns the points that no other beats in both cost and bound, or in both cost and what
// even says, cheapest first.
func frontier(k int, points []Point) Frontier {
	slices.SortStableFunc(points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Seconds, b.Seconds), cmp.Compare(b.Bound, a.Bound))
	})
	f := Frontier{K: k}
	bound, even := -1.0, -1.0
	for _, p := range points {
		if e := f.even(p); p.Bound > bound || e > even {
			f.Points = append(f.Points, p)
			bound, even = max(bound, p.Bound), max(even, e)
		}
	}
	return f
}
