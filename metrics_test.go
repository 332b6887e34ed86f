package flashdb_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

func TestMetrics(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", 4)
	begin := d.Metrics() // making a collection is a batch
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "a", Embedding: []float32{1, 0, 0, 0}}, flashdb.Node{Key: "b", Embedding: []float32{0, 1, 0, 0}}))
	require.NoError(t, c.PutDecoder(ctx, "dot", dotDecoder(t, 4)))
	require.Error(t, c.Link(ctx, flashdb.Edge{Source: "a", Target: "nobody"}))

	res, err := c.Predict(ctx, "a", 1, nil)
	require.NoError(t, err)
	_, err = c.Predict(ctx, "nobody", 1, nil)
	require.Error(t, err)
	_, err = c.Search(ctx, []float32{1, 1, 0, 0}, 1, nil)
	require.NoError(t, err)
	_, err = c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
	require.NoError(t, err)
	for res, err := range c.PredictBatch(ctx, []string{"a", "b"}, 1, &flashdb.PredictOptions{Plan: &flashlight.Plan{Probes: index.Probes{Share: 1}}}) {
		require.NoError(t, err)
		assert.Positive(t, res.Stats.CodesScanned)
	}

	m := d.Metrics()
	assert.Equal(t, uint64(2), m.Writes-begin.Writes)
	assert.Equal(t, uint64(1), m.WriteErrors)
	assert.Equal(t, m.Writes, m.WriteSeconds.Count())
	assert.Positive(t, m.WriteSeconds.Sum)
	assert.Equal(t, uint64(3), m.Predicts)
	assert.Equal(t, uint64(1), m.Searches)
	assert.Equal(t, uint64(1), m.QueryErrors)
	assert.Equal(t, uint64(4), m.QuerySeconds.Count())
	assert.Len(t, m.QuerySeconds.Counts, len(m.QuerySeconds.Bounds)+1)
	assert.Equal(t, uint64(2), m.ExactScans, "before the rebuild")
	assert.GreaterOrEqual(t, m.RowsScored, uint64(res.Stats.RowsScored)+2)
	assert.Positive(t, m.CodesScanned)
	assert.Equal(t, uint64(1), m.Rebuilds)
	assert.Zero(t, m.RebuildErrors)
	_, err = json.Marshal(m)
	require.NoError(t, err)
}

// TestHistogramBoundsAreRound compares the bounds with the literals that a monitoring query would
// use.
func TestHistogramBoundsAreRound(t *testing.T) {
	db, err := flashdb.Open(filepath.Join(t.TempDir(), "db"), nil)
	require.NoError(t, err)
	defer func() { assert.NoError(t, db.Close()) }()
	want := []float64{5e-5, 1e-4, 2e-4, 5e-4, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 50}
	assert.Equal(t, want, db.Metrics().QuerySeconds.Bounds)
	assert.Equal(t, want, db.Metrics().WriteSeconds.Bounds)
}
