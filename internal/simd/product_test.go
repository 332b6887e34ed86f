package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProduct(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes: nothing for the race detector")
	}
	eachClass(t, testProduct)
}

func testProduct(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	var p Product
	for _, rows := range []int{0, 1, 2, 5, 6, 7, 31, 49, 64} {
		for _, cols := range []int{0, 1, 2, 15, 16, 31, 32, 33, 64, 70} {
			for _, n := range []int{0, 1, 2, 31, 32, 33, 70, 127, 128, 129, 300} {
				shift := rng.IntN(16)
				msg := fmt.Sprintf("%d rows of %d and %d values, shift %d", n, rows, cols, shift)
				a, b, dst := newGuarded(rng, n*rows, shift), newGuarded(rng, n*cols, (3*shift)%16), newGuarded(rng, rows*cols, (5*shift)%16)
				before := append([]float32(nil), dst.v...)
				p.Add(dst.v, a.v, b.v, n, rows, cols)
				for i := range dst.v {
					want, scale := float64(before[i]), math.Abs(float64(before[i]))
					for k := range n {
						term := float64(a.v[k*rows+i/cols]) * float64(b.v[k*cols+i%cols])
						want, scale = want+term, scale+math.Abs(term)
					}
					require.InDelta(t, want, dst.v[i], 1e-6*scale+1e-9, "value %d, %s", i, msg)
				}
				dst.check(t, msg)
			}
		}
	}
}

func TestPackTransposed(t *testing.T) { eachClass(t, testPackTransposed) }

func testPackTransposed(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 2))
	var into Matrix
	for _, shape := range shapes() {
		out, in := shape[0], shape[1]
		w := randomVector(rng, out*in)
		turned := make([]float32, len(w))
		for o := range out {
			for k := range in {
				turned[k*out+o] = w[o*in+k]
			}
		}
		want, got := Pack(nil, w, out, in, nil), PackTransposed(&into, turned, out, in)
		if out*in > 0 {
			require.Equal(t, want.data, got.data, "%d x %d", out, in)
		}
		require.Equal(t, []int{out, in}, []int{got.Out(), got.In()})
	}
}

func TestGate(t *testing.T) { eachClass(t, testGate) }

func testGate(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	const tiny = math.SmallestNonzeroFloat32
	x := []float32{0, float32(math.Copysign(0, -1)), 1, -1, inf, -inf, nan, -nan, tiny, -tiny, 3, -3, 0.5, 2, -2, 1, -1, 5, 0}
	for len(x) < 150 {
		x = append(x, x...)
	}
	for n := range 140 {
		got := make([]float32, n)
		for i := range got {
			got[i] = float32(i + 1)
		}
		Gate(got, x)
		for i, v := range got {
			want := float32(0)
			if x[i] > 0 {
				want = float32(i + 1)
			}
			assert.Equal(t, want, v, "length %d, element %d: gate %v", n, i, x[i])
		}
	}
}

func BenchmarkProduct(b *testing.B) {
	for _, shape := range mulShapes {
		b.Run(fmt.Sprintf("%dx%d/n=512", shape[0], shape[1]), func(b *testing.B) {
			benchEachClass(b, func(b *testing.B) {
				rng := rand.New(rand.NewPCG(9, 6))
				const n = 512
				x, y := randomVector(rng, n*shape[0]), randomVector(rng, n*shape[1])
				dst := make([]float32, shape[0]*shape[1])
				var p Product
				for b.Loop() {
					p.Add(dst, x, y, n, shape[0], shape[1])
				}
				perSecond(b, 2*n*float64(shape[0]*shape[1])/1e9, "GFLOP/s")
			})
		})
	}
}
