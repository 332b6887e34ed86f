package decoder

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinearQueryFits: a query beyond the range of float32 is scaled, and what it scores is not.
func TestLinearQueryFits(t *testing.T) {
	for _, by := range []float64{1e31, 1e-22, 1e-5} {
		d, err := NewDistMult([]float32{float32(1e5 * by), float32(-3e5 * by), 0})
		require.NoError(t, err)
		source := []float32{float32(by), float32(by), 1}
		b := d.Bind(nil, source)
		ones := make([]float32, 3)
		b.Ones(ones)
		require.InDelta(t, -3, ones[1]/ones[0], 1e-6)
		require.Zero(t, ones[2])
		require.Greater(t, ones[0], float32(0))
		require.False(t, math.IsInf(float64(ones[1]), 0))
		score := make([]float32, 1)
		b.Score(nil, score, []float32{float32(1e-5 / by), 0, 9})
		require.InDelta(t, by, score[0], by*1e-5)
	}
}
