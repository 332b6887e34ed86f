package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tests of this file run each kernel beside its generic twin, on arguments that start at every
// alignment and lie between guard words: a NaN that is read shows in the result, one that is
// overwritten is found afterwards.

const guardWords = 64

// guarded is memory between guard words.
type guarded struct{ all, v []float32 }

var guard = float32(math.NaN())

// newGuarded returns n random values that start shift words past an allocation's natural alignment.
func newGuarded(rng *rand.Rand, n, shift int) guarded {
	g := guarded{all: make([]float32, guardWords+shift+n+guardWords)}
	for i := range g.all {
		g.all[i] = guard
	}
	first := guardWords + shift
	g.v = g.all[first : first+n : first+n]
	copy(g.v, randomVector(rng, n))
	return g
}

// check fails the test if a guard word has changed.
func (g guarded) check(t *testing.T, msg string) {
	t.Helper()
	first := len(g.all) - guardWords - len(g.v)
	for i, x := range g.all {
		if (i < first || i >= first+len(g.v)) && x == x {
			t.Fatalf("%s: word %d is overwritten with %v, %d values start at %d", msg, i, x, len(g.v), first)
		}
	}
}

func TestTwins(t *testing.T) { eachClass(t, testTwins) }

func testTwins(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	for _, n := range lengths() {
		for _, shift := range []int{0, 1, 2, 3, 5, 7, 8, 15} {
			msg := fmt.Sprintf("length %d, shift %d", n, shift)
			a, b, c := newGuarded(rng, n, shift), newGuarded(rng, n, (3*shift)%16), newGuarded(rng, n, (5*shift+1)%16)
			sumTwins(t, a.v, b.v, c.v, msg)
			elementTwins(t, a, b, msg)
		}
	}
}

func sumTwins(t *testing.T, a, b, c []float32, msg string) {
	var scale float64
	for i := range a {
		x := math.Abs(float64(a[i])) + math.Abs(float64(b[i]))
		scale += x * x * (1 + math.Abs(float64(c[i])))
	}
	tolerance := 1e-6*scale + 1e-30
	assert.InDelta(t, dotGeneric(a, b), dot(a, b), tolerance, "dot, %s", msg)
	assert.InDelta(t, squaredL2Generic(a, b), squaredL2(a, b), tolerance, "squaredL2, %s", msg)
	assert.InDelta(t, mulDotGeneric(a, b, c), mulDot(a, b, c), tolerance, "mulDot, %s", msg)
}

// elementTwins compares the kernels that write; exactly, but for the rounding that a fused
// multiply-add saves.
func elementTwins(t *testing.T, dst, x guarded, msg string) {
	before := append([]float32(nil), dst.v...)
	want := make([]float32, len(before))
	run := func(name string, got, twin func(d []float32), tolerance float64) {
		copy(dst.v, before)
		copy(want, before)
		got(dst.v)
		twin(want)
		for i := range want {
			require.InDelta(t, want[i], dst.v[i], tolerance, "%s, element %d, %s", name, i, msg)
		}
		dst.check(t, name+", "+msg)
		x.check(t, name+", "+msg)
	}
	run("axpy", func(d []float32) { axpy(d, -1.7, x.v) }, func(d []float32) { axpyGeneric(d, -1.7, x.v) }, 1e-6)
	run("mul", func(d []float32) { mul(d, d, x.v) }, func(d []float32) { mulGeneric(d, d, x.v) }, 0)
	run("gate", func(d []float32) { gate(d, x.v) }, func(d []float32) { gateGeneric(d, x.v) }, 0)
	run("relu", relu, reluGeneric, 0)
}

func TestRowTwins(t *testing.T) { eachClass(t, testRowTwins) }

func testRowTwins(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	for _, dim := range []int{0, 1, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 128, 200} {
		for n := range 10 {
			shift := rng.IntN(16)
			msg := fmt.Sprintf("dim %d, %d rows, shift %d", dim, n, shift)
			dst, q, rows := newGuarded(rng, n, shift), newGuarded(rng, dim, (3*shift)%16), newGuarded(rng, n*dim, (5*shift)%16)
			want := make([]float32, n)
			dotRowsGeneric(want, q.v, rows.v)
			dotRows(dst.v, q.v, rows.v)
			for i := range want {
				require.InDelta(t, want[i], dst.v[i], 1e-5, "row %d, %s", i, msg)
			}
			dst.check(t, msg)
		}
	}
}

func TestAtLeastTwins(t *testing.T) { eachClass(t, testAtLeastTwins) }

func testAtLeastTwins(t *testing.T) {
	const mark = 0xA5A5A5A5A5A5A5A5
	rng := rand.New(rand.NewPCG(4, 6))
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, n := range lengths() {
		x := newGuarded(rng, n, rng.IntN(16))
		for i := range x.v {
			if rng.IntN(8) == 0 {
				x.v[i] = []float32{nan, inf, -inf, 0, float32(math.Copysign(0, -1)), 1.5}[rng.IntN(6)]
			}
		}
		words := (n + wordBits - 1) / wordBits
		bits, want := make([]uint64, words+2), make([]uint64, words)
		for _, least := range []float32{-inf, -1, float32(math.Copysign(0, -1)), 0, 1.5, 9, inf, nan} {
			for i := range bits {
				bits[i] = mark
			}
			AtLeast(bits[1:words+1], x.v, least)
			atLeastGeneric(want, x.v, least)
			require.Equal(t, want, bits[1:words+1], "%d values, least %v", n, least)
			require.True(t, bits[0] == mark && bits[words+1] == mark, "%d values: overrun", n)
		}
	}
}

func TestMatrixTwins(t *testing.T) { eachClass(t, testMatrixTwins) }

func testMatrixTwins(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 3))
	for _, shape := range shapes() {
		out, in := shape[0], shape[1]
		if in == 0 {
			continue
		}
		m := Pack(nil, randomVector(rng, out*in), out, in, nil)
		for _, n := range []int{0, 1, 5, 6, 11, 50} {
			shift := rng.IntN(16)
			msg := fmt.Sprintf("%d x %d, %d rows, shift %d", out, in, n, shift)
			dst, rows, bias := newGuarded(rng, n*out, shift), newGuarded(rng, n*in, (3*shift)%16), newGuarded(rng, out, (5*shift)%16)
			want := make([]float32, n*out)
			if out == 1 {
				dotRowsGeneric(want, m.data, rows.v)
				axpyGeneric(want, bias.v[0], ones(n))
			} else {
				m.mulPanelsGeneric(want, rows.v, bias.v, n)
			}
			m.Mul(dst.v, rows.v, bias.v, n)
			for i := range want {
				require.InDelta(t, want[i], dst.v[i], 2e-6*float64(in+10), "value %d, %s", i, msg)
			}
			dst.check(t, msg)
		}
	}
}

func TestPackTwins(t *testing.T) { eachClass(t, testPackTwins) }

func testPackTwins(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	for _, width := range []int{1, 7, 8, 9, 24, 31, 32} {
		for _, in := range []int{1, 3, 4, 5, 63, 64, 65, 68, 130} {
			w, panel := newGuarded(rng, width*in, 3), newGuarded(rng, in*panelWidth, 1)
			want := make([]float32, in*panelWidth)
			for _, scale := range [][]float32{nil, newGuarded(rng, in, 5).v} {
				packPanelGeneric(want, w.v, in, scale, 0, 0)
				packPanel(panel.v, w.v, in, scale)
				require.Equal(t, want, panel.v, "%d outputs of %d inputs, scaled %t", width, in, scale != nil)
				panel.check(t, "panel")
			}
		}
	}
}

func ones(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = 1
	}
	return v
}

func TestScanTwins(t *testing.T) { eachClass(t, testScanTwins) }

func testScanTwins(t *testing.T) {
	const guardBytes, mark = 64, 0xA5
	rng := rand.New(rand.NewPCG(4, 4))
	for _, pairs := range []int{1, 2, 3, 5, 16, 33, 128} {
		for blocks := range 8 {
			n, shift := blocks*blockCodes, rng.IntN(33)
			codes := randomBytes(rng, shift+n*pairs)[shift:]
			lut := append(make([]byte, shift), randomTable(rng, pairs)...)[shift:]
			mean, deviation := codeStatistics(lut)
			pos, sums := make([]uint32, n+guardBytes), make([]uint16, n+guardBytes)
			wantPos, wantSums := make([]uint32, n), make([]uint16, n)
			for _, deviations := range []float64{-9, -1, 0, 1, 2, 3, 9} {
				min := uint16(max(0, mean+deviations*deviation))
				for i := range pos {
					pos[i], sums[i] = mark, mark
				}
				want := scan4Generic(wantPos, wantSums, codes, lut, pairs, min)
				got := scan4(pos[:n:n], sums[:n:n], codes, lut, pairs, min)
				msg := fmt.Sprintf("pairs %d, blocks %d, min %d", pairs, blocks, min)
				require.Equal(t, want, got, msg)
				require.Equal(t, wantPos[:want], pos[:got], msg)
				require.Equal(t, wantSums[:want], sums[:got], msg)
				for i := n; i < len(pos); i++ {
					require.True(t, pos[i] == mark && sums[i] == mark, "%s: overrun at %d", msg, i)
				}
			}
		}
	}
}
