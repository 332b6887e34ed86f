package ivf

import (
	"math"
	"slices"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/simd"
)

// If there are many lists and a query visits a part of them, it chooses these by centroids of 8
// bits, which are a quarter of the memory to read. Then it computes its products with the exact
// centroids of the visited lists. The rounded centroids are not stored in the file.
//
// The difference of each centroid from the median is rounded, in units of the deviation in each
// dimension:
//
//	q.c_l = q.m + sum_d (q_d u_d) ((c_ld - m_d) / u_d)
//
// with the median m_d and the median deviation u_d from it. The first term is the same for all
// lists and is left out. The two factors of each summand are rounded to multiples of a 127th of the
// largest of the query and of the list. The error is then about a hundredth of the deviation of
// q.c_l between lists, for any query and any scale of the dimensions, unless dimensions cancel each
// other out.

const (
	// roundedLists is the least number of lists whose centroids are rounded. With fewer, exact
	// centroids are read quickly enough.
	roundedLists = 1024
	// Rounded centroids are used if a query visits at most one in partVisited of the lists. With
	// more, computing the products with scattered centroids takes as long as with all in order.
	partVisited = 6
	// medianLists is the number of lists that the medians are computed from.
	medianLists = 256
	// mostDeviations is how many median deviations from the median a centroid may be, in any
	// dimension. A normal deviate is within 8. Centroids further out are those of rows of other
	// magnitudes, which need exact centroids.
	mostDeviations = 64
	// mostUnit bounds median deviations from above, and its inverse from below, so that their
	// products with queries stay normal numbers.
	mostUnit = 1 << 60
	// mostRounded is the largest rounded value.
	mostRounded = 127
)

// rounded is the centroids as 8-bit numbers.
type rounded struct {
	rows *simd.ByteRows // nil if there are few lists, or if they are too different to be rounded
	unit []float32      // median deviation in each dimension, 0 where all lists are the same
}

// roundCentroids rounds centroids, row-major.
func roundCentroids(centroids []float32, d int) rounded {
	n := len(centroids) / d
	medians, unit := make([]float32, d), make([]float32, d)
	inverse := make([]float64, d)
	for j := range d {
		medians[j], unit[j] = medianDeviation(centroids, d, j)
		switch u := unit[j]; {
		case u == 0: // and then any other value is too far out
			inverse[j] = math.Inf(1)
		case !(u <= mostUnit && u >= 1./mostUnit):
			return rounded{}
		default:
			inverse[j] = 1 / float64(u)
		}
	}
	values, factors := make([]int8, n*d), make([]float32, n)
	row := make([]float64, d)
	for l := range n {
		most := 0.
		for j, x := range centroids[l*d : (l+1)*d] {
			row[j] = 0
			if x != medians[j] {
				row[j] = (float64(x) - float64(medians[j])) * inverse[j]
			}
			if most = max(most, math.Abs(row[j])); !(most <= mostDeviations) {
				return rounded{}
			}
		}
		factors[l] = float32(most / mostRounded)
		if most > 0 {
			toBytes(values[l*d:(l+1)*d], row, mostRounded/most)
		}
	}
	return rounded{simd.PackBytes(values, factors, d), unit}
}

// toBytes sets dst to the values times a factor, rounded.
func toBytes[F float32 | float64](dst []int8, values []F, factor float64) {
	for j, x := range values {
		dst[j] = int8(math.RoundToEven(float64(x) * factor))
	}
}

// medianDeviation returns the median of dimension j of some rows, row-major, and the median
// distance from it.
func medianDeviation(rows []float32, d, j int) (median, deviation float32) {
	n := len(rows) / d
	step := max(1, n/medianLists)
	var column []float32
	for i := 0; i < n; i += step {
		column = append(column, rows[i*d+j])
	}
	slices.Sort(column)
	median = column[len(column)/2]
	for i, x := range column {
		column[i] = max(x-median, median-x)
	}
	slices.Sort(column)
	return median, column[len(column)/2]
}

// wantsPart reports whether the budget is so small that lists are chosen by rounded centroids.
func (s *Search) wantsPart(probes index.Probes) bool {
	return s.ix.rounded.rows != nil && !probes.All() && (s.cost.Lists+s.missing(probes))*partVisited <= s.ix.header.lists
}

// rateRounded computes the priorities of all lists for each query vector by rounded centroids. The
// priorities lack the term that is the same for all lists. The products are undefined afterwards.
func rateRounded(ix *Index, queries []queryVector) {
	for i := range queries {
		queries[i].resize(ix)
		queries[i].round(ix)
	}
	for begin := 0; begin < ix.header.lists; begin += ratedLists {
		end := min(begin+ratedLists, ix.header.lists)
		for i := range queries {
			q := &queries[i]
			ix.rounded.rows.Dot(q.priorities[begin:end], q.rounded, begin, q.step)
			simd.Axpy(q.priorities[begin:end], q.unit, ix.breadth[begin:end])
		}
	}
}

// round rounds the vector of the query, in units of the rounded centroids, to multiples of step.
func (q *queryVector) round(ix *Index) {
	q.rounded = resize(q.rounded, ix.rounded.rows.PaddedDim())
	clear(q.rounded)
	q.inUnits = resize(q.inUnits, len(q.vector))
	simd.Mul(q.inUnits, q.vector, ix.rounded.unit)
	var most float32
	for _, x := range q.inUnits {
		most = max(most, x, -x)
	}
	q.step = most / mostRounded
	if most > 0 {
		toBytes(q.rounded, q.inUnits, mostRounded/float64(most))
	}
}
