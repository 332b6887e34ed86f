package train

import "math/rand/v2"

// free is the encoder of matrix factorisation: a table.
type free struct {
	t     *table
	nodes []uint32
	grads []float32
}

// freeSpread is the initial standard deviation of free embeddings.
const freeSpread = 0.1

func newFree(c crew, n, dim int, rng *rand.Rand) *free {
	return &free{t: newTable(c, n, dim, freeSpread, rng)}
}

func (f *free) whole() bool { return false }

func (f *free) forward(z []float32, nodes []uint32, _ *rand.PCG) {
	for i, node := range nodes {
		copy(z[i*f.t.dim:(i+1)*f.t.dim], f.t.row(node))
	}
}

func (f *free) embed(z []float32, nodes []uint32) { f.forward(z, nodes, nil) }

func (f *free) backward(dz []float32, nodes []uint32) { f.grads, f.nodes = dz, nodes }

func (f *free) update(o adam) { f.t.update(o, f.nodes, f.grads[:len(f.nodes)*f.t.dim]) }

func (f *free) tables() []*table { return []*table{f.t} }

func (f *free) see([]Edge) {}
