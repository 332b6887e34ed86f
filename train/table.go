package train

import "math/rand/v2"

// table holds free embeddings, one row per node. A step changes only the rows of its nodes, and
// their moments, as PyTorch's SparseAdam does.
type table struct {
	crew
	dim   int
	value []float32 // n x dim
	m, v  []float32
	grads []float32 // GCN and SAGE: of all rows, for update
	share []float32 // Hops: of the rate, for each row; nil: the whole rate
	step  int
}

// newTable returns n rows of normal values of the given standard deviation.
func newTable(c crew, n, dim int, sd float32, rng *rand.Rand) *table {
	t := &table{crew: c, dim: dim, value: make([]float32, n*dim), m: make([]float32, n*dim), v: make([]float32, n*dim)}
	if sd > 0 {
		for i := range t.value {
			t.value[i] = sd * float32(rng.NormFloat64())
		}
	}
	return t
}

// row returns the embedding of a node.
func (t *table) row(node uint32) []float32 {
	return t.value[int(node)*t.dim : (int(node)+1)*t.dim]
}

// update changes the rows of nodes, each of which occurs once, by their gradients, len(nodes) x
// dim.
func (t *table) update(o adam, nodes []uint32, grads []float32) {
	t.step++
	const size = 256
	t.ranges(len(nodes), size, func(_, first, last int) {
		for i := first; i < last; i++ {
			at := int(nodes[i]) * t.dim
			value := t.value[at : at+t.dim]
			if o.decay > 0 {
				for k := range value {
					value[k] *= float32(1 - o.rate*o.decay)
				}
			}
			own := o
			if t.share != nil {
				own.rate *= float64(t.share[nodes[i]])
			}
			own.apply(t.step, value, grads[i*t.dim:(i+1)*t.dim], t.m[at:at+t.dim], t.v[at:at+t.dim])
		}
	})
}
