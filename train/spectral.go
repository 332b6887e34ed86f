package train

import (
	"math"
	"math/rand/v2"

	"github.com/flashdb/flashdb/internal/simd"
)

const (
	leastSpectral  = 64  // values per node
	mostSpectral   = 256 // values per node
	spectralRounds = 12  // products with the adjacency, even
)

// spectrum computes the spectral features of a graph: the leading subspace of its adjacency, spread
// over the links once. They say in which part of the graph a node is. The random values of hops say
// so too, with noise that hides all but the largest parts.
//
// The adjacency is normalised after the mean degree was added to every degree. Without that, each
// small component has an eigenvalue of 1, and the leading subspace would be of those (Zhang and
// Rohe, "Understanding Regularized Spectral Clustering via Graph Conductance", 2018).
//
// The subspace is that of all links, also where the features are of the graph without a fold. It
// has only 64 values per node, so a single link hardly shows in it, and not in the features of its
// own ends: those are sums over the neighbours that are left.
type spectrum struct {
	crew
	seed  uint64
	more  int              // added to every degree
	basis []float32        // of the subspace, row-major, as wide as the features; nil before the first fill
	size  float32          // divisor, so that values are about 1
	done  func(rounds int) // called after each round of the search; may be nil
}

// fill sets x to the features of a graph. The first graph decides the subspace: the search for it
// begins with the random values of from, and overwrites x.
func (s *spectrum) fill(a *adjacency, x, from columns) {
	n := len(a.start) - 1
	first := s.basis == nil
	if first {
		s.more = max(1, len(a.to)/max(1, n))
		s.find(a, x, from)
		s.size = 1
	}
	spread := s.spreading(a)
	scale(spread.left, 1/s.size)
	spread.apply(s.crew, x, plain(s.basis, x.width))
	if !first {
		return
	}
	var squares float64
	for i := range n {
		squares += float64(simd.Dot(x.row(i), x.row(i)))
	}
	if squares > 0 {
		s.size = float32(math.Sqrt(squares / float64(n*x.width)))
	}
	for i := range n {
		scale(x.row(i), 1/s.size)
	}
}

// spreading is a product with the normalised adjacency.
func (s *spectrum) spreading(a *adjacency) spreading {
	return spreading{adjacency: a, left: a.inverseRoots(s.more), right: a.inverseRoots(s.more)}
}

// find sets the basis, by orthogonal iteration.
func (s *spectrum) find(a *adjacency, x, from columns) {
	n := len(a.start) - 1
	s.basis = make([]float32, n*x.width)
	basis, spread := plain(s.basis, x.width), s.spreading(a)
	rng := rand.New(rand.NewPCG(s.seed, streamSpectrum))
	for i := range n {
		row := basis.row(i)
		for j := copy(row, from.row(i)); j < len(row); j++ {
			row[j] = float32(rng.NormFloat64())
		}
	}
	for round := range spectralRounds / 2 {
		spread.apply(s.crew, x, basis)
		spread.apply(s.crew, basis, x)
		s.orthonormalise(s.basis, n, x.width)
		if s.done != nil {
			s.done(round + 1)
		}
	}
}

// orthonormalise makes the columns of x orthonormal, n x k.
func (s *spectrum) orthonormalise(x []float32, n, k int) {
	var parts [lanes][]float32
	for i := range parts {
		parts[i] = make([]float32, k*k)
	}
	var sums [lanes]simd.Product
	s.chunks(n, chunkNodes, func(_, lane, first, last int) {
		rows := x[first*k : last*k]
		sums[lane].Add(parts[lane], rows, rows, last-first, k, k)
	})
	gram := make([]float64, k*k)
	for _, part := range parts {
		for i, v := range part {
			gram[i] += float64(v)
		}
	}
	m := simd.Pack(nil, inverseFactor(gram, k), k, k, nil)
	s.ranges(n, chunkNodes, func(_, first, last int) {
		rows := make([]float32, (last-first)*k)
		m.Mul(rows, x[first*k:last*k], nil, last-first)
		copy(x[first*k:], rows)
	})
}

// inverseFactor returns the inverse of the Cholesky factor of a symmetric matrix, k x k. A row that
// depends on those before it becomes zero.
func inverseFactor(gram []float64, k int) []float32 {
	const least = 1e-6 // share of a diagonal value that is more than rounding
	l, m := make([]float64, k*k), make([]float64, k*k)
	inverse := make([]float32, k*k)
	for i := range k {
		for j := range i + 1 {
			sum := gram[i*k+j]
			for c := range j {
				sum -= l[i*k+c] * l[j*k+c]
			}
			switch {
			case j < i && l[j*k+j] > 0:
				l[i*k+j] = sum / l[j*k+j]
			case j == i && sum > least*gram[i*k+i]:
				l[i*k+i] = math.Sqrt(sum)
			}
		}
		if l[i*k+i] == 0 {
			continue
		}
		m[i*k+i] = 1 / l[i*k+i]
		for j := range i {
			for c := j; c < i; c++ {
				m[i*k+j] -= l[i*k+c] * m[c*k+j] / l[i*k+i]
			}
		}
		for j := range i + 1 {
			inverse[i*k+j] = float32(m[i*k+j])
		}
	}
	return inverse
}
