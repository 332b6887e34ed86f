package flashlight_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// newMixture returns a graph with a mixture of logits: linear components, and a gate that reads the
// logits.
func newMixture(t require.TestingT, g *graph, source, candidate int) {
	const width = 6
	rng := rand.New(rand.NewPCG(4, 4))
	tensors := map[string]decoder.Tensor{}
	layer := func(key string, out, in int) []decoder.LayerSpec {
		tensors[key] = decoder.Tensor{Shape: []int{out, in}, Data: normal(rng, out*in, .5)}
		return []decoder.LayerSpec{{Weight: key}}
	}
	var err error
	g.dec, err = decoder.New(decoder.Spec{Kind: decoder.MoL, Dim: g.dim, Mixture: &decoder.MixtureSpec{
		Source:    decoder.SideSpec{Components: source, Layers: layer("f", source*width, g.dim)},
		Candidate: decoder.SideSpec{Components: candidate, Layers: layer("g", candidate*width, g.dim)},
		Gate: decoder.GateSpec{
			Combine: decoder.CombineSum,
			Logits:  layer("l", source*candidate, source*candidate),
		},
	}}, tensors)
	require.NoError(t, err)
}

// componentPlan is one round from the components, in all rows.
func componentPlan(perRound int) flashlight.Plan {
	plan := flashlight.DefaultPlan(10, 0)
	plan.Seed, plan.Rounds, plan.PerRound = flashlight.SeedComponents, 1, perRound
	return plan
}

// The round takes the best rows of each logit in turn. The logits of linear components are the
// inner products of the row with their query vectors.
func TestComponentSeed(t *testing.T) {
	g := newGraph(t, 1, 500, 12, 8)
	for _, test := range []struct{ source, candidate, queries int }{
		{2, 3, 6},   // one for each pair
		{4, 4, 16},  // as many as there may be
		{9, 2, 2},   // of pairs there are too many
		{1, 17, 1},  // of components too
		{16, 17, 1}, // and so here: the ones seed
	} {
		newMixture(t, g, test.source, test.candidate)
		q := g.query(3, 10, componentPlan(60))
		q.Explain = true
		m := &recorded{MemorySearch: g.memory().NewSearch()}
		var e flashlight.Executor
		_, report, err := e.Run(context.Background(), q, m, g.memory(), nil)
		require.NoError(t, err)
		require.Len(t, m.queries, test.queries, "%d x %d", test.source, test.candidate)
		wanted := flashlight.SeedComponents
		if test.queries == 1 {
			wanted = flashlight.SeedOnes
		}
		assert.Equal(t, wanted, report.Plan.Seed)
		assert.Equal(t, string(wanted), report.Trace[0].Aims[0].From)
		assert.Equal(t, 60, report.RowsScored)

		var s decoder.Scratch
		mixture := q.Bound.(decoder.Mixture)
		for l, query := range m.queries {
			want, one := make([]float64, g.dim), make([]float32, g.dim)
			for i := range test.source {
				for j := range test.candidate {
					switch {
					case test.queries == 1 || (test.queries == test.candidate && j == l) || i*test.candidate+j == l && test.queries > test.candidate:
						mixture.LogitQuery(&s, one, i, j)
						for k, x := range one {
							want[k] += float64(x)
						}
					}
				}
			}
			if test.queries == 1 {
				for k := range want {
					want[k] /= float64(test.source * test.candidate)
				}
			}
			for k := range want {
				assert.InDelta(t, want[k], query[k], 1e-4)
			}
		}
	}
}

// recorded keeps the query vectors of the last search.
type recorded struct {
	*flashlight.MemorySearch
	queries [][]float32
}

func (r *recorded) Search(ctx context.Context, queries [][]float32, n int, probes index.Probes, filter index.Filter, dst [][]index.Candidate) error {
	r.queries = nil
	for _, q := range queries {
		r.queries = append(r.queries, append([]float32(nil), q...))
	}
	return r.MemorySearch.Search(ctx, queries, n, probes, filter, dst)
}

// With every row scored, any seed gives the exact answer. A decoder without components begins with
// ones.
func TestComponentSeedIsExactInTheEnd(t *testing.T) {
	g := newGraph(t, 2, 300, 12, 8)
	for _, mixture := range []bool{true, false} {
		if mixture {
			newMixture(t, g, 3, 3)
		} else {
			g = newGraph(t, 2, 300, 12, 8)
		}
		q := g.query(5, 10, componentPlan(g.n()))
		var e flashlight.Executor
		hits, report, err := e.Run(context.Background(), q, g.memory().NewSearch(), g.memory(), nil)
		require.NoError(t, err)
		assert.Equal(t, bruteForce(g, q.Bound, 10, nil), hits)
		assert.Equal(t, mixture, report.Plan.Seed == flashlight.SeedComponents)
	}
}

// The learned seed of a mixture finds more in the first round than the ones seed.
func TestLearnedSeedOfMixture(t *testing.T) {
	g := newGraph(t, 3, 800, 12, 8)
	newMixture(t, g, 3, 3)
	var e flashlight.Executor
	var prototypes []flashlight.Prototype
	for id := range uint32(64) {
		p, err := e.Learn(context.Background(), id, g.query(id, 50, flashlight.LearnPlan(g.n())), g.memory().NewSearch(), g.memory())
		require.NoError(t, err)
		prototypes = append(prototypes, p)
	}
	seeds := flashlight.NewSeeds(g.dim, prototypes)
	found := map[flashlight.Seed]int{}
	for _, seed := range []flashlight.Seed{flashlight.SeedOnes, flashlight.SeedLearned} {
		for source := uint32(400); source < 420; source++ {
			plan := componentPlan(100)
			plan.Seed = seed
			q := g.query(source, 20, plan)
			q.Seeds = seeds
			hits, _, err := e.Run(context.Background(), q, g.memory().NewSearch(), g.memory(), nil)
			require.NoError(t, err)
			for _, want := range bruteForce(g, q.Bound, 20, nil) {
				for _, h := range hits {
					if h.ID == want.ID {
						found[seed]++
					}
				}
			}
		}
	}
	t.Logf("of %d: %v", 20*20, found)
	assert.Greater(t, found[flashlight.SeedLearned], found[flashlight.SeedOnes])
}
