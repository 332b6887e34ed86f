package flashdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

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
