package ivf

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNthLargest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		values := make([]float32, 1+rng.IntN(40))
		for i := range values {
			switch rng.IntN(8) {
			case 0:
				values[i] = float32(math.Inf(1 - 2*rng.IntN(2)))
			case 1, 2:
				values[i] = float32(rng.IntN(3)) // ties
			default:
				values[i] = float32(rng.NormFloat64())
			}
		}
		n := 1 + rng.IntN(len(values))
		sorted := slices.Sorted(slices.Values(values))
		require.Equal(t, sorted[len(sorted)-n], nthLargest(values, n), "%d of %v", n, values)
	}
}
