package main

import (
	"math"
	"slices"
)

// percentile returns the smallest of the values that is at least as large as p percent of them
// (nearest rank, no interpolation); NaN of no values.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func median(values []float64) float64 { return percentile(values, 50) }

// mean returns the arithmetic mean; NaN of no values.
func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// fitExponent returns a and e of y = a x^e, by least squares on logarithms; NaN where fewer than
// two distinct x are given.
func fitExponent(xs, ys []float64) (a, e float64) {
	n := float64(len(xs))
	var sx, sy, sxx, sxy float64
	for i := range xs {
		x, y := math.Log(xs[i]), math.Log(ys[i])
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	spread := n*sxx - sx*sx
	if len(xs) < 2 || spread <= 0 {
		return math.NaN(), math.NaN()
	}
	e = (n*sxy - sx*sy) / spread
	return math.Exp((sy - e*sx) / n), e
}
