package flashdb_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// TestIterate compares what is yielded with a map, over several pages with deleted nodes.
func TestIterate(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", 2)
	const n = 1000
	want := map[string]flashdb.Node{}
	var nodes []flashdb.Node
	for i := range n {
		node := flashdb.Node{Key: fmt.Sprint("n", i), Embedding: []float32{float32(i), 1}, Payload: []byte{byte(i)}}
		if i%3 == 0 {
			node.Tags = []string{"third"}
		}
		nodes = append(nodes, node)
		want[node.Key] = node
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	links := map[flashdb.Edge]bool{}
	for i := 0; i < n; i += 7 {
		e := flashdb.Edge{Source: fmt.Sprint("n", i), Target: fmt.Sprint("n", (i*i+1)%n)}
		require.NoError(t, c.Link(ctx, e))
		links[e] = true
	}
	for i := 0; i < n; i += 10 {
		gone := fmt.Sprint("n", i)
		_, err := c.Delete(ctx, gone)
		require.NoError(t, err)
		delete(want, gone)
		maps.DeleteFunc(links, func(e flashdb.Edge, _ bool) bool { return e.Source == gone || e.Target == gone })
	}
	got := map[string]flashdb.Node{}
	for node, err := range c.Nodes(ctx) {
		require.NoError(t, err)
		require.NotContains(t, got, node.Key)
		got[node.Key] = node
	}
	require.Equal(t, want, got)
	found := map[flashdb.Edge]bool{}
	for e, err := range c.Links(ctx) {
		require.NoError(t, err)
		require.NotContains(t, found, e)
		found[e] = true
	}
	require.Equal(t, links, found)
	var keys []string
	for key, err := range c.Keys(ctx) {
		require.NoError(t, err)
		keys = append(keys, key)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), keys)
}

// TestIterateWhileWriting checks that the body of a loop may write to what it iterates over, and
// may leave at any time.
func TestIterateWhileWriting(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", 1)
	for i := range 600 {
		require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: fmt.Sprint(i), Embedding: []float32{1}}))
	}
	seen := 0
	for node, err := range c.Nodes(ctx) {
		require.NoError(t, err)
		if seen++; seen%2 == 0 {
			_, err = c.Delete(ctx, node.Key)
		} else {
			err = c.Link(ctx, flashdb.Edge{Source: node.Key, Target: node.Key})
		}
		require.NoError(t, err)
	}
	assert.Equal(t, 600, seen)
	for e, err := range c.Links(ctx) {
		require.NoError(t, err)
		_, err = c.Unlink(ctx, e)
		require.NoError(t, err)
	}
	for e := range c.Links(ctx) {
		t.Fatal("a link is left: ", e)
	}
	for range c.Nodes(ctx) {
		break
	}
	for key, err := range c.Keys(ctx) {
		require.NoError(t, err)
		_, err = c.Delete(ctx, key)
		require.NoError(t, err)
	}
	for node := range c.Nodes(ctx) {
		t.Fatal("a node is left: ", node.Key)
	}
}

// TestIterateFails checks that an error is yielded once, with an empty value.
func TestIterateFails(t *testing.T) {
	d := openDB(t)
	c := d.collection("c", 1)
	require.NoError(t, c.Upsert(t.Context(), flashdb.Node{Key: "a", Embedding: []float32{1}}))
	done, cancel := context.WithCancel(t.Context())
	cancel()
	only := func(ctx context.Context, want error) {
		var errs []error
		for node, err := range c.Nodes(ctx) {
			require.Zero(t, node)
			errs = append(errs, err)
		}
		for e, err := range c.Links(ctx) {
			require.Zero(t, e)
			errs = append(errs, err)
		}
		for key, err := range c.Keys(ctx) {
			require.Zero(t, key)
			errs = append(errs, err)
		}
		_, err := c.RowKeys(ctx, 0, 1)
		errs = append(errs, err)
		require.Len(t, errs, 4)
		for _, err := range errs {
			require.ErrorIs(t, err, want)
		}
	}
	only(done, context.Canceled)
	require.NoError(t, d.DropCollection(t.Context(), "c"))
	only(t.Context(), flashdb.ErrNotFound)
	require.NoError(t, d.Close())
	only(t.Context(), flashdb.ErrClosed)
	d.open()
}
