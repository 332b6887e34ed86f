package simd

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shapes returns out x in of matrices with panels full, cut and one too many, and chunks of inputs
// likewise.
func shapes() [][2]int {
	var s [][2]int
	for _, out := range []int{0, 1, 2, 5, 16, 17, 31, 32, 33, 48, 64, 68} {
		for _, in := range []int{0, 1, 7, 31, 32, 33, 63, 64, 65, 127, 129} {
			s = append(s, [2]int{out, in})
		}
	}
	return append(s, [2]int{3, 520}, [2]int{34, 257}, [2]int{36, 1030}, [2]int{1, 1000})
}

func TestMatrixMul(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes: nothing for the race detector")
	}
	eachClass(t, testMatrixMul)
}

func testMatrixMul(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for _, shape := range shapes() {
		out, in := shape[0], shape[1]
		for _, n := range []int{0, 1, 2, 3, 4, 7, 13} {
			w, rows := randomVector(rng, out*in), randomVector(rng, n*in)
			bias, scale := randomVector(rng, out), randomVector(rng, in)
			if n%2 == 0 {
				bias = nil
			}
			if n%3 == 0 {
				scale = nil
			}
			m := Pack(nil, w, out, in, scale)
			require.Equal(t, []int{out, in}, []int{m.Out(), m.In()})
			dst := randomVector(rng, n*out)
			m.Mul(dst, rows, bias, n)
			checkProduct(t, dst, rows, w, bias, scale, out, in)
		}
	}
}

func checkProduct(t *testing.T, dst, rows, w, bias, scale []float32, out, in int) {
	t.Helper()
	terms := make([]float64, in+1)
	for i := range dst {
		row, o := i/out, i%out
		for k := range in {
			weight := w[o*in+k]
			if scale != nil {
				weight *= scale[k]
			}
			terms[k] = float64(rows[row*in+k]) * float64(weight)
		}
		terms[in] = 0
		if bias != nil {
			terms[in] = float64(bias[o])
		}
		wantSum(t, terms, dst[i], "%d x %d, row %d, output %d", out, in, row, o)
	}
}

// TestMatrixMulIgnoresBatch holds the promise that a row's result has the same bits alone, in any
// batch and at any place in it.
func TestMatrixMulIgnoresBatch(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes: nothing for the race detector")
	}
	eachClass(t, testMatrixMulIgnoresBatch)
}

func testMatrixMulIgnoresBatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	const n = 27
	for _, shape := range shapes() {
		out, in := shape[0], shape[1]
		m := Pack(nil, randomVector(rng, out*in), out, in, nil)
		rows, bias := randomVector(rng, n*in), randomVector(rng, out)
		alone := make([]float32, n*out)
		for i := range n {
			m.Mul(alone[i*out:(i+1)*out], rows[i*in:(i+1)*in], bias, 1)
		}
		for _, first := range []int{0, 1, 2, 3, 5, 13, 24} {
			for _, last := range []int{first + 2, first + 5, first + 12, n} {
				last = min(last, n)
				dst := make([]float32, (last-first)*out)
				m.Mul(dst, rows[first*in:last*in], bias, last-first)
				for i, x := range dst {
					want := alone[first*out+i]
					require.Equal(t, math.Float32bits(want), math.Float32bits(x), "%d x %d, rows %d to %d, value %d", out, in, first, last, i)
				}
			}
		}
	}
}

func TestMatrixMulIsAccurate(t *testing.T) { eachClass(t, testMatrixMulIsAccurate) }

func testMatrixMulIsAccurate(t *testing.T) {
	// Large equal terms that one running sum would keep rounding the same way.
	const in, out = 1 << 12, 2
	w, row := make([]float32, out*in), make([]float32, in)
	for i := range w {
		w[i] = 1
	}
	for i := range row {
		row[i] = 0.1
	}
	var dst [out]float32
	Pack(nil, w, out, in, nil).Mul(dst[:], row, nil, 1)
	for _, x := range dst {
		assert.InEpsilon(t, float64(row[0])*in, float64(x), 3e-6)
	}
}

func TestPackReusesMemory(t *testing.T) { eachClass(t, testPackReusesMemory) }

func testPackReusesMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	large, small := randomVector(rng, 64*48), randomVector(rng, 33*20)
	scale := randomVector(rng, 20)
	m := Pack(nil, large, 64, 48, nil)
	assert.Zero(t, testing.AllocsPerRun(10, func() { m = Pack(m, small, 33, 20, scale) }))

	// The padding of the last panel must not show what was packed before.
	rows := randomVector(rng, 3*20)
	dst := make([]float32, 3*33)
	m.Mul(dst, rows, nil, 3)
	checkProduct(t, dst, rows, small, nil, scale, 33, 20)
}

func TestMatrixMulDoesNotAllocate(t *testing.T) { eachClass(t, testMatrixMulDoesNotAllocate) }

func testMatrixMulDoesNotAllocate(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 4))
	m := Pack(nil, randomVector(rng, 50*40), 50, 40, nil)
	rows, dst := randomVector(rng, 7*40), make([]float32, 7*50)
	assert.Zero(t, testing.AllocsPerRun(10, func() { m.Mul(dst, rows, nil, 7) }))
}
