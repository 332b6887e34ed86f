package browse

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
)

// TestReleases predicts from a staged release, and lists it.
func TestReleases(t *testing.T) {
	ctx := context.Background()
	db := fill(t)
	c := client{t, New(opened{db}, Options{})}
	_, a := c.get("collection", "c", "items")
	assert.Empty(t, a["targets"].([]any)[0].(map[string]any)["releases"])
	_, a = c.get("health", "c", "items")
	assert.Empty(t, a["releases"], "nothing but what is there")

	r, err := db.StageRelease(ctx, "night", "items")
	require.NoError(t, err)
	_, err = r.Put(ctx, "items", flashdb.Node{Key: "item 01", Embedding: []float32{1, 0, 0}}, flashdb.Node{Key: "item 05", Embedding: []float32{2, 0, 0}})
	require.NoError(t, err)
	dot, err := decoder.NewDot(3)
	require.NoError(t, err)
	require.NoError(t, r.PutDecoder(ctx, "items", "dot", dot))
	_, err = db.StageRelease(ctx, "bare", "items")
	require.NoError(t, err)

	_, a = c.get("collection", "c", "items")
	assert.Equal(t, []any{map[string]any{"name": "night", "state": "staged", "decoders": []any{"dot"}}}, a["targets"].([]any)[0].(map[string]any)["releases"],
		"only what can answer")
	_, a = c.get("predict", "c", "items", "key", "item 01", "decoder", "dot", "release", "night")
	assert.Equal(t, []string{"item 05"}, keysIn(t, a, "hits"), "others have no embedding there")
	status, a := c.get("predict", "c", "items", "key", "item 02", "decoder", "dot", "release", "night")
	assert.Equal(t, 404, status, a)
	_, a = c.get("health", "c", "items")
	releases := a["releases"].([]any)
	require.Len(t, releases, 3)
	assert.Equal(t, "live", releases[0].(map[string]any)["state"])
	night := releases[1].(map[string]any)
	assert.Equal(t, []any{"night", "staged", 2.0}, []any{night["name"], night["state"], night["rows"]})
	assert.Contains(t, night, "created")
	assert.NotContains(t, night, "published")
	assert.Equal(t, "dot, release night", a["queries"].([]any)[0].(map[string]any)["by"])
}

// TestCaps bounds how many hits have a tag.
func TestCaps(t *testing.T) {
	c := serve(t, Options{})
	_, a := c.get("predict", "c", "items", "key", "item 01", "decoder", "dot", "k", "9", "per", "mod = 2", "filter", "all")
	assert.Contains(t, a["error"], "mod")
	_, a = c.get("predict", "c", "items", "key", "item 01", "decoder", "dot", "k", "9", "per", "tag=2", "filter", "all")
	assert.Len(t, a["hits"], 2, "all have the tag all")
	assert.NotEmpty(t, a["short"])
}

// TestGrowth tells what has changed since an index was built.
func TestGrowth(t *testing.T) {
	ctx := context.Background()
	db := fill(t)
	c := client{t, New(opened{db}, Options{})}
	_, a := c.get("health", "c", "items")
	assert.NotContains(t, a, "growth", "no index")
	items, err := db.Collection("items")
	require.NoError(t, err)
	_, err = items.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
	require.NoError(t, err)
	rows := float64(30 + len(hostile))
	require.NoError(t, items.Upsert(ctx, flashdb.Node{Key: "item 03", Embedding: []float32{9, 9, 9}}, flashdb.Node{Key: "new", Embedding: []float32{9, 9, 9}}))
	_, err = items.Delete(ctx, "item 04")
	require.NoError(t, err)
	_, a = client{t, New(opened{db}, Options{})}.get("health", "c", "items")
	g := a["growth"].(map[string]any)
	assert.Equal(t, []any{rows - 2, 2.0, 2.0}, []any{g["indexed"], g["newer"], g["dead"]})
}
