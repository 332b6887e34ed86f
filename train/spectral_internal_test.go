package train

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/simd"
)

// parts is a graph of three parts of 60 nodes each, and of pairs, which are components of their
// own.
func parts(pairs int) (n int, links []Edge) {
	rng := rand.New(rand.NewPCG(5, 5))
	for part := range 3 {
		for i := range 60 {
			for range 8 {
				if j := rng.IntN(60); j != i {
					links = append(links, Edge{Source: uint32(60*part + i), Target: uint32(60*part + j)})
				}
			}
		}
		links = append(links, Edge{Source: uint32(60 * part), Target: uint32(60*part+65) % 180})
	}
	for i := range pairs {
		links = append(links, Edge{Source: uint32(180 + 2*i), Target: uint32(181 + 2*i)})
	}
	return 180 + 2*pairs, links
}

// spectralDim is the width of the subspace in these tests: more than there are start values.
const spectralDim, startDim = 80, 64

// spectrumOf returns the spectral features of a graph, and then of the same without some links.
func spectrumOf(n int, links, rest []Edge) (*spectrum, []float32, []float32) {
	s := &spectrum{crew: crew{3}}
	rng := rand.New(rand.NewPCG(1, 2))
	random := make([]float32, n*startDim)
	for i := range random {
		random[i] = float32(rng.NormFloat64())
	}
	all, without := make([]float32, n*spectralDim), make([]float32, n*spectralDim)
	s.fill(newAdjacency(s.crew, n, links, both), plain(all, spectralDim), plain(random, startDim))
	s.fill(newAdjacency(s.crew, n, rest, both), plain(without, spectralDim), plain(random, startDim))
	return s, all, without
}

// TestSpectrum finds the parts of a graph, although it has more small components than a node has
// values.
func TestSpectrum(t *testing.T) {
	n, links := parts(200)
	s, all, _ := spectrumOf(n, links, links)
	row := func(x []float32, i int) []float32 { return x[i*spectralDim : (i+1)*spectralDim] }
	for a := range spectralDim {
		for b := range a + 1 {
			var sum float64
			for i := range n {
				sum += float64(row(s.basis, i)[a]) * float64(row(s.basis, i)[b])
			}
			want := 0.0
			if a == b {
				want = 1
			}
			require.InDelta(t, want, sum, 1e-3, "values %d and %d", a, b)
		}
	}
	var same, other float64
	for i := range 180 {
		for j := range i {
			if i/60 == j/60 {
				same += float64(simd.Dot(row(all, i), row(all, j))) / (3 * 60 * 59 / 2)
			} else {
				other += float64(simd.Dot(row(all, i), row(all, j))) / (3 * 60 * 60)
			}
		}
	}
	assert.Greater(t, same, 10*math.Abs(other), "nodes of one part are alike")
	assert.Greater(t, simd.Dot(all[:180*spectralDim], all[:180*spectralDim]), 0.9*simd.Dot(all, all), "share of the parts")
}

// TestSpectrumOfFold computes the features of a graph without some links from the neighbours that
// are left, in the subspace of all links.
func TestSpectrumOfFold(t *testing.T) {
	n, links := parts(10)
	rest := links[20:]
	s, _, got := spectrumOf(n, links, rest)
	a := newAdjacency(s.crew, n, rest, both)
	for i := range n {
		for k := range spectralDim {
			var want float64
			for _, j := range a.of(uint32(i)) {
				want += float64(s.basis[int(j)*spectralDim+k]) / math.Sqrt(float64((a.degree(uint32(i))+s.more)*(a.degree(j)+s.more)))
			}
			require.InDelta(t, want/float64(s.size), got[i*spectralDim+k], 1e-4, "node %d, value %d", i, k)
		}
	}
}

// TestSpectrumOfFewNodes has more values than nodes.
func TestSpectrumOfFewNodes(t *testing.T) {
	_, all, _ := spectrumOf(5, []Edge{{Source: 0, Target: 1}, {Source: 1, Target: 2}}, nil)
	for _, x := range all {
		require.Less(t, math.Abs(float64(x)), 100.0)
	}
	assert.NotZero(t, all[0])
	assert.Zero(t, all[4*spectralDim], "a node without links")
}

// TestInverseFactor makes the rows of a matrix orthonormal, and a dependent one zero.
func TestInverseFactor(t *testing.T) {
	x := [][]float64{{3, 1, 0, 2}, {1, 1, 1, 1}, {4, 2, 1, 3}, {0, 1, 5, 1}} // the third is the sum of the first two
	gram := make([]float64, 16)
	for i := range 4 {
		for j := range 4 {
			for c := range 4 {
				gram[4*i+j] += x[i][c] * x[j][c]
			}
		}
	}
	m := inverseFactor(gram, 4)
	var y [4][4]float64
	for i := range 4 {
		for j := range 4 {
			for c := range 4 {
				y[i][c] += float64(m[4*i+j]) * x[j][c]
			}
		}
	}
	for i := range 4 {
		for j := range 4 {
			var sum, want float64
			for c := range 4 {
				sum += y[i][c] * y[j][c]
			}
			if i == j && i != 2 {
				want = 1
			}
			assert.InDelta(t, want, sum, 1e-5, "rows %d and %d", i, j)
		}
	}
}
