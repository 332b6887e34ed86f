package decoder_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
)

// TestOneOutput: what is built from layers has one output, and does not quietly score by the first
// of several.
func TestOneOutput(t *testing.T) {
	for name, build := range map[string]func(int, ...decoder.Layer) (decoder.Decoder, error){
		"hadamard": decoder.NewHadamardMLP, "concat": decoder.NewConcatMLP,
	} {
		width := map[string]int{"hadamard": 3, "concat": 6}[name]
		first := decoder.Layer{Weight: make([]float32, 4*width)}
		_, err := build(3, first, decoder.Layer{Weight: make([]float32, 4)})
		require.NoError(t, err, name)
		_, err = build(3, first, decoder.Layer{Weight: make([]float32, 8)})
		require.EqualError(t, err, "decoder: the last layer has 2 outputs: want 1, the logit; a Spec with OutputColumn takes one of several", name)
	}
}
