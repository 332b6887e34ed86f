package train_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

// family is a knowledge graph that follows rules: people in a line of descent, with a relation, its
// inverse, a symmetric one, and one that is composed of two others.
func family(people int) *train.Graph {
	g := &train.Graph{Nodes: people, Directed: true, Relations: 4, RelationNames: []string{"parent of", "child of", "married to", "grandparent of"}}
	add := func(from, to int, relation uint16) {
		if to < people {
			g.Edges = append(g.Edges, train.Edge{Source: uint32(from), Target: uint32(to), Relation: relation})
		}
	}
	for i := range people {
		for _, child := range []int{2*i + 1, 2*i + 2} {
			add(i, child, 0)
			if child < people {
				g.Edges = append(g.Edges, train.Edge{Source: uint32(child), Target: uint32(i), Relation: 1})
			}
			for _, grandchild := range []int{2*child + 1, 2*child + 2} {
				add(i, grandchild, 3)
			}
		}
		if i%2 == 1 {
			add(i, i+1, 2)
			if i+1 < people {
				add(i+1, i, 2)
			}
		}
	}
	return g
}

// heldOut deals a share of the edges whose inverse stays.
func heldOut(g *train.Graph, rng *rand.Rand) (split train.Split) {
	for _, e := range g.Edges {
		switch n := rng.IntN(20); {
		case n == 0 && e.Relation < 3:
			split.Test = append(split.Test, e)
		case n == 1 && e.Relation < 3:
			split.Valid = append(split.Valid, e)
		default:
			split.Train = append(split.Train, e)
		}
	}
	return split
}

// kin is a knowledge graph in which all pairs of nodes are linked, as in a tribe whose members all
// have a word for each other. The relation of a pair follows from the classes of its nodes. A score
// that is blind to the relation says nothing.
func kin(nodes int) *train.Graph {
	const classes = 8
	g := &train.Graph{Nodes: nodes, Directed: true, Relations: classes}
	for a := range nodes {
		for b := range nodes {
			if a != b {
				g.Edges = append(g.Edges, train.Edge{Source: uint32(a), Target: uint32(b), Relation: uint16(a%classes ^ b%classes)})
			}
		}
	}
	return g
}

// TestRelationsDifferFromTheStart checks that a few epochs teach DistMult and ComplEx what only the
// relations tell apart. A DistMult whose relations began almost alike had learned nothing by then.
func TestRelationsDifferFromTheStart(t *testing.T) {
	t.Parallel()
	g := kin(48)
	for _, kind := range []decoder.Kind{decoder.DistMult, decoder.ComplEx} {
		for seed := range uint64(3) {
			split := train.RandomSplit(g, .1, 0, seed)
			m, err := train.Run(context.Background(), g, split, train.Options{Decoder: kind, Epochs: 12, Seed: seed})
			require.NoError(t, err)
			t.Logf("%s, seed %d: validation %.3f", kind, seed, m.Epochs[m.Best].Valid)
			assert.Greater(t, m.Epochs[m.Best].Valid, .3, "%s, seed %d", kind, seed)
		}
	}
}

// TestComplExLearnsRules checks that ComplEx predicts held-out links at either end from inverse,
// symmetric and composed relations. DistMult, whose score is symmetric, cannot tell parents from
// children and does worse.
func TestComplExLearnsRules(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes for minutes under the race detector, in the goroutines of TestEveryEncoderAndDecoderLearns")
	}
	g := family(300)
	split := heldOut(g, rand.New(rand.NewPCG(8, 8)))
	require.Greater(t, len(split.Test), 30)
	mrr := map[decoder.Kind]float64{}
	for _, kind := range []decoder.Kind{decoder.ComplEx, decoder.DistMult} {
		m, err := train.Run(context.Background(), g, split, train.Options{
			Encoder: train.MF, Decoder: kind, Dim: 64, Epochs: 150, Patience: 150, BatchEdges: 64, PerLink: 32, LearningRate: 0.01, Seed: 1,
		})
		require.NoError(t, err)
		assert.Equal(t, g.RelationNames, m.Decoder.Spec().Relations)
		task := m.Task(split.Test)
		task.All, task.Known, task.Hits = true, append(append([]train.Edge(nil), split.Train...), split.Valid...), []int{1, 3, 10}
		metrics, err := train.Evaluate(context.Background(), task)
		require.NoError(t, err)
		t.Logf("%s: MRR %.3f, tails %.3f, heads %.3f, hits %v", kind, metrics.MRR, metrics.Tails.MRR, metrics.Heads.MRR, metrics.Hits)
		assert.InDelta(t, metrics.MRR, (metrics.Tails.MRR+metrics.Heads.MRR)/2, 1e-12)
		mrr[kind] = metrics.MRR
	}
	assert.Greater(t, mrr[decoder.ComplEx], 0.7)
	assert.Greater(t, mrr[decoder.ComplEx], mrr[decoder.DistMult])
}

// TestBothEnds compares the ranks of heads with those of the turned task, ranked as tails.
func TestBothEnds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const nodes, dim = 60, 6
	random := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	names := []string{"a", "b"}
	d, err := decoder.NewRelations(decoder.ComplEx, dim, names, random(2*dim))
	require.NoError(t, err)
	task := &train.Task{Dim: dim, Embeddings: random(nodes * dim), All: true, Hits: []int{3}}
	task.Decoders, task.Reversed, err = train.ByRelation(d, names)
	require.NoError(t, err)
	edge := func() train.Edge {
		return train.Edge{Source: uint32(rng.IntN(10)), Target: uint32(10 + rng.IntN(50)), Relation: uint16(rng.IntN(2))}
	}
	for range 80 {
		task.Edges, task.Known = append(task.Edges, edge()), append(task.Known, edge())
	}
	m, err := train.Evaluate(context.Background(), task)
	require.NoError(t, err)
	known := map[train.Edge]bool{}
	for _, e := range append(append([]train.Edge(nil), task.Edges...), task.Known...) {
		known[e] = true
	}
	score := func(e train.Edge) float32 {
		var s [1]float32
		one, err := decoder.ForRelation(d, names[e.Relation], false)
		require.NoError(t, err)
		one.Bind(nil, task.Embeddings[e.Source*dim:(e.Source+1)*dim]).Score(nil, s[:], task.Embeddings[e.Target*dim:(e.Target+1)*dim])
		return s[0]
	}
	var tails, heads float64
	for _, e := range task.Edges {
		rank, place := 1, 1
		for n := range uint32(nodes) {
			if other := (train.Edge{Source: e.Source, Target: n, Relation: e.Relation}); n != e.Source && !known[other] && score(other) > score(e) {
				rank++
			}
			if other := (train.Edge{Source: n, Target: e.Target, Relation: e.Relation}); n != e.Target && !known[other] && score(other) > score(e) {
				place++
			}
		}
		tails, heads = tails+1/float64(rank)/80, heads+1/float64(place)/80
	}
	assert.InDelta(t, tails, m.Tails.MRR, 1e-4)
	assert.InDelta(t, heads, m.Heads.MRR, 1e-4)
	assert.InDelta(t, (tails+heads)/2, m.MRR, 1e-4)
	_, _, err = train.ByRelation(d, []string{"c"})
	assert.ErrorContains(t, err, `relation "c" is not known`)
	task.Sources = 5
	_, err = train.Evaluate(context.Background(), task)
	assert.ErrorContains(t, err, "2 decoders in reverse: want 2, one for each, one kind of node")
}
