package train

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb/decoder"
)

// TestDefaultEncoder knows which graphs have relations that the decoder reads.
func TestDefaultEncoder(t *testing.T) {
	for name, c := range map[string]struct {
		g       Graph
		decoder decoder.Kind
		encoder EncoderKind
		decay   float64
	}{
		"no relations":             {Graph{Nodes: 9}, "", Hops, 1},
		"many nodes":               {Graph{Nodes: 30_000}, "", Hops, 3},
		"relations":                {Graph{Nodes: 30_000, Relations: 3}, decoder.ComplEx, MF, 3},
		"symmetric relations":      {Graph{Nodes: 9, Relations: 3}, decoder.DistMult, MF, 3},
		"relations as edges":       {Graph{Nodes: 9, Relations: 3}, decoder.HadamardMLP, Hops, 1},
		"relations, with features": {Graph{Nodes: 9, Relations: 3, FeatureDim: 4}, decoder.ComplEx, Hops, 0},
	} {
		o := Options{Decoder: c.decoder}.withDefaults(&c.g, 100)
		assert.Equal(t, c.encoder, o.Encoder, name)
		assert.Equal(t, c.decay, o.WeightDecay, name)
	}
	o := Options{Decoder: decoder.ComplEx, WeightDecay: -1}.withDefaults(&Graph{Nodes: 9, Relations: 3}, 100)
	assert.Zero(t, o.WeightDecay, "none")
}

// TestDefaultLoss has negatives that all links of a step share for relations, unless negatives are
// pairs.
func TestDefaultLoss(t *testing.T) {
	for name, c := range map[string]struct {
		g       Graph
		o       Options
		loss    LossKind
		perLink int
	}{
		"no relations":             {Graph{Nodes: 9}, Options{}, BCE, 4},
		"no relations, dot":        {Graph{Nodes: 9}, Options{Encoder: MF, Decoder: decoder.Dot}, BCE, 4},
		"relations":                {Graph{Nodes: 9, Relations: 3}, Options{Decoder: decoder.ComplEx}, Softmax, 1024},
		"symmetric relations":      {Graph{Nodes: 9, Relations: 3}, Options{Decoder: decoder.DistMult}, Softmax, 1024},
		"relations, negatives":     {Graph{Nodes: 9, Relations: 3}, Options{Decoder: decoder.DistMult, PerLink: 64}, Softmax, 64},
		"relations, pairs":         {Graph{Nodes: 9, Relations: 3}, Options{Decoder: decoder.ComplEx, Negatives: Pairs}, BCE, 4},
		"relations, loss":          {Graph{Nodes: 9, Relations: 3}, Options{Decoder: decoder.ComplEx, Loss: PLNLP}, PLNLP, 4},
		"relations, with features": {Graph{Nodes: 9, Relations: 3, FeatureDim: 4}, Options{Decoder: decoder.ComplEx}, BCE, 4},
		"each link has its own":    {Graph{Nodes: 9}, Options{Loss: Softmax}, Softmax, 4},
	} {
		o := c.o.withDefaults(&c.g, 100)
		assert.Equal(t, c.loss, o.Loss, name)
		assert.Equal(t, c.perLink, o.PerLink, name)
		assert.NoError(t, o.Validate(), name)
	}
	assert.ErrorContains(t, Options{Decoder: decoder.ComplEx, Loss: Softmax, Negatives: Pairs}.Validate(), "loss softmax with negatives pairs: with complex all links")
}

// TestWidthByGraph has wide embeddings for graphs of many links without a direction, unless the
// width is given.
func TestWidthByGraph(t *testing.T) {
	for name, c := range map[string]struct {
		g           Graph
		links       int
		o           Options
		dim, hidden int
	}{
		"social":               {Graph{Nodes: 40_000}, 200_000, Options{}, 128, 128},
		"social, no index":     {Graph{Nodes: 19_999}, 200_000, Options{}, 128, 128},
		"fewer links":          {Graph{Nodes: 40_000}, 199_999, Options{}, 64, 128},
		"few nodes":            {Graph{Nodes: 999}, 200_000, Options{}, 64, 128},
		"many nodes":           {Graph{Nodes: 250_001}, 9_000_000, Options{}, 64, 128},
		"a direction":          {Graph{Nodes: 40_000, Directed: true}, 200_000, Options{}, 64, 128},
		"two kinds":            {Graph{Nodes: 40_000, Sources: 20_000}, 200_000, Options{}, 64, 128},
		"another encoder":      {Graph{Nodes: 40_000}, 200_000, Options{Encoder: SAGE}, 64, 128},
		"relations":            {Graph{Nodes: 9, Relations: 2}, 9, Options{Decoder: decoder.ComplEx}, 128, 256},
		"relations, many":      {Graph{Nodes: 250_001, Relations: 2}, 9, Options{Decoder: decoder.ComplEx}, 64, 128},
		"relations as edges":   {Graph{Nodes: 9, Relations: 2}, 9, Options{}, 64, 128},
		"width given":          {Graph{Nodes: 40_000}, 200_000, Options{Dim: 96}, 96, 128},
		"width given, smaller": {Graph{Nodes: 40_000}, 200_000, Options{Dim: 32}, 32, 64},
		"width given, else":    {Graph{Nodes: 40_000}, 1, Options{Dim: 96}, 96, 192},
	} {
		o := c.o.withDefaults(&c.g, c.links)
		assert.Equal(t, c.dim, o.Dim, name)
		assert.Equal(t, c.dim, c.o.DimFor(&c.g, c.links), name)
		assert.Equal(t, []int{c.hidden, c.hidden}, o.DecoderHidden, name)
		if name == "social, no index" || name == "few nodes" {
			assert.Equal(t, map[bool]float64{true: 3, false: 1}[c.dim == 128], o.WeightDecay, name)
		}
	}
}
