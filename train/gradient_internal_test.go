package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb/decoder"
)

// ring returns a graph of links to near neighbours on a ring, and some at random, with features.
func ring(nodes int, features int) *Graph {
	rng := rand.New(rand.NewPCG(9, 9))
	g := &Graph{Nodes: nodes, Directed: true, Relations: 3, FeatureDim: features}
	for i := range nodes {
		for _, to := range []int{i + 1, i + 3, rng.IntN(nodes)} {
			if to%nodes != i {
				g.Edges = append(g.Edges, Edge{uint32(i), uint32(to % nodes), uint16(rng.IntN(3))})
			}
		}
	}
	for range nodes * features {
		g.Features = append(g.Features, float32(rng.NormFloat64()))
	}
	return g
}

// TestGradients compares the gradient of every encoder, decoder and loss with differences of the
// loss.
func TestGradients(t *testing.T) {
	cases := []Options{
		{Encoder: MF, Decoder: decoder.Dot},
		{Encoder: MF, Decoder: decoder.DistMult, Loss: BCE},
		{Encoder: MF, Decoder: decoder.ComplEx, Loss: BCE},
		{Encoder: MF, Decoder: decoder.ComplEx, Loss: Softmax},
		{Encoder: MF, Decoder: decoder.DistMult, Loss: Softmax},
		{Encoder: Hops, Decoder: decoder.Dot, Loss: Softmax},
		{Encoder: GCN, Decoder: decoder.ComplEx, Loss: Softmax},
		{Encoder: Hops, Decoder: decoder.ComplEx, Loss: PLNLP},
		{Encoder: MF, Decoder: decoder.Bilinear, Loss: PLNLP},
		{Encoder: MF, Decoder: decoder.ConcatMLP, Dropout: 0.3},
		{Encoder: MF, Decoder: decoder.HadamardMLP, DecoderNorm: true, Loss: PLNLP},
		{Encoder: Hops, Decoder: decoder.HadamardMLP},
		{Encoder: MF, Decoder: decoder.HadamardMLP, DecoderNorm: true, DecoderResidual: true, DecoderHidden: []int{16, 16, 16}},
		{Encoder: MF, Decoder: decoder.ConcatMLP, DecoderResidual: true, DecoderHidden: []int{20, 20}},
		{Encoder: MF, Decoder: decoder.MoL, Components: 3},
		{Encoder: SAGE, Decoder: decoder.MoL, Dropout: 0.3, Loss: PLNLP},
		{Encoder: Hops, Decoder: decoder.HadamardMLP, Dropout: 0.4, DecoderHidden: []int{33}},
		{Encoder: Hops, Decoder: decoder.ConcatMLP, DecoderNorm: true, DecoderHidden: []int{12, 9, 20}},
		{Encoder: GCN, Decoder: decoder.HadamardMLP},
		{Encoder: GCN, Decoder: decoder.Dot, Dropout: 0.3, EncoderLayers: 3},
		{Encoder: SAGE, Decoder: decoder.Bilinear, Dropout: 0.3},
		{Encoder: SAGE, Decoder: decoder.HadamardMLP, EncoderLayers: 3, Loss: PLNLP},
	}
	for _, features := range []int{0, 5} {
		for _, o := range cases {
			name := fmt.Sprintf("%s %s %s, %d features, dropout %g", o.Encoder, o.Decoder, o.Loss, features, o.Dropout)
			t.Run(name, func(t *testing.T) { checkGradients(t, ring(120, features), o) })
		}
	}
}

func checkGradients(t *testing.T, g *Graph, o Options) {
	o.Dim, o.EncoderHidden, o.Cores, o.PerLink, o.Seed = 10, 14, 2, 3, 5
	if o.DecoderHidden == nil {
		o.DecoderHidden = []int{16, 12}
	}
	o = o.withDefaults(g, len(g.Edges))
	f := newFit(g, g.distinct(g.Edges), Split{}, &o, time.Now())
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range f.p.value { // away from the zeros of biases
		f.p.value[i] += 0.1 * float32(rng.NormFloat64())
	}
	for i := range f.enc.tables()[0].value {
		f.enc.tables()[0].value[i] += 0.5 * float32(rng.NormFloat64())
	}
	numbers := make([]uint32, 150)
	for i := range numbers {
		numbers[i] = uint32(i)
	}
	loss := func() float64 { return f.gradients(numbers, 77) }
	loss()
	check := func(what string, value, grad []float32) {
		t.Helper()
		direction, want, norm, before := make([]float32, len(value)), 0.0, 0.0, append([]float32(nil), value...)
		for i := range direction {
			direction[i] = float32(rng.NormFloat64())
			want += float64(direction[i]) * float64(grad[i])
			norm += float64(grad[i]) * float64(grad[i])
		}
		const step = 2e-5 // few ReLUs change sign within it; what they add is why the tolerance is no smaller
		at := func(sign float32) float64 {
			for i := range value {
				value[i] = before[i] + sign*step*direction[i]
			}
			return loss()
		}
		got := (at(1) - at(-1)) / (2 * step)
		copy(value, before)
		assert.InDelta(t, want, got, 0.1*math.Sqrt(norm)+1e-3, what)
	}
	grads := append([]float32(nil), f.p.grad...)
	table := f.enc.tables()[0]
	rows := make([]float32, len(table.value))
	if f.enc.whole() {
		copy(rows, table.grads)
	} else {
		for i, node := range f.b.nodes {
			copy(rows[int(node)*o.Dim:(int(node)+1)*o.Dim], f.dz[i*o.Dim:])
		}
	}
	for range 3 {
		check("table", table.value, rows)
		for i, w := range f.p.all {
			check(fmt.Sprintf("tensor %d", i), f.p.of(w), grads[w.first:w.first+w.n])
		}
	}
}
