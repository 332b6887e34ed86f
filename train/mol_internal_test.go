package train

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
)

// TestDecoderScoresAsTrained: what a run hands over computes the scores that it was trained with,
// and Estimate knows of all its weights.
func TestDecoderScoresAsTrained(t *testing.T) {
	for name, o := range map[string]Options{
		"mixture":             {Decoder: decoder.MoL, Components: 3},
		"mixture, deep gate":  {Decoder: decoder.MoL, DecoderNorm: true, DecoderHidden: []int{9, 12}},
		"mixture, plain gate": {Decoder: decoder.MoL, DecoderHidden: []int{}},
		"residuals":           {Decoder: decoder.HadamardMLP, DecoderResidual: true, DecoderNorm: true, DecoderHidden: []int{10, 10, 14, 14}},
		"residuals of both":   {Decoder: decoder.ConcatMLP, DecoderResidual: true, DecoderHidden: []int{20, 20, 20}},
	} {
		t.Run(name, func(t *testing.T) {
			g := ring(60, 0)
			o.Encoder, o.Dim, o.Cores, o.PerLink = MF, 10, 1, 1
			o = o.withDefaults(g, len(g.Edges))
			f := newFit(g, g.distinct(g.Edges), Split{}, &o, time.Now())
			assert.LessOrEqual(t, int64(len(f.p.value)), headWeights(&o, g))
			rng := rand.New(rand.NewPCG(3, 3))
			for i := range f.p.value {
				f.p.value[i] += 0.1 * float32(rng.NormFloat64())
			}
			z := make([]float32, g.Nodes*o.Dim)
			for i := range z {
				z[i] = float32(rng.NormFloat64())
			}
			pairs := []pair{{source: 1, target: 2}, {source: 1, target: 7}, {source: 9, target: 3}}
			tape := f.head.newTape(len(pairs))
			tape.gather(z, o.Dim, pairs)
			f.head.pack()
			logits := f.head.forward(tape, pairs, nil)

			d, err := f.head.decoder()
			require.NoError(t, err)
			assert.Equal(t, o.Decoder, d.Kind())
			var s decoder.Scratch
			for i, p := range pairs {
				score := make([]float32, 1)
				row := func(node uint32) []float32 { return z[int(node)*o.Dim : int(node+1)*o.Dim] }
				d.Bind(nil, row(p.source)).Score(&s, score, row(p.target))
				assert.InDelta(t, logits[i], score[0], 1e-4)
			}
		})
	}
}
