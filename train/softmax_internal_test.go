package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
)

// TestSharedNegatives compares the loss of a batch with its definition: the cross-entropy of every
// link among the shared negatives that make no known link with its source, each pair scored alone.
func TestSharedNegatives(t *testing.T) {
	for _, c := range []struct {
		o      Options
		direct bool
		two    bool
		shared int
	}{
		{o: Options{Decoder: decoder.ComplEx}, direct: true, shared: 40},
		{o: Options{Decoder: decoder.ComplEx}, direct: true, shared: 1000}, // all nodes
		{o: Options{Decoder: decoder.DistMult}, shared: 40},
		{o: Options{Decoder: decoder.Dot, Loss: Softmax}, direct: true, shared: 40},
		{o: Options{Decoder: decoder.Dot, Loss: Softmax, Negatives: Degree}, shared: 40},
		{o: Options{Decoder: decoder.ComplEx}, two: true, shared: 40},
		{o: Options{Encoder: GCN, Decoder: decoder.ComplEx, Loss: Softmax}, direct: true, shared: 40},
	} {
		t.Run(fmt.Sprintf("%s, directed %t, two kinds %t, %d", c.o.Decoder, c.direct, c.two, c.shared), func(t *testing.T) {
			g := ring(120, 0)
			g.Directed = c.direct
			if c.two {
				g.Sources, g.Directed = 60, false
				for i := range g.Edges {
					g.Edges[i].Source, g.Edges[i].Target = g.Edges[i].Source%60, 60+g.Edges[i].Target%60
				}
			}
			o := c.o
			o.Dim, o.PerLink, o.Cores, o.Encoder = 10, c.shared, 2, MF
			if c.o.Encoder != "" {
				o.Encoder = c.o.Encoder
			}
			o = o.withDefaults(g, len(g.Edges))
			require.Equal(t, Softmax, o.Loss)
			checkShared(t, g, o)
		})
	}
}

// checkShared checks one batch.
func checkShared(t *testing.T, g *Graph, o Options) {
	links := g.distinct(g.Edges)
	f := newFit(g, links, Split{}, &o, time.Now())
	known := map[Edge]bool{}
	for _, e := range links {
		if !g.related(o.Decoder) {
			e.Relation = 0
		}
		known[e] = true
	}
	got := f.gradients(allNodes(100), 77)
	require.NotEmpty(t, f.b.shared)
	if o.PerLink >= g.Nodes {
		assert.Len(t, f.b.shared, g.Nodes)
	}
	node := func(row uint32) uint32 {
		if f.b.nodes == nil {
			return row
		}
		return f.b.nodes[row]
	}
	var want float64
	left, reversed := 0, 0
	for _, p := range f.b.pairs {
		group := []pair{p}
		if p.reverse {
			reversed++
		}
		for _, row := range f.b.shared {
			e := Edge{Source: node(p.source), Target: node(row), Relation: p.relation}
			require.GreaterOrEqual(t, int(e.Target), g.Sources)
			if p.reverse {
				e.Source, e.Target = e.Target, e.Source
			}
			if !g.related(o.Decoder) {
				e.Relation = 0
			}
			turned := Edge{Source: e.Target, Target: e.Source, Relation: e.Relation}
			if e.Source == e.Target || known[e] || (g.undirected() && known[turned]) {
				left++
				continue
			}
			group = append(group, pair{p.source, row, p.relation, p.reverse})
		}
		tape := f.head.newTape(len(group))
		tape.gather(f.z, o.Dim, group)
		logits, sum := f.head.forward(tape, group, nil), 0.0
		for _, x := range logits {
			sum += math.Exp(float64(x))
		}
		want += (math.Log(sum) - float64(logits[0])) / 100
	}
	assert.InDelta(t, want, got, 1e-5)
	assert.Positive(t, left)
	assert.Equal(t, g.related(o.Decoder) && g.Sources == 0, reversed > 0)
}

// TestSoftmaxGroup compares with plain sums, where these do not overflow, and has no overflow.
func TestSoftmaxGroup(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	logits := []float32{float32(math.Inf(-1))} // left out
	sum := math.Exp(0.5)
	for range 20 {
		x := rng.NormFloat64()
		logits, sum = append(logits, float32(x)), sum+math.Exp(x)
	}
	grads := append([]float32(nil), logits...)
	loss, slope := softmaxGroup(grads, 0.5, 0.25)
	assert.InDelta(t, 0.25*(math.Log(sum)-0.5), loss, 1e-6)
	assert.InDelta(t, 0.25*(math.Exp(0.5)/sum-1), slope, 1e-6)
	assert.Zero(t, grads[0])
	for i := 1; i < len(logits); i++ {
		assert.InDelta(t, 0.25*math.Exp(float64(logits[i]))/sum, grads[i], 1e-6)
	}
	loss, slope = softmaxGroup([]float32{1e30, -1e30}, -1e30, 1)
	assert.InEpsilon(t, 2e30, loss, 1e-6)
	assert.InDelta(t, -1, slope, 1e-6)
	loss, slope = softmaxGroup(nil, 3, 1)
	assert.Zero(t, loss)
	assert.Zero(t, slope)
}
