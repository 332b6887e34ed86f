package calibrate

import (
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

// TestRanking: the Pareto frontier comes first, and of it what lies next to the targets; what is
// beaten comes behind.
func TestRanking(t *testing.T) {
	r := newTestRun()
	poor := asked(r, 10, 9, 8, 9, 8)
	beaten := asked(r, 20, 8, 8, 9, 9)
	good := asked(r, 30, 10, 10, 10, 9)
	perfect := asked(r, 40, 10, 10, 10, 10)
	more := asked(r, 80, 10, 10, 10, 10)
	hopeless := asked(r, 5, 0, 1, 0, 1)
	scan := asked(r, 2000, 10, 10, 10, 10)
	got := r.ranking([]*candidate{more, scan, hopeless, beaten, perfect, good, poor}, 10)
	assert.ElementsMatch(t, []*candidate{poor, beaten, good, perfect, more}, got, "neither the hopeless nor what a scan does as fast")
	assert.Equal(t, good, got[0], "misses half of what .9 and .95 allow to")
	assert.Equal(t, perfect, got[1], "nothing cheaper promises .98")
	assert.Equal(t, beaten, got[len(got)-1])
}

// TestSplit: of plans that found as much at about the same cost the costlier is the safer bet, and
// no frontier goes down.
func TestSplit(t *testing.T) {
	r := newTestRun()
	a, b, c, d := asked(r, 10, 9, 9), asked(r, 11, 9, 9), asked(r, 20, 8, 8), asked(r, 30, 10, 9)
	all := []*candidate{a, b, c, d}
	r.assess(all)
	front, others := split(all, meanRecall)
	assert.Equal(t, []*candidate{b, d}, front)
	assert.Equal(t, []*candidate{a, c}, others)
}

// TestSafe: the plan that found most, by most work of several, but none that takes too long.
func TestSafe(t *testing.T) {
	r := newTestRun()
	cheap, ample := asked(r, 10, 10, 10), asked(r, 90, 10, 10)
	all := []*candidate{asked(r, 5, 9, 9), cheap, ample, asked(r, 500, 10, 10)}
	assert.Equal(t, []*candidate{ample}, r.safe(all), "ten times what is enough is too much")
	assert.Equal(t, all[3:], r.safe(all[3:]), "one there must be")
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
	assert.Equal(t, []*candidate{cheaper}, r.undecided([]*candidate{surest, some, cheaper, refuted, costlier}))
	assert.Empty(t, r.undecided([]*candidate{surest, refuted, costlier}))
}

func TestStageShare(t *testing.T) {
	left := 1.0
	for i := range stages {
		left -= left * stageShare(i)
		assert.Less(t, left, 1.0)
	}
	assert.InDelta(t, stageShare(len(stages)-1), .5, 1e-9, "as much is left as the last stage has")
}

func TestTailBound(t *testing.T) {
	assert.Equal(t, 1.0, tailBound(1, 1, 100))
	assert.Equal(t, 1.0, tailBound(.9, .9, 10), "one of ten may be missing")
	assert.InDelta(t, .98, tailBound(.92, .95, 100), 1e-9, "by the 5th percentile")
	assert.InDelta(t, .98, tailBound(.99, .9, 100), 1e-9, "by the worst")
	assert.InDelta(t, .8, tailBound(1, 0, 10), 1e-9)
}

func TestMissMargin(t *testing.T) {
	assert.Zero(t, missMargin(2000, 2000), "all were sampled")
	assert.Equal(t, 1.0, missMargin(0, 2000), "nothing is known")
	assert.InDelta(t, 3./125-3./2000, missMargin(125, 2000), 1e-9)
}
