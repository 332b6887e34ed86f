package ivf

import "math"

// Inner products with centroids, spreads and codes are float32. If a query is so long or short that
// they could overflow or underflow, it is first multiplied by a power of two. That changes neither
// their order nor their digits.

const (
	// mostProduct, 2^100, bounds inner products of scaled queries with centroids. Intermediate
	// results of an estimate may be larger, by the square root of the dimension, a few deviations,
	// and the longest code of a codebook.
	mostProduct = 1 << 100
	// mostQuery bounds the values of a query from above, and its inverse from below, so that their
	// squares stay normal numbers.
	mostQuery = 1 << 40
)

// reachOf returns a bound of the norms of the centroids and of residuals one deviation long.
func reachOf(centroids, spread []float32, dim int) float64 {
	var most float32
	for _, x := range centroids {
		most = max(most, x, -x)
	}
	for _, x := range spread {
		most = max(most, x)
	}
	return float64(most) * math.Sqrt(float64(dim))
}

// take sets the vector of the query, scaled if necessary.
func (q *queryVector) take(ix *Index, given []float32) {
	q.given, q.vector, q.unscale = given, given, 1
	var largest float32
	for _, x := range given {
		largest = max(largest, x, -x)
	}
	most := float64(mostQuery)
	if reach := ix.reach * math.Sqrt(float64(len(given))); reach > 0 {
		most = min(most, mostProduct/reach)
	}
	least := min(1./mostQuery, most/2)
	if largest == 0 || (float64(largest) >= least && float64(largest) <= most) {
		return
	}
	_, have := math.Frexp(float64(largest))
	_, want := math.Frexp(min(1, most))
	q.unscale = math.Ldexp(1, have-want+1)
	q.scaled = resize(q.scaled, len(given))
	for j, x := range given {
		q.scaled[j] = float32(float64(x) / q.unscale)
	}
	q.vector = q.scaled
}
