package calibrate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/flashlight"
)

// TestAtOnce: the plans that found most for their cost are tried without growth, as far as they have any.
func TestAtOnce(t *testing.T) {
	const rows = 10_000
	explored := func(k, rounds, probed int, cost, recall float64) *candidate {
		plan := defaultRule.plan(amount{shape{rounds: rounds, perRound: 100}, probed}, rows)
		return &candidate{k: k, plan: plan, cost: cost, outcomes: []outcome{{recall: recall}}}
	}
	best := explored(10, 4, 2000, 1, .9)
	dearer := explored(10, 10, 4000, 3, .95)
	other := explored(100, 3, 4000, 1, .8)
	r := &run{Input: Input{Ks: []int{10, 100}}, timed: []float64{9}}
	tried := r.atOnce([]*candidate{
		best, dearer, other,
		explored(10, 6, 2000, 1.1, .85),   // as dear, found less
		explored(10, 10, 2000, 2, .7),     // dearer, found less
		explored(10, 1, 4000, 1, 1),       // one round has everything
		explored(10, 4, rows, 1, 1),       // every list from the start
		explored(100, 10, 8000, 9.5, .99), // dearer than the scan, and of no use
	})
	type known struct {
		k    int
		plan flashlight.Plan
	}
	var got []known
	for _, c := range tried {
		assert.Empty(t, c.outcomes)
		require.Equal(t, 1, c.plan.Growth)
		c.plan.Growth = 0
		got = append(got, known{c.k, c.plan})
	}
	assert.Equal(t, []known{{10, dearer.plan}, {100, other.plan}, {10, best.plan}}, got)
}
