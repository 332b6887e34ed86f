package train

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestBeginOfGCN compares what a GCN begins with with OGB's example: nn.Embedding by
// xavier_uniform_, and nn.Linear.
func TestBeginOfGCN(t *testing.T) {
	g := ring(120, 0)
	o := Options{Encoder: GCN, Dim: 32, EncoderHidden: 24, DecoderHidden: []int{40}, Cores: 1}.withDefaults(g, len(g.Edges))
	f := newFit(g, g.distinct(g.Edges), Split{}, &o, time.Now())
	within := func(what string, x []float32, bound float64) {
		t.Helper()
		most := float64(max(slices.Max(x), -slices.Min(x)))
		assert.LessOrEqual(t, most, 1.0001*bound, what)
		assert.Greater(t, most, 0.9*bound, what)
	}
	within("free embeddings", f.enc.tables()[0].value, math.Sqrt(6.0/(120+24)))
	for i, in := range []float64{32, 40} {
		within("decoder", f.p.of(f.head.net.layers[i].weight), 1/math.Sqrt(in))
	}
	assert.Equal(t, 40*(32+1)+40+1, f.clipApart, "the weights of the decoder")
}
