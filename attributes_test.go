package flashdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// TestAttributes: what is put comes back with its type, from the log and from the file, alone, in a
// batch and in a batch from another process.
func TestAttributes(t *testing.T) {
	ctx := context.Background()
	db := openDB(t)
	c := db.collection("papers", 2)
	released := time.Date(2025, 1, 1, 12, 0, 0, 1500, time.FixedZone("", 3600))
	embedding := []float32{1, 2}
	require.NoError(t, c.Upsert(ctx,
		flashdb.Node{Key: "a", Embedding: embedding, Attributes: flashdb.Attributes{"price": 12, "brand": "A", "sold": true, "released": released, "none": nil}},
		flashdb.Node{Key: "b", Embedding: embedding}))
	want := flashdb.Attributes{"price": 12.0, "brand": "A", "sold": true, "released": released.UTC().Truncate(time.Microsecond)}
	equal := func(key string, want flashdb.Attributes) {
		t.Helper()
		n, err := c.Get(ctx, key)
		require.NoError(t, err)
		assert.Equal(t, want, n.Attributes)
	}
	equal("a", want)
	equal("b", nil)
	require.NoError(t, c.SetAttributes(ctx, "a", flashdb.Attributes{"price": 7.5, "sold": nil, "never": nil}))
	want["price"] = 7.5
	delete(want, "sold")
	equal("a", want)
	require.NoError(t, c.SetAttributes(ctx, "a", nil))
	require.ErrorIs(t, c.SetAttributes(ctx, "nobody", flashdb.Attributes{"price": 1}), flashdb.ErrNotFound)

	var b flashdb.Batch
	b.Upsert("papers", flashdb.Node{Key: "c", Embedding: embedding, Attributes: flashdb.Attributes{"price": 3}})
	b.SetAttributes("papers", "b", flashdb.Attributes{"price": 9, "brand": nil})
	data, err := b.MarshalBinary()
	require.NoError(t, err)
	var sent flashdb.Batch
	require.NoError(t, sent.UnmarshalBinary(data))
	require.NoError(t, db.Apply(ctx, &sent))
	equal("b", flashdb.Attributes{"price": 9.0})
	equal("c", flashdb.Attributes{"price": 3.0})

	s, err := db.Stats(ctx) // which flushes
	require.NoError(t, err)
	at := released.UTC().Truncate(time.Microsecond)
	assert.Equal(t, []flashdb.AttributeStats{
		{Name: "brand", Type: "string", Nodes: 1, Distinct: 1, Lowest: "A", Highest: "A"},
		{Name: "price", Type: "number", Nodes: 3, Distinct: 3, Lowest: 3.0, Highest: 9.0},
		{Name: "released", Type: "time", Nodes: 1, Distinct: 1, Lowest: at, Highest: at},
	}, s.Collections[0].Attributes)
	equal("a", want)
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "a", Embedding: embedding}))
	equal("a", nil)
	_, err = c.Delete(ctx, "b")
	require.NoError(t, err)
	for n, err := range c.Nodes(ctx) {
		require.NoError(t, err)
		if n.Key == "c" {
			assert.Equal(t, flashdb.Attributes{"price": 3.0}, n.Attributes)
		}
	}
}

func TestAttributesRefused(t *testing.T) {
	ctx := context.Background()
	db := openDB(t)
	c := db.collection("papers", 1)
	put := func(key string, attributes flashdb.Attributes) error {
		return c.Upsert(ctx, flashdb.Node{Key: key, Embedding: []float32{1}, Attributes: attributes})
	}
	require.NoError(t, put("a", flashdb.Attributes{"price": 1}))
	require.NoError(t, put("also", flashdb.Attributes{"price": 1}))
	for says, attributes := range map[string]flashdb.Attributes{
		`attribute "price" of "papers" is a number, and "cheap" a string`: {"price": "cheap"},
		"a []int is no attribute": {"price": []int{1}},
		"not a finite number":     {"price": 1 / zero()},
		"beyond the integers":     {"price": uint64(1) << 60},
		"attribute name":          {"": 1},
	} {
		for _, err := range []error{put("b", attributes), c.SetAttributes(ctx, "a", attributes)} {
			require.ErrorIs(t, err, flashdb.ErrInvalid)
			require.ErrorContains(t, err, says)
		}
	}
	_, err := c.Get(ctx, "b")
	require.ErrorIs(t, err, flashdb.ErrNotFound, "nothing was stored")
	n, err := c.Get(ctx, "a")
	require.NoError(t, err)
	assert.Equal(t, flashdb.Attributes{"price": 1.0}, n.Attributes)
}

func zero() float64 { return 0 }

// TestAttributeFilters compares filtered answers with the nodes that match, with an index and
// without, and with writes after it.
func TestAttributeFilters(t *testing.T) {
	ctx := context.Background()
	db := openDB(t)
	rng := rand.New(rand.NewPCG(5, 5))
	c := db.collection("papers", 8)
	const nodes = 3000
	put := func(i int) flashdb.Node {
		return flashdb.Node{
			Key: fmt.Sprintf("n%d", i), Embedding: randomVector(rng, 8), Tags: []string{fmt.Sprintf("t%d", i%3)},
			Attributes: flashdb.Attributes{"price": rng.IntN(100), "brand": string(rune('A' + rng.IntN(5))), "sold": rng.IntN(2) == 0},
		}
	}
	var all []flashdb.Node
	for i := range nodes {
		all = append(all, put(i))
	}
	require.NoError(t, c.Upsert(ctx, all...))
	require.NoError(t, c.PutDecoder(ctx, "cites", randomMLP(t, rng, 8, 16)))
	matches := func(n flashdb.Hit) bool {
		return n.Attributes["price"].(float64) < 20 && (n.Attributes["brand"] == "A" || n.Attributes["brand"] == "B") && n.Attributes["sold"] == false && n.Tags[0] != "t0"
	}
	const filter = `price < 20 and brand in ("A", "B") and not sold and not t0`
	check := func() {
		t.Helper()
		all, err := c.Predict(ctx, "n1", nodes, &flashdb.PredictOptions{Exact: true, WithNode: true})
		require.NoError(t, err)
		var want []flashdb.Hit
		for _, h := range all.Hits {
			if matches(h) {
				want = append(want, h)
			}
		}
		require.NotEmpty(t, want)
		got, err := c.Predict(ctx, "n1", nodes, &flashdb.PredictOptions{Exact: true, WithNode: true, Filter: filter})
		require.NoError(t, err)
		assert.Equal(t, want, got.Hits)
		assert.Equal(t, len(want), got.Stats.RowsScored, "no other rows are scored")
		planned, err := c.Predict(ctx, "n1", nodes, &flashdb.PredictOptions{WithNode: true, Filter: filter})
		require.NoError(t, err)
		assert.Equal(t, want, planned.Hits)
		assert.Contains(t, planned.Stats.Plan, fmt.Sprintf("the filter keeps %d nodes", len(want)))
	}
	check()
	_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
	require.NoError(t, err)
	check()
	for i := 100; i < 120; i++ {
		require.NoError(t, c.Upsert(ctx, put(i)))
		require.NoError(t, c.SetAttributes(ctx, fmt.Sprintf("n%d", i+100), flashdb.Attributes{"price": 1, "brand": "A", "sold": false}))
	}
	_, err = c.Delete(ctx, "n300", "n301")
	require.NoError(t, err)
	check()

	for filter, says := range map[string]string{
		"prise < 20":    `no node has an attribute "prise": did you mean price?`,
		"price = cheap": "price is a number, and cheap a string",
		"price <":       "expected a value",
	} {
		_, err := c.Predict(ctx, "n1", 5, &flashdb.PredictOptions{Filter: filter})
		require.ErrorIs(t, err, flashdb.ErrInvalid)
		require.ErrorContains(t, err, says)
		_, err = c.Search(ctx, randomVector(rng, 8), 5, &flashdb.SearchOptions{Filter: filter})
		require.ErrorIs(t, err, flashdb.ErrInvalid)
	}
}
