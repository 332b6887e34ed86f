package flashdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// TestFilteredScans compares the scan of the rows that match a filter with the scores of all rows:
// with an index, with a delta beside it, and with an index without rows.
func TestFilteredScans(t *testing.T) {
	ctx := context.Background()
	for _, omit := range []bool{false, true} {
		t.Run(fmt.Sprintf("omit rows %v", omit), func(t *testing.T) {
			db := openDB(t)
			rng := rand.New(rand.NewPCG(5, 5))
			c := db.collection("papers", 8)
			fillRandom(t, c, rng, 3000)
			require.NoError(t, c.PutDecoder(ctx, "cites", randomMLP(t, rng, 8, 16)))
			check := func() {
				t.Helper()
				all, err := c.Predict(ctx, "n1", 3000, &flashdb.PredictOptions{Exact: true, WithNode: true})
				require.NoError(t, err)
				var want []flashdb.Hit
				for _, h := range all.Hits {
					if len(h.Tags) > 0 && h.Tags[0] == "t3" {
						want = append(want, h)
					}
				}
				require.NotEmpty(t, want)
				got, err := c.Predict(ctx, "n1", 3000, &flashdb.PredictOptions{Exact: true, WithNode: true, Filter: "t3"})
				require.NoError(t, err)
				assert.Equal(t, want, got.Hits)
				assert.Equal(t, flashdb.StopExact, got.Stats.Stop)
				assert.Equal(t, len(want), got.Stats.RowsScored, "no other rows are scored")
			}
			check()
			_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, OmitRows: omit})
			require.NoError(t, err)
			check()
			require.NoError(t, c.Upsert(ctx,
				flashdb.Node{Key: "n3", Embedding: randomVector(rng, 8), Tags: []string{"t3"}},
				flashdb.Node{Key: "new", Embedding: randomVector(rng, 8), Tags: []string{"t3"}}))
			_, err = c.Delete(ctx, "n10")
			require.NoError(t, err)
			check()
			_, err = c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, OmitRows: omit})
			require.NoError(t, err)
			check()
		})
	}
}

// TestFilteredPlans asks for a recall with filters that few or many nodes match. There are always
// as many hits as possible, and the plan accounts for the filter.
func TestFilteredPlans(t *testing.T) {
	ctx := context.Background()
	db := openDB(t)
	rng := rand.New(rand.NewPCG(5, 5))
	c := db.collection("papers", 8)
	const n = 24_000
	nodes := make([]flashdb.Node, n)
	for i := range nodes {
		nodes[i] = flashdb.Node{Key: fmt.Sprint(i), Embedding: randomVector(rng, 8)}
		for _, every := range []int{2, 4, 300, 24_000} {
			if i%every == 0 {
				nodes[i].Tags = append(nodes[i].Tags, fmt.Sprintf("every%d", every))
			}
		}
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	_, err := c.Rebuild(ctx, nil)
	require.NoError(t, err)
	require.NoError(t, c.PutDecoder(ctx, "cites", dotDecoder(t, 8)))
	_, err = c.Calibrate(ctx, &quick)
	require.NoError(t, err)
	for _, tt := range []struct {
		filter string
		hits   int
		plan   string
	}{
		{"every2", 10, "for recall 0.8"},
		{"every4", 10, "for recall 0.8"},
		{"every300", 10, "exact: the filter keeps 80 nodes"},
		{"every24000", 0, "exact: the filter keeps 1 nodes"}, // the source itself
		{"nobody", 0, "exact: the filter keeps 0 nodes"},
	} {
		t.Run(tt.filter, func(t *testing.T) {
			res, err := c.Predict(ctx, "0", 10, &flashdb.PredictOptions{Recall: .8, Filter: tt.filter, WithNode: true})
			require.NoError(t, err)
			require.Len(t, res.Hits, tt.hits)
			assert.Contains(t, res.Stats.Plan, tt.plan)
			for _, h := range res.Hits {
				assert.Contains(t, h.Tags, tt.filter)
			}
			exact, err := c.Predict(ctx, "0", 10, &flashdb.PredictOptions{Exact: true, Filter: tt.filter})
			require.NoError(t, err)
			require.Len(t, exact.Hits, tt.hits)
			found := map[string]bool{}
			for _, h := range res.Hits {
				found[h.Key] = true
			}
			missed := 0
			for _, h := range exact.Hits {
				if !found[h.Key] {
					missed++
				}
			}
			assert.LessOrEqual(t, missed, 2)
		})
	}
}
