package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lengths are the vector lengths every kernel is tested with: all tails of every unroll factor,
// then a few long ones.
func lengths() []int {
	var ns []int
	for n := range 71 {
		ns = append(ns, n)
	}
	return append(ns, 96, 127, 128, 129, 255, 256, 300, 1000, 1023, 4096)
}

// randomVector returns n values from a normal distribution.
func randomVector(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// wantSum asserts that got is the sum of terms up to the error that summing in several partial sums
// may have. The bound is a quarter of what one running sum over many terms may reach.
func wantSum(t *testing.T, terms []float64, got float32, msg string, args ...any) {
	t.Helper()
	var sum, magnitude float64
	for _, x := range terms {
		sum += x
		magnitude += math.Abs(x)
	}
	const unit = 1.0 / (1 << 24)
	tolerance := (4 + float64(len(terms))/8) * unit * magnitude
	if math.Abs(sum-float64(got)) > tolerance {
		assert.Failf(t, "wrong sum", "%s: want %v, got %v, tolerance %v", fmt.Sprintf(msg, args...), sum, got, tolerance)
	}
}

func TestSums(t *testing.T) { eachClass(t, testSums) }

func testSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	kernels := []struct {
		name string
		term func(a, b, c float64) float64
		got  func(a, b, c []float32) float32
	}{
		{"Dot", func(a, b, _ float64) float64 { return a * b }, func(a, b, _ []float32) float32 { return Dot(a, b) }},
		{"SquaredL2", func(a, b, _ float64) float64 { return (a - b) * (a - b) }, func(a, b, _ []float32) float32 { return SquaredL2(a, b) }},
		{"MulDot", func(a, b, c float64) float64 { return a * b * c }, MulDot},
	}
	for _, k := range kernels {
		t.Run(k.name, func(t *testing.T) {
			for _, n := range lengths() {
				// b and c are longer than a: the rest must be ignored.
				a, b, c := randomVector(rng, n), randomVector(rng, n+3), randomVector(rng, n+1)
				terms := make([]float64, n)
				for i := range terms {
					terms[i] = k.term(float64(a[i]), float64(b[i]), float64(c[i]))
				}
				wantSum(t, terms, k.got(a, b, c), "length %d", n)
			}
		})
	}
}

func TestDotWide(t *testing.T) { eachClass(t, testDotWide) }

// testDotWide holds DotWide to float64 rounding: a float32 sum anywhere in it would be off by a
// million times as much.
func testDotWide(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for _, n := range lengths() {
		a, b := make([]float64, n), newGuarded(rng, n, n%16)
		var sum, magnitude float64
		for i := range a {
			a[i] = rng.NormFloat64()
			sum += a[i] * float64(b.v[i])
			magnitude += math.Abs(a[i] * float64(b.v[i]))
		}
		assert.InDelta(t, sum, DotWide(a, b.v), 1e-14*magnitude+1e-300, "length %d", n)
	}
}

func TestSumsAreAccurate(t *testing.T) { eachClass(t, testSumsAreAccurate) }

func testSumsAreAccurate(t *testing.T) {
	// One running float32 sum of these terms drifts by 4 percent, since it rounds each the same
	// way; the drift of partial sums is far smaller.
	const n = 1 << 20
	a, ones := make([]float32, n), make([]float32, n)
	for i := range a {
		a[i], ones[i] = 0.1, 1
	}
	var row [1]float32
	DotRows(row[:], a, ones)
	assert.InEpsilon(t, 0.1*n, float64(row[0]), 0.01, "DotRows")
	assert.InEpsilon(t, 0.1*n, float64(Dot(a, ones)), 0.01, "Dot")
	assert.InEpsilon(t, 0.1*n, float64(MulDot(a, ones, ones)), 0.01, "MulDot")
	assert.InEpsilon(t, 0.81*n, float64(SquaredL2(a, ones)), 0.01, "SquaredL2")
}

func TestElementwise(t *testing.T) { eachClass(t, testElementwise) }

func testElementwise(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range lengths() {
		a, b := randomVector(rng, n), randomVector(rng, n+2)
		sum := append([]float32(nil), a...)
		Axpy(sum, 0.75, b)
		product, squared := make([]float32, n), append([]float32(nil), a...)
		Mul(product, a, b)
		Mul(squared, squared, squared)
		for i := range n {
			assert.InDelta(t, float64(a[i])+0.75*float64(b[i]), float64(sum[i]), 1e-6, "Axpy, length %d, element %d", n, i)
			assert.Equal(t, a[i]*b[i], product[i], "Mul, length %d, element %d", n, i)
			assert.Equal(t, a[i]*a[i], squared[i], "Mul in place, length %d, element %d", n, i)
		}
	}
}

func TestReLU(t *testing.T) { eachClass(t, testReLU) }

func testReLU(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	negativeZero := float32(math.Copysign(0, -1))
	const tiny, huge = math.SmallestNonzeroFloat32, math.MaxFloat32
	in := []float32{0, negativeZero, 1, -1, inf, -inf, nan, -nan, tiny, -tiny, huge, -huge, 0.5, -0.5, 3, -3, nan}
	for n := range len(in) + 1 {
		got := append([]float32(nil), in[:n]...)
		ReLU(got)
		for i, x := range in[:n] {
			want := float32(0)
			if x > 0 {
				want = x
			}
			assert.Equal(t, math.Float32bits(want), math.Float32bits(got[i]), "length %d: ReLU(%v) = %v", n, x, got[i])
		}
	}
}

func TestDotRows(t *testing.T) { eachClass(t, testDotRows) }

func testDotRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for _, dim := range lengths()[:78] {
		for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 17} {
			q, rows := randomVector(rng, dim), randomVector(rng, n*dim)
			dst := make([]float32, n)
			DotRows(dst, q, rows)
			for i := range dst {
				want := Dot(q, rows[i*dim:(i+1)*dim])
				require.Equal(t, math.Float32bits(want), math.Float32bits(dst[i]), "dim %d, row %d of %d", dim, i, n)
			}
		}
	}
}

func TestWrongShapesPanic(t *testing.T) {
	v := make([]float32, 4)
	cases := map[string]func(){
		"Dot":           func() { Dot(v, v[:3:3]) },
		"SquaredL2":     func() { SquaredL2(v, v[:3:3]) },
		"MulDot":        func() { MulDot(v, v, v[:3:3]) },
		"Axpy":          func() { Axpy(v, 1, v[:3:3]) },
		"Mul":           func() { Mul(v, v, v[:3:3]) },
		"Gate":          func() { Gate(v, v[:3:3]) },
		"Product":       func() { new(Product).Add(v, v, v[:3:3], 2, 2, 2) },
		"PackTransp.":   func() { PackTransposed(nil, v, 2, 3) },
		"DotRows":       func() { DotRows(v, v, v) },
		"Pack":          func() { Pack(nil, v, 2, 3, nil) },
		"Pack scale":    func() { Pack(nil, v, 2, 2, v) },
		"Matrix.Mul":    func() { Pack(nil, v, 2, 2, nil).Mul(v, v, nil, 3) },
		"Matrix bias":   func() { Pack(nil, v, 2, 2, nil).Mul(v, v, v[:1:1], 1) },
		"Scan4 block":   func() { Scan4(make([]uint32, 32), make([]uint16, 32), make([]byte, 63), make([]byte, 64), 2, 0) },
		"Scan4 pairs":   func() { Scan4(nil, nil, nil, nil, 0, 0) },
		"Scan4 too big": func() { Scan4(nil, nil, nil, make([]byte, 129*32), 129, 0) },
		"Scan4 room":    func() { Scan4(make([]uint32, 31), make([]uint16, 32), make([]byte, 32), make([]byte, 32), 1, 0) },
		"Scan4 table":   func() { Scan4(make([]uint32, 32), make([]uint16, 32), make([]byte, 32), make([]byte, 31), 1, 0) },
		"Scan8":         func() { Scan8(v, make([]byte, 4), make([]float32, 255), 1) },
	}
	for name, call := range cases {
		t.Run(name, func(t *testing.T) { assert.Panics(t, call) })
	}
}

func TestSafeDot(t *testing.T) {
	inf := float32(math.Inf(1))
	const huge, tiny = math.MaxFloat32, 1e-30
	tests := []struct {
		a, b []float32
		want float32
	}{
		{nil, nil, 0},
		{[]float32{1, 2, 3}, []float32{4, 5, 6}, 32},
		{[]float32{huge, huge, -huge, -huge, 1e35}, []float32{1, 1, 1, 1, 2}, 2e35},
		{[]float32{-huge, -huge, huge, huge, huge}, []float32{1, 1, 1, 1, 1}, huge},
		{[]float32{huge, -huge}, []float32{huge, huge}, 0},
		{[]float32{huge, 1}, []float32{2, 1}, inf},
		{[]float32{huge, 1}, []float32{-2, 1}, -inf},
		{[]float32{tiny, 1e-20}, []float32{1e-14, 1e-24}, 2e-44},
		{[]float32{0, 0}, []float32{huge, -huge}, 0},
	}
	for _, tt := range tests {
		// The terms lie in every lane of a kernel, in turn.
		for before := range 40 {
			a, b := append(make([]float32, before), tt.a...), append(make([]float32, before), tt.b...)
			got := SafeDot(a, b)
			if tt.want != got { // the rounding of a term may remain
				require.InEpsilon(t, tt.want, got, 1e-4, "%v . %v after %d zeros: %v", tt.a, tt.b, before, got)
			}
		}
	}
	for _, sum := range []float32{inf, -inf, float32(math.NaN()), 1e-31, -1e-45} {
		require.False(t, Safe(sum), "%v", sum)
	}
	for _, sum := range []float32{0, 1, -1, huge, -huge, 1e-30} {
		require.True(t, Safe(sum), "%v", sum)
	}
}
