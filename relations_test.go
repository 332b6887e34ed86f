package flashdb_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// related returns a decoder with a random table.
func related(t testing.TB, kind decoder.Kind, dim int, names ...string) decoder.Decoder {
	t.Helper()
	d, err := decoder.NewRelations(kind, dim, names, randomVector(rand.New(rand.NewPCG(9, 9)), len(names)*dim))
	require.NoError(t, err)
	return d
}

// exactly ranks nodes by the score that the definition of the decoder gives a triple. Answers are
// compared with it.
func exactly(kind decoder.Kind, relation []float32, nodes map[string][]float32, source string, reverse bool, without ...string) []string {
	type scored struct {
		key   string
		score float64
	}
	var all []scored
	for key, row := range nodes {
		if key == source || slices.Contains(without, key) {
			continue
		}
		head, tail := nodes[source], row
		if reverse {
			head, tail = row, nodes[source]
		}
		var score float64
		half := len(row) / 2
		for k := range half {
			a, b, c := k, half+k, 0.0
			if kind == decoder.DistMult {
				c = float64(head[a])*float64(relation[a])*float64(tail[a]) + float64(head[b])*float64(relation[b])*float64(tail[b])
			} else {
				h := complex(float64(head[a]), float64(head[b])) * complex(float64(relation[a]), float64(relation[b]))
				c = real(h * complex(float64(tail[a]), -float64(tail[b])))
			}
			score += c
		}
		all = append(all, scored{key, score})
	}
	slices.SortFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	keys := make([]string, len(all))
	for i, s := range all {
		keys[i] = s.key
	}
	return keys
}

// knowledge returns a collection of n random nodes with a decoder of three relations and links of
// two of them.
func knowledge(t testing.TB, d *testDB, kind decoder.Kind, n int) (*flashdb.Collection, map[string][]float32, decoder.Decoder) {
	t.Helper()
	ctx := context.Background()
	c := d.collection("entities", 8)
	rng := rand.New(rand.NewPCG(4, 4))
	nodes := map[string][]float32{}
	var all []flashdb.Node
	for i := range n {
		node := flashdb.Node{Key: fmt.Sprintf("e%d", i), Embedding: randomVector(rng, 8)}
		nodes[node.Key] = node.Embedding
		all = append(all, node)
	}
	require.NoError(t, c.Upsert(ctx, all...))
	dec := related(t, kind, 8, "treats", "causes", "is part of")
	require.NoError(t, c.PutDecoder(ctx, "kg", dec))
	require.NoError(t, c.Link(ctx,
		flashdb.Edge{Source: "e0", Target: "e1", Relation: "treats"}, flashdb.Edge{Source: "e0", Target: "e2", Relation: "treats"},
		flashdb.Edge{Source: "e0", Target: "e3", Relation: "causes"}, flashdb.Edge{Source: "e4", Target: "e0", Relation: "treats"},
		flashdb.Edge{Source: "e0", Target: "e5"}))
	return c, nodes, dec
}

func TestPredictRelation(t *testing.T) {
	ctx := context.Background()
	for _, kind := range []decoder.Kind{decoder.DistMult, decoder.ComplEx} {
		d := openDB(t)
		c, nodes, dec := knowledge(t, d, kind, 40)
		table := dec.Tensors()[dec.Spec().Relation].Data
		treats, causes := table[:8], table[8:16]
		check := func(o flashdb.PredictOptions, want []string) {
			t.Helper()
			res, err := c.Predict(ctx, "e0", 40, &o)
			require.NoError(t, err)
			assert.Equal(t, want, keysOf(t, res))
		}
		for range 2 {
			check(flashdb.PredictOptions{Relation: "treats"}, exactly(kind, treats, nodes, "e0", false, "e1", "e2"))
			check(flashdb.PredictOptions{Relation: "treats", Reverse: true}, exactly(kind, treats, nodes, "e0", true, "e4"))
			check(flashdb.PredictOptions{Relation: "causes"}, exactly(kind, causes, nodes, "e0", false, "e3"))
			check(flashdb.PredictOptions{Relation: "treats", IncludeLinked: true}, exactly(kind, treats, nodes, "e0", false))
			check(flashdb.PredictOptions{Relation: "is part of", Exclude: []string{"e7"}}, exactly(kind, table[16:], nodes, "e0", false, "e7"))
			d.reopen()
			var err error
			c, err = d.Collection("entities")
			require.NoError(t, err)
		}

		// The other calls agree.
		want, err := c.Predict(ctx, "e9", 5, &flashdb.PredictOptions{Relation: "causes", Reverse: true})
		require.NoError(t, err)
		vector, err := c.PredictVector(ctx, nodes["e9"], 5, &flashdb.PredictOptions{Relation: "causes", Reverse: true, Exclude: []string{"e9"}})
		require.NoError(t, err)
		assert.Equal(t, want.Hits, vector.Hits)
		for res, err := range c.PredictBatch(ctx, []string{"e9"}, 5, &flashdb.PredictOptions{Relation: "causes", Reverse: true}) {
			require.NoError(t, err)
			assert.Equal(t, want.Hits, res.Hits)
		}
		scores, err := c.Score(ctx, "e9", keysOf(t, want), &flashdb.ScoreOptions{Relation: "causes", Reverse: true})
		require.NoError(t, err)
		assert.Equal(t, want.Hits, scores)
		back, err := c.Score(ctx, want.Hits[0].Key, []string{"e9"}, &flashdb.ScoreOptions{Relation: "causes"})
		require.NoError(t, err)
		assert.InDelta(t, want.Hits[0].Score, back[0].Score, 1e-5, "the same triple from its other end")
	}
}

func TestRelationErrors(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c, _, _ := knowledge(t, d, decoder.ComplEx, 10)
	require.NoError(t, c.PutDecoder(ctx, "plain", dotDecoder(t, 8)))
	for _, tt := range []struct {
		o    flashdb.PredictOptions
		want string
	}{
		{flashdb.PredictOptions{Decoder: "kg"}, `decoder "kg": it has 3 relations and none was named: name one, such as "treats", "causes", "is part of"`},
		{flashdb.PredictOptions{Decoder: "kg", Relation: "treat"}, `decoder "kg": relation "treat" is not known: the decoder has 3, such as`},
		{flashdb.PredictOptions{Decoder: "plain", Relation: "treats"}, `decoder "plain": relation "treats": this dot decoder has no relations`},
		{flashdb.PredictOptions{Decoder: "plain", Reverse: true}, "reverse is the other direction of a relation: name the relation"},
	} {
		_, err := c.Predict(ctx, "e0", 3, &tt.o)
		assert.ErrorIs(t, err, flashdb.ErrInvalid)
		assert.ErrorContains(t, err, tt.want)
		_, err = c.Score(ctx, "e0", []string{"e1"}, &flashdb.ScoreOptions{Decoder: tt.o.Decoder, Relation: tt.o.Relation, Reverse: tt.o.Reverse})
		assert.ErrorIs(t, err, flashdb.ErrInvalid)
	}
	// With a decoder without relations, every linked node is left out.
	res, err := c.Predict(ctx, "e0", 10, &flashdb.PredictOptions{Decoder: "plain"})
	require.NoError(t, err)
	keys := keysOf(t, res)
	slices.Sort(keys)
	assert.Equal(t, []string{"e4", "e6", "e7", "e8", "e9"}, keys)
}

func TestLinksWithRelations(t *testing.T) {
	ctx := context.Background()
	d := openDB(t)
	c, _, _ := knowledge(t, d, decoder.DistMult, 10)
	linked := func(of flashdb.Edge) []string {
		t.Helper()
		keys, err := c.Linked(ctx, of)
		require.NoError(t, err)
		return keys
	}
	assert.Equal(t, []string{"e1", "e2", "e3", "e5"}, linked(flashdb.Edge{Source: "e0"}))
	assert.Equal(t, []string{"e1", "e2"}, linked(flashdb.Edge{Source: "e0", Relation: "treats"}))
	assert.Equal(t, []string{"e4"}, linked(flashdb.Edge{Target: "e0", Relation: "treats"}))
	assert.Empty(t, linked(flashdb.Edge{Source: "e0", Relation: "is part of"}))
	for _, of := range []flashdb.Edge{{Target: "e0"}, {Source: "e0", Target: "e1", Relation: "treats"}} {
		_, err := c.Linked(ctx, of)
		assert.ErrorIs(t, err, flashdb.ErrInvalid)
	}

	all := func() []flashdb.Edge {
		t.Helper()
		edges := linksOf(t, c)
		require.NoError(t, d.Checkpoint(ctx))
		assert.Equal(t, edges, linksOf(t, c), "in the file as in memory")
		return edges
	}
	want := []flashdb.Edge{
		{Source: "e0", Target: "e5"},
		{Source: "e0", Target: "e3", Relation: "causes"},
		{Source: "e0", Target: "e1", Relation: "treats"},
		{Source: "e0", Target: "e2", Relation: "treats"},
		{Source: "e4", Target: "e0", Relation: "treats"},
	}
	assert.Equal(t, want, all())

	// A backup holds them.
	var stream bytes.Buffer
	_, err := d.Backup(ctx, &stream, nil)
	require.NoError(t, err)
	copied := t.TempDir() + "/copy"
	_, err = flashdb.Restore(ctx, &stream, copied, nil)
	require.NoError(t, err)
	other, err := flashdb.Open(copied, nil)
	require.NoError(t, err)
	defer other.Close()
	restored, err := other.Collection("entities")
	require.NoError(t, err)
	assert.Equal(t, want, linksOf(t, restored))

	forgotten, err := c.Unlink(ctx,
		flashdb.Edge{Source: "e0", Target: "e1"}, // not known without a relation
		flashdb.Edge{Source: "e0", Target: "e1", Relation: "treats"}, flashdb.Edge{Source: "e0", Target: "e5", Relation: "treats"},
		flashdb.Edge{Source: "e4", Target: "e0", Relation: "treats"})
	require.NoError(t, err)
	assert.Equal(t, 2, forgotten)
	assert.Empty(t, linked(flashdb.Edge{Target: "e0", Relation: "treats"}))
	_, err = c.Delete(ctx, "e2")
	require.NoError(t, err)
	assert.Equal(t, want[:2], all())
	assert.ErrorIs(t, c.Link(ctx, flashdb.Edge{Source: "e0", Target: "e1", Relation: string(make([]byte, 1025))}), flashdb.ErrInvalid)

	// A batch keeps relations, also when it is encoded for another process.
	var b, sent flashdb.Batch
	b.Link("entities", flashdb.Edge{Source: "e7", Target: "e8", Relation: "treats"})
	data, err := b.MarshalBinary()
	require.NoError(t, err)
	require.NoError(t, sent.UnmarshalBinary(data))
	require.NoError(t, d.Apply(ctx, &sent))
	assert.Equal(t, []string{"e7"}, linked(flashdb.Edge{Target: "e8", Relation: "treats"}))
}

// Links with relations between users and items are predicted in both directions.
func TestRelationsAcross(t *testing.T) {
	ctx := context.Background()
	d := shop(t, flashdb.Schema{Dim: 2}, flashdb.Schema{Dim: 2})
	items, err := d.Collection("items")
	require.NoError(t, err)
	users, err := d.Collection("users")
	require.NoError(t, err)
	dec := related(t, decoder.DistMult, 2, "likes", "has bought")
	require.NoError(t, items.PutDecoder(ctx, "likes", dec))
	require.NoError(t, users.PutDecoder(ctx, "likes", dec))
	bought := likes("ann", "cake")
	bought.Relation = "has bought"
	liked := likes("bob", "cake")
	liked.Relation = "likes"
	require.NoError(t, items.Link(ctx, bought, liked))
	for range 2 {
		assert.Equal(t, []flashdb.Edge{bought, liked}, linksOf(t, items))
		assert.Empty(t, linksOf(t, users), "what leads to an item in reverse is no link to a user")
		require.NoError(t, d.Checkpoint(ctx))
	}
	predicted := func(c *flashdb.Collection, key, from, relation string, reverse bool) []string {
		t.Helper()
		res, err := c.Predict(ctx, key, 5, &flashdb.PredictOptions{SourceCollection: from, Relation: relation, Reverse: reverse})
		require.NoError(t, err)
		keys := keysOf(t, res)
		slices.Sort(keys)
		return keys
	}
	assert.Equal(t, []string{"soup", "tea"}, predicted(items, "ann", "users", "has bought", false))
	assert.Equal(t, []string{"cake", "soup", "tea"}, predicted(items, "ann", "users", "likes", false))
	assert.Equal(t, []string{"bob", "tea"}, predicted(users, "cake", "items", "has bought", true))
	assert.Equal(t, []string{"ann", "tea"}, predicted(users, "cake", "items", "likes", true))
	require.NoError(t, d.DropCollection(ctx, "items"))
	findings, err := d.Check(ctx)
	require.NoError(t, err)
	assert.Empty(t, findings)
}

// One calibration serves all relations, from the index.
func TestCalibrateRelations(t *testing.T) {
	computes(t)
	ctx := context.Background()
	for _, kind := range []decoder.Kind{decoder.DistMult, decoder.ComplEx} {
		d := openDB(t)
		c, nodes, dec := knowledge(t, d, kind, 6000)
		_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
		require.NoError(t, err)
		all, err := c.Calibrate(ctx, &flashdb.CalibrateOptions{Sources: 60, Time: time.Minute})
		require.NoError(t, err)
		require.Len(t, all, 1)
		assert.Equal(t, "kg", all[0].Decoder)
		assert.NotEmpty(t, all[0].Frontiers)
		for _, f := range all[0].Frontiers {
			for _, p := range f.Plans {
				assert.Contains(t, dec.Spec().Relations, p.Relation)
				assert.LessOrEqual(t, p.RelationMean, p.Mean+1e-9, "the lowest of all three, of which each is asked often")
			}
		}
		table := dec.Tensors()[dec.Spec().Relation].Data
		found, asked := 0, 0
		for i, name := range dec.Spec().Relations {
			for key := 100; key < 110; key++ {
				source := fmt.Sprintf("e%d", key)
				for _, reverse := range []bool{false, true} {
					// Half of the rows, so that it is the index that answers and not a scan.
					o := flashdb.PredictOptions{Relation: name, Reverse: reverse, Plan: &flashlight.Plan{Probes: index.Probes{Share: 0.5}}}
					res, err := c.Predict(ctx, source, 10, &o)
					require.NoError(t, err)
					require.NotContains(t, res.Stats.Plan, "exact")
					want := exactly(kind, table[8*i:8*i+8], nodes, source, reverse)[:10]
					asked += len(want)
					for _, key := range keysOf(t, res) {
						if slices.Contains(want, key) {
							found++
						}
					}
				}
			}
		}
		assert.Greater(t, float64(found)/float64(asked), 0.95, "%s", kind)
	}
}
