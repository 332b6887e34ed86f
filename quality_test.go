package flashdb_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// gated are rebuild options that calibrate for a short time and compare.
func gated() *flashdb.RebuildOptions {
	return &flashdb.RebuildOptions{CalibrateTime: 2 * time.Second}
}

// TestQualityGate rebuilds an index of enough rows with settings of lower recall.
func TestQualityGate(t *testing.T) {
	ctx := context.Background()
	db := openDB(t)
	rng := rand.New(rand.NewPCG(7, 7))
	c := db.collection("papers", 8)
	fillRandom(t, c, rng, 20_010)
	require.NoError(t, c.PutDecoder(ctx, "cites", dotDecoder(t, 8)))
	res, err := c.Rebuild(ctx, gated())
	require.NoError(t, err)
	require.True(t, res.Built)
	require.Len(t, res.Calibrations, 1, "a first build is calibrated, and has nothing to be compared with")
	assert.Equal(t, uint64(1), res.Calibrations[0].Generation)
	served, err := c.Predict(ctx, "n1", 10, &flashdb.PredictOptions{Recall: .5})
	require.NoError(t, err)
	assert.NotContains(t, served.Stats.Plan, "uncalibrated")

	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "new", Embedding: randomVector(rng, 8)}))
	poor := gated()
	poor.OmitRows, poor.Lists = true, 3 // ranked by codes alone
	_, err = c.Rebuild(ctx, poor)
	require.ErrorIs(t, err, flashdb.ErrQuality)
	assert.ErrorContains(t, err, "generation 1 stays served")
	files, err := os.ReadDir(filepath.Join(db.dir, "index", "papers"))
	require.NoError(t, err)
	require.Len(t, files, 1, "what was refused is gone")
	again, err := c.Predict(ctx, "n1", 10, &flashdb.PredictOptions{Recall: .5})
	require.NoError(t, err)
	assert.Equal(t, uint64(1), again.Stats.Generation)
	assert.Equal(t, served.Stats.Plan, again.Stats.Plan, "its calibration holds on")

	poor.Tolerance = 1
	res, err = c.Rebuild(ctx, poor)
	require.NoError(t, err)
	assert.Equal(t, uint64(2), res.Generation)
	fresh, err := c.Predict(ctx, "n1", 10, &flashdb.PredictOptions{Recall: .01})
	require.NoError(t, err)
	assert.NotContains(t, fresh.Stats.Plan, "uncalibrated", "the calibration was published with the index")
}

func TestDrift(t *testing.T) {
	ctx := context.Background()
	db := openDB(t)
	rng := rand.New(rand.NewPCG(7, 7))
	c := db.collection("papers", 8)
	fillRandom(t, c, rng, 20_010)
	stats := func() (flashdb.Stats, flashdb.CollectionStats) {
		s, err := db.Stats(ctx)
		require.NoError(t, err)
		return s, s.Collections[0]
	}
	drift := func() flashdb.Drift {
		_, s := stats()
		return s.Drift
	}
	assert.Zero(t, drift(), "without an index there is none")
	_, err := c.Rebuild(ctx, nil)
	require.NoError(t, err)
	assert.Zero(t, drift())
	all, s := stats()
	assert.Equal(t, all.DurableLSN, s.BuildLSN, "the index holds every batch")
	assert.False(t, s.Written.IsZero())

	_, err = c.Delete(ctx, "n0", "n1", "n2")
	require.NoError(t, err)
	far := randomVector(rng, 8)
	for i := range far {
		far[i] *= 10
	}
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "n3", Embedding: far}, flashdb.Node{Key: "new", Embedding: far}))
	d := drift()
	assert.Equal(t, uint64(4), d.Dead, "three deleted, one replaced")
	_, s = stats()
	assert.Equal(t, uint64(2), s.DeltaRows)
	assert.Equal(t, uint64(20_010), s.IndexedRows)
	assert.LessOrEqual(t, 20_010, s.Lists*s.LargestList)
	assert.Equal(t, all.DurableLSN+2, d.OldestLSN, "the batch after that of the deletions")
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "newer", Embedding: far}))
	assert.Equal(t, d.OldestLSN, drift().OldestLSN)
	_, err = c.Delete(ctx, "newer")
	require.NoError(t, err)
	assert.InDelta(t, 5.0/20_010, d.Moved, 1e-9)
	assert.Greater(t, d.Residual, 3.0, "the new rows lie far out")

	res, err := c.Rebuild(ctx, &flashdb.RebuildOptions{MinDrift: .01})
	require.NoError(t, err)
	assert.False(t, res.Built)
	assert.Equal(t, "0.025% of the rows moved since the last rebuild, less than 1%", res.Reason)
	res, err = c.Rebuild(ctx, &flashdb.RebuildOptions{MinDrift: .0002})
	require.NoError(t, err)
	assert.True(t, res.Built)
	assert.Zero(t, drift().Moved)

	_, err = c.Rebuild(ctx, &flashdb.RebuildOptions{MinDrift: -1, Tolerance: 2})
	require.ErrorIs(t, err, flashdb.ErrInvalid)
	assert.ErrorContains(t, err, "tolerance 2")
	assert.ErrorContains(t, err, "drift -1")
}

// TestRebuildCalibratesDecodersPutMeanwhile replaces one decoder and adds another while the first
// is being calibrated on the new generation.
func TestRebuildCalibratesDecodersPutMeanwhile(t *testing.T) {
	ctx := context.Background()
	db := openDB(t)
	c := indexed(t, db, 1500)
	rng := rand.New(rand.NewPCG(11, 11))
	put := false
	o := gated()
	o.Force = true
	o.CalibrateTime = 100 * time.Millisecond
	o.Progress = func(stage string, _, _ int64) {
		if put || stage != "calibrate cites" {
			return
		}
		put = true
		assert.NoError(t, c.PutDecoder(ctx, "cites", randomMLP(t, rng, 16, 8)))
		assert.NoError(t, c.PutDecoder(ctx, "likes", randomMLP(t, rng, 16, 8)))
	}
	res, err := c.Rebuild(ctx, o)
	require.NoError(t, err)
	require.True(t, put)
	require.Len(t, res.Calibrations, 2, "of the new decoders, once each")
	for i, name := range []string{"cites", "likes"} {
		assert.Equal(t, name, res.Calibrations[i].Decoder)
		assert.Equal(t, res.Generation, res.Calibrations[i].Generation)
		got, err := c.Predict(ctx, "n1", 10, &flashdb.PredictOptions{Decoder: name})
		require.NoError(t, err)
		assert.NotContains(t, got.Stats.Plan, "uncalibrated")
	}
}
