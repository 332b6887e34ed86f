package train

import (
	"math/rand/v2"

	"github.com/flashdb/flashdb/internal/simd"
)

// hops is the default encoder: a two-layer network on fixed features of a node, plus a linear map
// of the spectral ones, plus a free embedding.
//
// The features of a node describe its surroundings. Every node has random values, and the given
// features if there are any. Both are spread over the links hop by hop: the k-th block is the k-th
// power of the normalised adjacency times the values. Inner products of the random parts estimate
// how many paths of each length two nodes have in common (Johnson and Lindenstrauss).
type hops struct {
	crew
	g        *Graph
	dim      int
	half     float64   // links of a node whose free embedding learns at half the rate; 0: all learn at the whole rate
	features []float32 // n x width
	layout   hopLayout
	sizes    []float32 // divisor of each block, so that its values are about 1; nil until the first see
	spectrum spectrum
	tell     func(Progress) // of the features of the first see; may be nil
	net      *network
	linear   param // dim x subspace: the map of the spectral features
	t        *table

	mapped   simd.Matrix // of linear
	sums     [lanes]simd.Product
	record   *tape // of the batch
	room     int   // rows of it
	parts    []*tape
	gathered [][]float32 // features of a chunk, by worker
	nodes    []uint32
	grads    []float32
}

// chunkNodes is the number of nodes a lane takes through the network at once.
const chunkNodes = 128

func newHops(c crew, g *Graph, o *Options, p *params, rng *rand.Rand) *hops {
	h := &hops{crew: c, g: g, dim: o.Dim, half: o.FreeLinks, layout: newHopLayout(g, o.Dim), tell: o.Progress, spectrum: spectrum{crew: c, seed: o.Seed}}
	h.features = make([]float32, g.Nodes*h.layout.width())
	h.seedFeatures(o.Seed)
	h.net = newNetwork(p, rng, false, o.Dropout, h.layout.width(), o.EncoderHidden, o.Dim)
	h.linear = p.identity(o.Dim, h.layout.subspace)
	h.t = newTable(c, g.Nodes, o.Dim, 0, rng)
	for range c.cores {
		h.parts = append(h.parts, h.net.newTape(0, chunkNodes))
		h.gathered = append(h.gathered, make([]float32, chunkNodes*h.layout.width()))
	}
	return h
}

func (h *hops) whole() bool { return false }

func (h *hops) tables() []*table { return []*table{h.t} }

func (h *hops) forward(z []float32, nodes []uint32, rng *rand.PCG) {
	if h.room < len(nodes) {
		h.record, h.room = h.net.newTape(len(nodes), 0), len(nodes)
	}
	h.pack()
	seed := rng.Uint64()
	h.chunks(len(nodes), chunkNodes, func(worker, _, first, last int) {
		part := h.parts[worker]
		h.net.part(part, h.record, first)
		h.chunk(z, part, worker, nodes, first, last, rand.NewPCG(seed, uint64(first)))
	})
}

func (h *hops) embed(z []float32, nodes []uint32) {
	h.pack()
	tapes := make([]*tape, h.cores)
	h.chunks(len(nodes), chunkNodes, func(worker, _, first, last int) {
		if tapes[worker] == nil {
			tapes[worker] = h.net.newTape(chunkNodes, 0)
		}
		h.chunk(z, tapes[worker], worker, nodes, first, last, nil)
	})
}

// pack packs the weights for products.
func (h *hops) pack() {
	h.net.pack()
	simd.Pack(&h.mapped, h.net.p.of(h.linear), h.dim, h.layout.subspace, nil)
}

// chunk writes the embeddings of some of the nodes.
func (h *hops) chunk(z []float32, t *tape, worker int, nodes []uint32, first, last int, rng *rand.PCG) {
	features := h.gather(worker, nodes[first:last])
	out := h.net.forward(t, features, last-first, rng)
	z = z[first*h.dim : last*h.dim]
	h.mapped.Mul(z, h.spectral(features), nil, last-first)
	simd.Axpy(z, 1, out)
	for i, node := range nodes[first:last] {
		simd.Axpy(z[i*h.dim:(i+1)*h.dim], 1, h.t.row(node))
	}
}

// gather copies the features of nodes to memory of the worker.
func (h *hops) gather(worker int, nodes []uint32) []float32 {
	width := h.layout.width()
	rows := h.gathered[worker][:len(nodes)*width]
	for i, node := range nodes {
		copy(rows[i*width:(i+1)*width], h.features[int(node)*width:])
	}
	return rows
}

// spectral returns a copy of the spectral features among gathered rows.
func (h *hops) spectral(features []float32) []float32 {
	width, at, n := h.layout.width(), h.layout.spectral(), h.layout.subspace
	rows := make([]float32, 0, len(features)/width*n)
	for ; len(features) > 0; features = features[width:] {
		rows = append(rows, features[at:at+n]...)
	}
	return rows
}

func (h *hops) backward(dz []float32, nodes []uint32) {
	h.nodes, h.grads = nodes, dz
	h.chunks(len(nodes), chunkNodes, func(worker, lane, first, last int) {
		part := h.parts[worker]
		h.net.part(part, h.record, first)
		part.input = h.gather(worker, nodes[first:last])
		grad := dz[first*h.dim : last*h.dim]
		h.sums[lane].Add(h.net.p.laneGrad(lane, h.linear), grad, h.spectral(part.input), last-first, h.dim, h.layout.subspace)
		h.net.backward(part, lane, grad, last-first, false, true)
	})
}

// freeShares returns the share of the rate at which the free embedding of each node learns: see
// Options.FreeLinks. A free embedding shows links that the features of a fold leave out, because it
// has learned from them in the epoch before. Of a node with few links it soon shows nothing else.
func freeShares(a *adjacency, nodes int, half float64) []float32 {
	shares := make([]float32, nodes)
	for i := range shares {
		d := float64(a.degree(uint32(i)))
		shares[i] = float32(d / (d + half))
	}
	return shares
}

func (h *hops) update(o adam) { h.t.update(o, h.nodes, h.grads[:len(h.nodes)*h.dim]) }
