package calibrate

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/flashlight"
)

// asked returns a candidate for k = 10 with a cost and with how many of ten it found for each
// source.
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

// TestSafe checks that the plan with the highest recall is taken, of several the costliest, but
// none that takes too long.
func TestSafe(t *testing.T) {
	r := newTestRun()
	cheap, ample := asked(r, 10, 10, 10), asked(r, 90, 10, 10)
	r.tried = []*candidate{asked(r, 5, 9, 9), cheap, ample, asked(r, 500, 10, 10)}
	r.assess(r.tried)
	assert.Equal(t, []*candidate{ample}, r.safe(), "ten times what is enough is too much")
	r.tried = r.tried[3:]
	assert.Equal(t, r.tried, r.safe(), "one there must be")
}

// TestDoubled checks that the safe plan does twice the work where there is time for it.
func TestDoubled(t *testing.T) {
	r := newTestRun()
	r.Rows = 1000
	c := asked(r, 100, 10, 10)
	r.tried = []*candidate{c}
	r.assess(r.tried)
	r.timed, r.Time = []float64{1000}, 100*time.Hour
	assert.Same(t, c, r.doubled(c), "more than half of an exact scan")
	r.timed, r.Time = []float64{1e6}, 100*time.Hour
	double := r.doubled(c)
	assert.Equal(t, 2*c.plan.PerRound, double.plan.PerRound)
	assert.Equal(t, []*candidate{c, double}, r.tried)
	r.Time = time.Second
	assert.Same(t, double, r.doubled(double), "more than there is time for")
}

// TestWorthwhile checks that only a plan that found everything for all sources makes costlier ones
// pointless.
func TestWorthwhile(t *testing.T) {
	r := newTestRun()
	c := asked(r, 2, 10, 10)
	r.tried = []*candidate{c}
	r.assess(r.tried)
	assert.Equal(t, ample*c.cost, r.worthwhile(10))
	asked(r, 2, 10, 10, 10)
	assert.Equal(t, r.affordable(), r.worthwhile(10), "it was not run for the third source")
	assert.Equal(t, r.affordable(), r.worthwhile(20))
}

// TestBeyond checks that each plan does more in one way, and none stops early.
func TestBeyond(t *testing.T) {
	p := flashlight.DefaultPlan(100, 1_000_000)
	p.Rounds, p.PerRound, p.Patience, p.Tail = 2, 500, 2, stopTail
	plans := beyond(p)
	assert.Len(t, plans, 3)
	for _, q := range plans {
		assert.Greater(t, q.Probes.Share, p.Probes.Share)
		assert.GreaterOrEqual(t, q.Rounds*q.PerRound, p.Rounds*p.PerRound)
		require.NoError(t, q.Validate())
	}
	assert.Equal(t, 3, plans[2].Rounds)
	assert.Zero(t, plans[2].Tail)
}

// TestUndecided checks that a plan that may reach a target is returned, unless a cheaper one was
// shown to reach it.
func TestUndecided(t *testing.T) {
	r := newTestRun()
	undecided := func(tried ...*candidate) []*candidate {
		r.tried = tried
		r.assess(tried)
		return r.undecided(r.frontiers(tried))
	}
	surest := asked(r, 100, slices.Repeat([]int{10}, 100)...)
	some := asked(r, 50, 10, 10, 10, 9)
	cheaper := asked(r, 40, 10, 10, 10, 10)
	refuted := asked(r, 20, 1, 2, 1, 2)
	costlier := asked(r, 200, 10, 10, 10, 10)
	assert.Equal(t, []*candidate{cheaper}, undecided(surest, some, cheaper, refuted, costlier))
	assert.Empty(t, undecided(surest, refuted, costlier))
	uneven := asked(r, 30, slices.Concat(slices.Repeat([]int{10}, 60), []int{6})...)
	r.tried = []*candidate{uneven}
	r.assess(r.tried)
	assert.Greater(t, uneven.likely, .98)
	assert.Less(t, uneven.tail, .95)
	assert.Equal(t, []*candidate{uneven}, undecided(surest, uneven), "on average it may do")
	even := asked(r, 40, 10, 10, 10, 9)
	assert.ElementsMatch(t, []*candidate{uneven, even}, undecided(surest, uneven, even), "even fails no source, and the other is in question for .9")
	far := asked(r, 80, 10, 10, 10, 9)
	assert.NotContains(t, undecided(surest, asked(r, 30, slices.Repeat([]int{10}, 100)...), far), far, "too costly for that")
}

// TestPick checks that the candidate run for most sources goes on, and that only the cheaper part
// of the range is looked at.
func TestPick(t *testing.T) {
	r := newTestRun()
	cheap, cheaper := asked(r, 10, 9, 10), asked(r, 4, 9, 10)
	better, further := asked(r, 9, 10, 10), asked(r, 5, 9, 10, 9, 10)
	costly := asked(r, 40, 10, 10, 10, 10, 10)
	all := []*candidate{cheaper, cheap, better, costly}
	r.assess(append(all, further))
	any := func(*candidate) bool { return true }
	assert.Same(t, better, pick(all, 10, 100, any), "the most likely of those that cost at most 20")
	assert.Same(t, further, pick(append(all, further), 10, 100, any), "one that was asked about more")
	assert.Same(t, cheap, pick([]*candidate{cheaper, cheap}, 10, 100, any), "the one that does more work")
	assert.Same(t, cheaper, pick(all, 10, 9, any), "below the limit")
	assert.Nil(t, pick(all, 10, 4, any))
	assert.Nil(t, pick(all, 20, 100, any), "there are none for this k")
}

func TestTailBound(t *testing.T) {
	assert.Equal(t, 1.0, tailBound(1, 1, 100))
	assert.Equal(t, 1.0, tailBound(.9, .9, 10), "one of ten may be missing")
	assert.InDelta(t, .98, tailBound(.92, .95, 100), 1e-9, "by the 5th percentile")
	assert.InDelta(t, .99, tailBound(.99, .95, 100), 1e-9, "by the worst")
	assert.InDelta(t, .95, tailBound(.99, .94, 100), 1e-9, "the worst finds too little for more")
	assert.InDelta(t, .9, tailBound(.99, .5, 100), 1e-9)
	assert.InDelta(t, .8, tailBound(1, 0, 10), 1e-9)
}

// TestLowestRelation checks that only relations with enough sources are considered.
func TestLowestRelation(t *testing.T) {
	r := newTestRun()
	c := asked(r, 10, slices.Concat(slices.Repeat([]int{10}, 8), slices.Repeat([]int{6}, 4), slices.Repeat([]int{0}, 3), slices.Repeat([]int{1}, 16))...)
	for i, relation := range slices.Concat(slices.Repeat([]string{"treats"}, 8), slices.Repeat([]string{"causes"}, 4), slices.Repeat([]string{"rare"}, 3)) {
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
