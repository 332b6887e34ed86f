package ivf

import (
	"math"

	"github.com/flashdb/flashdb/internal/simd"
)

// Residual returns the root mean square length of the residuals of the rows: how far they lie from
// their centroids.
func (ix *Index) Residual() float64 {
	sum := 0.0
	for l, s := range ix.spread {
		sum += float64(ix.begin[l+1]-ix.begin[l]) * float64(s) * float64(s)
	}
	return math.Sqrt(sum * float64(ix.header.dim) / float64(ix.header.rows))
}

// ResidualOf returns the root mean square distance of other rows, row-major, from their nearest
// centroids, or 0 without rows. It compares every row with every centroid.
func (ix *Index) ResidualOf(rows []float32) float64 {
	d, n := ix.header.dim, 0
	sum := 0.0
	for ; len(rows) >= d; rows = rows[d:] {
		nearest := math.Inf(1)
		for l := range ix.header.lists {
			nearest = min(nearest, squaredDistance(rows[:d], ix.centroids[l*d:(l+1)*d]))
		}
		sum += nearest
		n++
	}
	return math.Sqrt(sum / float64(max(1, n)))
}

// squaredDistance computes in float64, because float32 could overflow.
func squaredDistance(a, b []float32) float64 {
	if fast := simd.SquaredL2(a, b); simd.Safe(fast) && fast > 0 {
		return float64(fast)
	}
	var sum float64
	for j, x := range a {
		by := float64(x) - float64(b[j])
		sum += by * by
	}
	return sum
}
