package flashdb_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

func TestPlanByHand(t *testing.T) {
	db := openDB(t)
	c := indexed(t, db, 1500)
	const plan = "3 rounds of 40, seed both, 5 anchors from all, probes 60%"
	byHand := flashlight.Plan{
		Rounds: 3, PerRound: 40, Seed: flashlight.SeedBoth, Anchors: 5, AnchorsFrom: flashlight.AnchorsAll,
		Probes: index.Probes{Share: .6},
	}
	for _, tt := range []struct {
		name   string
		growth int
		plan   string
		first  float64 // share of the rows that the first round may visit
	}{
		{"default growth", 0, plan, .2},
		{"over two rounds", 2, plan + " over 2 rounds", .3},
		{"at once", 1, plan + " at once", .6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			byHand.Growth = tt.growth
			res, err := c.Predict(context.Background(), "n1", 10, &flashdb.PredictOptions{Plan: &byHand, Explain: true})
			require.NoError(t, err)
			assert.Equal(t, tt.plan+", patience 2", res.Stats.Plan)
			require.NotEmpty(t, res.Stats.Trace)
			assert.InDelta(t, tt.first, res.Stats.Trace[0].Probes.Share, 1e-9)
		})
	}
}
