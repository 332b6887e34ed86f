package flashdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// TestVerify compares what Verify says is missing with an exact answer, for a plan that visits too
// little, with rows newer than the index.
func TestVerify(t *testing.T) {
	ctx := context.Background()
	c, _ := batchCollection(t, 3000)
	_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 100})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 5 {
		require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: fmt.Sprint("new", i), Embedding: randomVector(rng, 4)}))
	}
	exclude := []string{"7", "8"}
	missedSome := false
	for source := range 20 {
		key := fmt.Sprint(source)
		exact, err := c.Predict(ctx, key, 40, &flashdb.PredictOptions{Exact: true, Exclude: exclude})
		require.NoError(t, err)
		poor := flashdb.PredictOptions{Plan: &flashlight.Plan{Rounds: 1, PerRound: 40, Probes: index.Probes{Lists: 4}}, Exclude: exclude, Verify: true}
		res, err := c.Predict(ctx, key, 40, &poor)
		require.NoError(t, err)
		v := res.Stats.Verification
		require.NotNil(t, v)

		found := map[string]bool{}
		for _, h := range res.Hits {
			found[h.Key] = true
		}
		var missed []string
		for _, m := range v.Missed {
			missed = append(missed, m.Key)
			assert.Equal(t, exact.Hits[m.Rank-1].Key, m.Key)
			assert.Equal(t, exact.Hits[m.Rank-1].Score, m.Score)
			assert.Less(t, m.List, 100)
			missedSome = missedSome || !m.Visited
		}
		var want []string
		for _, h := range exact.Hits {
			if !found[h.Key] {
				want = append(want, h.Key)
			}
		}
		assert.Equal(t, want, missed)
		assert.InDelta(t, 1-float64(len(want))/40, v.Recall, 1e-12)

		poor.Plan = &flashlight.Plan{Probes: index.Probes{Share: 1}, PerRound: 3000}
		res, err = c.Predict(ctx, key, 40, &poor)
		require.NoError(t, err)
		assert.Empty(t, res.Stats.Verification.Missed)
		assert.Equal(t, 1.0, res.Stats.Verification.Recall)
	}
	assert.True(t, missedSome, "four of a hundred lists hold it all: the test shows nothing")
}
