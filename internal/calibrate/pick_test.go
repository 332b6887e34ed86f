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

func never() bool { return false }

// TestPick has few sources to which the decoder gives links to everything, among many with none,
// and then others with links.
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
	draws := []calibrate.Draw{calibrate.Even, calibrate.ByOdds, calibrate.ByLinks}
	pick := func() (popular, linked [3]int) {
		picked, err := calibrate.Pick(context.Background(), d, pool, rows, 30, rng, never)
		require.NoError(t, err)
		require.Len(t, picked, 30)
		seen := map[uint32]bool{}
		for i, s := range picked {
			assert.Equal(t, draws[i%3], s.Drawn, "they take turns")
			seen[s.Excluded[0]] = true
			if s.Vector[0] > 0 {
				popular[i%3]++
			}
			if len(s.Excluded) > 1 {
				linked[i%3]++
			}
		}
		assert.Len(t, seen, 30, "none twice")
		return popular, linked
	}
	popular, _ := pick()
	assert.LessOrEqual(t, popular[0], 3, "a tenth of those as they come")
	assert.GreaterOrEqual(t, popular[1], 9, "nearly all of those by odds")
	assert.GreaterOrEqual(t, popular[2], 9, "nearly all of those by probabilities, when no links are known")

	for i := range pool {
		if i%10 == 3 {
			pool[i].Excluded, pool[i].Links = append(pool[i].Excluded, 1000, 1001), 2
		}
	}
	popular, linked := pick()
	assert.GreaterOrEqual(t, popular[1], 9, "nearly all of those by odds")
	assert.GreaterOrEqual(t, linked[2], 9, "nearly all of those by known links")

	all, err := calibrate.Pick(context.Background(), d, pool, nil, 1000, rng, never)
	require.NoError(t, err)
	assert.Len(t, all, 300, "without weights, and no more than there are")
	few, err := calibrate.Pick(context.Background(), d, pool, rows, 20, rng, func() bool { return true })
	require.NoError(t, err)
	require.Len(t, few, 20)
	for _, s := range few {
		assert.Less(t, s.Excluded[0], uint32(20), "only as many were looked at as are drawn")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = calibrate.Pick(ctx, d, pool, rows, 10, rng, never)
	assert.ErrorIs(t, err, context.Canceled)
}

func TestPool(t *testing.T) {
	for _, tt := range []struct {
		n, dim int
		memory int64
		want   int
	}{
		{500, 64, 0, 20_000},
		{500, 64, 1 << 30, 20_000},
		{500, 64, 8 << 20, 4 << 20 / 768},
		{500, 64, 1, 500},
		{30_000, 64, 1, 30_000},
	} {
		sources, rows := calibrate.Pool(tt.n, tt.dim, tt.memory)
		assert.Equal(t, tt.want, sources, "%+v", tt)
		assert.Equal(t, 64, rows)
	}
}
