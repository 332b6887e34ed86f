package flashdb_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
)

// TestTraceNamesNodes: a trace says by key at which nodes the decoder was linearised.
func TestTraceNamesNodes(t *testing.T) {
	ctx := context.Background()
	c := indexed(t, openDB(t), 4000)
	res, err := c.Predict(ctx, "n1", 10, &flashdb.PredictOptions{Plan: &flashlight.Plan{Rounds: 3, PerRound: 50, Anchors: 5}, Explain: true})
	require.NoError(t, err)
	rounds := res.Stats.Trace
	require.Len(t, rounds, res.Stats.Rounds)
	scored := 0
	for i, r := range rounds {
		scored += r.Scored
		for _, aim := range r.Aims {
			if i == 0 {
				assert.Empty(t, aim.Anchors)
				continue
			}
			assert.Len(t, aim.Anchors, 5)
			for _, key := range aim.Anchors {
				_, err := c.Get(ctx, key)
				require.NoError(t, err)
			}
		}
	}
	assert.Equal(t, res.Stats.RowsScored, scored)
	last := rounds[len(rounds)-1].Aims
	best := last[len(last)-1].Anchors[0] // of all rounds
	assert.Contains(t, []string{res.Hits[0].Key, res.Hits[1].Key, res.Hits[2].Key}, best)
}
