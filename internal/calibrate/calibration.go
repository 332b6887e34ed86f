package calibrate

import (
	"cmp"
	"math"
	"slices"

	"github.com/flashdb/flashdb/flashlight"
)

// A Calibration says what recall plans reach at what cost, for one decoder on one generation.
type Calibration struct {
	// What was measured. The caller sets these fields, and uses the calibration only while they
	// match.
	Generation  uint64
	BuildLSN    uint64
	Decoder     uint64 // hash of the decoder's blob
	SourcesFrom string // collection of the sources; "" for the collection that is searched

	Rows         int        // searched
	Sources      int        // for which every plan of every frontier was run
	ExactSeconds float64    // median of an exact scan, on one core
	Frontiers    []Frontier // by ascending K

	// Seeds are needed by plans with a learned seed. It is nil if none were learned.
	Seeds *flashlight.Seeds
}

// A Frontier holds the plans worth choosing for one k, cheapest first. Each has a higher Bound than
// the cheaper ones, or a higher result of even.
type Frontier struct {
	K      int
	Points []Point
}

// A Point is a plan and what was measured of it.
type Point struct {
	Plan flashlight.Plan
	// Recall over the sources: mean, 5th percentile, worst, and a lower bound of the mean with 95%
	// confidence. The bound is never above the mean of one draw of sources (see Pick).
	Mean, P5, Worst, Bound float64
	// Relation is the relation with the lowest mean recall of those with at least relationSources
	// sources, and RelationMean is that recall. They are empty for a decoder without relations.
	Relation     string
	RelationMean float64
	// Means for one source.
	RowsScored, CodesScanned float64
	// Seconds on one core for one source, a mean.
	Seconds float64
}

// For returns the frontier for the k best: that of the smallest calibrated K of at least k, or else
// of the largest K. It returns false if there is no frontier.
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

// Choose returns the cheapest point whose bound reaches the recall, and true. If that point has too
// low a recall for some sources (see tailBound) or a relation (see relationBound), Choose returns
// the cheapest point without this fault instead, of those that cost at most evenPrice times as
// much, or the one with the least fault. If no bound reaches the recall, it returns the point with
// the highest bound, and false.
func (f Frontier) Choose(recall float64) (p Point, ok bool) {
	reached := slices.IndexFunc(f.Points, func(q Point) bool { return q.Bound >= recall })
	if reached < 0 {
		for _, q := range f.Points {
			if q.Bound >= p.Bound {
				p = q
			}
		}
		return p, false
	}
	p = f.Points[reached]
	limit := evenPrice * p.Seconds
	for _, q := range f.Points[reached+1:] {
		if f.even(p) >= recall || q.Seconds > limit {
			break
		}
		if q.Bound >= recall && f.even(q) > f.even(p) {
			p = q
		}
	}
	return p, true
}

// even is the bound of a point, lowered if its poorest sources or relation have too low a recall.
func (f Frontier) even(p Point) float64 {
	return min(p.Bound, tailBound(p.P5, p.Worst, f.K), p.relationBound())
}

// relationBound is the highest recall that a plan may be chosen for, judged by its poorest
// relation.
func (p Point) relationBound() float64 {
	if p.Relation == "" {
		return 1
	}
	return max(0, 1-(1-p.RelationMean)/relationMisses)
}

// tailBound is the highest recall that a plan may be chosen for, judged by its 5th percentile and
// its worst source. One missing node of k is always allowed.
func tailBound(p5, worst float64, k int) float64 {
	allowed := func(recall, misses float64) float64 {
		if recall >= 1-1.5/float64(k) {
			return 1
		}
		return 1 - (1-recall)/misses
	}
	bound := max(0, min(allowed(p5, tailMisses), allowed(worst, worstMisses)))
	if allowed(worst, 1) < wellServed {
		bound = min(bound, wellServed)
	}
	return bound
}

// Scaled returns the point for a k above that of the frontier. Rows per round grow in proportion to
// k, and probes with its square root. The recalls of the result are those of p: they were not
// measured for k.
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

// NewFrontier returns a frontier of the points, cheapest first, that have a higher bound, or a
// higher result of even, than all cheaper points.
func NewFrontier(k int, points []Point) Frontier {
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
