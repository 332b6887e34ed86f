package flashdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
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

// TestCompactAfterDeletingMost deletes nine of ten nodes and compacts: each kind of file shrinks
// accordingly, and the index still finds what the scan finds.
func TestCompactAfterDeletingMost(t *testing.T) {
	const dim, n, k = 32, 6000, 10
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", dim)
	rng := rand.New(rand.NewPCG(3, 9))
	require.NoError(t, c.PutDecoder(ctx, "dot", dotDecoder(t, dim)))
	for from := 0; from < n; from += 1000 {
		var nodes []flashdb.Node
		for i := from; i < from+1000; i++ {
			nodes = append(nodes, flashdb.Node{Key: fmt.Sprintf("n%d", i), Embedding: randomVector(rng, dim), Payload: make([]byte, 64)})
		}
		require.NoError(t, c.Upsert(ctx, nodes...))
	}
	dropped := d.collection("dropped", dim)
	require.NoError(t, dropped.Upsert(ctx, flashdb.Node{Key: "x", Embedding: make([]float32, dim), Payload: make([]byte, 1<<20)}))
	require.NoError(t, d.DropCollection(ctx, "dropped"))
	_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
	require.NoError(t, err)
	before := recallOf(t, c, n, k)
	var gone []string
	for i := range n {
		if i%10 != 0 {
			gone = append(gone, fmt.Sprintf("n%d", i))
		}
	}
	deleted, err := c.Delete(ctx, gone...)
	require.NoError(t, err)
	require.Equal(t, len(gone), deleted)

	first, err := d.Compact(ctx, nil)
	require.NoError(t, err)
	assert.Empty(t, first.Rebuilt)
	assert.Equal(t, first.Before.Index, first.After.Index)
	assert.Less(t, first.After.Store, first.Before.Store/3) // 1 MiB of it is room that bbolt allocates to grow into
	assert.Less(t, first.After.WAL, int64(100))
	second, err := d.Compact(ctx, &flashdb.CompactOptions{Rebuild: true})
	require.NoError(t, err)
	assert.Equal(t, []string{"c"}, second.Rebuilt)
	assert.Less(t, second.After.Index, first.After.Index/5)
	t.Logf("store %d -> %d, index %d -> %d", first.Before.Store, first.After.Store, first.Before.Index, second.After.Index)

	after := recallOf(t, c, n, k)
	t.Logf("recall %.3f -> %.3f", before, after)
	assert.GreaterOrEqual(t, after, before-0.02)
	assert.Greater(t, after, 0.95)

	// Ids are not reused.
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "later", Embedding: make([]float32, dim)}))
	last, err := c.RowKeys(ctx, n-1, 5)
	require.NoError(t, err)
	assert.Equal(t, []string{"", "later"}, last)
	d.reopen()
}

// recallOf is the share of the exact top k that the index finds, for sources among n nodes.
func recallOf(t *testing.T, c *flashdb.Collection, n, k int) float64 {
	t.Helper()
	ctx := context.Background()
	found, want := 0, 0
	for i := 0; i < n; i += 200 {
		key := fmt.Sprintf("n%d", i)
		exact, err := c.Predict(ctx, key, k, &flashdb.PredictOptions{Exact: true})
		require.NoError(t, err)
		got, err := c.Predict(ctx, key, k, &flashdb.PredictOptions{Plan: &flashlight.Plan{Probes: index.Probes{Share: 1}}})
		require.NoError(t, err)
		in := map[string]bool{}
		for _, h := range got.Hits {
			in[h.Key] = true
		}
		for _, h := range exact.Hits {
			want++
			if in[h.Key] {
				found++
			}
		}
	}
	require.Equal(t, n/200*k, want)
	return float64(found) / float64(want)
}

func TestCompactOfAnEmptyCollectionDropsItsIndex(t *testing.T) {
	ctx := context.Background()
	for _, opened := range []bool{false, true} {
		d := openDB(t)
		c := d.collection("c", 2)
		require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "a", Embedding: []float32{1, 2}}))
		_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 1})
		require.NoError(t, err)
		if opened {
			_, err := c.Search(ctx, []float32{1, 1}, 1, nil)
			require.NoError(t, err)
		}
		_, err = c.Delete(ctx, "a")
		require.NoError(t, err)
		res, err := d.Compact(ctx, &flashdb.CompactOptions{Rebuild: true})
		require.NoError(t, err)
		assert.Zero(t, res.After.Index)
		require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "b", Embedding: []float32{1, 2}}))
		got, err := c.Search(ctx, []float32{1, 1}, 2, nil)
		require.NoError(t, err)
		require.Len(t, got.Hits, 1)
		_, err = c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 1})
		require.NoError(t, err)
		d.reopen()
		requireNames(t, filepath.Join(d.dir, "index", "c"), "gen-000001.ivf")
	}
}

// TestCompactBesideEverything compacts while writes, queries, rebuilds and backups run.
func TestCompactBesideEverything(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	fill(t, d)
	c, err := d.Collection("papers")
	require.NoError(t, err)
	row := make([]float32, 8)
	var stop atomic.Bool
	var work sync.WaitGroup
	for w := range 2 {
		work.Go(func() {
			for i := 0; !stop.Load(); i++ {
				key := fmt.Sprintf("w%d %d", w, i%50)
				assert.NoError(t, c.Upsert(ctx, flashdb.Node{Key: key, Embedding: row}))
				_, err := c.Get(ctx, key)
				assert.NoError(t, err)
				if i%10 == 9 {
					_, err := c.Delete(ctx, key)
					assert.NoError(t, err)
				}
			}
		})
	}
	work.Go(func() {
		for !stop.Load() {
			_, err := c.Predict(ctx, "p1", 5, nil)
			assert.NoError(t, err)
			_, err = c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 2})
			assert.NoError(t, err)
		}
	})
	for i := range 8 {
		_, err := d.Compact(ctx, &flashdb.CompactOptions{Rebuild: i%2 == 0})
		require.NoError(t, err)
		restoreDB(t, backUp(t, d.DB, nil))
	}
	stop.Store(true)
	work.Wait()
}

// TestEveryFailureOfACompact fails each operation of a compaction once. The database still works,
// and has all its contents after a reopen.
func TestEveryFailureOfACompact(t *testing.T) {
	ctx := context.Background()
	d := &testDB{t: t, dir: filepath.Join(t.TempDir(), "db")}
	d.open()
	fill(t, d)
	before := contentsOf(t, d.DB)
	require.NoError(t, d.Close())
	for n := int64(1); ; n++ {
		var b breaker
		db, err := flashdb.OpenOn(vfs.Faulty(vfs.OS(), b.inject), d.dir, &flashdb.Options{CalibrateTime: -1})
		require.NoError(t, err)
		b.arm(n)
		_, err = db.Compact(ctx, &flashdb.CompactOptions{Rebuild: true})
		op := b.tripped()
		if op != nil {
			_ = db.Close() // the failure may keep it from flushing
			d.open()
			require.Equal(t, before, contentsOf(t, d.DB), "failed at %s", op)
			d.checkAndClose()
			continue
		}
		require.NoError(t, err)
		require.Greater(t, n, int64(5))
		require.NoError(t, db.Close())
		break
	}
	d.open()
	require.Equal(t, before, contentsOf(t, d.DB))
	d.checkAndClose()
}
