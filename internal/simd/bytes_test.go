package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// wholeNumbers returns n values from -127 to 127, many of them extreme: products of these fill 16
// bits.
func wholeNumbers(rng *rand.Rand, n int) []int8 {
	v := make([]int8, n)
	for i := range v {
		v[i] = int8(rng.IntN(255) - byteMost)
	}
	switch rng.IntN(4) {
	case 0:
		for i := range v {
			v[i] = byteMost
		}
	case 1:
		for i := range v {
			v[i] = int8(byteMost * (1 - 2*rng.IntN(2)))
		}
	}
	return v
}

func TestByteRows(t *testing.T) { eachClass(t, testByteRows) }

// testByteRows compares bits with sums of 64-bit integers, on memory between guard words.
func testByteRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	for _, dim := range []int{1, 3, 4, 5, 7, 8, 9, 16, 31, 64, 65, 100, 128, 200} {
		for _, n := range []int{0, 1, 2, 15, 16, 17, 32, 63, 64, 65, 100} {
			values, factors := wholeNumbers(rng, n*dim), randomVector(rng, n)
			m := PackBytes(values, factors, dim)
			require.Equal(t, 0, m.PaddedDim()%8)
			q := make([]int8, m.PaddedDim())
			copy(q, wholeNumbers(rng, dim))
			scale := rng.Float32()
			for first := 0; first <= n; first += byteRows {
				msg := fmt.Sprintf("dim %d, %d rows, from %d", dim, n, first)
				dst := newGuarded(rng, n-first, rng.IntN(16))
				m.Dot(dst.v, q, first, scale)
				for i := range dst.v {
					var sum int64
					for j, x := range q[:dim] {
						sum += int64(x) * int64(values[(first+i)*dim+j])
					}
					require.Equal(t, math.Float32bits(float32(sum)*factors[first+i]*scale), math.Float32bits(dst.v[i]), "row %d, %s", i, msg)
				}
				dst.check(t, msg)
				part := newGuarded(rng, (n-first)/2, rng.IntN(16))
				m.Dot(part.v, q, first, scale)
				require.Equal(t, dst.v[:len(part.v)], part.v, "part of %s", msg)
				part.check(t, msg)
			}
		}
	}
}

// TestByteRowsOfMostDimensions: the largest sums there can be.
func TestByteRowsOfMostDimensions(t *testing.T) { eachClass(t, testByteRowsOfMostDimensions) }

func testByteRowsOfMostDimensions(t *testing.T) {
	const dim = 1 << 16
	values, q := make([]int8, 2*dim), make([]int8, dim)
	for j := range q {
		values[j], values[dim+j], q[j] = byteMost, -byteMost, byteMost
	}
	m := PackBytes(values, []float32{1, 1}, dim)
	var dst [2]float32
	m.Dot(dst[:], q, 0, 1)
	const most = float32(dim * byteMost * byteMost)
	require.Equal(t, [2]float32{most, -most}, dst)
}

func TestByteRowsRefuseWrongShapes(t *testing.T) {
	m := PackBytes(make([]int8, 40*5), make([]float32, 40), 5)
	require.Panics(t, func() { PackBytes(make([]int8, 9), make([]float32, 2), 5) })
	require.Panics(t, func() { PackBytes(nil, nil, 0) })
	require.Panics(t, func() { PackBytes(nil, nil, 1<<16+1) })
	require.Panics(t, func() { m.Dot(make([]float32, 41), make([]int8, 8), 0, 1) })
	require.Panics(t, func() { m.Dot(make([]float32, 25), make([]int8, 8), 16, 1) })
	require.Panics(t, func() { m.Dot(make([]float32, 1), make([]int8, 8), 8, 1) })
	require.Panics(t, func() { m.Dot(make([]float32, 1), make([]int8, 5), 0, 1) })
}

// BenchmarkByteRows is BenchmarkDotRows for as many rows as its sizes hold in float32.
func BenchmarkByteRows(b *testing.B) {
	for _, dim := range []int{64, 128} {
		for _, n := range []int{500, 4000, 14000, 50000} {
			b.Run(fmt.Sprintf("dim=%d/rows=%d", dim, n), func(b *testing.B) {
				benchEachClass(b, func(b *testing.B) {
					rng := rand.New(rand.NewPCG(9, 8))
					m := PackBytes(wholeNumbers(rng, n*dim), make([]float32, n), dim)
					q, dst := make([]int8, m.PaddedDim()), make([]float32, n)
					copy(q, wholeNumbers(rng, dim))
					for b.Loop() {
						m.Dot(dst, q, 0, 1)
					}
					perSecond(b, float64(n*dim)/1e9, "GB/s")
				})
			})
		}
	}
}
