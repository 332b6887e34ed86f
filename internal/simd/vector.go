package simd

import (
	"math"
	"unsafe"
)

// Dot returns the inner product of a and the first len(a) values of b.
//
//	for i := range a {
//		sum += a[i] * b[i]
//	}
func Dot(a, b []float32) float32 {
	return dot(a, b[:len(a)])
}

// SafeDot returns Dot(a, b), unless a sum in float32 overflowed or came close to zero: then it is
// the sum in float64, rounded. That is infinite where the true sum is beyond the range of a
// float32, and no NaN for finite a and b.
func SafeDot(a, b []float32) float32 {
	sum := Dot(a, b)
	if !Safe(sum) {
		return dotSlow(a, b)
	}
	return sum
}

// Safe reports whether sum, an inner product computed in float32, has its digits: it is a number
// that did not overflow, and zero or so far from it that no term that matters underflowed.
func Safe(sum float32) bool {
	const least = 1. / (1 << 100)
	return (sum >= least && sum <= math.MaxFloat32) || (sum <= -least && sum >= -math.MaxFloat32) || sum == 0
}

func dotSlow(a, b []float32) float32 {
	var sum float64
	for i, x := range a {
		sum += float64(x) * float64(b[i])
	}
	return float32(sum)
}

// DotWide returns the inner product in float64 of a and the first len(a) values of b: for sums
// whose rounding must stay below that of a float32.
//
//	for i := range a {
//		sum += a[i] * float64(b[i])
//	}
func DotWide(a []float64, b []float32) float64 {
	return dotWide(a, b[:len(a)])
}

// SquaredL2 returns the squared Euclidean distance of a and the first len(a) values of b.
//
//	for i := range a {
//		sum += (a[i] - b[i]) * (a[i] - b[i])
//	}
func SquaredL2(a, b []float32) float32 {
	return squaredL2(a, b[:len(a)])
}

// MulDot returns the inner product of three vectors. With a = b = q and c = v it is the variance q
// has under the diagonal covariance v.
//
//	for i := range a {
//		sum += a[i] * b[i] * c[i]
//	}
func MulDot(a, b, c []float32) float32 {
	return mulDot(a, b[:len(a)], c[:len(a)])
}

// Axpy adds alpha*x to dst.
//
//	for i := range dst {
//		dst[i] += alpha * x[i]
//	}
func Axpy(dst []float32, alpha float32, x []float32) {
	axpy(dst, alpha, x[:len(dst)])
}

// Mul sets dst to the elementwise product of a and b. dst may be a or b, but may not overlap them
// in any other way.
//
//	for i := range dst {
//		dst[i] = a[i] * b[i]
//	}
func Mul(dst, a, b []float32) {
	mul(dst, a[:len(dst)], b[:len(dst)])
}

// ReLU sets to zero, in place, everything that is not greater than zero; a NaN becomes zero too.
//
//	for i := range x {
//		if !(x[i] > 0) {
//			x[i] = 0
//		}
//	}
func ReLU(x []float32) {
	relu(x)
}

// Gate sets to zero the values of dst whose partner in x is not greater than zero: the derivative
// of ReLU, where x is what it returned.
//
//	for i := range dst {
//		if !(x[i] > 0) {
//			dst[i] = 0
//		}
//	}
func Gate(dst, x []float32) {
	gate(dst, x[:len(dst)])
}

// DotRows sets dst to the inner products of q and len(dst) rows. rows is row-major, len(dst) x
// len(q). dst[i] has the bits Dot(q, row i) has.
//
//	for i := range dst {
//		dst[i] = Dot(q, rows[i*len(q):(i+1)*len(q)])
//	}
func DotRows(dst, q, rows []float32) {
	dotRows(dst, q, rows[:len(dst)*len(q)])
}

// wordBits is the number of bits in a word of AtLeast.
const wordBits = 64

// AtLeast sets the bits of the values that are not less than least, a NaN among them, and clears
// the others. The bits are in ceil(len(x)/64) words; those beyond len(x) are cleared.
//
//	clear(bits)
//	for i := range x {
//		if !(x[i] < least) {
//			bits[i/64] |= 1 << (i % 64)
//		}
//	}
func AtLeast(bits []uint64, x []float32, least float32) {
	atLeast(bits[:(len(x)+wordBits-1)/wordBits], x, least)
}

// Prefetch asks the processor for x without waiting for it: rows or codes that are read soon, and
// lie where no earlier access lets it guess. It only costs time where there is nothing to wait for,
// so the plain Go twin does nothing.
func Prefetch[E byte | uint32 | float32](x []E) {
	if len(x) > 0 {
		prefetch((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
	}
}
