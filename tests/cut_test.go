package tests

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
)

// served opens an image whose index is being served, and returns where its events go.
func served(t *testing.T, im *image) (db *flashdb.DB, c *flashdb.Collection, dir string, events *bytes.Buffer) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "d.flash")
	im.write(t, dir, "", nil)
	events = &bytes.Buffer{}
	db, err := flashdb.Open(dir, &flashdb.Options{Logger: slog.New(slog.NewTextHandler(events, nil)), Workers: 3, CalibrateTime: -1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	c, err = db.Collection("papers")
	require.NoError(t, err)
	res, err := c.Predict(context.Background(), "node1", 5, &flashdb.PredictOptions{Plan: &flashlight.Plan{Rounds: 2}})
	require.NoError(t, err)
	require.Equal(t, uint64(1), res.Stats.Generation)
	return db, c, dir, events
}

// A generation that is cut short while it is served costs an event and the index, and neither an
// answer nor the process.
func TestGenerationCutShort(t *testing.T) {
	ctx := context.Background()
	im := newImage(t, 1500, 7)
	generation := filepath.Join("index", "papers", "gen-000001.ivf")
	exact := &flashdb.PredictOptions{Exact: true}
	for name, opts := range map[string]*flashdb.PredictOptions{"rounds": nil, "exact scan": exact} {
		t.Run(name, func(t *testing.T) {
			db, c, dir, events := served(t, &im)
			want, err := c.Predict(ctx, "node1", 5, exact)
			require.NoError(t, err)
			require.NoError(t, os.Truncate(filepath.Join(dir, generation), 4096))

			got, err := c.Predict(ctx, "node1", 5, opts)
			require.NoError(t, err)
			require.Equal(t, want.Hits, got.Hits)
			require.Zero(t, got.Stats.Generation)
			require.Contains(t, events.String(), "index not usable")
			require.Contains(t, events.String(), "gen-000001.ivf")
			_, err = c.Search(ctx, make([]float32, c.Schema().Dim), 5, nil)
			require.NoError(t, err)
			findings, err := db.Check(ctx)
			require.NoError(t, err)
			require.Len(t, findings, 1)

			rebuilt, err := c.Rebuild(ctx, nil)
			require.NoError(t, err)
			require.True(t, rebuilt.Built, rebuilt.Reason)
			got, err = c.Predict(ctx, "node1", 5, nil)
			require.NoError(t, err)
			require.Equal(t, rebuilt.Generation, got.Stats.Generation)
			findings, err = db.Check(ctx)
			require.NoError(t, err)
			require.Empty(t, findings)
		})
	}
}

// A missing or damaged generation is rebuilt by the next job, however small the collection is.
func TestDamagedGenerationIsRebuilt(t *testing.T) {
	ctx := context.Background()
	im := newImage(t, 300, 7)
	const generation = "index/papers/gen-000001.ivf"
	flipped := bytes.Clone(im.files[generation])
	flipped[len(flipped)-100] ^= 1 // in the rows
	for _, lazy := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "d.flash")
		im.write(t, dir, generation, flipped)
		db, err := flashdb.Open(dir, &flashdb.Options{LazyChecksums: lazy, CalibrateTime: -1})
		require.NoError(t, err)
		c, err := db.Collection("papers")
		require.NoError(t, err)
		res, err := c.Predict(ctx, "node1", 5, &flashdb.PredictOptions{Plan: &flashlight.Plan{Rounds: 1}})
		require.NoError(t, err)
		require.Equal(t, lazy, res.Stats.Generation == 1, "damaged rows are not served unless asked for")
		rebuilt, err := c.Rebuild(ctx, nil)
		require.NoError(t, err)
		require.True(t, rebuilt.Built, rebuilt.Reason)
		again, err := c.Rebuild(ctx, nil)
		require.NoError(t, err)
		require.False(t, again.Built)
		require.NoError(t, db.Close())
	}
}

// A store that is cut short under the process is an error of every read.
func TestStoreCutShort(t *testing.T) {
	ctx := context.Background()
	im := newImage(t, 1500, 7)
	db, c, dir, _ := served(t, &im)
	require.NoError(t, os.Truncate(filepath.Join(dir, "flash.db"), 16<<10))
	_, err := answers(db)
	require.ErrorIs(t, err, flashdb.ErrCorrupt)
	_, err = c.Get(ctx, "node700")
	require.ErrorIs(t, err, flashdb.ErrCorrupt)
	_, err = c.Predict(ctx, "node700", 5, nil)
	require.ErrorIs(t, err, flashdb.ErrCorrupt)
	_, err = c.Score(ctx, "node700", []string{"node701"}, &flashdb.ScoreOptions{Decoder: "mlp"})
	require.ErrorIs(t, err, flashdb.ErrCorrupt)
	assert.ErrorIs(t, c.Upsert(ctx, flashdb.Node{Key: "node700", Embedding: randomVector(rand.New(rand.NewPCG(1, 1)), c.Schema().Dim)}), flashdb.ErrCorrupt)
	findings, err := db.Check(ctx)
	require.True(t, err != nil || len(findings) > 0)
	if err != nil {
		require.ErrorIs(t, err, flashdb.ErrCorrupt)
	}
}

// A generation that is sound by itself, and not of these rows, is found by Check alone.
func TestCheckComparesRows(t *testing.T) {
	ctx := context.Background()
	im, other := newImage(t, 300, 7), newImage(t, 300, 8)
	const generation = "index/papers/gen-000001.ivf"
	dir := filepath.Join(t.TempDir(), "d.flash")
	im.write(t, dir, generation, other.files[generation])
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	defer db.Close()
	findings, err := db.Check(ctx)
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.Contains(t, findings[0], "rows are not those of the store")
}
