package train

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/flashdb/flashdb/internal/simd"
)

// hopLayout is the order of a node's features: block 0 to hopCount, the spectral features, then the
// logarithm of the degree. A block holds the random values of that hop, then the given features.
type hopLayout struct {
	random, given int // values of each in a block
	subspace      int // spectral features
}

const (
	hopCount  = 4  // powers of the adjacency beside the zeroth
	hopRandom = 64 // random values per node
	hopGiven  = 64 // most values of given features; more are projected to this number
)

// newHopLayout returns the layout for embeddings of dim values. These have no use for more spectral
// features than that, which pass into them directly.
func newHopLayout(g *Graph, dim int) hopLayout {
	return hopLayout{
		random: hopRandom, given: min(g.FeatureDim, hopGiven),
		subspace: min(max(leastSpectral, (dim+15)/16*16), mostSpectral),
	}
}

func (l hopLayout) block() int { return l.random + l.given }

// width is the number of features. Some of those for degrees are always zero, for the kernels.
func (l hopLayout) width() int { return l.spectral() + l.subspace + hopDegrees }

// spectral is the place of the spectral features.
func (l hopLayout) spectral() int { return (hopCount + 1) * l.block() }

// hopDegrees is the number of features for degrees.
const hopDegrees = 4

// seedFeatures fills block 0 of every node with values of mean 0 and variance 1.
func (h *hops) seedFeatures(seed uint64) {
	l, dim := h.layout, h.g.FeatureDim
	rng := rand.New(rand.NewPCG(seed, streamFeatures))
	var project []float32
	if dim > l.given {
		project = make([]float32, l.given*dim)
		for i := range project {
			project[i] = float32(rng.NormFloat64())
		}
	}
	for node := range h.g.Nodes {
		row := h.features[node*l.width():][:l.block()]
		for i := range row[:l.random] {
			row[i] = float32(rng.NormFloat64())
		}
		own := h.g.Features[node*dim : (node+1)*dim]
		if project == nil {
			copy(row[l.random:], own)
		} else {
			simd.DotRows(row[l.random:], own, project)
		}
	}
	for i := l.random; i < l.block(); i++ {
		h.standardise(i)
	}
}

// standardise gives one feature mean 0 and variance 1. A constant one becomes 0.
func (h *hops) standardise(feature int) {
	var sum, squares float64
	width, n := h.layout.width(), float64(h.g.Nodes)
	for at := feature; at < len(h.features); at += width {
		sum += float64(h.features[at])
	}
	mean := sum / n
	for at := feature; at < len(h.features); at += width {
		squares += (float64(h.features[at]) - mean) * (float64(h.features[at]) - mean)
	}
	by := 0.0
	if deviation := math.Sqrt(squares / n); deviation > 1e-9*math.Abs(mean) {
		by = 1 / deviation
	}
	for at := feature; at < len(h.features); at += width {
		h.features[at] = float32((float64(h.features[at]) - mean) * by)
	}
}

// see computes all features except those of the zeroth hop. The first call, with all links, also
// sets the sizes of the blocks, the spectral subspace and the rates of free embeddings.
func (h *hops) see(links []Edge) {
	first := h.sizes == nil
	done := func(hops, rounds int) {}
	if first && h.tell != nil {
		// A hop is spread twice. A round of the spectrum takes two products, and about as long.
		done = func(hops, rounds int) {
			h.tell(Progress{Stage: StageFeatures, Share: float64(hops+rounds) / (hopCount + spectralRounds/2)})
		}
	}
	done(0, 0)
	a := newAdjacency(h.crew, h.g.Nodes, links, both)
	if first {
		if h.half > 0 {
			h.t.share = freeShares(a, h.g.Nodes, h.half)
		}
		h.sizes = make([]float32, hopCount+1)
		h.sizes[0] = 1
	}
	for hop := 1; hop <= hopCount; hop++ {
		if first {
			h.sizes[hop] = h.sizes[hop-1]
			h.spread(a, hop)
			h.sizes[hop] *= h.size(hop)
		}
		h.spread(a, hop)
		done(hop, 0)
	}
	h.spectrum.done = func(rounds int) { done(hopCount, rounds) }
	width, at := h.layout.width(), h.layout.spectral()
	h.spectrum.fill(a, columns{h.features, width, at, h.layout.subspace}, columns{h.features, width, 0, h.layout.random})
	last := width - hopDegrees
	for node := range h.g.Nodes {
		h.features[node*width+last] = float32(math.Log1p(float64(a.degree(uint32(node)))))/2 - 1
	}
}

// spread sets block hop of every node i to the sum of block hop-1 of its neighbours j, times 1 /
// sqrt(degree_i degree_j), in the sizes of the blocks.
func (h *hops) spread(a *adjacency, hop int) {
	block, width := h.layout.block(), h.layout.width()
	right := a.inverseRoots(0)
	left := slices.Clone(right)
	scale(left, h.sizes[hop-1]/h.sizes[hop])
	spreading{adjacency: a, left: left, right: right}.apply(h.crew, columns{h.features, width, hop * block, block}, columns{h.features, width, (hop - 1) * block, block})
}

// size returns the root mean square of a block, or 1 if that is 0.
func (h *hops) size(hop int) float32 {
	block, width := h.layout.block(), h.layout.width()
	var squares float64
	for node := range h.g.Nodes {
		row := h.features[node*width+hop*block:][:block]
		squares += float64(simd.Dot(row, row))
	}
	if squares == 0 {
		return 1
	}
	return float32(math.Sqrt(squares / float64(h.g.Nodes*block)))
}
