package calibrate_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/calibrate"
)

// TestPick has few sources to which the decoder gives links to everything, among many with none.
func TestPick(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	d, err := decoder.NewDot(1)
	require.NoError(t, err)
	rows := make([]float32, 50)
	for i := range rows {
		rows[i] = 1
	}
	pool := make([]calibrate.Source, 300)
	for i := range pool {
		pool[i] = calibrate.Source{Vector: []float32{-9}, Excluded: []uint32{uint32(i)}}
		if i%10 == 9 {
			pool[i].Vector[0] = 9
		}
	}
	picked, err := calibrate.Pick(context.Background(), d, pool, rows, 40, rng)
	require.NoError(t, err)
	require.Len(t, picked, 40)
	seen := map[uint32]bool{}
	popular := [2]int{}
	for i, s := range picked {
		assert.Equal(t, i%2 == 1, s.Expected, "they take turns")
		seen[s.Excluded[0]] = true
		if s.Vector[0] > 0 {
			popular[i%2]++
		}
	}
	assert.Len(t, seen, 40, "none twice")
	assert.LessOrEqual(t, popular[0], 3, "a tenth of those as they come")
	assert.GreaterOrEqual(t, popular[1], 18, "nearly all of those by expected links")

	all, err := calibrate.Pick(context.Background(), d, pool, nil, 1000, rng)
	require.NoError(t, err)
	assert.Len(t, all, 300, "without weights, and no more than there are")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = calibrate.Pick(ctx, d, pool, rows, 10, rng)
	assert.ErrorIs(t, err, context.Canceled)
}
