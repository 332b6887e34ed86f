package train_test

import (
	"context"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

// line returns a task whose scores are easy to compute: with the dot product of one dimension, the
// score of a candidate is its number times that of the source.
func line(t *testing.T, nodes int) *train.Task {
	dot, err := decoder.NewDot(1)
	require.NoError(t, err)
	task := &train.Task{Decoders: []decoder.Decoder{dot}, Dim: 1}
	for i := range nodes {
		task.Embeddings = append(task.Embeddings, float32(i))
	}
	return task
}

func evaluate(t *testing.T, task *train.Task) *train.Metrics {
	t.Helper()
	m, err := train.Evaluate(context.Background(), task)
	require.NoError(t, err)
	return m
}

func TestEvaluateAll(t *testing.T) {
	task := line(t, 10)
	task.All = true
	task.Edges = []train.Edge{{Source: 1, Target: 7}, {Source: 1, Target: 4}, {Source: 9, Target: 8}}
	// Of source 1: 9 and 8 are above 7; above 4 are 9, 8, 6, 5, for 7 is a link too. Of source 9
	// nothing is above 8.
	m := evaluate(t, task)
	assert.InDelta(t, (1./3+1./5+1)/3, m.MRR, 1e-12)
	assert.Equal(t, map[int]float64{1: 1. / 3, 10: 1, 50: 1}, m.Hits)
	task.Known = []train.Edge{{Source: 1, Target: 9}, {Source: 5, Target: 1}}
	m = evaluate(t, task)
	assert.InDelta(t, (1./2+1./4+1)/3, m.MRR, 1e-12)
	require.Len(t, m.Degree, 2)
	assert.Equal(t, []int{0, 0, 1}, []int{m.Degree[0].From, m.Degree[0].To, m.Degree[0].Edges})
	assert.Equal(t, []int{1, 9, 2}, []int{m.Degree[1].From, m.Degree[1].To, m.Degree[1].Edges})
	assert.InDelta(t, (1./2+1./4)/2, m.Degree[1].MRR, 1e-12)
	task.Undirected = true // 5-1 is a link of 1 then, between 4 and 7
	assert.InDelta(t, (1./2+1./3+1)/3, evaluate(t, task).MRR, 1e-12)
	task.Sources = 8 // only 8 and 9 are candidates; 4 and 7 are none
	task.Edges = task.Edges[2:]
	assert.InDelta(t, 1./2, evaluate(t, task).MRR, 1e-12)
}

func TestEvaluateGivenNegatives(t *testing.T) {
	task := line(t, 10)
	task.Edges = []train.Edge{{Source: 2, Target: 5}, {Source: 3, Target: 9}}
	task.Candidates = [][]uint32{{6, 5, 4, 1}, {8}}
	task.Hits = []int{1, 2}
	// 6 is above 5, and 5 is a tie: place 2.5.
	m := evaluate(t, task)
	assert.InDelta(t, (1/2.5+1)/2, m.MRR, 1e-12)
	assert.Equal(t, map[int]float64{1: 0.5, 2: 0.5}, m.Hits)
	assert.InDelta(t, (1-1.5/4+1)/2, m.AUC, 1e-12)
}

// TestEvaluateSharedNegatives has the numbers OGB's evaluator gives: hits are above the k-th best
// negative.
func TestEvaluateSharedNegatives(t *testing.T) {
	task := line(t, 10)
	task.Edges = []train.Edge{{Source: 1, Target: 9}, {Source: 1, Target: 6}, {Source: 2, Target: 4}, {Source: 0, Target: 5}}         // 9 6 8 0
	task.NegativeEdges = []train.Edge{{Source: 1, Target: 8}, {Source: 2, Target: 3}, {Source: 1, Target: 1}, {Source: 1, Target: 7}} // 8 6 1 7
	task.Hits = []int{1, 2, 3, 4, 5}
	m := evaluate(t, task)
	assert.Equal(t, map[int]float64{1: 0.25, 2: 0.5, 3: 0.5, 4: 0.75, 5: 1}, m.Hits)
	assert.InDelta(t, (4+1.5+3.5+0)/16, m.AUC, 1e-12)
}

// TestEvaluateSample ranks among negatives that are drawn, which none of the known links may be.
func TestEvaluateSample(t *testing.T) {
	task := line(t, 6)
	task.Edges = []train.Edge{{Source: 1, Target: 3}}
	task.Known = []train.Edge{{Source: 1, Target: 5}, {Source: 1, Target: 4}}
	assert.InDelta(t, 1, evaluate(t, task).MRR, 0, "nothing above 3 is a negative")
	task.Known = task.Known[:1]
	m := evaluate(t, task)
	assert.Less(t, m.MRR, 0.1, "of 100 draws among 0, 2 and 4 a third is above 3")
	task.Cores = 3
	assert.Equal(t, m, evaluate(t, task))
	task.Seed = 1
	assert.NotEqual(t, m.MRR, evaluate(t, task).MRR)
	task.Known = []train.Edge{{Source: 1, Target: 0}, {Source: 1, Target: 2}, {Source: 1, Target: 4}, {Source: 1, Target: 5}}
	assert.InDelta(t, 1, evaluate(t, task).MRR, 0, "no negatives are left")
}

// TestEvaluateAgainstSort compares the ranks of a network, by relation, with those of a plain sort.
func TestEvaluateAgainstSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	const nodes, dim = 300, 8
	task := &train.Task{Dim: dim, All: true, Hits: []int{10}, Cores: 2}
	for range nodes * dim {
		task.Embeddings = append(task.Embeddings, float32(rng.NormFloat64()))
	}
	for range 3 {
		r := make([]float32, dim)
		for i := range r {
			r[i] = float32(rng.NormFloat64())
		}
		d, err := decoder.NewDistMult(r)
		require.NoError(t, err)
		task.Decoders = append(task.Decoders, d)
	}
	edge := func() train.Edge {
		return train.Edge{Source: uint32(rng.IntN(20)), Target: uint32(100 + rng.IntN(200)), Relation: uint16(rng.IntN(3))}
	}
	for range 200 {
		task.Edges, task.Known = append(task.Edges, edge()), append(task.Known, edge())
	}
	known := map[train.Edge]bool{}
	for _, e := range append(append([]train.Edge(nil), task.Edges...), task.Known...) {
		known[e] = true
	}
	var mrr float64
	for _, e := range task.Edges {
		var s decoder.Scratch
		scores := make([]float32, nodes)
		task.Decoders[e.Relation].Bind(nil, task.Embeddings[e.Source*dim:(e.Source+1)*dim]).Score(&s, scores, task.Embeddings)
		var rivals []float64
		for c, x := range scores {
			other := train.Edge{Source: e.Source, Target: uint32(c), Relation: e.Relation}
			if !known[other] && other.Source != other.Target {
				rivals = append(rivals, -float64(x))
			}
		}
		sort.Float64s(rivals)
		mrr += 1 / float64(1+sort.SearchFloat64s(rivals, -float64(scores[e.Target])))
	}
	assert.InDelta(t, mrr/200, evaluate(t, task).MRR, 1e-9)
}

func TestEvaluateRefuses(t *testing.T) {
	one := []train.Edge{{Source: 0, Target: 1}}
	tests := map[string]func(*train.Task){
		"no links":              func(t *train.Task) { t.Edges = nil },
		"no decoder":            func(t *train.Task) { t.Decoders = nil },
		"leads from node 0":     func(t *train.Task) { t.Edges = []train.Edge{{Target: 9}} },
		"known link 0":          func(t *train.Task) { t.Known = []train.Edge{{Target: 9}} },
		"negative 0 leads":      func(t *train.Task) { t.NegativeEdges = []train.Edge{{Target: 9}} },
		"2 lists":               func(t *train.Task) { t.Candidates = make([][]uint32, 2) },
		"negative node 9":       func(t *train.Task) { t.Candidates = [][]uint32{{9}} },
		"more than one":         func(t *train.Task) { t.All, t.Sample = true, 1 },
		"sources":               func(t *train.Task) { t.Sources = 3 },
		"no rows of 0":          func(t *train.Task) { t.Dim = 0 },
		"is of 1 dimensions":    func(t *train.Task) { t.Dim, t.Embeddings = 2, make([]float32, 6) },
		"hits@0":                func(t *train.Task) { t.Hits = []int{0} },
		"-1 negatives per link": func(t *train.Task) { t.Sample = -1 },
	}
	for want, change := range tests {
		task := line(t, 3)
		task.Edges = one
		change(task)
		_, err := train.Evaluate(context.Background(), task)
		assert.ErrorContains(t, err, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	task := line(t, 3)
	task.Edges = one
	_, err := train.Evaluate(ctx, task)
	assert.ErrorIs(t, err, context.Canceled)
}
