package flashlight

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
)

// BenchmarkLearnedSeed measures what the learned seed costs a query, compared with the ones seed.
func BenchmarkLearnedSeed(b *testing.B) {
	for _, dim := range []int{64, 128, 256} {
		for _, n := range []int{128, 512} {
			b.Run(fmt.Sprintf("dim=%d/stored=%d", dim, n), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 1))
				vector := func() []float32 {
					v := make([]float32, dim)
					for i := range v {
						v[i] = float32(rng.NormFloat64())
					}
					return v
				}
				dec, err := decoder.NewHadamardMLP(dim, decoder.Layer{Weight: vector(), Bias: []float32{0}},
					decoder.Layer{Weight: []float32{1}, Bias: []float32{0}})
				if err != nil {
					b.Fatal(err)
				}
				prototypes := make([]Prototype, n)
				for i := range prototypes {
					prototypes[i] = Prototype{Source: vector(), Gradient: vector()}
				}
				source := vector()
				prototypes[n/2].Source = source // random ones are like none
				q := &Query{Bound: dec.Bind(nil, source), Source: source, K: 10, Plan: DefaultPlan(10, 1000), Seeds: NewSeeds(dim, prototypes)}
				q.Plan.Seed = SeedLearned
				var e Executor
				e.begin(q, nil, &Memory{dim: dim})
				b.ReportAllocs()
				for b.Loop() {
					e.seed()
				}
				if e.report.Plan.Seed != SeedLearned {
					b.Fatal("fell back")
				}
			})
		}
	}
}

// TestLearnedSeedOfCosinesThatAreNoNumbers checks that a NaN cosine counts as unlike every source.
func TestLearnedSeedOfCosinesThatAreNoNumbers(t *testing.T) {
	nan := float32(math.NaN())
	dec, err := decoder.NewHadamardMLP(2, decoder.Layer{Weight: []float32{1, 1}, Bias: []float32{0}},
		decoder.Layer{Weight: []float32{1}, Bias: []float32{0}})
	require.NoError(t, err)
	source := []float32{1, 1}
	q := &Query{Bound: dec.Bind(nil, source), Source: source, K: 10, Plan: DefaultPlan(10, 1000)}
	q.Plan.Seed = SeedLearned
	q.Seeds = &Seeds{dim: 2, ids: []uint32{7}, units: []float32{nan, nan}, gradients: []float32{1, 1}}
	var e Executor
	e.begin(q, nil, &Memory{dim: 2})
	require.Equal(t, SeedOnes, e.plan.Seed)
}
