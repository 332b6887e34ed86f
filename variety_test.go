package flashdb_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// TestVariety compares answers with a cap, with diversity and with both with those chosen by plain
// loops from the scores of all nodes: without an index, with one, and with newer rows.
func TestVariety(t *testing.T) {
	ctx := context.Background()
	db := openDB(t)
	rng := rand.New(rand.NewPCG(7, 7))
	c := db.collection("items", 8)
	put := func(i int) flashdb.Node {
		n := flashdb.Node{Key: fmt.Sprintf("n%d", i), Embedding: randomVector(rng, 8), Tags: []string{fmt.Sprintf("t%d", rng.IntN(40))}}
		if rng.IntN(10) > 0 {
			n.Attributes = flashdb.Attributes{"brand": fmt.Sprintf("b%d", rng.IntN(30)), "year": 2000 + rng.IntN(3)}
		}
		return n
	}
	var nodes []flashdb.Node
	for i := range 1500 {
		nodes = append(nodes, put(i))
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	require.NoError(t, c.PutDecoder(ctx, "likes", randomMLP(t, rng, 8, 16)))
	check := func() {
		t.Helper()
		for _, o := range []flashdb.PredictOptions{
			{Per: &flashdb.Cap{Attribute: "brand", Most: 1}},
			{Per: &flashdb.Cap{Attribute: "year", Most: 3}},
			{Per: &flashdb.Cap{Most: 2}},
			{Diversity: .3},
			{Diversity: 1},
			{Diversity: .5, Per: &flashdb.Cap{Attribute: "brand", Most: 2}},
		} {
			o.Exact, o.WithNode = true, true
			got, err := c.Predict(ctx, "n1", 20, &o)
			require.NoError(t, err)
			wantKeys := chosenByHand(t, c, got.Stats.Pool, 20, o)
			var keys []string
			for _, h := range got.Hits {
				keys = append(keys, h.Key)
			}
			require.Equal(t, wantKeys, keys, "%+v", o)
			require.Len(t, keys, 20)
			require.GreaterOrEqual(t, got.Stats.Pool, 100)
			require.Contains(t, got.Stats.Plan, "chosen from the best")
			require.Empty(t, got.Stats.Short)
		}
	}
	check()
	_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
	require.NoError(t, err)
	check()
	require.NoError(t, c.Upsert(ctx, put(3), put(4), put(2000)))
	_, err = c.Delete(ctx, "n5")
	require.NoError(t, err)
	check()

	// Three years and the nodes without one are all there is: the pool grows until it holds all.
	res, err := c.Predict(ctx, "n1", 1000, &flashdb.PredictOptions{Per: &flashdb.Cap{Attribute: "year", Most: 2}, WithNode: true})
	require.NoError(t, err)
	years := map[any]int{}
	for _, h := range res.Hits {
		years[h.Attributes["year"]]++
	}
	assert.Equal(t, 2, years[2000.0])
	assert.Equal(t, 2, years[2002.0])
	assert.Greater(t, years[nil], 50, "nodes without the attribute are not bounded")
	assert.Contains(t, res.Stats.Short, "with at most 2 of one year, no more of the 1499 nodes")
	assert.Equal(t, 1499, res.Stats.Pool)

	// A filter that leaves one brand: enough candidates are scored, and the reason is said.
	res, err = c.Predict(ctx, "n1", 5, &flashdb.PredictOptions{Per: &flashdb.Cap{Attribute: "brand", Most: 2}, Filter: "brand = b7"})
	require.NoError(t, err)
	assert.Len(t, res.Hits, 2)
	assert.NotEmpty(t, res.Stats.Short)

	for says, o := range map[string]flashdb.PredictOptions{
		`no node has an attribute "brant": did you mean brand?`: {Per: &flashdb.Cap{Attribute: "brant", Most: 2}},
		"at most 0 hits":    {Per: &flashdb.Cap{Attribute: "brand"}},
		"diversity 2":       {Diversity: 2},
		"diversity NaN":     {Diversity: math.NaN()},
		"leave one of them": {Diversity: .5, Verify: true},
	} {
		_, err := c.Predict(ctx, "n1", 5, &o)
		require.ErrorIs(t, err, flashdb.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
}

// TestPoolGrows: a cap that the first pool cannot fill is met from a larger one, by a plan too.
func TestPoolGrows(t *testing.T) {
	ctx := context.Background()
	db := openDB(t)
	c := db.collection("items", 2)
	var nodes []flashdb.Node
	for i := range 3000 { // the best 1,000 are of one brand
		brand := "common"
		if i >= 1000 {
			brand = fmt.Sprint(i)
		}
		nodes = append(nodes, flashdb.Node{Key: fmt.Sprint(i), Embedding: []float32{1 - float32(i)/3000, 1}, Attributes: flashdb.Attributes{"brand": brand}})
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	require.NoError(t, c.PutDecoder(ctx, "likes", dotDecoder(t, 2)))
	_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
	require.NoError(t, err)
	for _, exact := range []bool{true, false} {
		res, err := c.PredictVector(ctx, []float32{1, 0}, 4, &flashdb.PredictOptions{Exact: exact, Per: &flashdb.Cap{Attribute: "brand", Most: 1}})
		require.NoError(t, err)
		require.Len(t, res.Hits, 4, res.Stats.Plan)
		assert.Equal(t, "0", res.Hits[0].Key)
		assert.Greater(t, res.Stats.Pool, 1000)
		assert.Greater(t, res.Stats.RowsScored, 1000)
		if exact {
			assert.Equal(t, []string{"1000", "1001", "1002"}, []string{res.Hits[1].Key, res.Hits[2].Key, res.Hits[3].Key})
		}
	}
}

// chosenByHand chooses from the best of all nodes.
func chosenByHand(t *testing.T, c *flashdb.Collection, pool, k int, o flashdb.PredictOptions) (keys []string) {
	t.Helper()
	ctx := context.Background()
	all, err := c.Predict(ctx, "n1", pool, &flashdb.PredictOptions{Exact: true, WithNode: true})
	require.NoError(t, err)
	hits := all.Hits
	low, high := float64(hits[len(hits)-1].Score), float64(hits[0].Score)
	embeddings := map[string][]float32{}
	for _, h := range hits {
		n, err := c.Get(ctx, h.Key)
		require.NoError(t, err)
		embeddings[h.Key] = n.Embedding
	}
	cosine := func(a, b []float32) float64 {
		var ab, aa, bb float64
		for i := range a {
			ab, aa, bb = ab+float64(a[i])*float64(b[i]), aa+float64(a[i])*float64(a[i]), bb+float64(b[i])*float64(b[i])
		}
		return ab / math.Sqrt(aa*bb)
	}
	taken := map[string]int{}
	groups := func(h flashdb.Hit) []string {
		switch {
		case o.Per == nil:
			return nil
		case o.Per.Attribute == "":
			return h.Tags
		case h.Attributes[o.Per.Attribute] == nil:
			return nil
		}
		return []string{fmt.Sprint(h.Attributes[o.Per.Attribute])}
	}
	for len(keys) < k {
		best, value := -1, math.Inf(-1)
		for i, h := range hits {
			full := slices.ContainsFunc(groups(h), func(g string) bool { return taken[g] >= o.Per.Most })
			if full || slices.Contains(keys, h.Key) {
				continue
			}
			marginal := (float64(h.Score) - low) / (high - low)
			if len(keys) > 0 {
				nearest := -1.0
				for _, key := range keys {
					nearest = max(nearest, cosine(embeddings[key], embeddings[h.Key]))
				}
				marginal = (1-o.Diversity)*marginal - o.Diversity*nearest
			}
			if marginal > value+1e-6 {
				best, value = i, marginal
			}
		}
		if best < 0 {
			break
		}
		for _, g := range groups(hits[best]) {
			taken[g]++
		}
		keys = append(keys, hits[best].Key)
	}
	return keys
}
