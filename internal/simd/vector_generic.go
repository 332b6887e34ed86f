package simd

import "math"

// The generic sums run eight partial sums side by side: the processor overlaps their additions, and
// each sees an eighth of the terms, which keeps the rounding error of a long float32 sum small.

func dotGeneric(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 && len(b) >= 8 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		s4 += a[4] * b[4]
		s5 += a[5] * b[5]
		s6 += a[6] * b[6]
		s7 += a[7] * b[7]
		a, b = a[8:], b[8:]
	}
	for i, x := range a {
		s0 += x * b[i]
	}
	return ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))
}

// dotWideGeneric needs no more partial sums than overlap: float64 has bits to spare.
func dotWideGeneric(a []float64, b []float32) float64 {
	var s0, s1, s2, s3 float64
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * float64(b[0])
		s1 += a[1] * float64(b[1])
		s2 += a[2] * float64(b[2])
		s3 += a[3] * float64(b[3])
		a, b = a[4:], b[4:]
	}
	for i, x := range a {
		s0 += x * float64(b[i])
	}
	return (s0 + s1) + (s2 + s3)
}

func squaredL2Generic(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 && len(b) >= 8 {
		d0, d1, d2, d3 := a[0]-b[0], a[1]-b[1], a[2]-b[2], a[3]-b[3]
		d4, d5, d6, d7 := a[4]-b[4], a[5]-b[5], a[6]-b[6], a[7]-b[7]
		s0 += d0 * d0
		s1 += d1 * d1
		s2 += d2 * d2
		s3 += d3 * d3
		s4 += d4 * d4
		s5 += d5 * d5
		s6 += d6 * d6
		s7 += d7 * d7
		a, b = a[8:], b[8:]
	}
	for i, x := range a {
		d := x - b[i]
		s0 += d * d
	}
	return ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))
}

func mulDotGeneric(a, b, c []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 && len(b) >= 8 && len(c) >= 8 {
		s0 += a[0] * b[0] * c[0]
		s1 += a[1] * b[1] * c[1]
		s2 += a[2] * b[2] * c[2]
		s3 += a[3] * b[3] * c[3]
		s4 += a[4] * b[4] * c[4]
		s5 += a[5] * b[5] * c[5]
		s6 += a[6] * b[6] * c[6]
		s7 += a[7] * b[7] * c[7]
		a, b, c = a[8:], b[8:], c[8:]
	}
	for i, x := range a {
		s0 += x * b[i] * c[i]
	}
	return ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))
}

func axpyGeneric(dst []float32, alpha float32, x []float32) {
	for len(dst) >= 4 && len(x) >= 4 {
		dst[0] += alpha * x[0]
		dst[1] += alpha * x[1]
		dst[2] += alpha * x[2]
		dst[3] += alpha * x[3]
		dst, x = dst[4:], x[4:]
	}
	for i := range dst {
		dst[i] += alpha * x[i]
	}
}

func mulGeneric(dst, a, b []float32) {
	for len(dst) >= 4 && len(a) >= 4 && len(b) >= 4 {
		dst[0] = a[0] * b[0]
		dst[1] = a[1] * b[1]
		dst[2] = a[2] * b[2]
		dst[3] = a[3] * b[3]
		dst, a, b = dst[4:], a[4:], b[4:]
	}
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

// reluGeneric compares bit patterns: the signs of activations are close to coin flips, and an
// integer comparison compiles to a conditional move where a float comparison would be a
// mispredicted branch. Read as integers, the positive floats up to +Inf are 1 to 0x7f800000; zeros,
// negatives and NaNs lie outside.
func reluGeneric(x []float32) {
	const inf = 0x7f800000
	for i, v := range x {
		bits := math.Float32bits(v)
		if bits-1 >= inf {
			bits = 0
		}
		x[i] = math.Float32frombits(bits)
	}
}

// gateGeneric compares bit patterns for the reason reluGeneric does.
func gateGeneric(dst, x []float32) {
	const inf = 0x7f800000
	for i, v := range x[:len(dst)] {
		bits := math.Float32bits(dst[i])
		if math.Float32bits(v)-1 >= inf {
			bits = 0
		}
		dst[i] = math.Float32frombits(bits)
	}
}

func dotRowsGeneric(dst, q, rows []float32) {
	for i := range dst {
		dst[i] = dotGeneric(q, rows[:len(q)])
		rows = rows[len(q):]
	}
}

func atLeastGeneric(bits []uint64, x []float32, least float32) {
	clear(bits)
	for i := range x {
		if !(x[i] < least) {
			bits[i/wordBits] |= 1 << (i % wordBits)
		}
	}
}
