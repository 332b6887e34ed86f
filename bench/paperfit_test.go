package main

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
)

// TestTwoHiddenUnits builds the dot product as a HadamardMLP of two hidden units: x.y =
// relu(1.(x*y)) - relu(-1.(x*y)). So every dot product is a HadamardMLP.
func TestTwoHiddenUnits(t *testing.T) {
	const dim = 64
	ones := make([]float32, 2*dim)
	for i := range dim {
		ones[i], ones[dim+i] = 1, -1
	}
	spec := decoder.Spec{Kind: decoder.HadamardMLP, Dim: dim, Layers: []decoder.LayerSpec{
		{Weight: "first", Activation: decoder.ReLU}, {Weight: "second", Activation: decoder.Identity},
	}}
	mlp, err := decoder.New(spec, map[string]decoder.Tensor{
		"first":  {Shape: []int{2, dim}, Data: ones},
		"second": {Shape: []int{1, 2}, Data: []float32{1, -1}},
	})
	require.NoError(t, err)
	dot, err := decoder.NewDot(dim)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	var scratch decoder.Scratch
	source, rows := make([]float32, dim), make([]float32, 100*dim)
	for i := range source {
		source[i] = float32(rng.NormFloat64())
	}
	for i := range rows {
		rows[i] = float32(rng.NormFloat64())
	}
	got, want := make([]float32, 100), make([]float32, 100)
	mlp.Bind(nil, source).Score(&scratch, got, rows)
	dot.Bind(nil, source).Score(&scratch, want, rows)
	assert.InDeltaSlice(t, want, got, 1e-4)
	assert.NotEqual(t, want[0], want[1])
}

// TestFit learns little of each kind: a dot product is learned better than its mean is a guess, and
// the gradients are those of the error.
func TestFit(t *testing.T) {
	errors := fitTask{dim: 16, hidden: 16, samples: 2000, epochs: 10, seed: 1}.run()
	assert.Less(t, errors[9], .2)
	assert.Less(t, errors[9], errors[0])
	linear := fitTask{dim: 16, teacher: 16, samples: 2000, epochs: 10, seed: 1}.run()
	assert.Greater(t, linear[9], .1, "a dot product does not learn an MLP")

	rng := rand.New(rand.NewPCG(2, 2))
	net := newFitNet(rng, 5, 3)
	z := []float32{.3, -1, .5, 2, -.7}
	half := func() float64 {
		miss := float64(net.score(z)) - .25
		return miss * miss / 2
	}
	net.back(z, net.score(z)-.25)
	for i := range net.value {
		const by = 1e-2
		before := net.value[i]
		net.value[i] = before + by
		up := half()
		net.value[i] = before - by
		down := half()
		net.value[i] = before
		assert.InDelta(t, (up-down)/(2*by), float64(net.grad[i]), 5e-3, "weight %d", i)
	}
}
