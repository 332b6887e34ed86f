package flashlight_test

import (
	"context"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// TestSteadyStateAllocatesNothing checks that a reused executor allocates only its result, and here
// even that has room. Excluded has room too: its one container is a bitmap already.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	g := newGraph(t, 14, 6000, 8, 16, 8)
	seeds := flashlight.NewSeeds(g.dim, learn(t, g, upTo(20, 9)))
	for _, seed := range []flashlight.Seed{flashlight.SeedBoth, flashlight.SeedLearned} {
		t.Run(string(seed), func(t *testing.T) { testSteadyState(t, g, seed, seeds) })
	}
}

func testSteadyState(t *testing.T, g *graph, seed flashlight.Seed, seeds *flashlight.Seeds) {
	plan := flashlight.DefaultPlan(20, g.n())
	plan.Rounds, plan.PerRound, plan.Patience, plan.Seed = 4, 40, 9, seed
	q := g.query(1, 20, plan)
	q.Seeds = seeds
	excluded := roaring.New()
	for id := uint32(0); id < 10_000; id += 2 {
		excluded.Add(id)
	}
	q.Excluded = excluded
	m := g.memory()
	s := m.NewSearch()
	var e flashlight.Executor
	var hits []index.Hit
	ask := func() {
		s.Reset()
		var report flashlight.Report
		var err error
		hits, report, err = e.Run(context.Background(), q, s, m, hits[:0])
		if err != nil || len(hits) != 20 || report.Rounds != 4 {
			t.Fatal(len(hits), report, err)
		}
		for _, h := range hits { // as good as all that was scored
			excluded.Remove(h.ID)
		}
	}
	ask()
	ask()
	assert.Zero(t, testing.AllocsPerRun(5, ask))
}
