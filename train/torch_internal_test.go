package train

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
)

// torchCase is one line of testdata/gradients.json. The first gradient is that of the table.
type torchCase struct {
	Encoder  EncoderKind
	Decoder  decoder.Kind
	Loss     LossKind
	Norm     bool
	Hidden   []int
	Features int
	Value    float64
	Grads    [][]float64
}

// The sizes and formulas of testdata/gradients.py.
const torchNodes, torchDim, torchHidden, torchGroup, torchLinks = 24, 6, 10, 4, 20

func torchValues(x []float32, k int) {
	for i := range x {
		x[i] = float32(0.4 * math.Sin(1.7*float64(k)+0.9*float64(i)+0.3*math.Sin(2.1*float64(i))))
	}
}

func torchGraph(features int) *Graph {
	g := &Graph{Nodes: torchNodes, Directed: true, Relations: 3, FeatureDim: features, Features: make([]float32, torchNodes*features)}
	torchValues(g.Features, 77)
	link := func(a, b int) { g.Edges = append(g.Edges, Edge{Source: uint32(a), Target: uint32(b % torchNodes)}) }
	for i := range torchNodes {
		link(i, i+1)
		link(i, i+3)
		if i > 0 && i%4 == 0 {
			link(0, i)
		}
	}
	return g
}

func torchPairs() []pair {
	var pairs []pair
	for i := range torchLinks {
		source := (7*i + 1) % torchNodes
		for j := range torchGroup {
			pairs = append(pairs, pair{uint32(source), uint32((source + 1 + 5*j + i%3) % torchNodes), uint16(i % 3), false})
		}
	}
	return pairs
}

// TestPyTorchGradients compares losses and gradients of every encoder, decoder and loss with those
// PyTorch computes in float64.
func TestPyTorchGradients(t *testing.T) {
	data, err := os.ReadFile("testdata/gradients.json")
	require.NoError(t, err)
	var cases []torchCase
	require.NoError(t, json.Unmarshal(data, &cases))
	require.Len(t, cases, 13)
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s %s %s norm %t features %d", c.Encoder, c.Decoder, c.Loss, c.Norm, c.Features), func(t *testing.T) { checkTorch(t, c) })
	}
}

func checkTorch(t *testing.T, c torchCase) {
	g := torchGraph(c.Features)
	o := Options{Encoder: c.Encoder, Decoder: c.Decoder, Loss: c.Loss, DecoderNorm: c.Norm, DecoderHidden: c.Hidden, Dim: torchDim, EncoderHidden: torchHidden, EncoderLayers: 2, PerLink: torchGroup - 1, Cores: 2}
	o = o.withDefaults(g, len(g.Edges))
	f := newFit(g, g.distinct(g.Edges), Split{}, &o, time.Now())
	require.Len(t, f.p.all, len(c.Grads)-1)
	for i, w := range f.p.all {
		torchValues(f.p.of(w), i)
	}
	f.addOnesToGammas()
	table := f.enc.tables()[0]
	torchValues(table.value, 99)
	if h, ok := f.enc.(*hops); ok {
		torchValues(h.features, 55)
	}
	f.b = batch{rows: torchNodes, group: torchGroup, pairs: torchPairs()}
	if !f.enc.whole() {
		f.b.nodes = allNodes(torchNodes)
	}
	f.b.place()
	assert.InEpsilon(t, c.Value, f.backpropagate(1, torchLinks), 1e-5)
	grad := table.grads
	if !f.enc.whole() {
		grad = f.dz
	}
	compareTorch(t, "table", c.Grads[0], grad)
	for i, w := range f.p.all {
		compareTorch(t, fmt.Sprintf("tensor %d", i), c.Grads[i+1], f.p.grad[w.first:w.first+w.n])
	}
}

// addOnesToGammas makes the weights of layer norms what the script makes them.
func (f *fit) addOnesToGammas() {
	if f.head.net == nil {
		return
	}
	for _, l := range f.head.net.layers {
		if l.norm {
			for i := range f.p.of(l.gamma) {
				f.p.of(l.gamma)[i]++
			}
		}
	}
}

func compareTorch(t *testing.T, what string, want []float64, got []float32) {
	t.Helper()
	if !assert.Len(t, got, len(want), what) {
		return
	}
	var largest float64
	for _, x := range want {
		largest = max(largest, math.Abs(x))
	}
	for i, x := range want {
		if !assert.InDelta(t, x, got[i], 2e-5*largest+1e-7, "%s, value %d", what, i) {
			return
		}
	}
}
