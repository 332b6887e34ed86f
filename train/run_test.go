package train_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/encoder"
	"github.com/flashdb/flashdb/train"
)

// communities returns a graph whose nodes link within their group, mostly: links that can be
// learned.
func communities(nodes, groups, links int, seed uint64) *train.Graph {
	rng := rand.New(rand.NewPCG(seed, 1))
	g := &train.Graph{Nodes: nodes, Directed: true}
	for range links {
		a := rng.IntN(nodes)
		b := rng.IntN(nodes/groups)*groups + a%groups
		if rng.IntN(20) == 0 {
			b = rng.IntN(nodes)
		}
		g.Edges = append(g.Edges, train.Edge{Source: uint32(a), Target: uint32(b)})
	}
	return g
}

func small() train.Options {
	return train.Options{Dim: 16, EncoderHidden: 32, BatchEdges: 256, Epochs: 5, Seed: 3}
}

func TestRunLearns(t *testing.T) {
	g := communities(600, 12, 6000, 1)
	split := train.RandomSplit(g, 0.05, 0.1, 1)
	m, err := train.Run(context.Background(), g, split, small())
	require.NoError(t, err)
	require.Len(t, m.Embeddings, 600*16)
	require.Len(t, m.Epochs, 5)
	r, err := train.Evaluate(context.Background(), m.Task(split.Test))
	require.NoError(t, err)
	// A model that knows the groups alone ranks a link among about 100/12 others of the group.
	assert.Greater(t, r.MRR, 0.2)
	assert.Greater(t, r.AUC, 0.85)
}

func TestRunIsDeterministic(t *testing.T) {
	for name, o := range map[string]train.Options{
		"default": small(),
		"softmax": {Encoder: train.MF, Decoder: decoder.ComplEx, Loss: train.Softmax, PerLink: 100, Dim: 16, BatchEdges: 1024},
	} {
		t.Run(name, func(t *testing.T) { runsAreEqual(t, o) })
	}
}

func runsAreEqual(t *testing.T, o train.Options) {
	g := communities(300, 6, 2000, 2)
	var models []*train.Model
	for _, cores := range []int{1, 2, 5} {
		o.Cores, o.Dropout, o.Epochs = cores, 0.2, 2
		m, err := train.Run(context.Background(), g, train.Split{}, o)
		require.NoError(t, err)
		models = append(models, m)
	}
	for _, m := range models[1:] {
		assert.Equal(t, models[0].Embeddings, m.Embeddings)
		assert.Equal(t, models[0].Decoder.Tensors(), m.Decoder.Tensors())
	}
}

// TestEveryEncoderAndDecoderLearns trains each of them, with each loss and kind of negatives, on a
// graph a model can learn.
func TestEveryEncoderAndDecoderLearns(t *testing.T) {
	type options = train.Options
	cases := map[string]options{
		"mf":             {Encoder: train.MF, LearningRate: 0.02},
		"gcn":            {Encoder: train.GCN, LearningRate: 0.02},
		"sage":           {Encoder: train.SAGE, LearningRate: 0.02, Dropout: 0.2},
		"node2vec":       {Encoder: train.Node2Vec, WalkReturn: 0.5, WalkInOut: 2},
		"dot":            {Decoder: decoder.Dot},
		"bilinear":       {Decoder: decoder.Bilinear},
		"distmult":       {Decoder: decoder.DistMult},
		"complex":        {Decoder: decoder.ComplEx},
		"concat":         {Decoder: decoder.ConcatMLP, DecoderNorm: true},
		"mixture":        {Decoder: decoder.MoL},
		"residuals":      {DecoderResidual: true, DecoderHidden: []int{16, 16, 16}},
		"plnlp":          {Loss: train.PLNLP},
		"softmax":        {Loss: train.Softmax},
		"shared":         {Encoder: train.MF, Decoder: decoder.Dot, Loss: train.Softmax, PerLink: 100, LearningRate: 0.02},
		"batch":          {Negatives: train.Batch},
		"degree":         {Negatives: train.Degree},
		"pairs":          {Negatives: train.Pairs},
		"weight decay":   {WeightDecay: 0.01, Dropout: 0.1},
		"no hidden":      {DecoderHidden: []int{}},
		"one fold":       {Folds: 1},
		"a batch of one": {BatchEdges: 1, Epochs: 1},
	}
	if testing.Short() { // one of each way to run in parallel
		parallel := []string{"mf", "gcn", "sage", "node2vec", "concat", "shared"}
		maps.DeleteFunc(cases, func(name string, _ options) bool { return !slices.Contains(parallel, name) })
	}
	g := communities(400, 8, 5000, 4)
	split := train.RandomSplit(g, 0.05, 0.1, 1)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.Dim, c.Seed, c.EncoderHidden = 16, 2, 32
			if c.BatchEdges == 0 {
				c.BatchEdges, c.Epochs = 128, 10
			}
			m, err := train.Run(context.Background(), g, split, c)
			require.NoError(t, err)
			r, err := train.Evaluate(context.Background(), m.Task(split.Test))
			require.NoError(t, err)
			assert.Greater(t, r.AUC, 0.75)
		})
	}
}

// TestResume cancels a run in its third epoch and lets another go on: the result is that of a run
// left alone.
func TestResume(t *testing.T) {
	g := communities(300, 6, 2000, 3)
	kinds := []train.EncoderKind{train.Hops, train.SAGE, train.Node2Vec}
	if testing.Short() {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			o := small()
			o.Encoder, o.Dropout = kind, 0.1
			want, err := train.Run(context.Background(), g, train.Split{}, o)
			require.NoError(t, err)

			ctx, cancel := context.WithCancel(context.Background())
			o.Checkpoint = filepath.Join(t.TempDir(), "run.ckpt")
			o.Progress = func(p train.Progress) {
				if p.Epoch == 2 && p.Share == 1 {
					cancel()
				}
			}
			part, err := train.Run(ctx, g, train.Split{}, o)
			require.NoError(t, err)
			require.Len(t, part.Epochs, 2)
			assert.Equal(t, "cancelled", part.Stopped)

			o.Progress, o.Resume = nil, true
			got, err := train.Run(context.Background(), g, train.Split{}, o)
			require.NoError(t, err)
			assert.Len(t, got.Epochs, 5)
			assert.Equal(t, want.Embeddings, got.Embeddings)
			assert.Equal(t, want.Decoder.Tensors(), got.Decoder.Tensors())
			left, err := os.ReadDir(filepath.Dir(o.Checkpoint))
			require.NoError(t, err)
			assert.Len(t, left, 1, "temporary files are gone")
		})
	}
}

// TestResumeRefuses gives checkpoints that are damaged or of another run.
func TestResumeRefuses(t *testing.T) {
	g := communities(60, 6, 300, 3)
	o := train.Options{Dim: 4, EncoderHidden: 4, Epochs: 1, Encoder: train.MF, Checkpoint: filepath.Join(t.TempDir(), "run.ckpt")}
	_, err := train.Run(context.Background(), g, train.Split{}, o)
	require.NoError(t, err)
	whole, err := os.ReadFile(o.Checkpoint)
	require.NoError(t, err)
	o.Resume = true
	o.Epochs = 2
	resume := func(data []byte) error {
		require.NoError(t, os.WriteFile(o.Checkpoint, data, 0o600))
		_, err := train.Run(context.Background(), g, train.Split{}, o)
		return err
	}
	for i := 0; i < len(whole); i += max(1, len(whole)/200) {
		bad := append([]byte(nil), whole...)
		bad[i] ^= 0x41
		require.ErrorContains(t, resume(bad), "checkpoint", "byte %d of %d", i, len(whole))
		require.ErrorContains(t, resume(whole[:i]), "checkpoint", "cut at %d", i)
	}
	require.ErrorContains(t, resume(append(whole[:len(whole):len(whole)], make([]byte, 32)...)), "checkpoint")
	require.NoError(t, resume(whole))
	o.Dim = 6
	assert.ErrorContains(t, resume(whole), "another graph, split or options")
}

// TestRunRefuses names every fault of graph, split and options.
func TestRunRefuses(t *testing.T) {
	edges := []train.Edge{{Source: 0, Target: 1}, {Source: 2, Target: 3}}
	nan := float32(math.NaN())
	tests := map[string]struct {
		g     train.Graph
		split train.Split
		o     train.Options
	}{
		"a graph of 1 nodes":                       {g: train.Graph{Nodes: 1}},
		"edge 1 leads from node 2 to 3":            {g: train.Graph{Nodes: 3, Edges: edges}},
		"want a source below 2":                    {g: train.Graph{Nodes: 5, Sources: 2, Edges: edges}},
		"at least one target":                      {g: train.Graph{Nodes: 5, Sources: 5}},
		"feature 1 of node 0 is NaN":               {g: train.Graph{Nodes: 2, Features: []float32{0, nan, 0, 0}, FeatureDim: 2}},
		"3 feature values for 2 nodes":             {g: train.Graph{Nodes: 2, Features: []float32{0, 0, 0}, FeatureDim: 2}},
		"edge 0 has relation 4":                    {g: train.Graph{Nodes: 2, Relations: 2, Edges: []train.Edge{{Target: 1, Relation: 4}}}},
		"no training edges: 1 were given":          {g: train.Graph{Nodes: 4}, split: train.Split{Train: []train.Edge{{Source: 1, Target: 1}}}},
		"training edge 0 leads from node 0 to 9":   {g: train.Graph{Nodes: 4}, split: train.Split{Train: []train.Edge{{Target: 9}}}},
		"validation edge 0 leads from node 0 to 9": {g: train.Graph{Nodes: 4}, split: train.Split{Train: edges, Valid: []train.Edge{{Target: 9}}}},
		"encoder \"gat\"":                          {g: train.Graph{Nodes: 4, Edges: edges}, o: train.Options{Encoder: "gat"}},
		"Dropout is 1":                             {g: train.Graph{Nodes: 4, Edges: edges}, o: train.Options{Dropout: 1}},
		"Dim is -1":                                {g: train.Graph{Nodes: 4, Edges: edges}, o: train.Options{Dim: -1, LearningRate: -2}},
		"LearningRate is -2":                       {g: train.Graph{Nodes: 4, Edges: edges}, o: train.Options{Dim: -1, LearningRate: -2}},
		"MiB are allowed":                          {g: train.Graph{Nodes: 4000, Edges: edges}, o: train.Options{MemoryBytes: 1 << 20}},
	}
	for want, c := range tests {
		_, err := train.Run(context.Background(), &c.g, c.split, c.o)
		assert.ErrorContains(t, err, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := train.Run(ctx, communities(50, 5, 100, 1), train.Split{}, small())
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "no epoch was completed")
}

// TestTwoKinds trains on users and items: negatives, validation and evaluation are among items
// alone.
func TestTwoKinds(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 7))
	g := &train.Graph{Nodes: 500, Sources: 200}
	for range 5000 {
		user := rng.IntN(200)
		g.Edges = append(g.Edges, train.Edge{Source: uint32(user), Target: uint32(200 + rng.IntN(300)/10*10 + user%10)})
	}
	split := train.RandomSplit(g, 0.05, 0.1, 1)
	m, err := train.Run(context.Background(), g, split, small())
	require.NoError(t, err)
	assert.Equal(t, 200, m.Sources)
	task := m.Task(split.Test)
	task.All, task.Known = true, split.Train
	r, err := train.Evaluate(context.Background(), task)
	require.NoError(t, err)
	assert.Greater(t, r.MRR, 0.1, "30 of 300 items fit a user")
	require.NoError(t, m.Encoder.Embed(make([]float32, m.Dim), encoder.Node{From: m.Embeddings[:3*m.Dim]}))
}

// TestTimeBudget ends a run that could go on for years, with a model.
func TestTimeBudget(t *testing.T) {
	o := small()
	o.Epochs, o.Patience, o.TimeBudget = 1<<30, 1<<30, 300*time.Millisecond
	for _, kind := range []train.EncoderKind{train.Hops, train.Node2Vec} {
		o.Encoder, o.WalksPerNode = kind, 1000
		m, err := train.Run(context.Background(), communities(300, 6, 2000, 3), train.Split{}, o)
		require.NoError(t, err)
		assert.Equal(t, "the time budget is used up", m.Stopped)
		assert.NotEmpty(t, m.Epochs)
	}
}

// TestFeaturesAreTold: progress of the features comes before the first epoch, from none to all.
func TestFeaturesAreTold(t *testing.T) {
	var shares []float64
	o := small()
	o.Encoder, o.Epochs = train.Hops, 1
	o.Progress = func(p train.Progress) {
		if p.Stage == train.StageFeatures {
			shares = append(shares, p.Share)
		} else {
			require.Equal(t, 1., shares[len(shares)-1], p.Stage)
		}
	}
	_, err := train.Run(t.Context(), communities(300, 6, 2000, 3), train.Split{}, o)
	require.NoError(t, err)
	require.Greater(t, len(shares), 5)
	require.Zero(t, shares[0])
	require.True(t, slices.IsSorted(shares), shares)
}

func TestRandomSplit(t *testing.T) {
	g := communities(100, 5, 2000, 3)
	g.Edges = append(g.Edges, g.Edges[:100]...)
	g.Edges = append(g.Edges, train.Edge{Source: 4, Target: 4})
	split := train.RandomSplit(g, 0.1, 0.2, 5)
	seen := map[train.Edge]int{}
	for i, part := range [][]train.Edge{split.Train, split.Valid, split.Test} {
		for _, e := range part {
			require.NotContains(t, seen, e)
			require.NotEqual(t, e.Source, e.Target)
			seen[e] = i
		}
	}
	want := map[train.Edge]bool{}
	for _, e := range g.Edges {
		if e.Source != e.Target {
			want[e] = true
		}
	}
	assert.Len(t, seen, len(want))
	assert.InDelta(t, 0.2*float64(len(want)), len(split.Test), 1)
	assert.InDelta(t, 0.1*float64(len(want)), len(split.Valid), 1)
	assert.Equal(t, split, train.RandomSplit(g, 0.1, 0.2, 5))
}

func TestEstimate(t *testing.T) {
	g := &train.Graph{Nodes: 100_000}
	split := train.Split{Train: make([]train.Edge, 1_000_000), Valid: make([]train.Edge, 6000)}
	base := train.Estimate(g, split, train.Options{})
	assert.Equal(t, base.Features+base.Parameters+base.Graph+base.Working, base.Total)
	for _, kind := range []train.EncoderKind{train.Hops, train.MF, train.GCN, train.SAGE, train.Node2Vec} {
		some, wider := train.Estimate(g, split, train.Options{Encoder: kind}), train.Estimate(g, split, train.Options{Encoder: kind, Dim: 256})
		assert.Greater(t, wider.Total, some.Total, kind)
	}
	split.ValidCandidates = make([][]uint32, len(split.Valid))
	for i := range split.ValidCandidates {
		split.ValidCandidates[i] = make([]uint32, 1000)
	}
	assert.Equal(t, base.Working+5000*900*24, train.Estimate(g, split, train.Options{}).Working, "900 more pairs of each of 5,000 edges, 24 bytes a pair")
}

// TestRunOnStrangeGraphs trains on graphs with hardly any negatives, links or nodes: there is a
// model, and no panic.
func TestRunOnStrangeGraphs(t *testing.T) {
	complete := &train.Graph{Nodes: 6}
	for i := range 6 {
		for j := range 6 {
			complete.Edges = append(complete.Edges, train.Edge{Source: uint32(i), Target: uint32(j)})
		}
	}
	star := &train.Graph{Nodes: 400, Directed: true}
	for i := range 300 {
		star.Edges = append(star.Edges, train.Edge{Source: 0, Target: uint32(1 + i)})
	}
	flat := &train.Graph{Nodes: 50, FeatureDim: 70, Features: make([]float32, 50*70), Edges: []train.Edge{{Source: 3, Target: 4}, {Source: 4, Target: 5}}}
	graphs := map[string]*train.Graph{
		"two nodes":         {Nodes: 2, Edges: []train.Edge{{Source: 0, Target: 1}}},
		"one of each kind":  {Nodes: 2, Sources: 1, Edges: []train.Edge{{Source: 0, Target: 1}}},
		"complete":          complete,
		"a star":            star,
		"constant features": flat,
	}
	for name, g := range graphs {
		for _, kind := range []train.EncoderKind{train.Hops, train.MF, train.GCN, train.SAGE, train.Node2Vec} {
			for _, negatives := range []train.NegativeKind{train.Uniform, train.Batch, train.Degree} {
				if kind != train.Hops && negatives != train.Uniform {
					continue
				}
				t.Run(name+" "+string(kind)+" "+string(negatives), func(t *testing.T) {
					o := train.Options{Dim: 4, EncoderHidden: 4, Epochs: 2, Encoder: kind, Negatives: negatives, WalksPerNode: 1}
					m, err := train.Run(context.Background(), g, train.Split{Train: g.Edges}, o)
					require.NoError(t, err)
					for _, x := range m.Embeddings {
						require.False(t, math.IsNaN(float64(x)) || math.IsInf(float64(x), 0))
					}
					_, err = train.Evaluate(context.Background(), m.Task(g.Edges))
					require.NoError(t, err)
				})
			}
		}
	}
}

// requireBest demands that a model is of the epoch with the best validation, and returns that.
func requireBest(t *testing.T, m *train.Model) float64 {
	t.Helper()
	best := 0.0
	for _, e := range m.Epochs {
		best = max(best, e.Valid)
	}
	require.InDelta(t, best, m.Epochs[m.Best].Valid, 0)
	return best
}

// TestValidNegatives checks that with one list of negatives the epoch with the best Hits@k is kept,
// and that Evaluate confirms the value in the history.
func TestValidNegatives(t *testing.T) {
	g := communities(300, 6, 2000, 9)
	split := train.RandomSplit(g, 0.1, 0, 1)
	rng := rand.New(rand.NewPCG(7, 7))
	for range 400 {
		split.ValidNegatives = append(split.ValidNegatives, train.Edge{Source: uint32(rng.IntN(g.Nodes)), Target: uint32(rng.IntN(g.Nodes))})
	}
	for _, encoder := range []train.EncoderKind{train.MF, train.GCN} {
		m, err := train.Run(t.Context(), g, split, train.Options{Encoder: encoder, Dim: 8, Epochs: 6, ValidHits: 3, WeightDecay: -1, LearningRate: 0.02})
		require.NoError(t, err)
		assert.Equal(t, "Hits@3", m.Metric)
		best := requireBest(t, m)
		task := m.Task(split.Valid)
		task.NegativeEdges, task.Hits = split.ValidNegatives, []int{3}
		got, err := train.Evaluate(t.Context(), task)
		require.NoError(t, err)
		assert.Positive(t, got.Hits[3])
		assert.InDelta(t, got.Hits[3], best, 1e-12, "%s", encoder)
	}
	split.ValidNegatives[5].Target = uint32(g.Nodes)
	_, err := train.Run(t.Context(), g, split, train.Options{})
	assert.ErrorContains(t, err, "validation negative edge 5 leads from node")
	split.ValidNegatives = nil
	m, err := train.Run(t.Context(), g, split, train.Options{Encoder: train.MF, Dim: 4, Epochs: 1})
	require.NoError(t, err)
	assert.Equal(t, "MRR", m.Metric)
}

// TestValidCandidates checks that with negatives of its own for each validation link the epoch with
// the best MRR is kept, and that Evaluate confirms the value in the history.
func TestValidCandidates(t *testing.T) {
	g := communities(300, 6, 2000, 9)
	split := train.RandomSplit(g, 0.1, 0, 1)
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range split.Valid {
		list := make([]uint32, i%5) // one in five links has none, and the rank 1
		for j := range list {
			list[j] = uint32(rng.IntN(g.Nodes))
		}
		split.ValidCandidates = append(split.ValidCandidates, list)
	}
	for _, encoder := range []train.EncoderKind{train.MF, train.GCN} {
		m, err := train.Run(t.Context(), g, split, train.Options{Encoder: encoder, Dim: 8, Epochs: 4, WeightDecay: -1, LearningRate: 0.02})
		require.NoError(t, err)
		assert.Equal(t, "MRR", m.Metric)
		best := requireBest(t, m)
		task := m.Task(split.Valid)
		task.Candidates = split.ValidCandidates
		got, err := train.Evaluate(t.Context(), task)
		require.NoError(t, err)
		assert.InDelta(t, got.MRR, best, 1e-12, "%s", encoder)
	}
	split.ValidCandidates[9][2] = uint32(g.Nodes)
	_, err := train.Run(t.Context(), g, split, train.Options{})
	require.ErrorContains(t, err, "negative node 300 of link 9: there are 300 nodes")
	split.ValidCandidates = split.ValidCandidates[:5]
	_, err = train.Run(t.Context(), g, split, train.Options{})
	require.ErrorContains(t, err, fmt.Sprintf("5 lists of negatives for %d links", len(split.Valid)))
	split.ValidCandidates, split.ValidNegatives = make([][]uint32, len(split.Valid)), split.Valid[:1]
	_, err = train.Run(t.Context(), g, split, train.Options{})
	require.ErrorContains(t, err, "ValidNegatives and ValidCandidates exclude each other")
}
