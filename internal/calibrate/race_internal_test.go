package calibrate

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb/flashlight"
)

// asked makes a candidate for k = 10 that cost so much and found so many of ten on each source.
func asked(r *run, cost float64, found ...int) *candidate {
	c := &candidate{k: 10, plan: flashlight.DefaultPlan(10, 1000)}
	for len(r.truths) < len(found) {
		t := truth{size: 10}
		for id := range uint32(10) {
			t.put(known{id: id, score: float32(20 - id), weight: 1, sampled: true})
		}
		r.truths = append(r.truths, t)
		r.Sources = append(r.Sources, Source{})
	}
	for _, n := range found {
		o := outcome{scored: int(cost)}
		for i := range n {
			o.scores = append(o.scores, float32(20-i))
		}
		c.outcomes = append(c.outcomes, o)
	}
	r.asked = max(r.asked, len(found))
	return c
}

func newTestRun() *run {
	r := &run{Input: Input{Ks: []int{10}, Rows: 1, Time: time.Hour}, costs: costs{0, 0, 1, 0}, timed: []float64{1000}}
	r.workers = []*worker{nil}
	r.Clock = func() time.Time { return time.Time{} }
	return r
}

// TestSafe: the plan that found most, by most work of several, but none that takes too long.
func TestSafe(t *testing.T) {
	r := newTestRun()
	cheap, ample := asked(r, 10, 10, 10), asked(r, 90, 10, 10)
	r.tried = []*candidate{asked(r, 5, 9, 9), cheap, ample, asked(r, 500, 10, 10)}
	r.assess(r.tried)
	assert.Equal(t, []*candidate{ample}, r.safe(), "ten times what is enough is too much")
	r.tried = r.tried[3:]
	assert.Equal(t, r.tried, r.safe(), "one there must be")
}

// TestUndecided: the cheapest that may reach a target, unless a cheaper one was shown to.
func TestUndecided(t *testing.T) {
	r := newTestRun()
	full := make([]int, 100)
	for i := range full {
		full[i] = 10
	}
	surest := asked(r, 100, full...)
	some := asked(r, 50, 10, 10, 10, 9)
	cheaper := asked(r, 40, 10, 10, 10, 10)
	refuted := asked(r, 20, 1, 2, 1, 2)
	costlier := asked(r, 200, 10, 10, 10, 10)
	r.tried = []*candidate{surest, some, cheaper, refuted, costlier}
	assert.Equal(t, []*candidate{cheaper}, r.undecided())
	r.tried = []*candidate{surest, refuted, costlier}
	assert.Empty(t, r.undecided())
}

func TestTailBound(t *testing.T) {
	assert.Equal(t, 1.0, tailBound(1, 1, 100))
	assert.Equal(t, 1.0, tailBound(.9, .9, 10), "one of ten may be missing")
	assert.InDelta(t, .98, tailBound(.92, .95, 100), 1e-9, "by the 5th percentile")
	assert.InDelta(t, .98, tailBound(.99, .9, 100), 1e-9, "by the worst")
	assert.InDelta(t, .8, tailBound(1, 0, 10), 1e-9)
}

// TestLowestRelation: of those asked of enough sources.
func TestLowestRelation(t *testing.T) {
	r := newTestRun()
	c := asked(r, 10, slices.Concat(slices.Repeat([]int{10}, 8), slices.Repeat([]int{6}, 8), slices.Repeat([]int{0}, 7), slices.Repeat([]int{1}, 8))...)
	for i, relation := range slices.Concat(slices.Repeat([]string{"treats"}, 8), slices.Repeat([]string{"causes"}, 8), slices.Repeat([]string{"rare"}, 7)) {
		r.Sources[i].Relation = relation
	}
	p := r.point(c)
	assert.Equal(t, "causes", p.Relation)
	assert.InDelta(t, .6, p.RelationMean, 1e-9)
	assert.InDelta(t, .8, p.relationBound(), 1e-9, "twice the miss of .8")
	for i := range r.Sources {
		r.Sources[i].Relation = ""
	}
	p = r.point(c)
	assert.Empty(t, p.Relation)
	assert.Equal(t, 1., p.relationBound())
}

func TestMissMargin(t *testing.T) {
	assert.Zero(t, missMargin(2000, 2000), "all were sampled")
	assert.Equal(t, 1.0, missMargin(0, 2000), "nothing is known")
	assert.InDelta(t, 3./125-3./2000, missMargin(125, 2000), 1e-9)
}
