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
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/dbtest"
)

// why asks for the reasons of hits.
func why(t testing.TB, c *flashdb.Collection, source string, o *flashdb.WhyOptions, hits ...string) []flashdb.Reason {
	t.Helper()
	reasons, err := c.Why(context.Background(), source, hits, o)
	require.NoError(t, err)
	require.Len(t, reasons, len(hits))
	return reasons
}

// upsert stores rows under their keys.
func upsert(t testing.TB, c *flashdb.Collection, rows map[string][]float32) {
	t.Helper()
	for key, row := range rows {
		require.NoError(t, c.Upsert(context.Background(), flashdb.Node{Key: key, Embedding: row}))
	}
}

// neighborKeys returns the keys of a list of a Reason.
func neighborKeys(all []flashdb.Neighbor) (keys []string) {
	for _, n := range all {
		keys = append(keys, n.Key)
	}
	return keys
}

// TestWhy compares every number of a Reason with one computed by hand.
func TestWhy(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", 2)
	upsert(t, c, map[string][]float32{
		"s": {1, -2}, "h": {3, 1}, "near": {6, 2}, "far": {-1, 4}, "other": {2, 0}, "zero": {0, 0}, "gone": {9, 9},
	})
	require.NoError(t, c.PutDecoder(ctx, "dot", dotDecoder(t, 2)))
	for _, target := range []string{"near", "far", "other", "zero", "gone"} {
		require.NoError(t, c.Link(ctx, flashdb.Edge{Source: "s", Target: target}))
	}
	require.NoError(t, c.Link(ctx,
		flashdb.Edge{Source: "far", Target: "h"}, flashdb.Edge{Source: "far", Target: "near"}, // a path
		flashdb.Edge{Source: "h", Target: "other"}, // a shared neighbour
		flashdb.Edge{Source: "gone", Target: "h"}))
	_, err := c.Delete(ctx, "gone")
	require.NoError(t, err)
	r := why(t, c, "s", nil, "h")[0]
	root := float32(math.Sqrt(10))
	near := flashdb.Neighbor{Key: "near", Score: 20, Cosine: 1, Along: 2}
	far := flashdb.Neighbor{Key: "far", Score: 1, Cosine: 1 / (root * float32(math.Sqrt(17))), Along: -9}
	other := flashdb.Neighbor{Key: "other", Score: 6, Cosine: 3 / root, Along: 2}
	assert.Equal(t, "h", r.Key)
	assert.Equal(t, float32(1), r.Score)
	assert.False(t, r.Linked)
	assert.Equal(t, []int{4, 4}, []int{r.Known, r.Compared}, "gone is not there any more")
	assert.InDelta(t, far.Cosine, r.ByScore[2].Cosine, 1e-6)
	far.Cosine = r.ByScore[2].Cosine
	assert.InDelta(t, other.Cosine, r.ByScore[1].Cosine, 1e-6)
	other.Cosine = r.ByScore[1].Cosine
	assert.InDelta(t, 1, r.ByScore[0].Cosine, 1e-6)
	near.Cosine = r.ByScore[0].Cosine
	assert.Equal(t, []flashdb.Neighbor{near, other, far}, r.ByScore)
	assert.Equal(t, []flashdb.Neighbor{near, other, far}, r.ByCosine, "zero has no direction")
	assert.ElementsMatch(t, []string{"near", "other"}, neighborKeys(r.For))
	assert.Equal(t, []flashdb.Neighbor{far}, r.Against)
	assert.Equal(t, []flashdb.Block{{From: 0, To: 1, Contribution: 3}, {From: 1, To: 2, Contribution: -2}}, r.Blocks)
	assert.Equal(t, 1.0, r.Sum)
	assert.Equal(t, 2, r.PathCount)
	assert.Equal(t, []flashdb.Path{
		{Via: "other", Links: [2]flashdb.Edge{{Source: "s", Target: "other"}, {Source: "h", Target: "other"}}, Shared: true},
		{Via: "far", Links: [2]flashdb.Edge{{Source: "s", Target: "far"}, {Source: "far", Target: "h"}}},
	}, r.Paths, "the one with fewer links first")

	named := why(t, c, "s", &flashdb.WhyOptions{Named: 1}, "h", "near", "s")
	assert.Equal(t, []string{"near"}, neighborKeys(named[0].ByScore))
	assert.Len(t, named[0].Paths, 1)
	assert.Equal(t, 2, named[0].PathCount)
	assert.True(t, named[1].Linked)
	assert.Equal(t, []int{4, 3}, []int{named[1].Known, named[1].Compared}, "a hit is not compared with itself")
	assert.Equal(t, []string{"far"}, []string{named[1].Paths[0].Via})
	assert.Zero(t, named[2].PathCount, "a link out is no way back")
}

// TestWhyWithoutLinks demands that the decoder alone speaks for a hit of a source without links.
func TestWhyWithoutLinks(t *testing.T) {
	d := openDB(t)
	c := d.collection("c", 2)
	upsert(t, c, map[string][]float32{"s": {1, -2}, "h": {3, 1}})
	require.NoError(t, c.PutDecoder(context.Background(), "dot", dotDecoder(t, 2)))
	r := why(t, c, "s", nil, "h")[0]
	assert.Zero(t, r.Known)
	assert.Empty(t, r.ByScore)
	assert.Empty(t, r.ByCosine)
	assert.Empty(t, r.Paths)
	assert.Empty(t, r.For)
	assert.Empty(t, r.Against)
	assert.Equal(t, 1.0, r.Sum)
	assert.Empty(t, why(t, c, "s", nil))
	many := why(t, c, "s", nil, slices.Repeat([]string{"h", "s"}, 100)...)
	assert.Equal(t, r, many[198])
	assert.Equal(t, "s", many[199].Key)
}

// TestWhyOfAnotherCollection asks for items of a user.
func TestWhyOfAnotherCollection(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	users, items := d.collection("users", 2), d.collection("items", 2)
	upsert(t, users, map[string][]float32{"x": {1, 1}, "friend": {1, 2}})
	upsert(t, items, map[string][]float32{"x": {1, 0}, "liked": {1, 3}, "h": {2, 2}})
	require.NoError(t, items.PutDecoder(ctx, "dot", dotDecoder(t, 2)))
	require.NoError(t, items.Link(ctx,
		flashdb.Edge{SourceCollection: "users", Source: "x", Target: "liked"},
		flashdb.Edge{SourceCollection: "users", Source: "friend", Target: "h"},
		flashdb.Edge{Source: "liked", Target: "h"}))
	require.NoError(t, users.Link(ctx, flashdb.Edge{Source: "x", Target: "friend"}))
	r := why(t, items, "x", &flashdb.WhyOptions{SourceCollection: "users"}, "h")[0]
	assert.Equal(t, float32(4), r.Score)
	assert.Equal(t, 1, r.Known)
	assert.Empty(t, r.ByScore, "the decoder has never seen an item as a source")
	assert.Equal(t, []string{"liked"}, neighborKeys(r.ByCosine))
	assert.Equal(t, []flashdb.Path{
		{Via: "liked", Links: [2]flashdb.Edge{{SourceCollection: "users", Source: "x", Target: "liked"}, {Source: "liked", Target: "h"}}},
		{Via: "friend", Collection: "users", Links: [2]flashdb.Edge{{Source: "x", Target: "friend"}, {SourceCollection: "users", Source: "friend", Target: "h"}}},
	}, r.Paths)
}

// TestWhyRelation asks with a relation, in both directions.
func TestWhyRelation(t *testing.T) {
	ctx := context.Background()
	for _, kind := range []decoder.Kind{decoder.DistMult, decoder.ComplEx} {
		d := openDB(t)
		c, _, _ := knowledge(t, d, kind, 10) // e0 treats e1 and e2, causes e3, is linked to e5; e4 treats e0
		require.NoError(t, c.Link(ctx, flashdb.Edge{Source: "e9", Target: "e3", Relation: "causes"}, flashdb.Edge{Source: "e4", Target: "e9"},
			flashdb.Edge{Source: "e1", Target: "e9", Relation: "causes"}))
		r := why(t, c, "e0", &flashdb.WhyOptions{Relation: "treats"}, "e9")[0]
		assert.Equal(t, 2, r.Known)
		assert.ElementsMatch(t, []string{"e1", "e2"}, neighborKeys(r.ByCosine))
		assert.Empty(t, r.ByScore)
		assert.InDelta(t, r.Score, r.Sum, 1e-5)
		assert.ElementsMatch(t, []flashdb.Path{
			{Via: "e3", Links: [2]flashdb.Edge{{Source: "e0", Target: "e3", Relation: "causes"}, {Source: "e9", Target: "e3", Relation: "causes"}}, Shared: true},
			{Via: "e1", Links: [2]flashdb.Edge{{Source: "e0", Target: "e1", Relation: "treats"}, {Source: "e1", Target: "e9", Relation: "causes"}}},
			{Via: "e4", Links: [2]flashdb.Edge{{Source: "e4", Target: "e0", Relation: "treats"}, {Source: "e4", Target: "e9"}}},
		}, r.Paths)
		r = why(t, c, "e0", &flashdb.WhyOptions{Relation: "treats", Reverse: true}, "e9")[0]
		assert.Equal(t, []string{"e4"}, neighborKeys(r.ByCosine))
		scores, err := c.Score(ctx, "e0", []string{"e9"}, &flashdb.ScoreOptions{Relation: "treats", Reverse: true})
		require.NoError(t, err)
		assert.Equal(t, scores[0].Score, r.Score)
	}
}

// TestWhySums says what the contributions add up to: the score of a linear decoder, and of a
// network of ReLUs without biases. Biases are what is missing of another one.
func TestWhySums(t *testing.T) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(5, 5))
	const dim, hidden = 20, 12
	values := func(n int) []float32 { return randomVector(rng, n) }
	layers := func(width int, biased bool) []decoder.Layer {
		l := []decoder.Layer{
			{Weight: values(width * hidden), Activation: decoder.ReLU},
			{Weight: values(hidden * hidden), Activation: decoder.ReLU},
			{Weight: values(hidden)},
		}
		if biased {
			l[0].Bias, l[1].Bias, l[2].Bias = values(hidden), values(hidden), values(1)
		}
		return l
	}
	made := func(d decoder.Decoder, err error) decoder.Decoder {
		require.NoError(t, err)
		return d
	}
	for name, x := range map[string]struct {
		decoder.Decoder
		exact bool
	}{
		"dot":                    {dotDecoder(t, dim), true},
		"bilinear":               {made(decoder.NewBilinear(dim, values(dim*dim))), true},
		"distmult":               {made(decoder.NewDistMult(values(dim))), true},
		"complex":                {made(decoder.NewComplEx(values(dim))), true},
		"hadamard_mlp":           {made(decoder.NewHadamardMLP(dim, layers(dim, false)...)), true},
		"hadamard_mlp, biases":   {made(decoder.NewHadamardMLP(dim, layers(dim, true)...)), false},
		"concat_mlp, the source": {made(decoder.NewConcatMLP(dim, layers(2*dim, false)...)), false},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDB(t)
			c := d.collection("c", dim)
			rows := map[string][]float32{}
			for i := range 30 {
				rows[fmt.Sprint(i)] = values(dim)
			}
			upsert(t, c, rows)
			require.NoError(t, c.PutDecoder(ctx, "d", x.Decoder))
			missing := 0
			for i := 1; i < 30; i++ {
				require.NoError(t, c.Link(ctx, flashdb.Edge{Source: "0", Target: fmt.Sprint(i)}))
				r := why(t, c, "0", nil, fmt.Sprint(i))[0]
				require.Len(t, r.Blocks, 8)
				sum, from := 0.0, 0
				for _, b := range r.Blocks {
					assert.Equal(t, from, b.From)
					from, sum = b.To, sum+b.Contribution
				}
				assert.Equal(t, dim, from)
				assert.InDelta(t, sum, r.Sum, 1e-9)
				tolerance := 1e-5 * max(1, math.Abs(float64(r.Score)))
				if math.Abs(float64(r.Score)-r.Sum) > tolerance {
					missing++
				}
				for _, n := range r.ByScore { // in the direction from the neighbour to the hit
					want, err := c.Score(ctx, n.Key, []string{r.Key}, nil)
					require.NoError(t, err)
					assert.InDelta(t, want[0].Score, n.Score, tolerance)
				}
			}
			if x.exact {
				assert.Zero(t, missing)
			} else {
				assert.Greater(t, missing, 20)
			}
		})
	}
}

// TestWhyOfManyLinks looks at a part of very many links, and says so.
func TestWhyOfManyLinks(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", 2)
	var nodes []flashdb.Node
	var edges []flashdb.Edge
	for i := range 1000 {
		nodes = append(nodes, flashdb.Node{Key: fmt.Sprint(i), Embedding: []float32{float32(i), 1}})
		edges = append(edges, flashdb.Edge{Source: "0", Target: fmt.Sprint(i)})
	}
	require.NoError(t, c.Upsert(ctx, append(nodes, flashdb.Node{Key: "h", Embedding: []float32{1, 1}})...))
	require.NoError(t, c.Link(ctx, append(edges[1:], flashdb.Edge{Source: "777", Target: "h"}, flashdb.Edge{Source: "h", Target: "555"}, flashdb.Edge{Source: "h", Target: "1"})...))
	require.NoError(t, c.PutDecoder(ctx, "dot", dotDecoder(t, 2)))
	r := why(t, c, "0", nil, "h")[0]
	assert.Equal(t, 999, r.Known)
	assert.Equal(t, 96, r.Compared)
	assert.Equal(t, []string{"1", "555"}, []string{r.Paths[0].Via, r.Paths[1].Via}, "shared neighbours are always found")
	assert.Equal(t, "1", r.ByCosine[0].Key, "and compared")
	assert.Equal(t, r, why(t, c, "0", nil, "777", "h", "888")[1], "whatever else is asked")
}

func TestWhyRefuses(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c := d.collection("c", 2)
	upsert(t, c, map[string][]float32{"s": {1, 0}})
	require.NoError(t, c.PutDecoder(ctx, "dot", dotDecoder(t, 2)))
	for want, ask := range map[string]func() error{
		`why in "c": node "h" not found in collection "c"`: func() error { _, err := c.Why(ctx, "s", []string{"h"}, nil); return err },
		`node "nobody" not found`:                          func() error { _, err := c.Why(ctx, "nobody", []string{"s"}, nil); return err },
		`collection "users" not found`: func() error {
			_, err := c.Why(ctx, "s", []string{"s"}, &flashdb.WhyOptions{SourceCollection: "users"})
			return err
		},
		`decoder "mlp"`: func() error {
			_, err := c.Why(ctx, "s", []string{"s"}, &flashdb.WhyOptions{Decoder: "mlp"})
			return err
		},
		`relation "r"`: func() error { _, err := c.Why(ctx, "s", []string{"s"}, &flashdb.WhyOptions{Relation: "r"}); return err },
		"name the relation": func() error {
			_, err := c.Why(ctx, "s", []string{"s"}, &flashdb.WhyOptions{Reverse: true})
			return err
		},
		"WhyOptions.Named is -1": func() error { _, err := c.Why(ctx, "s", []string{"s"}, &flashdb.WhyOptions{Named: -1}); return err },
	} {
		assert.ErrorContains(t, ask(), want)
	}
	ended, end := context.WithCancel(ctx)
	end()
	_, err := c.Why(ended, "s", []string{"s"}, nil)
	assert.ErrorIs(t, err, context.Canceled)
}

// BenchmarkWhy asks for the reasons of one and of ten hits in a collection of as many rows as there
// are articles in the graph of genes, with a decoder of the same widths. Sources have from 10 to
// 6,000 links, and their neighbours 20 each.
func BenchmarkWhy(b *testing.B) {
	const rows, dim, batch = 750_000, 64, 10_000
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(1, 1))
	db, err := flashdb.Open(b.TempDir(), &flashdb.Options{CalibrateTime: -1})
	require.NoError(b, err)
	defer db.Close()
	c, err := db.CreateCollection("c", flashdb.Schema{Dim: dim})
	require.NoError(b, err)
	some := func() string { return fmt.Sprint(rng.IntN(rows)) }
	for first := 0; first < rows; first += batch {
		nodes := make([]flashdb.Node, batch)
		for i := range nodes {
			nodes[i] = flashdb.Node{Key: fmt.Sprint(first + i), Embedding: randomVector(rng, dim)}
		}
		require.NoError(b, c.Upsert(ctx, nodes...))
	}
	mlp, err := dbtest.RandomMLP(rng, dim, 128)
	require.NoError(b, err)
	require.NoError(b, c.PutDecoder(ctx, "mlp", mlp))
	degrees := []int{10, 100, 1000, 6000}
	for source, degree := range degrees {
		var edges []flashdb.Edge
		for range degree {
			e := flashdb.Edge{Source: fmt.Sprint(source), Target: some()}
			edges = append(edges, e)
			for range 20 {
				edges = append(edges, flashdb.Edge{Source: e.Target, Target: some()})
			}
		}
		require.NoError(b, c.Link(ctx, edges...))
	}
	require.NoError(b, db.Checkpoint(ctx))
	for source, degree := range degrees {
		for _, hits := range []int{1, 10} {
			keys := make([]string, hits)
			for i := range keys {
				keys[i] = some()
			}
			b.Run(fmt.Sprintf("links=%d/hits=%d", degree, hits), func(b *testing.B) {
				for b.Loop() {
					_, err := c.Why(ctx, fmt.Sprint(source), keys, nil)
					require.NoError(b, err)
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N*hits), "ms/hit")
			})
		}
	}
}

// What supports a hit: known links of the source that resemble it, paths to it, and the dimensions
// that carry its score.
func ExampleCollection_Why() {
	dir, remove := temporaryDir()
	defer remove()
	ctx := context.Background()
	db, err := flashdb.Open(dir, nil)
	check(err)
	defer db.Close()
	papers, err := db.CreateCollection("papers", flashdb.Schema{Dim: 2})
	check(err)
	check(papers.Upsert(ctx,
		flashdb.Node{Key: "bert", Embedding: []float32{2, 1}},
		flashdb.Node{Key: "attention", Embedding: []float32{3, 0}},
		flashdb.Node{Key: "seq2seq", Embedding: []float32{4, 0}},
	))
	dot, err := decoder.NewDot(2)
	check(err)
	check(papers.PutDecoder(ctx, "cites", dot))
	check(papers.Link(ctx, flashdb.Edge{Source: "bert", Target: "attention"}, flashdb.Edge{Source: "attention", Target: "seq2seq"}))

	reasons, err := papers.Why(ctx, "bert", []string{"seq2seq"}, nil)
	check(err)
	for _, r := range reasons {
		fmt.Printf("%s scores %.0f\n", r.Key, r.Score)
		fmt.Printf("like %s, cosine %.0f\n", r.ByCosine[0].Key, r.ByCosine[0].Cosine)
		fmt.Printf("by way of %s\n", r.Paths[0].Via)
		fmt.Printf("dimension 0 gives %.0f of it\n", r.Blocks[0].Contribution)
	}
	// Output:
	// seq2seq scores 8
	// like attention, cosine 1
	// by way of attention
	// dimension 0 gives 8 of it
}
