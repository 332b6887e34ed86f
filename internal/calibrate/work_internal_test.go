package calibrate

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb/flashlight"
)

// TestFitWork recovers the costs of work from times of which every fifth is four times too long.
func TestFitWork(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	want := work{1e-5, 2e-5, 3e-7, 0}
	var candidates []*candidate
	for range 200 {
		c := &candidate{plan: flashlight.DefaultPlan(10, 1000)}
		for range 6 {
			o := outcome{rounds: 1 + rng.IntN(20), scored: rng.IntN(4000), codes: rng.IntN(100_000)}
			for j, f := range o.work() {
				o.seconds += want[j] * f
			}
			if rng.IntN(5) == 0 {
				o.seconds *= 4
			}
			c.outcomes = append(c.outcomes, o)
		}
		candidates = append(candidates, c)
	}
	got := fitWork(candidates)
	for _, c := range candidates {
		assert.InEpsilon(t, want.seconds(c), got.seconds(c), 0.1, "relative errors keep what was disturbed from mattering")
	}
	for _, w := range got {
		assert.GreaterOrEqual(t, w, 0.0)
	}
	assert.Equal(t, work{}, fitWork(nil))
	assert.Zero(t, want.seconds(&candidate{}))
}

func TestStagesTo(t *testing.T) {
	for _, tt := range []struct {
		seen, goal int
		want       []int
	}{
		{6, 6, nil},
		{6, 8, []int{8}},
		{6, 20, []int{12, 20}},
		{6, 200, []int{12, 24, 48, 96, 200}},
		{6, 50, []int{12, 24, 50}},
		{1, 5, []int{5}},
		{9, 6, nil},
	} {
		assert.Equal(t, tt.want, stagesTo(tt.seen, tt.goal), "%d to %d", tt.seen, tt.goal)
	}
}
