package flashdb_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// everyAnswer asks by the dot product and an MLP for k around the number of nodes, and demands as
// many hits as there are and, where all are asked for, those of the exact scan.
func everyAnswer(t *testing.T, c *flashdb.Collection, source string, n int) {
	t.Helper()
	for _, k := range []int{1, 2, n - 2, n - 1, n, n + 1} {
		if k < 1 {
			continue
		}
		for _, name := range []string{"dot", "mlp"} {
			o := flashdb.PredictOptions{Decoder: name}
			got, err := c.Predict(t.Context(), source, k, &o)
			require.NoError(t, err)
			require.Len(t, got.Hits, min(k, n-1), "%d of %d nodes by %s: %s", k, n, name, got.Stats.Short)
			require.Equal(t, k > n-1, got.Stats.Short != "", "k = %d of %d nodes: %q", k, n, got.Stats.Short)
			o.Exact = true
			exact, err := c.Predict(t.Context(), source, k, &o)
			require.NoError(t, err)
			require.Len(t, exact.Hits, min(k, n-1))
			if k >= n-1 {
				require.Equal(t, exact.Hits, got.Hits, "k = %d of %d nodes by %s", k, n, name)
			}
		}
	}
}

func withDecoders(t *testing.T, db *testDB, dim int) *flashdb.Collection {
	c := db.collection("nodes", dim)
	require.NoError(t, c.PutDecoder(t.Context(), "dot", dotDecoder(t, dim)))
	require.NoError(t, c.PutDecoder(t.Context(), "mlp", randomMLP(t, rand.New(rand.NewPCG(5, 5)), dim, 8)))
	return c
}

// TestFewNodes has no nodes, one, two and a few, before and after an index is forced, and deletes
// them all in the end.
func TestFewNodes(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 31, 32, 33, 65} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			db := openDB(t)
			c := withDecoders(t, db, 3)
			if n > 0 {
				fillRandom(t, c, rand.New(rand.NewPCG(6, uint64(n))), n)
				everyAnswer(t, c, "n0", n)
			}
			res, err := c.Rebuild(t.Context(), &flashdb.RebuildOptions{Force: true, CalibrateTime: -1})
			require.NoError(t, err)
			require.Equal(t, n > 0, res.Built, "%s", res.Reason)
			if n == 0 {
				empty(t, c)
				return
			}
			everyAnswer(t, c, "n0", n)
			for i := range n {
				_, err := c.Delete(t.Context(), fmt.Sprintf("n%d", i))
				require.NoError(t, err)
				if left := n - i - 1; left == 1 || left == 2 || left == 32 {
					everyAnswer(t, c, fmt.Sprintf("n%d", i+1), left)
				}
			}
			empty(t, c)
			res, err = c.Rebuild(t.Context(), &flashdb.RebuildOptions{Force: true, CalibrateTime: -1})
			require.NoError(t, err)
			assert.False(t, res.Built)
			empty(t, c)
			fillRandom(t, c, rand.New(rand.NewPCG(7, uint64(n))), n)
			everyAnswer(t, c, "n0", n)
		})
	}
}

// empty demands that there is nothing to be found.
func empty(t *testing.T, c *flashdb.Collection) {
	t.Helper()
	_, err := c.Predict(t.Context(), "n0", 5, &flashdb.PredictOptions{Decoder: "dot"})
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	for _, name := range []string{"dot", "mlp"} {
		res, err := c.PredictVector(t.Context(), make([]float32, c.Schema().Dim), 5, &flashdb.PredictOptions{Decoder: name})
		require.NoError(t, err)
		require.Empty(t, res.Hits)
		require.NotEmpty(t, res.Stats.Short)
	}
}

// TestIndexThreshold rebuilds with as many nodes as make the difference, and crosses it by upserts
// and deletes.
func TestIndexThreshold(t *testing.T) {
	computes(t)
	const dim, least = 2, 20_000
	db := openDB(t)
	c := withDecoders(t, db, dim)
	rng := rand.New(rand.NewPCG(8, 8))
	fillRandom(t, c, rng, least-1)
	one := func(i int) {
		t.Helper()
		require.NoError(t, c.Upsert(t.Context(), flashdb.Node{Key: fmt.Sprintf("n%d", i), Embedding: randomVector(rng, dim)}))
	}
	rebuild := func(built bool, reason string) {
		t.Helper()
		res, err := c.Rebuild(t.Context(), &flashdb.RebuildOptions{CalibrateTime: -1})
		require.NoError(t, err)
		require.Equal(t, built, res.Built, "%s", res.Reason)
		require.Equal(t, reason, res.Reason)
	}
	// served demands a generation of so many rows, and answers of all nodes.
	served := func(nodes, generation, rows int) {
		t.Helper()
		stats, err := db.Stats(t.Context())
		require.NoError(t, err)
		got := stats.Collections[0]
		assert.EqualValues(t, nodes, got.Nodes)
		assert.EqualValues(t, generation, got.Generation)
		assert.EqualValues(t, rows, got.IndexedRows)
		for _, k := range []int{1, 10, nodes} {
			o := flashdb.PredictOptions{Decoder: "dot"}
			res, err := c.Predict(t.Context(), "n5", k, &o)
			require.NoError(t, err)
			require.EqualValues(t, generation, res.Stats.Generation)
			require.Len(t, res.Hits, min(k, nodes-1))
			o.Exact = true
			exact, err := c.Predict(t.Context(), "n5", k, &o)
			require.NoError(t, err)
			if k == nodes || generation == 0 {
				require.True(t, slices.EqualFunc(exact.Hits, res.Hits, sameHit), "the exact scan has other hits")
			}
		}
	}
	rebuild(false, "19999 rows are scanned exactly; an index is built from 20000 rows on, or when forced")
	served(least-1, 0, 0)
	one(least - 1)
	rebuild(true, "")
	served(least, 1, least)
	rebuild(false, "nothing has changed since the last rebuild")
	one(least)
	served(least+1, 1, least)
	rebuild(true, "")
	served(least+1, 2, least+1)
	_, err := c.Delete(t.Context(), "n7", "n8")
	require.NoError(t, err)
	served(least-1, 2, least+1)
	rebuild(true, "")
	served(least-1, 3, least-1) // an index that is there is kept up to date
	one(7)
	rebuild(true, "")
	served(least, 4, least)
}
