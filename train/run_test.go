package train_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

// communities returns a graph whose nodes link within their group, mostly: links that can be learned.
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
	g := communities(300, 6, 2000, 2)
	var models []*train.Model
	for _, cores := range []int{1, 2, 5} {
		o := small()
		o.Cores, o.Dropout, o.Epochs = cores, 0.2, 2
		m, err := train.Run(context.Background(), g, train.Split{}, o)
		require.NoError(t, err)
		models = append(models, m)
	}
	for _, m := range models[1:] {
		assert.Equal(t, models[0].Embeddings, m.Embeddings)
		assert.Equal(t, models[0].Decoders[0].Tensors(), m.Decoders[0].Tensors())
	}
}

// TestEveryEncoderAndDecoderLearns trains each of them, with each loss and kind of negatives, on a graph a model can learn.
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
		"concat":         {Decoder: decoder.ConcatMLP, DecoderNorm: true},
		"plnlp":          {Loss: train.PLNLP},
		"batch":          {Negatives: train.Batch},
		"degree":         {Negatives: train.Degree},
		"weight decay":   {WeightDecay: 0.01, Dropout: 0.1},
		"no hidden":      {DecoderHidden: []int{}},
		"one fold":       {Folds: 1},
		"a batch of one": {BatchEdges: 1, Epochs: 1},
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

// TestResume cancels a run in its third epoch and lets another go on: the result is that of a run left alone.
func TestResume(t *testing.T) {
	g := communities(300, 6, 2000, 3)
	for _, encoder := range []train.EncoderKind{train.Hops, train.SAGE, train.Node2Vec} {
		t.Run(string(encoder), func(t *testing.T) {
			o := small()
			o.Encoder, o.Dropout = encoder, 0.1
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
			assert.Equal(t, want.Decoders[0].Tensors(), got.Decoders[0].Tensors())
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
