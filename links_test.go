package flashdb_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

func TestUnlinkCountsWhatWasKnown(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", 1)
	for _, key := range []string{"a", "b", "c"} {
		require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: key, Embedding: []float32{1}}))
	}
	edge := func(source, target string) flashdb.Edge { return flashdb.Edge{Source: source, Target: target} }
	require.NoError(t, c.Link(ctx, edge("a", "b"), edge("a", "c"), edge("b", "c")))

	forgotten, err := c.Unlink(ctx, edge("a", "b"), edge("b", "c"), edge("c", "nobody"))
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	assert.ErrorContains(t, err, `unlink in "c": edge "c" -> "nobody"`)
	assert.Zero(t, forgotten, "all or nothing")

	forgotten, err = c.Unlink(ctx, edge("a", "b"), edge("b", "c"), edge("a", "b"), edge("b", "a"), edge("c", "a"))
	require.NoError(t, err)
	assert.Equal(t, 2, forgotten, "each once, and only those that were known")
	_, err = c.Linked(ctx, flashdb.Edge{Source: "a", Target: "b"})
	require.ErrorIs(t, err, flashdb.ErrInvalid)
	linked, err := c.Linked(ctx, flashdb.Edge{Source: "a"})
	require.NoError(t, err)
	assert.Equal(t, []string{"c"}, linked)

	forgotten, err = c.Unlink(ctx)
	require.NoError(t, err)
	assert.Zero(t, forgotten)
}

// shop returns a database with collections of users and items, and a decoder for the items.
func shop(t *testing.T, users, items flashdb.Schema) *testDB {
	t.Helper()
	ctx := context.Background()
	d := openDB(t)
	u, err := d.CreateCollection("users", users)
	require.NoError(t, err)
	i, err := d.CreateCollection("items", items)
	require.NoError(t, err)
	require.NoError(t, u.Upsert(ctx,
		flashdb.Node{Key: "ann", Embedding: []float32{3, 4}}, flashdb.Node{Key: "bob", Embedding: []float32{1, 0}}, flashdb.Node{Key: "tea", Embedding: []float32{0, 1}}))
	require.NoError(t, i.Upsert(ctx,
		flashdb.Node{Key: "tea", Embedding: []float32{1, 0}}, flashdb.Node{Key: "cake", Embedding: []float32{0, 1}}, flashdb.Node{Key: "soup", Embedding: []float32{1, 1}}))
	require.NoError(t, i.PutDecoder(ctx, "likes", dotDecoder(t, 2)))
	return d
}

func likes(user, item string) flashdb.Edge {
	return flashdb.Edge{SourceCollection: "users", Source: user, Target: item}
}

func existing(t *testing.T, d *testDB, name string) *flashdb.Collection {
	t.Helper()
	c, err := d.Collection(name)
	require.NoError(t, err)
	return c
}

func keysOf(t *testing.T, res flashdb.Result) (keys []string) {
	t.Helper()
	for _, h := range res.Hits {
		keys = append(keys, h.Key)
	}
	return keys
}

func linksOf(t *testing.T, c *flashdb.Collection) (edges []flashdb.Edge) {
	t.Helper()
	for e, err := range c.Links(context.Background()) {
		require.NoError(t, err)
		edges = append(edges, e)
	}
	n, err := flashdb.LinkCount(c)
	require.NoError(t, err)
	require.Len(t, edges, int(n))
	return edges
}

func TestLinksFromAnotherCollection(t *testing.T) {
	ctx := context.Background()
	d := shop(t, flashdb.Schema{Dim: 2}, flashdb.Schema{Dim: 2})
	users, items := existing(t, d, "users"), existing(t, d, "items")
	require.NoError(t, items.Link(ctx, likes("ann", "soup"), likes("bob", "tea"), flashdb.Edge{Source: "tea", Target: "cake"}, likes("ann", "tea")))
	of := &flashdb.PredictOptions{SourceCollection: "users"}
	predicted := func(key string, o flashdb.PredictOptions) []string {
		t.Helper()
		o.SourceCollection = "users"
		res, err := items.Predict(ctx, key, 9, &o)
		require.NoError(t, err)
		assert.Equal(t, key, res.Source)
		return keysOf(t, res)
	}
	check := func() {
		t.Helper()
		assert.Equal(t, []string{"cake"}, predicted("ann", *of))
		assert.Equal(t, []string{"soup", "cake"}, predicted("bob", *of))
		assert.Equal(t, []string{"cake", "soup", "tea"}, predicted("tea", *of), "a user of an item's key is another node")
		assert.Equal(t, []string{"soup", "cake", "tea"}, predicted("ann", flashdb.PredictOptions{IncludeLinked: true}))
		assert.Equal(t, []flashdb.Edge{{Source: "tea", Target: "cake"}, likes("ann", "tea"), likes("ann", "soup"), likes("bob", "tea")}, linksOf(t, items))
		assert.Empty(t, linksOf(t, users), "a link has one direction")
	}
	check()
	_, err := items.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 1})
	require.NoError(t, err)
	check()
	d.checkAndClose()
	d.open()
	users, items = existing(t, d, "users"), existing(t, d, "items")
	check()

	var batch [][]string
	for res, err := range items.PredictBatch(ctx, []string{"ann", "bob"}, 9, of) {
		require.NoError(t, err)
		batch = append(batch, keysOf(t, res))
	}
	assert.Equal(t, [][]string{{"cake"}, {"soup", "cake"}}, batch)
	hits, err := items.Score(ctx, "ann", []string{"soup", "tea"}, &flashdb.ScoreOptions{SourceCollection: "users"})
	require.NoError(t, err)
	assert.Equal(t, float32(7), hits[0].Score)
	assert.Equal(t, float32(3), hits[1].Score)
	linked, err := items.Linked(ctx, flashdb.Edge{SourceCollection: "users", Source: "ann"})
	require.NoError(t, err)
	assert.Equal(t, []string{"tea", "soup"}, linked)
	linked, err = items.Linked(ctx, flashdb.Edge{SourceCollection: "items", Source: "tea"})
	require.NoError(t, err)
	assert.Equal(t, []string{"cake"}, linked, "the own name is that of no other collection")

	forgotten, err := items.Unlink(ctx, likes("ann", "soup"), likes("ann", "cake"), flashdb.Edge{Source: "tea", Target: "soup"})
	require.NoError(t, err)
	assert.Equal(t, 1, forgotten)
	assert.Equal(t, []string{"soup", "cake"}, predicted("ann", *of))
}

func TestLinksEndWithTheirNodes(t *testing.T) {
	ctx := context.Background()
	d := shop(t, flashdb.Schema{Dim: 2}, flashdb.Schema{Dim: 2})
	users, items := existing(t, d, "users"), existing(t, d, "items")
	require.NoError(t, items.Link(ctx, likes("ann", "tea"), likes("ann", "soup"), likes("bob", "soup")))
	require.Len(t, linksOf(t, items), 3)
	require.NoError(t, d.Checkpoint(ctx))
	require.Len(t, linksOf(t, items), 3, "in the bbolt file")
	_, err := items.Delete(ctx, "soup")
	require.NoError(t, err)
	assert.Equal(t, []flashdb.Edge{likes("ann", "tea")}, linksOf(t, items))
	require.NoError(t, items.Upsert(ctx, flashdb.Node{Key: "soup", Embedding: []float32{5, 5}}))
	assert.Equal(t, []flashdb.Edge{likes("ann", "tea")}, linksOf(t, items), "one of the same key is another node")

	// The links are read and written in a loop over them.
	for e, err := range items.Links(ctx) {
		require.NoError(t, err)
		_, err = users.Delete(ctx, e.Source)
		require.NoError(t, err)
	}
	assert.Empty(t, linksOf(t, items))
	require.NoError(t, users.Upsert(ctx, flashdb.Node{Key: "ann", Embedding: []float32{1, 1}}))
	assert.Empty(t, linksOf(t, items))

	require.NoError(t, items.Link(ctx, likes("ann", "soup")))
	require.NoError(t, d.DropCollection(ctx, "users"))
	assert.Empty(t, linksOf(t, items))
	_, err = items.Predict(ctx, "ann", 1, &flashdb.PredictOptions{SourceCollection: "users"})
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	assert.ErrorContains(t, err, `collection "users" not found`)
	users, err = d.CreateCollection("users", flashdb.Schema{Dim: 2})
	require.NoError(t, err)
	require.NoError(t, users.Upsert(ctx, flashdb.Node{Key: "ann", Embedding: []float32{1, 1}}))
	assert.Empty(t, linksOf(t, items))
	res, err := items.Predict(ctx, "ann", 9, &flashdb.PredictOptions{SourceCollection: "users"})
	require.NoError(t, err)
	assert.Len(t, res.Hits, 3)

	require.NoError(t, items.Link(ctx, likes("ann", "soup")))
	require.NoError(t, d.DropCollection(ctx, "items"))
	made, err := d.CreateCollection("items", flashdb.Schema{Dim: 2})
	require.NoError(t, err)
	require.NoError(t, made.Upsert(ctx, flashdb.Node{Key: "soup", Embedding: []float32{1, 1}}))
	assert.Empty(t, linksOf(t, made))
	require.ErrorIs(t, items.Link(ctx, likes("ann", "soup")), flashdb.ErrNotFound, "the handle is of the one that was dropped")
}

func TestSourcesOfAnotherCollectionAreChecked(t *testing.T) {
	ctx := context.Background()
	d := shop(t, flashdb.Schema{Dim: 2}, flashdb.Schema{Dim: 2, Normalize: true})
	items := existing(t, d, "items")
	hits, err := items.Score(ctx, "ann", []string{"tea"}, &flashdb.ScoreOptions{SourceCollection: "users"})
	require.NoError(t, err)
	assert.InDelta(t, 0.6, hits[0].Score, 1e-6, "normalized, as the items are")
	res, err := items.Predict(ctx, "ann", 1, &flashdb.PredictOptions{SourceCollection: "users"})
	require.NoError(t, err)
	assert.Equal(t, "soup", res.Hits[0].Key)
	assert.InDelta(t, 7/(5*1.41421356), res.Hits[0].Score, 1e-6)

	wide := d.collection("wide", 3)
	require.NoError(t, wide.Upsert(ctx, flashdb.Node{Key: "ann", Embedding: []float32{1, 2, 3}}))
	users, err := d.Collection("users")
	require.NoError(t, err)
	require.NoError(t, users.Upsert(ctx, flashdb.Node{Key: "zero", Embedding: []float32{0, 0}}))
	for _, tt := range []struct {
		from, key, candidate string
		want                 error
		text                 string
	}{
		{"nobody", "ann", "tea", flashdb.ErrNotFound, `collection "nobody" not found`},
		{"users", "soup", "tea", flashdb.ErrNotFound, `node "soup" not found in collection "users"`},
		{"wide", "ann", "tea", flashdb.ErrDim, `sources from "wide" have 3 values, collection "items" holds 2`},
		{"users", "zero", "tea", flashdb.ErrInvalid, `node "zero" of collection "users"`},
		{"users", "ann", "bob", flashdb.ErrNotFound, `node "bob" not found in collection "items"`},
	} {
		_, err := items.Score(ctx, tt.key, []string{tt.candidate}, &flashdb.ScoreOptions{SourceCollection: tt.from})
		require.ErrorIs(t, err, tt.want)
		assert.ErrorContains(t, err, tt.text)
		if tt.candidate == "tea" {
			_, err = items.Predict(ctx, tt.key, 1, &flashdb.PredictOptions{SourceCollection: tt.from})
			require.ErrorIs(t, err, tt.want)
			assert.ErrorContains(t, err, tt.text)
		}
		err = items.Link(ctx, likes("ann", "soup"), flashdb.Edge{SourceCollection: tt.from, Source: tt.key, Target: tt.candidate})
		if tt.want == flashdb.ErrNotFound {
			require.ErrorIs(t, err, tt.want)
			assert.ErrorContains(t, err, tt.text)
			assert.Empty(t, linksOf(t, items), "all or nothing")
			continue
		}
		require.NoError(t, err, "a link needs no embedding")
		_, err = items.Unlink(ctx, linksOf(t, items)...)
		require.NoError(t, err)
	}
	_, err = items.PredictVector(ctx, []float32{1, 1}, 1, &flashdb.PredictOptions{SourceCollection: "users"})
	require.ErrorIs(t, err, flashdb.ErrInvalid)
	assert.ErrorContains(t, err, "a vector is of none")
	_, err = items.Linked(ctx, flashdb.Edge{SourceCollection: "users", Source: "soup"})
	require.ErrorIs(t, err, flashdb.ErrNotFound)
}

// Calibrations leave out the nodes that queries leave out.
func TestCalibrateLeavesLinksFromAnotherCollectionOut(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c := indexed(t, d, 500)
	users := d.collection("users", c.Schema().Dim)
	n, err := c.Get(ctx, "n1")
	require.NoError(t, err)
	require.NoError(t, users.Upsert(ctx, flashdb.Node{Key: "ann", Embedding: n.Embedding}))
	var edges []flashdb.Edge
	for e, err := range c.Nodes(ctx) {
		require.NoError(t, err)
		if len(edges) < 495 {
			edges = append(edges, likes("ann", e.Key))
		}
	}
	require.NoError(t, c.Link(ctx, edges...))
	all, err := c.Calibrate(ctx, &flashdb.CalibrateOptions{SourceCollection: "users", Time: 2e9})
	require.NoError(t, err)
	for _, of := range all {
		for _, f := range of.Frontiers {
			for _, p := range f.Plans {
				assert.LessOrEqual(t, p.RowsScored, 5.0, "only so many nodes are left: %v", p.Plan)
			}
		}
	}
}
