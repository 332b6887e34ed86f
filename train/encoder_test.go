package train_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/encoder"
	"github.com/flashdb/flashdb/train"
)

// trained returns a small model of a graph with features and its encoder.
func trained(t testing.TB, g *train.Graph) *train.Model {
	t.Helper()
	m, err := train.Run(context.Background(), g, train.Split{}, small())
	require.NoError(t, err)
	return m
}

// TestEncoderEmbedsNewNodes holds a tenth of the nodes out, embeds them from half of their links,
// and ranks the other half. Chance is an AUC of .5 and an MRR of .05.
func TestEncoderEmbedsNewNodes(t *testing.T) {
	const nodes, groups = 800, 16
	whole := communities(nodes, groups, 9000, 5)
	isNew := func(n uint32) bool { return n%10 == 3 }
	known := &train.Graph{Nodes: nodes, Directed: true}
	links := map[uint32][]train.Edge{}
	for _, e := range whole.Edges {
		switch {
		case !isNew(e.Source) && !isNew(e.Target):
			known.Edges = append(known.Edges, e)
		case isNew(e.Source) && !isNew(e.Target):
			links[e.Source] = append(links[e.Source], e)
		}
	}
	m := trained(t, known)
	d := m.Dim
	task := m.Task(nil)
	task.Embeddings = append([]float32(nil), m.Embeddings...)
	for node, own := range links {
		var n encoder.Node
		for _, e := range own[:len(own)/2] {
			n.To = append(n.To, m.Embeddings[int(e.Target)*d:(int(e.Target)+1)*d]...)
		}
		if len(n.To) == 0 {
			continue
		}
		require.NoError(t, m.Encoder.Embed(task.Embeddings[int(node)*d:(int(node)+1)*d], n))
		task.Edges = append(task.Edges, own[len(own)/2:]...)
	}
	r, err := train.Evaluate(context.Background(), task)
	require.NoError(t, err)
	assert.Greater(t, r.AUC, 0.85)
	assert.Greater(t, r.MRR, 0.15)
}
