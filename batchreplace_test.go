package flashdb_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// TestBatchReplacesCollections replaces, in one write, two collections that have an index and links
// between them by collections of another width.
func TestBatchReplacesCollections(t *testing.T) {
	ctx := context.Background()
	d, users, items := emptyShop(t)
	require.NoError(t, users.Upsert(ctx, node("ann", 1, 0)))
	require.NoError(t, items.Upsert(ctx, node("dune", 1, 1), node("emma", 2, 2)))
	require.NoError(t, items.Link(ctx, flashdb.Edge{SourceCollection: "users", Source: "ann", Target: "dune"}))
	require.NoError(t, items.SetMeta(ctx, "of", "the old"))
	_, err := items.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, CalibrateTime: -1})
	require.NoError(t, err)
	writes := d.Metrics().Writes

	row := func(key string) flashdb.Node { return flashdb.Node{Key: key, Embedding: []float32{1, 2, 3}} }
	var b flashdb.Batch
	b.DropCollection("users")
	b.DropCollection("items")
	b.CreateCollection("items", flashdb.Schema{Dim: 3})
	b.CreateCollection("users", flashdb.Schema{Dim: 3})
	b.CreateCollection("more", flashdb.Schema{Dim: 1})
	b.Upsert("items", row("emma"), row("new"))
	b.Upsert("users", row("bob"))
	b.Link("items", flashdb.Edge{SourceCollection: "users", Source: "bob", Target: "emma"})
	b.PutDecoder("items", "d", dotDecoder(t, 3))
	b.SetMeta("items", "by", "the batch")
	require.NoError(t, d.Apply(ctx, &b))
	assert.Equal(t, writes+1, d.Metrics().Writes, "it is one write")
	assert.NoDirExists(t, filepath.Join(d.dir, "index", "items"))
	_, err = items.Get(ctx, "emma")
	require.ErrorIs(t, err, flashdb.ErrNotFound, "of the collection that was dropped")

	for range 2 {
		names, err := d.Collections(ctx)
		require.NoError(t, err)
		assert.Equal(t, []string{"items", "more", "users"}, names)
		items, err := d.Collection("items")
		require.NoError(t, err)
		assert.Equal(t, 3, items.Schema().Dim)
		linked, err := items.Linked(ctx, flashdb.Edge{SourceCollection: "users", Source: "bob"})
		require.NoError(t, err)
		assert.Equal(t, []string{"emma"}, linked)
		_, err = items.Get(ctx, "dune")
		require.ErrorIs(t, err, flashdb.ErrNotFound)
		_, known, err := items.Meta(ctx, "of")
		require.NoError(t, err)
		assert.False(t, known)
		hits, err := items.PredictVector(ctx, []float32{1, 0, 0}, 5, nil)
		require.NoError(t, err)
		assert.Len(t, hits.Hits, 2)
		d.reopen()
	}
	items, err = d.Collection("items")
	require.NoError(t, err)
	res, err := items.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, CalibrateTime: -1})
	require.NoError(t, err)
	assert.True(t, res.Built)
}

// TestBatchReplacesAllOrNothing checks that a batch that fails after the drop changes nothing.
func TestBatchReplacesAllOrNothing(t *testing.T) {
	ctx := context.Background()
	d, _, items := emptyShop(t)
	require.NoError(t, items.Upsert(ctx, node("dune", 1, 1)))
	row := flashdb.Node{Key: "new", Embedding: []float32{1, 2, 3}}
	for want, fill := range map[string]func(b *flashdb.Batch){
		"the batch drops it before": func(b *flashdb.Batch) { b.DropCollection("items"); b.Upsert("items", row) },
		"already exists":            func(b *flashdb.Batch) { b.CreateCollection("items", flashdb.Schema{Dim: 3}) },
		"only in case":              func(b *flashdb.Batch) { b.CreateCollection("ITEMS", flashdb.Schema{Dim: 3}) },
		"want 1 to 8192": func(b *flashdb.Batch) {
			b.DropCollection("items")
			b.CreateCollection("items", flashdb.Schema{})
		},
		`drop "none": collection "none" not found`: func(b *flashdb.Batch) { b.DropCollection("items"); b.DropCollection("none") },
		`node "absent" not found`: func(b *flashdb.Batch) {
			b.DropCollection("items")
			b.CreateCollection("items", flashdb.Schema{Dim: 3})
			b.Upsert("items", row)
			b.Link("items", flashdb.Edge{Source: "new", Target: "absent"})
		},
		"wrong dimension": func(b *flashdb.Batch) {
			b.DropCollection("items")
			b.CreateCollection("items", flashdb.Schema{Dim: 4})
			b.Upsert("items", row)
		},
	} {
		var b flashdb.Batch
		fill(&b)
		require.ErrorContains(t, d.Apply(ctx, &b), want)
		n, err := items.Get(ctx, "dune")
		require.NoError(t, err, want)
		assert.Equal(t, []float32{1, 1}, n.Embedding)
	}
}
