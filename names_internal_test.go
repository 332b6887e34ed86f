package flashdb

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/internal/vfs"
)

// ring has n nodes of two values each in a collection with an index and a decoder that scores them
// by their number.
func ring(t *testing.T, dir string, n int) (*DB, *Collection) {
	t.Helper()
	ctx := context.Background()
	db, err := Open(dir, &Options{CalibrateTime: -1})
	require.NoError(t, err)
	c, err := db.CreateCollection("c", Schema{Dim: 2})
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, c.Upsert(ctx, Node{Key: fmt.Sprintf("node %d", i), Embedding: []float32{float32(i), 1}, Tags: []string{"t"}}))
	}
	dot, err := decoder.NewDot(2)
	require.NoError(t, err)
	require.NoError(t, c.PutDecoder(ctx, "dot", dot))
	_, err = c.Rebuild(ctx, &RebuildOptions{Force: true})
	require.NoError(t, err)
	return db, c
}

// TestNames gets hits from the generation and the delta, of deleted and of replaced nodes, with and
// without tags and payload.
func TestNames(t *testing.T) {
	ctx := context.Background()
	db, c := ring(t, filepath.Join(t.TempDir(), "db"), 200)
	defer db.Close()
	require.NoError(t, c.Upsert(ctx,
		Node{Key: "fresh", Embedding: []float32{1000, 1}},
		Node{Key: "node 198", Embedding: []float32{900, 1}})) // replaced: its key stays
	_, err := c.Delete(ctx, "node 197", "node 199")
	require.NoError(t, err)
	require.NoError(t, c.Upsert(ctx, Node{Key: "node 197", Embedding: []float32{800, 1}})) // another id

	want := []string{"fresh", "node 198", "node 197", "node 196", "node 195"}
	for _, withNode := range []bool{false, true} {
		res, err := c.PredictVector(ctx, []float32{1, 0}, len(want), &PredictOptions{WithNode: withNode, Plan: &flashlight.Plan{Probes: index.Probes{Share: 1}}})
		require.NoError(t, err)
		var keys []string
		for _, h := range res.Hits {
			keys = append(keys, h.Key)
		}
		require.Equal(t, want, keys)
		require.Equal(t, withNode, res.Hits[4].Tags != nil)
	}
}

// TestNamesLeaveOutWhatWasDeletedMeanwhile deletes a node between the search and the naming of its
// hits.
func TestNamesLeaveOutWhatWasDeletedMeanwhile(t *testing.T) {
	ctx := context.Background()
	db, c := ring(t, filepath.Join(t.TempDir(), "db"), 200)
	defer db.Close()
	q, err := c.begin(ctx, selection{})
	require.NoError(t, err)
	defer q.end()
	q.source = []float32{1, 0}
	dec, err := c.trained("dot")
	require.NoError(t, err)
	q.bind(dec.Decoder)
	_, err = q.answer(ctx, 3, q.plan(PredictOptions{}, 3), answerOptions{})
	require.NoError(t, err)
	_, err = c.Delete(ctx, "node 198")
	require.NoError(t, err)
	for _, withNode := range []bool{false, true} {
		hits, err := q.named(withNode, false)
		require.NoError(t, err)
		require.Len(t, hits, 2)
		require.Equal(t, "node 199", hits[0].Key)
		require.Equal(t, "node 197", hits[1].Key)
	}
}

// swapped hands out the keys of a store in the opposite order.
type swapped struct{ storeRows }

func (s swapped) Keys(ctx context.Context, fn func([]uint32, [][]byte) error) error {
	return s.storeRows.Keys(ctx, func(ids []uint32, keys [][]byte) error {
		slices.Reverse(keys)
		return fn(ids, keys)
	})
}

func TestCheckComparesKeys(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "db")
	db, c := ring(t, dir, 200)
	findings, err := db.Check(ctx)
	require.NoError(t, err)
	require.Empty(t, findings)
	info, err := c.info()
	require.NoError(t, err)
	path := db.path(generationName("c", info.Generation))
	other := path + ".other"
	err = ivf.Build(ctx, vfs.OS(), other, storeRows{c}, ivf.BuildOptions{
		Dim: 2, Collection: c.uid, BuildLSN: info.BuildLSN, Keys: swapped{storeRows{c}},
	})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.NoError(t, os.Rename(other, path))

	db, err = Open(dir, nil)
	require.NoError(t, err)
	defer db.Close()
	findings, err = db.Check(ctx)
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.Contains(t, findings[0], "200 keys are not those of the store, the first has id 0")
}
