package opensearch_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

// TestLimits goes beyond the limits that OpenSearch has.
func TestLimits(t *testing.T) {
	e, other := open(t), open(t)
	ctx := context.Background()
	v := remote.Version{ID: fmt.Sprintf("%016x", rand.Uint64()), Dim: 3, Norm: 1e-3}
	n := remote.Name{Collection: fmt.Sprintf("Conformance_.%08X-", rand.Uint32()), Version: v.ID}
	require.NoError(t, e.Stage(ctx, n.Collection, v))
	t.Cleanup(func() {
		_, err := other.Count(ctx, n)
		require.NoError(t, err)
		require.NoError(t, e.Drop(ctx, n))
		require.ErrorIs(t, other.Put(ctx, n, []remote.Row{{Key: "x", Vector: make([]float32, 4)}}), flashdb.ErrNotFound)
		names, err := e.Versions(ctx, n.Collection)
		require.NoError(t, err)
		assert.Empty(t, names, "a Put of a process that does not know yet creates no index")
		require.NoError(t, other.Close())
		require.NoError(t, e.Close())
	})
	const count = 10_500
	var rows []remote.Row
	for i := range count { // along a line, as near to each other as small embeddings are
		r, err := v.NewRow(flashdb.Node{Key: fmt.Sprint("k", i), Embedding: []float32{float32(i) * 5e-8, 0, 0}, Tags: []string{fmt.Sprint("t", i)}})
		require.NoError(t, err)
		rows = append(rows, r)
	}
	require.NoError(t, e.Put(ctx, n, rows))
	require.NoError(t, e.Publish(ctx, n), "it refreshes")

	search := func(q remote.Query) (keys []string) {
		q.Vectors = [][]float32{rows[5000].Vector}
		a, err := e.Search(ctx, n, &q)
		require.NoError(t, err)
		require.Empty(t, a.Missing)
		for _, r := range a.Rows[0] {
			keys = append(keys, r.Key)
		}
		return keys
	}
	found := search(remote.Query{N: 10_400, Effort: 10_400})
	assert.Len(t, found, 10_400, "more than the plugin returns")
	assert.Equal(t, "k5000", found[0])
	assert.Len(t, search(remote.Query{N: 10_000, Effort: 1 << 30}), 10_000, "any effort")
	assert.Len(t, search(remote.Query{N: count + 1, Effort: 1, Exact: true}), count)

	var exclude []string
	for i := range 70_000 {
		exclude = append(exclude, fmt.Sprint("unknown", i))
	}
	exclude = append(exclude, found[:50]...)
	for _, exact := range []bool{true, false} {
		got := search(remote.Query{N: 10, Effort: 100, Exact: exact, Exclude: exclude})
		require.Len(t, got, 10)
		for _, key := range got {
			assert.NotContains(t, found[:50], key)
		}
	}

	any := &remote.Filter{Op: remote.Or}
	for i := range 3000 {
		any.Args = append(any.Args, &remote.Filter{Tag: fmt.Sprint("t", i+100)})
	}
	f := any
	for range 150 {
		f = &remote.Filter{Op: remote.Not, Args: []*remote.Filter{f}}
	}
	got := search(remote.Query{N: 5000, Effort: 5000, Filter: f})
	assert.Len(t, got, 3000)
	assert.False(t, slices.Contains(got, "k99"))

	require.ErrorIs(t, e.Stage(ctx, n.Collection, remote.Version{ID: v.ID, Dim: 16_000}), flashdb.ErrDim)
	require.ErrorIs(t, e.Stage(ctx, n.Collection, remote.Version{ID: v.ID, Dim: 4}), flashdb.ErrDim, "it is there with another width")
}
