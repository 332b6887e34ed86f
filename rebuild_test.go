package flashdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// TestRetiredGenerationStaysForItsReaders rebuilds while two queries run. The file that they read
// is removed when the last one ends.
func TestRetiredGenerationStaysForItsReaders(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", smallDim)
	rng := rand.New(rand.NewPCG(22, 0))
	for i := range 50 {
		require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: fmt.Sprint(i), Embedding: randomVector(rng, smallDim)}))
	}
	rebuild := func() {
		_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 3})
		require.NoError(t, err)
	}
	rebuild()
	files := filepath.Join(d.dir, "index", "c")
	first, err := flashdb.Pin(c)
	require.NoError(t, err)
	second, err := flashdb.Pin(c)
	require.NoError(t, err)
	rebuild()
	rebuild()
	requireNames(t, files, "gen-000001.ivf", "gen-000003.ivf")
	res, err := c.Search(ctx, randomVector(rng, smallDim), 5, nil)
	require.NoError(t, err)
	require.EqualValues(t, 3, res.Stats.Generation)
	first()
	requireNames(t, files, "gen-000001.ivf", "gen-000003.ivf")
	second()
	requireNames(t, files, "gen-000003.ivf")
}

// TestOpenSweepsOrphans makes the files that killed rebuilds and dropped collections leave. Open
// removes them.
func TestOpenSweepsOrphans(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", 2)
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "a", Embedding: []float32{1, 2}}))
	_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 1})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	index := filepath.Join(d.dir, "index")
	served, err := os.ReadFile(filepath.Join(index, "c", "gen-000001.ivf"))
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(index, "dropped"), 0o700))
	for _, orphan := range []string{
		"c/gen-000002.ivf.tmp", "c/gen-000002.ivf", "c/gen-000007.ivf", "dropped/gen-000001.ivf", "dropped/gen-000002.ivf.tmp",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(index, filepath.FromSlash(orphan)), served, 0o600))
	}
	d.open()
	requireNames(t, index, "c")
	requireNames(t, filepath.Join(index, "c"), "gen-000001.ivf")
	c, err = d.Collection("c")
	require.NoError(t, err)
	res, err := c.Search(ctx, []float32{1, 1}, 1, nil)
	require.NoError(t, err)
	assert.EqualValues(t, 1, res.Stats.Generation)
}

// TestMemoryBytes: a rebuild that cannot be held to the budget says what would do, and one that can
// be serves all rows.
func TestMemoryBytes(t *testing.T) {
	ctx := context.Background()
	_, err := flashdb.Open(filepath.Join(t.TempDir(), "db"), &flashdb.Options{MemoryBytes: -1})
	require.ErrorIs(t, err, flashdb.ErrInvalid)
	require.ErrorContains(t, err, "Options.MemoryBytes is -1")

	d := openDB(t)
	c := d.collection("c", 2)
	for i := range 50 {
		require.NoError(t, c.Upsert(ctx, node(fmt.Sprint("n", i), 1, float32(i))))
	}
	require.NoError(t, c.PutDecoder(ctx, "dot", dotDecoder(t, 2)))
	require.NoError(t, d.Close())
	within := func(budget int64) error {
		db, err := flashdb.Open(d.dir, &flashdb.Options{MemoryBytes: budget, CalibrateTime: 20 * time.Millisecond})
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		c, err := db.Collection("c")
		require.NoError(t, err)
		res, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
		if err == nil {
			assert.Equal(t, 50, res.Rows)
			assert.Len(t, res.Calibrations, 1)
		}
		return err
	}
	err = within(1000)
	require.ErrorIs(t, err, flashdb.ErrInvalid)
	require.Regexp(t, `the build holds \d+ kB at least, and the budget for memory is 1 kB: raise Options.MemoryBytes`, err)
	require.NoError(t, within(64e6))
	d.open()
}
