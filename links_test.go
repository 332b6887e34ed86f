package flashdb_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

func TestUnlinkAllCountsWhatWasKnown(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", 1)
	for _, key := range []string{"a", "b", "c"} {
		require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: key, Embedding: []float32{1}}))
	}
	edge := func(source, target string) flashdb.Edge { return flashdb.Edge{Source: source, Target: target} }
	require.NoError(t, c.LinkAll(ctx, edge("a", "b"), edge("a", "c"), edge("b", "c")))

	forgotten, err := c.UnlinkAll(ctx, edge("a", "b"), edge("b", "c"), edge("c", "nobody"))
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	assert.ErrorContains(t, err, `unlink in "c": edge "c" -> "nobody"`)
	assert.Zero(t, forgotten, "all or nothing")

	forgotten, err = c.UnlinkAll(ctx, edge("a", "b"), edge("b", "c"), edge("a", "b"), edge("b", "a"), edge("c", "a"))
	require.NoError(t, err)
	assert.Equal(t, 2, forgotten, "each once, and only those that were known")
	linked, err := c.Linked(ctx, "a")
	require.NoError(t, err)
	assert.Equal(t, []string{"c"}, linked)

	forgotten, err = c.UnlinkAll(ctx)
	require.NoError(t, err)
	assert.Zero(t, forgotten)
}
