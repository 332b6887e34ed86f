package calibrate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestStudent95 compares with printed tables of the distribution.
func TestStudent95(t *testing.T) {
	for df, want := range map[float64]float64{4: 2.1318, 5: 2.0150, 10: 1.8125, 30: 1.6973, 120: 1.6577, math.Inf(1): 1.6449} {
		assert.InEpsilon(t, want, student95(df), .01, "%v degrees of freedom", df)
	}
	assert.InDelta(t, .05, math.Erfc(normal95/math.Sqrt2)/2, 1e-12)
}

// TestLeastSquares compares with a search over all subsets of the unknowns. Each subset is solved
// by elimination, with the other unknowns at zero.
func TestLeastSquares(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 200 {
		var a [features][features]float64
		var b [features]float64
		for range 3 * features {
			row, y := [features]float64{}, rng.NormFloat64()
			for i := range row {
				row[i] = rng.Float64()
			}
			for i := range row {
				b[i] += row[i] * y
				for j := range row {
					a[i][j] += row[i] * row[j]
				}
			}
		}
		objective := func(x [features]float64) (sum float64) {
			for i := range x {
				sum -= b[i] * x[i]
				for j := range x {
					sum += a[i][j] * x[i] * x[j] / 2
				}
			}
			return sum
		}
		best := math.Inf(1)
		for free := range 1 << features {
			x := eliminate(a, b, free)
			if x[0] >= 0 && x[1] >= 0 && x[2] >= 0 && x[3] >= 0 {
				best = min(best, objective(x))
			}
		}
		got := leastSquares(a, b)
		for _, v := range got {
			assert.GreaterOrEqual(t, v, 0.0)
		}
		assert.InDelta(t, best, objective(got), 1e-6*math.Max(1, math.Abs(best)))
	}
}

// eliminate solves ax = b for the unknowns whose bits are set. The others are zero.
func eliminate(a [features][features]float64, b [features]float64, free int) (x [features]float64) {
	for i := range a {
		if free>>i&1 == 0 {
			for j := range a {
				a[i][j], a[j][i] = 0, 0
			}
			a[i][i], b[i] = 1, 0
		}
	}
	for i := range a { // a is positive definite: no pivoting
		for j := range a {
			if j != i {
				by := a[j][i] / a[i][i]
				b[j] -= by * b[i]
				for l := range a {
					a[j][l] -= by * a[i][l]
				}
			}
		}
	}
	for i := range x {
		x[i] = b[i] / a[i][i]
	}
	return x
}

func TestQuantiles(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	assert.Equal(t, 3.0, median(values))
	assert.Equal(t, 2.0, median(values[1:]), "the lower of two")
	assert.Zero(t, median(nil))
	assert.Equal(t, 1.0, quantile([]float64{1, 2, 3, 4, 5}, .05))
	assert.Equal(t, 5.0, quantile([]float64{1, 2, 3, 4, 5}, 1))
}
