package calibrate

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb/flashlight"
)

// TestFitCosts recovers the costs of work from times, every fifth of which is four times too long.
func TestFitCosts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	want := costs{1e-5, 2e-5, 3e-7, 0}
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
	got := fitCosts(candidates)
	for _, c := range candidates {
		assert.InEpsilon(t, want.of(c), got.of(c), 0.1, "relative errors keep what was disturbed from mattering")
	}
	for _, w := range got {
		assert.GreaterOrEqual(t, w, 0.0)
	}
	assert.Equal(t, costs{}, fitCosts(nil))
	assert.Zero(t, want.of(&candidate{}))
}
