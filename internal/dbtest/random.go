// Package dbtest is what the tests of the root and of tests/ share: random rows and decoders, and
// all that a database answers. It is for tests alone.
package dbtest

import (
	"math/rand/v2"

	"github.com/flashdb/flashdb/decoder"
)

// RandomVector returns dim values from a standard normal.
func RandomVector(rng *rand.Rand, dim int) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// RandomMLP returns a HadamardMLP dim-hidden-hidden-1 with ReLU.
func RandomMLP(rng *rand.Rand, dim, hidden int) (decoder.Decoder, error) {
	return decoder.New(decoder.Spec{
		Kind: "hadamard_mlp",
		Dim:  dim,
		Layers: []decoder.LayerSpec{
			{Weight: "w0", Bias: "b0", Activation: "relu"},
			{Weight: "w1", Bias: "b1", Activation: "relu"},
			{Weight: "w2", Bias: "b2", Activation: "identity"},
		},
	}, map[string]decoder.Tensor{
		"w0": {Shape: []int{hidden, dim}, Data: RandomVector(rng, hidden*dim)},
		"b0": {Shape: []int{hidden}, Data: RandomVector(rng, hidden)},
		"w1": {Shape: []int{hidden, hidden}, Data: RandomVector(rng, hidden*hidden)},
		"b1": {Shape: []int{hidden}, Data: RandomVector(rng, hidden)},
		"w2": {Shape: []int{1, hidden}, Data: RandomVector(rng, hidden)},
		"b2": {Shape: []int{1}, Data: RandomVector(rng, 1)},
	})
}
