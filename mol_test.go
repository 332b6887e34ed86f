package flashdb_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
)

// TestMixtureOfLogits checks that a mixture of logits is stored, calibrated with learned seeds, and
// queried like any other decoder. The seed components makes a query for each pair.
func TestMixtureOfLogits(t *testing.T) {
	computes(t)
	ctx := context.Background()
	db := openDB(t)
	c := indexed(t, db, 4000)
	rng := rand.New(rand.NewPCG(3, 3))
	tensors := map[string]decoder.Tensor{}
	layers := func(key string, out, in int) []decoder.LayerSpec {
		data := make([]float32, out*in)
		for i := range data {
			data[i] = float32(rng.NormFloat64() / 2)
		}
		tensors[key] = decoder.Tensor{Shape: []int{out, in}, Data: data}
		return []decoder.LayerSpec{{Weight: key}}
	}
	mixture, err := decoder.New(decoder.Spec{Kind: decoder.MoL, Dim: 16, Mixture: &decoder.MixtureSpec{
		Source:    decoder.SideSpec{Components: 3, Layers: layers("f", 24, 16)},
		Candidate: decoder.SideSpec{Components: 2, Layers: layers("g", 16, 16)},
		Gate:      decoder.GateSpec{Combine: decoder.CombineSum, Logits: layers("l", 6, 6)},
	}}, tensors)
	require.NoError(t, err)
	require.NoError(t, c.PutDecoder(ctx, "mixture", mixture))
	require.NoError(t, c.DropDecoder(ctx, "cites"))
	all, err := c.Calibrate(ctx, &learnable)
	require.NoError(t, err)
	require.Positive(t, all[0].Seeds)

	db.reopen()
	c, err = db.Collection("papers")
	require.NoError(t, err)
	exact, err := c.Predict(ctx, "n1", 4000, &flashdb.PredictOptions{Exact: true})
	require.NoError(t, err)
	scores := map[string]float32{}
	for _, h := range exact.Hits {
		scores[h.Key] = h.Score
	}
	for seed, queries := range map[flashlight.Seed]int{flashlight.SeedOnes: 1, flashlight.SeedLearned: 1, flashlight.SeedComponents: 6} {
		res, err := c.Predict(ctx, "n1", 10, &flashdb.PredictOptions{Plan: &flashlight.Plan{Seed: seed, Rounds: 6, PerRound: 200}, Explain: true})
		require.NoError(t, err)
		require.Len(t, res.Hits, 10)
		for _, h := range res.Hits {
			assert.Equal(t, scores[h.Key], h.Score, "seed %s", seed)
		}
		aims := res.Stats.Trace[0].Aims
		require.Len(t, aims, queries)
		assert.Equal(t, string(seed), aims[0].From)
	}
}
