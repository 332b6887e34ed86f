package calibrate

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb/flashlight"
)

// TestPromising: the surest plan goes on whatever it costs, and leaves time for cheaper ones; those that cost next to
// nothing need none.
func TestPromising(t *testing.T) {
	const exact = 10.0
	of := func(perRound int, cost, recall float64) *candidate {
		return &candidate{
			k: 100, cost: cost, plan: flashlight.Plan{PerRound: perRound},
			outcomes: []outcome{{recall: recall, scored: perRound}},
		}
	}
	nothing, cheap, dear, surest := of(1, 0.4, .8), of(2, 1, .9), of(3, 2, .95), of(4, 4, .99)
	all := []*candidate{nothing, cheap, dear, surest}
	tests := []struct {
		name    string
		seconds float64 // a source
		want    []*candidate
	}{
		{"time for all", 8, []*candidate{surest, nothing, cheap, dear}},
		{"the surest takes all of it", 4, []*candidate{surest, nothing, cheap}},
		{"the surest takes more than there is", 2, []*candidate{surest, nothing}},
		{"no time", 0, []*candidate{surest, nothing}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &run{Input: Input{Ks: []int{100}}, timed: []float64{exact}}
			assert.Equal(t, tt.want, r.promising(all, tt.seconds))
		})
	}
}

// TestFirstPlans: those for k nodes that score too few rows, or more than are worth it, are left out.
func TestFirstPlans(t *testing.T) {
	perRound := func(k, rows int) (all []int) {
		for _, p := range firstPlans(k, rows) {
			assert.NoError(t, p.Validate())
			all = append(all, p.PerRound)
		}
		return all
	}
	assert.Equal(t, []int{500, 500, 150, 150, 2000}, perRound(100, 33_445))
	assert.Equal(t, []int{500, 500, 2000}, perRound(300, 33_445), "two of 150 are too few")
	assert.Equal(t, []int{500, 150}, perRound(10, 3000), "all rows alone: part of them is more than there are, and 2,000 more than half")
}
