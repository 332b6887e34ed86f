package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
)

// The best of each order come in turn, none twice, and the source never.
func TestUnion(t *testing.T) {
	orders := [][]uint32{{5, 1, 2, 3}, {1, 9, 5, 4}}
	assert.Equal(t, map[uint32]bool{5: true, 1: true, 9: true}, union(orders, 7, 3, nil))
	assert.Equal(t, map[uint32]bool{1: true, 9: true, 2: true}, union(orders, 5, 3, nil))
	assert.Equal(t, map[uint32]bool{8: true, 5: true}, union(orders, 7, 2, map[uint32]bool{8: true}))
	assert.Len(t, union(orders, 7, 100, nil), 6)
	assert.Equal(t, []uint32{2, 0, 3}, bestOf([]float64{3, 1, 4, 3}, 3))
}

// A gate that picks one pair makes the score its logit: the order of that pair is the order of
// scores.
func TestComponentsAgreeWithTheDecoder(t *testing.T) {
	const dim, n = 3, 40
	spread := func(n, step int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32((i*step)%17) - 8
		}
		return v
	}
	rows := spread(n*dim, 7)
	for pair := range 4 {
		pick := make([]float32, 4)
		pick[pair] = 1e4
		d, err := decoder.New(decoder.Spec{Kind: decoder.MoL, Dim: dim, Mixture: &decoder.MixtureSpec{
			Source:    decoder.SideSpec{Components: 2, Layers: []decoder.LayerSpec{{Weight: "f", Bias: "b"}}},
			Candidate: decoder.SideSpec{Components: 2, Layers: []decoder.LayerSpec{{Weight: "g", Bias: "c"}}},
			Cosine:    true,
			Gate:      decoder.GateSpec{Combine: decoder.CombineSum, Source: []decoder.LayerSpec{{Weight: "z", Bias: "pick"}}},
		}}, map[string]decoder.Tensor{
			"f": {Shape: []int{4, dim}, Data: spread(12, 5)}, "b": {Shape: []int{4}, Data: spread(4, 3)},
			"g": {Shape: []int{4, dim}, Data: spread(12, 4)}, "c": {Shape: []int{4}, Data: spread(4, 6)},
			"z": {Shape: []int{4, dim}, Data: make([]float32, 12)}, "pick": {Shape: []int{4}, Data: pick},
		})
		require.NoError(t, err)
		c, err := newComponents(d, rows)
		require.NoError(t, err)
		orders, _ := c.orders(0, n)
		scores := make([]float32, n)
		d.Bind(nil, rows[:dim]).Score(new(decoder.Scratch), scores, rows)
		require.Len(t, orders, 4)
		sorted := make([]float32, n)
		for i, id := range orders[pair] {
			sorted[i] = scores[id]
		}
		for i := 1; i < n; i++ {
			assert.LessOrEqual(t, sorted[i], sorted[i-1]+1e-6)
		}
		assert.NotEqual(t, slices.Min(scores), slices.Max(scores))
	}
}
