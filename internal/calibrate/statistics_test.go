package calibrate_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb/internal/calibrate"
)

// population draws the recall at 100 of a source. mean is its expectation.
type population struct {
	mean float64
	draw func(rng *rand.Rand) float64
}

// betaBinomial returns a population whose sources differ. The chance of finding a node has a beta
// distribution over the sources.
func betaBinomial(mean, concentration float64) population {
	return population{mean, func(rng *rand.Rand) float64 {
		p := beta(rng, mean*concentration, (1-mean)*concentration)
		found := 0
		for range 100 {
			if rng.Float64() < p {
				found++
			}
		}
		return float64(found) / 100
	}}
}

// withPoor returns the population with a share of the sources replaced by ones evenly spread
// between low and high.
func withPoor(p population, share, low, high float64) population {
	mean := (1-share)*p.mean + share*(low+high)/2
	return population{mean, func(rng *rand.Rand) float64 {
		if rng.Float64() < share {
			return low + (high-low)*rng.Float64()
		}
		return p.draw(rng)
	}}
}

func beta(rng *rand.Rand, a, b float64) float64 {
	x := gamma(rng, a)
	return x / (x + gamma(rng, b))
}

// gamma draws by Marsaglia and Tsang's method.
func gamma(rng *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(rng, shape+1) * math.Pow(rng.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := math.Pow(1+c*x, 3)
		if v > 0 && math.Log(rng.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

// TestLowerBoundCovers draws many samples of populations like those of real graphs, and counts how
// often the bound lies below the true mean.
func TestLowerBoundCovers(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes: nothing for the race detector")
	}
	const samples = 1500
	for _, tt := range []struct {
		name    string
		of      population
		sources int
		covered float64 // at least
		slack   float64 // mean distance from the true mean at most
	}{
		{"alike, .98, 30 sources", betaBinomial(.98, 1e6), 30, .95, .01},
		{"alike, .995, 30 sources", betaBinomial(.995, 1e6), 30, .95, .008},
		{"different, .95, 30 sources", betaBinomial(.95, 20), 30, .95, .03},
		{"different, .99, 30 sources", betaBinomial(.99, 50), 30, .95, .012},
		{"different, .99, 100 sources", betaBinomial(.99, 50), 100, .95, .006},
		{"nearly perfect, 30 sources", betaBinomial(.999, 60), 30, .95, .008},
		{"nearly perfect, 200 sources", betaBinomial(.999, 60), 200, .95, .002},
		{"very different, .8, 50 sources", betaBinomial(.8, 2.5), 50, .95, .08},
		{"very different, .95, 50 sources", betaBinomial(.95, 3), 50, .94, .06},
		{"a tenth poor, 100 sources", withPoor(betaBinomial(.997, 300), .1, .6, .98), 100, .95, .03},
		{"a thirtieth poor, 200 sources", withPoor(betaBinomial(.995, 300), .03, .5, .95), 200, .94, .02},
		{"a thirtieth poor, 50 sources: too few", withPoor(betaBinomial(.995, 300), .03, .5, .95), 50, .7, .03},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(tt.sources)))
			covered, slack := 0, 0.0
			recalls := make([]float64, tt.sources)
			for range samples {
				for i := range recalls {
					recalls[i] = tt.of.draw(rng)
				}
				bound := calibrate.LowerBound(recalls, 100)
				if bound <= tt.of.mean {
					covered++
				}
				slack += (tt.of.mean - bound) / samples
			}
			assert.GreaterOrEqual(t, float64(covered)/samples, tt.covered, "share of bounds below the true mean")
			assert.LessOrEqual(t, slack, tt.slack, "bounds should be of use")
		})
	}
}

func TestLowerBoundOfPerfectRecalls(t *testing.T) {
	perfect := func(n int) []float64 {
		r := make([]float64, n)
		for i := range r {
			r[i] = 1
		}
		return r
	}
	assert.Zero(t, calibrate.LowerBound(nil, 10))
	assert.InDelta(t, 1-0.19/200, calibrate.LowerBound(perfect(200), 100), 2e-4)
	assert.Less(t, calibrate.LowerBound(perfect(200), 10), calibrate.LowerBound(perfect(200), 100), "of 10, each node weighs more")
	last := 0.0
	for n := 2; n < 300; n++ {
		bound := calibrate.LowerBound(perfect(n), 100)
		assert.Greater(t, bound, last, "%d sources", n)
		assert.Less(t, bound, 1.0)
		last = bound
	}
	assert.Zero(t, calibrate.LowerBound([]float64{0, 0, 0}, 10))
	assert.GreaterOrEqual(t, calibrate.LowerBound([]float64{0, 1}, 10), 0.0)
}

func TestPerfectBound(t *testing.T) {
	assert.InDelta(t, .994, calibrate.PerfectBound(30, 100), .001)
	assert.InDelta(t, .988, calibrate.PerfectBound(30, 10), .001)
	assert.Less(t, calibrate.PerfectBound(8, 100), .98)
	assert.Zero(t, calibrate.PerfectBound(0, 100))
}

func TestWorse(t *testing.T) {
	for _, tt := range []struct {
		name          string
		before, after []float64
		worse         bool
	}{
		{"none", nil, nil, false},
		{"one source says nothing", []float64{1}, []float64{0}, false},
		{"the same", []float64{1, .9, .8}, []float64{1, .9, .8}, false},
		{"better", []float64{.9, .9, .9}, []float64{1, .95, .99}, false},
		{"within the tolerance", []float64{1, 1, 1, 1}, []float64{.99, .995, .99, .995}, false},
		{"everywhere", []float64{1, .99, 1, .98}, []float64{.95, .93, .94, .94}, true},
		{"one source of four: it may be chance", []float64{1, 1, 1, 1}, []float64{1, 1, 1, .8}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.worse, calibrate.Worse(tt.before, tt.after, .01))
		})
	}
}
