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
		"relations":                {Graph{Nodes: 30_000, Relations: 3}, decoder.ComplEx, MF, 1},
		"symmetric relations":      {Graph{Nodes: 9, Relations: 3}, decoder.DistMult, MF, 1},
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
