package flashdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/vfs"
)

// TestReadsWritesAndRebuildsTogether runs queries beside upserts, deletes and rebuilds. A node that
// is never deleted must always be found, a deleted one never again, and every score must be the
// decoder's.
func TestReadsWritesAndRebuildsTogether(t *testing.T) {
	const dim, stable, rounds = 8, 300, 30
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", dim)
	rng := rand.New(rand.NewPCG(7, 7))
	var nodes []flashdb.Node
	for i := range stable {
		nodes = append(nodes, flashdb.Node{Key: fmt.Sprintf("stable%d", i), Embedding: randomVector(rng, dim)})
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	require.NoError(t, c.PutDecoder(ctx, "mlp", randomMLP(t, rng, dim, 16)))

	var work, readers sync.WaitGroup
	var done atomic.Bool
	var deleted sync.Map // key -> true, stored once the delete was acknowledged
	work.Go(func() {
		rng := rand.New(rand.NewPCG(8, 8))
		for i := range rounds {
			key := fmt.Sprintf("passing%d", i)
			assert.NoError(t, c.Upsert(ctx, flashdb.Node{Key: key, Embedding: randomVector(rng, dim)}))
			n, err := c.Delete(ctx, key)
			assert.NoError(t, err)
			assert.Equal(t, 1, n)
			deleted.Store(key, true)
		}
	})
	work.Go(func() {
		for range rounds / 5 {
			_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 5})
			assert.NoError(t, err)
		}
	})
	all := &flashdb.PredictOptions{Plan: &flashlight.Plan{PerRound: 2 * stable, Probes: index.Probes{Share: 1}}}
	for range 2 {
		readers.Go(func() {
			for !done.Load() {
				var gone []string
				deleted.Range(func(k, _ any) bool { gone = append(gone, k.(string)); return true })
				res, err := c.Predict(ctx, "stable0", 2*stable, all)
				if !assert.NoError(t, err) {
					return
				}
				checkPredicted(t, c, res, gone, stable)
			}
		})
	}
	work.Wait()
	done.Store(true)
	readers.Wait()
}

func checkPredicted(t *testing.T, c *flashdb.Collection, res flashdb.Result, gone []string, stable int) {
	found := map[string]bool{}
	for _, h := range res.Hits {
		assert.False(t, found[h.Key], "%s twice", h.Key)
		found[h.Key] = true
	}
	for _, key := range gone {
		assert.False(t, found[key], "%s was deleted before the query began", key)
	}
	for i := 1; i < stable; i++ {
		assert.True(t, found[fmt.Sprintf("stable%d", i)], "stable%d is missing (%s)", i, res.Stats.Plan)
	}
	stableHits := slices.DeleteFunc(slices.Clone(res.Hits), func(h flashdb.Hit) bool { return h.Key[0] != 's' })
	scored, err := c.Score(context.Background(), "stable0", []string{stableHits[0].Key, stableHits[1].Key}, &flashdb.ScoreOptions{Decoder: "mlp"})
	assert.NoError(t, err)
	for i, h := range scored {
		assert.InDelta(t, h.Score, stableHits[i].Score, 1e-4)
	}
}

// TestFilteredQueriesSeeWholeBatches filters by a tag while a batch gives that tag to an old node
// and to a new one. The answer holds both or neither.
func TestFilteredQueriesSeeWholeBatches(t *testing.T) {
	const dim, batches, asking = 4, 2000, 3
	ctx := context.Background()
	db, err := flashdb.OpenOn(vfs.Unsynced(vfs.OS()), filepath.Join(t.TempDir(), "test.flash"), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	c, err := db.CreateCollection("c", flashdb.Schema{Dim: dim})
	require.NoError(t, err)
	row := []float32{1, 2, 3, 4}
	var there []flashdb.Node
	for i := range batches {
		there = append(there, flashdb.Node{Key: fmt.Sprintf("old%d", i), Embedding: row})
	}
	require.NoError(t, c.Upsert(ctx, there...))
	var now atomic.Int64
	var readers sync.WaitGroup
	ask := func() {
		for i := now.Load(); i < batches; i = now.Load() {
			res, err := c.Search(ctx, row, 5, &flashdb.SearchOptions{Filter: fmt.Sprintf("batch%d", i)})
			if !assert.NoError(t, err) {
				return
			}
			if len(res.Hits) != 0 && !assert.Len(t, res.Hits, 2, "half a batch: %v", res.Hits) {
				return
			}
		}
	}
	for range asking {
		readers.Go(ask)
	}
	for i := range int64(batches) {
		now.Store(i)
		tags := []string{fmt.Sprintf("batch%d", i)}
		require.NoError(t, c.Upsert(ctx,
			flashdb.Node{Key: there[i].Key, Embedding: row, Tags: tags},
			flashdb.Node{Key: fmt.Sprintf("new%d", i), Embedding: row, Tags: tags}))
	}
	now.Store(batches)
	readers.Wait()
}

// TestGroupCommit writes from many goroutines at once. After a reopen every acknowledged batch is
// there as a whole.
func TestGroupCommit(t *testing.T) {
	const writers, batches, size = 16, 8, 5
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", 2)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for b := range batches {
				var nodes []flashdb.Node
				for i := range size {
					nodes = append(nodes, flashdb.Node{Key: fmt.Sprintf("%d/%d/%d", w, b, i), Embedding: []float32{float32(w), float32(b)}})
				}
				assert.NoError(t, c.Upsert(ctx, nodes...))
			}
		})
	}
	wg.Wait()
	d.reopen()
	c, err := d.Collection("c")
	require.NoError(t, err)
	seen := map[string]bool{}
	for key, err := range c.Keys(ctx) {
		require.NoError(t, err)
		require.NotContains(t, seen, key)
		seen[key] = true
	}
	require.Len(t, seen, writers*batches*size)
}

func TestCancelledRebuildLeavesTheServedGeneration(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", 4)
	rng := rand.New(rand.NewPCG(9, 9))
	for i := range 200 {
		require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: fmt.Sprint(i), Embedding: randomVector(rng, 4)}))
	}
	first, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
	require.NoError(t, err)
	require.EqualValues(t, 1, first.Generation)

	cancelled, cancel := context.WithCancel(ctx)
	_, err = c.Rebuild(cancelled, &flashdb.RebuildOptions{Force: true, Progress: func(string, int64, int64) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	stats, err := d.Stats(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, stats.Collections[0].Generation)
	require.EqualValues(t, 200, stats.Collections[0].IndexedRows)
}
