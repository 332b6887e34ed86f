package decoder

import (
	"math"

	"github.com/flashdb/flashdb/internal/simd"
)

// norm is a normalisation ready to run over rows of len(scale) values: a layer norm, or a batch
// norm that could not be folded into a neighbouring weight and is an affine map of each value.
type norm struct {
	moments bool      // layer norm: subtract each row's mean and divide by its deviation first
	eps     float64   // added to the variance
	scale   []float32 // multiplies each value, then
	shift   []float32 // is added
}

// apply normalises n rows of src into dst, which may be src. A nil norm does nothing and demands
// dst to be src.
func (m *norm) apply(dst, src []float32, n int) {
	if m == nil {
		return
	}
	w := len(m.scale)
	for i := range n {
		out, in := dst[i*w:(i+1)*w], src[i*w:(i+1)*w]
		mean, inverse := 0.0, 1.0
		if m.moments {
			mean, inverse = moments(in, m.eps)
		}
		for k, x := range in {
			out[k] = float32((float64(x)-mean)*inverse*float64(m.scale[k]) + float64(m.shift[k]))
		}
	}
}

// backward turns grad, the gradient with respect to n normalised rows, into that with respect to
// src, their values before. With h the normalised row and g = grad*scale, the gradient of a layer
// norm is (g - mean(g) - h*mean(g*h)) / deviation.
func (m *norm) backward(grad, src []float32, n int) {
	if m == nil {
		return
	}
	w := len(m.scale)
	for i := range n {
		g, x := grad[i*w:(i+1)*w], src[i*w:(i+1)*w]
		for k := range g {
			g[k] *= m.scale[k]
		}
		if !m.moments {
			continue
		}
		mean, inverse := moments(x, m.eps)
		var gMean, ghMean float64
		for k := range g {
			gMean += float64(g[k])
			ghMean += float64(g[k]) * (float64(x[k]) - mean) * inverse
		}
		gMean /= float64(w)
		ghMean /= float64(w)
		for k := range g {
			h := (float64(x[k]) - mean) * inverse
			g[k] = float32((float64(g[k]) - gMean - h*ghMean) * inverse)
		}
	}
}

// weigh multiplies a gradient by the weights of the norm; a nil one has none.
func (m *norm) weigh(grad []float32) {
	if m != nil {
		simd.Mul(grad, grad, m.scale)
	}
}

// moments returns the mean of a row and one over its deviation, sqrt(variance + eps), the variance
// divided by n as PyTorch does. Two passes in float64: a row whose mean is large against its
// deviation keeps its digits.
func moments(row []float32, eps float64) (mean, inverse float64) {
	n := float64(len(row))
	var s0, s1, s2, s3 float64 // sums that do not wait for each other
	rest := row
	for ; len(rest) >= 4; rest = rest[4:] {
		s0 += float64(rest[0])
		s1 += float64(rest[1])
		s2 += float64(rest[2])
		s3 += float64(rest[3])
	}
	for _, x := range rest {
		s0 += float64(x)
	}
	mean = ((s0 + s1) + (s2 + s3)) / n

	s0, s1, s2, s3, rest = 0, 0, 0, 0, row
	for ; len(rest) >= 4; rest = rest[4:] {
		d0, d1, d2, d3 := float64(rest[0])-mean, float64(rest[1])-mean, float64(rest[2])-mean, float64(rest[3])-mean
		s0 += d0 * d0
		s1 += d1 * d1
		s2 += d2 * d2
		s3 += d3 * d3
	}
	for _, x := range rest {
		d := float64(x) - mean
		s0 += d * d
	}
	variance := ((s0 + s1) + (s2 + s3)) / n
	return mean, 1 / math.Sqrt(variance+eps)
}

// finite tells whether all weights are.
func (m *norm) finite() bool { return m == nil || (firstBad(m.scale) < 0 && firstBad(m.shift) < 0) }
