package flashdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// fillRandom stores n random nodes.
func fillRandom(t testing.TB, c *flashdb.Collection, rng *rand.Rand, n int) {
	t.Helper()
	nodes := make([]flashdb.Node, n)
	for i := range nodes {
		nodes[i] = flashdb.Node{Key: fmt.Sprintf("n%d", i), Embedding: randomVector(rng, c.Schema().Dim), Tags: []string{fmt.Sprintf("t%d", i%7)}}
	}
	require.NoError(t, c.Upsert(context.Background(), nodes...))
}

// indexed returns a collection with an index and an MLP decoder.
func indexed(t testing.TB, db *testDB, n int) *flashdb.Collection {
	t.Helper()
	return indexedWith(t, db, n, 64)
}

// costly is the width of a decoder with which the exact scan of a few thousand rows takes longer
// than any small plan.
const costly = 256

// indexedWith returns a collection of n random nodes with an index and a decoder of two layers of
// that width.
func indexedWith(t testing.TB, db *testDB, n, hidden int) *flashdb.Collection {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	c := db.collection("papers", 16)
	fillRandom(t, c, rng, n)
	_, err := c.Rebuild(context.Background(), &flashdb.RebuildOptions{Force: true})
	require.NoError(t, err)
	require.NoError(t, c.PutDecoder(context.Background(), "cites", randomMLP(t, rng, 16, hidden)))
	return c
}

// calibratedByUsers calibrates the decoder of c with n random nodes of a collection of users as
// sources.
func calibratedByUsers(t testing.TB, db *testDB, c *flashdb.Collection, n int, o flashdb.CalibrateOptions) []flashdb.Calibration {
	t.Helper()
	fillRandom(t, db.collection("users", 16), rand.New(rand.NewPCG(3, 3)), n)
	o.SourceCollection = "users"
	all, err := c.Calibrate(context.Background(), &o)
	require.NoError(t, err)
	return all
}

// quick holds options of a calibration with few sources and enough time for them, also under the
// race detector.
var quick = flashdb.CalibrateOptions{Sources: 12, Time: 20 * time.Second}

func TestCalibrate(t *testing.T) {
	ctx := context.Background()
	db := openDB(t)
	c := indexed(t, db, 4000)
	plan := func(recall float64, k int) flashdb.QueryStats {
		res, err := c.Predict(ctx, "n1", k, &flashdb.PredictOptions{Recall: recall})
		require.NoError(t, err)
		require.Len(t, res.Hits, k)
		return res.Stats
	}
	assert.Contains(t, plan(0, 10).Plan, "uncalibrated: ")
	assert.Contains(t, plan(.9, 10).Plan, "exact: no calibration")

	all, err := c.Calibrate(ctx, &quick)
	require.NoError(t, err)
	require.Len(t, all, 1)
	got := all[0]
	assert.Equal(t, "cites", got.Decoder)
	assert.Equal(t, "papers", got.SourceCollection)
	assert.Equal(t, uint64(1), got.Generation)
	assert.Equal(t, 4000, got.Rows)
	assert.Positive(t, got.Exact)
	require.Len(t, got.Frontiers, 2)
	for i, k := range []int{10, 100} {
		f := got.Frontiers[i]
		require.Equal(t, k, f.K)
		for _, p := range f.Plans {
			// This plan, or one that serves the poorest sources better.
			p, ok := f.Choose(p.Bound)
			require.True(t, ok)
			stats := plan(p.Bound, k)
			assert.Contains(t, stats.Plan, "calibrated for recall")
			assert.Contains(t, stats.Plan, p.Plan.String())
			assert.NotEqual(t, flashdb.StopExact, stats.Stop)
		}
	}
	assert.Contains(t, plan(1, 10).Plan, "no plan reached recall 1 on", "nobody can promise all")
	assert.Equal(t, 3999, plan(1, 10).RowsScored)

	before := plan(.5, 10).Plan
	db.reopen()
	c, err = db.Collection("papers")
	require.NoError(t, err)
	assert.Equal(t, before, plan(.5, 10).Plan, "it is durable")

	require.NoError(t, c.PutDecoder(ctx, "cites", randomMLP(t, rand.New(rand.NewPCG(8, 8)), 16, 8)))
	assert.Contains(t, plan(0, 10).Plan, "uncalibrated", "a calibration goes with its decoder")
}

// With too few sources, no sample could show the default recall. That is no reason to scan exactly,
// unless the caller sets Recall.
func TestTooFewSources(t *testing.T) {
	computes(t)
	ctx := context.Background()
	db := openDB(t)
	c := indexedWith(t, db, 4000, costly)
	few := quick
	few.Sources = 3
	all, err := c.Calibrate(ctx, &few)
	require.NoError(t, err)
	require.NotEmpty(t, all[0].Frontiers[1].Plans)
	res, err := c.Predict(ctx, "n1", 100, nil)
	require.NoError(t, err)
	assert.Contains(t, res.Stats.Plan, "default, as 3 sources are too few to measure recall 0.98: ")
	assert.Positive(t, res.Stats.Rounds)
	res, err = c.Predict(ctx, "n1", 100, &flashdb.PredictOptions{Recall: .98})
	require.NoError(t, err)
	assert.Contains(t, res.Stats.Plan, "exact: no plan reached recall 0.98 on 3 sources")
}

func TestPutDecoderCalibrates(t *testing.T) {
	ctx := context.Background()
	db := openDB(t)
	indexed(t, db, 1500)
	require.NoError(t, db.Close())
	var err error
	db.DB, err = flashdb.Open(db.dir, &flashdb.Options{CalibrateTime: 50 * time.Millisecond})
	require.NoError(t, err)
	c, err := db.Collection("papers")
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(9, 9))
	require.NoError(t, c.PutDecoder(ctx, "cites", randomMLP(t, rng, 16, 64)))
	res, err := c.Predict(ctx, "n1", 10, nil)
	require.NoError(t, err)
	assert.NotContains(t, res.Stats.Plan, "uncalibrated")

	done, cancel := context.WithCancel(ctx)
	cancel()
	assert.ErrorIs(t, c.PutDecoder(done, "more", randomMLP(t, rng, 16, 64)), context.Canceled, "nothing was stored")
}

func TestCalibrateSourcesOfAnotherCollection(t *testing.T) {
	computes(t)
	ctx := context.Background()
	db := openDB(t)
	c := indexed(t, db, 1500)
	all := calibratedByUsers(t, db, c, 50, quick)
	assert.Equal(t, "users", all[0].SourceCollection)

	all, err := c.Calibrate(ctx, &quick)
	require.NoError(t, err)
	assert.Equal(t, "users", all[0].SourceCollection, "it is remembered")
	o := quick
	o.SourceCollection = "papers"
	all, err = c.Calibrate(ctx, &o)
	require.NoError(t, err)
	assert.Equal(t, "papers", all[0].SourceCollection)

	o.SourceCollection = "users"
	_, err = c.Calibrate(ctx, &o)
	require.NoError(t, err)
	require.NoError(t, db.DropCollection(ctx, "users"))
	all, err = c.Calibrate(ctx, &quick)
	require.NoError(t, err, "what is gone does not stop a nightly job")
	assert.Equal(t, "papers", all[0].SourceCollection)
}

func TestCalibrateRefuses(t *testing.T) {
	ctx := context.Background()
	db := openDB(t)
	c := indexed(t, db, 1500)
	narrow := db.collection("narrow", 3)
	fillRandom(t, narrow, rand.New(rand.NewPCG(3, 3)), 5)
	done, cancel := context.WithCancel(ctx)
	cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		c    *flashdb.Collection
		opts flashdb.CalibrateOptions
		is   error
		text string
	}{
		{"no index", ctx, narrow, quick, flashdb.ErrInvalid, "no index is served"},
		{"no such decoder", ctx, c, flashdb.CalibrateOptions{Decoder: "x"}, flashdb.ErrNotFound, `decoder "x"`},
		{"no such sources", ctx, c, flashdb.CalibrateOptions{SourceCollection: "x"}, flashdb.ErrNotFound, `"x"`},
		{"sources of another width", ctx, c, flashdb.CalibrateOptions{SourceCollection: "narrow"}, flashdb.ErrDim, "3 values"},
		{"bad options", ctx, c, flashdb.CalibrateOptions{Sources: -1, Time: -1}, flashdb.ErrInvalid, "time is -1ns"},
		{"cancelled", done, c, quick, context.Canceled, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.c.Calibrate(tt.ctx, &tt.opts)
			require.ErrorIs(t, err, tt.is)
			assert.ErrorContains(t, err, tt.text)
		})
	}
}
