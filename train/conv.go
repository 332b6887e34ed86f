package train

import (
	"math/rand/v2"

	"github.com/flashdb/flashdb/internal/simd"
)

// conv is the encoder of GCN and SAGE: layers that mix the values of a node with those of its
// neighbours. Their input is free embeddings, to which given features are added through a matrix. A
// step computes the embeddings of all nodes.
//
//	GCN   x' = D^-1/2 (A+I) D^-1/2 x W^T + b           (Kipf and Welling, arXiv 1609.02907, eq. 2)
//	SAGE  x' = mean(neighbours) W^T + b + x R^T        (Hamilton et al., arXiv 1706.02216)
//
// ReLU and dropout stand between layers.
type conv struct {
	crew
	g       *Graph
	kind    EncoderKind
	p       *params
	t       *table
	input   *convInput // for given features; nil without
	layers  []convLayer
	dropout float32
	all     []uint32
	mix     spreading

	x       [][]float32  // the input of each layer, then the output of the last; n x width
	mixed   [][]float32  // SAGE: mean of each layer's input
	scratch [3][]float32 // for gradients: the next, a separate one, and the current
	sums    [lanes]simd.Product
}

// convLayer is one layer.
type convLayer struct {
	in, out      int
	weight, bias param
	own          param // SAGE: R
	forward      [2]simd.Matrix
	backward     [2]simd.Matrix
}

// convInput maps features to the input of the first layer.
type convInput struct {
	weight param // in x FeatureDim
	packed simd.Matrix
}

func newConv(c crew, g *Graph, o *Options, p *params, rng *rand.Rand) *conv {
	e := &conv{crew: c, g: g, kind: o.Encoder, p: p, dropout: float32(o.Dropout)}
	in := o.EncoderHidden
	e.t = newTable(c, g.Nodes, in, freeSpread, rng)
	e.all = allNodes(g.Nodes)
	if g.FeatureDim > 0 {
		e.input = &convInput{weight: p.matrix(rng, in, g.FeatureDim)}
	}
	widest := in
	for i := range o.EncoderLayers {
		l := convLayer{in: in, out: o.EncoderHidden}
		if i == o.EncoderLayers-1 {
			l.out = o.Dim
		}
		l.weight, l.bias = p.matrix(rng, l.out, l.in), p.reserve(l.out)
		if e.kind == SAGE {
			l.own = p.matrix(rng, l.out, l.in)
			e.mixed = append(e.mixed, make([]float32, g.Nodes*l.in))
		}
		e.layers = append(e.layers, l)
		e.x = append(e.x, make([]float32, g.Nodes*in))
		in, widest = l.out, max(widest, l.out)
	}
	e.x = append(e.x, make([]float32, g.Nodes*in))
	for i := range e.scratch {
		e.scratch[i] = make([]float32, g.Nodes*widest)
	}
	return e
}

// allNodes lists n nodes.
func allNodes(n int) []uint32 {
	all := make([]uint32, n)
	for i := range all {
		all[i] = uint32(i)
	}
	return all
}

func (e *conv) whole() bool { return true }

func (e *conv) tables() []*table { return []*table{e.t} }

func (e *conv) see(links []Edge) {
	a := newAdjacency(e.crew, e.g.Nodes, links, both)
	e.mix = spreading{adjacency: a, self: e.kind == GCN}
	if e.kind == GCN {
		e.mix.left = a.inverseRoots(1)
		e.mix.right = e.mix.left
		return
	}
	e.mix.left, e.mix.right = make([]float32, e.g.Nodes), make([]float32, e.g.Nodes)
	for i := range e.mix.left {
		e.mix.left[i], e.mix.right[i] = 1/float32(max(1, a.degree(uint32(i)))), 1
	}
}

// plain returns a whole matrix as columns.
func plain(data []float32, width int) columns { return columns{data, width, 0, width} }

func (e *conv) embed(z []float32, nodes []uint32) {
	e.run(nil)
	last := e.x[len(e.x)-1]
	d := len(last) / e.g.Nodes
	if nodes == nil {
		copy(z, last)
	}
	for i, node := range nodes {
		copy(z[i*d:(i+1)*d], last[int(node)*d:])
	}
}

func (e *conv) forward(z []float32, _ []uint32, rng *rand.PCG) {
	e.run(rng)
	copy(z, e.x[len(e.x)-1])
}

// run computes all layers. With a nil rng there is no dropout.
func (e *conv) run(rng *rand.PCG) {
	e.begin()
	for i := range e.layers {
		l := &e.layers[i]
		w := e.p.of(l.weight)
		simd.Pack(&l.forward[0], w, l.out, l.in, nil)
		simd.PackTransposed(&l.backward[0], w, l.in, l.out)
		if e.kind == SAGE {
			r := e.p.of(l.own)
			simd.Pack(&l.forward[1], r, l.out, l.in, nil)
			simd.PackTransposed(&l.backward[1], r, l.in, l.out)
			e.mix.apply(e.crew, plain(e.mixed[i], l.in), plain(e.x[i], l.in))
			e.product(e.x[i+1], e.mixed[i], &l.forward[0], e.p.of(l.bias))
			own := e.scratch[0][:e.g.Nodes*l.out]
			e.product(own, e.x[i], &l.forward[1], nil)
			e.add(e.x[i+1], own)
		} else {
			turned := e.scratch[0][:e.g.Nodes*l.out]
			e.product(turned, e.x[i], &l.forward[0], nil)
			e.mix.apply(e.crew, plain(e.x[i+1], l.out), plain(turned, l.out))
			e.rows(l.out, e.x[i+1], func(row []float32) { simd.Axpy(row, 1, e.p.of(l.bias)) })
		}
		if i < len(e.layers)-1 {
			e.activate(e.x[i+1], l.out, rng)
		}
	}
}

// begin sets the input of the first layer.
func (e *conv) begin() {
	if e.input == nil {
		copy(e.x[0], e.t.value)
		return
	}
	simd.Pack(&e.input.packed, e.p.of(e.input.weight), e.t.dim, e.g.FeatureDim, nil)
	e.product(e.x[0], e.g.Features, &e.input.packed, nil)
	e.add(e.x[0], e.t.value)
}

// rows calls fn for every row.
func (e *conv) rows(width int, x []float32, fn func(row []float32)) {
	e.ranges(e.g.Nodes, chunkNodes, func(_, first, last int) {
		for i := first; i < last; i++ {
			fn(x[i*width : (i+1)*width])
		}
	})
}

// add adds x to sum.
func (e *conv) add(sum, x []float32) {
	const size = 1 << 14
	e.ranges(len(sum), size, func(_, first, last int) { simd.Axpy(sum[first:last], 1, x[first:last]) })
}

// product sets y to x times a matrix, plus bias, for every node.
func (e *conv) product(y, x []float32, m *simd.Matrix, bias []float32) {
	e.ranges(e.g.Nodes, chunkNodes, func(_, first, last int) {
		m.Mul(y[first*m.Out():last*m.Out()], x[first*m.In():last*m.In()], bias, last-first)
	})
}

// activate applies ReLU and dropout.
func (e *conv) activate(x []float32, width int, rng *rand.PCG) {
	var seed uint64
	if rng != nil {
		seed = rng.Uint64()
	}
	e.ranges(e.g.Nodes, chunkNodes, func(_, first, last int) {
		part := x[first*width : last*width]
		simd.ReLU(part)
		if rng != nil && e.dropout > 0 {
			drop(part, e.dropout, rand.NewPCG(seed, uint64(first)))
		}
	})
}

func (e *conv) backward(dz []float32, _ []uint32) {
	grad := dz
	for i := len(e.layers) - 1; i >= 0; i-- {
		l := &e.layers[i]
		if i < len(e.layers)-1 {
			e.gate(grad, e.x[i+1])
		}
		e.sumRows(l.bias, grad, l.out)
		next := e.scratch[0][:e.g.Nodes*l.in]
		other := e.scratch[1]
		if e.kind == SAGE {
			e.sumProducts(l.weight, grad, e.mixed[i], l.out, l.in)
			e.sumProducts(l.own, grad, e.x[i], l.out, l.in)
			apart := other[:e.g.Nodes*l.in]
			e.product(next, grad, &l.backward[0], nil)
			e.mix.transposed().apply(e.crew, plain(apart, l.in), plain(next, l.in))
			e.product(next, grad, &l.backward[1], nil)
			e.add(next, apart)
		} else {
			spread := other[:e.g.Nodes*l.out]
			e.mix.transposed().apply(e.crew, plain(spread, l.out), plain(grad, l.out))
			e.sumProducts(l.weight, spread, e.x[i], l.out, l.in)
			e.product(next, spread, &l.backward[0], nil)
		}
		grad = next
		e.scratch[0], e.scratch[2] = e.scratch[2], e.scratch[0]
	}
	if e.input != nil {
		e.sumProducts(e.input.weight, grad, e.g.Features, e.t.dim, e.g.FeatureDim)
	}
	e.t.grads = grad
}

// gate propagates gradients back through ReLU and dropout.
func (e *conv) gate(grad, x []float32) {
	const size = 1 << 14
	e.ranges(len(grad), size, func(_, first, last int) {
		simd.Gate(grad[first:last], x[first:last])
		if e.dropout > 0 {
			scale(grad[first:last], 1/(1-e.dropout))
		}
	})
}

// sumRows adds the sum of all rows to a gradient.
func (e *conv) sumRows(w param, grad []float32, width int) {
	e.chunks(e.g.Nodes, chunkNodes, func(_, lane, first, last int) {
		sum := e.p.laneGrad(lane, w)
		for i := first; i < last; i++ {
			simd.Axpy(sum, 1, grad[i*width:(i+1)*width])
		}
	})
}

// sumProducts adds transpose(a) times b, summed over all nodes, to a gradient.
func (e *conv) sumProducts(w param, a, b []float32, rows, cols int) {
	e.chunks(e.g.Nodes, chunkNodes, func(_, lane, first, last int) {
		e.sums[lane].Add(e.p.laneGrad(lane, w), a[first*rows:last*rows], b[first*cols:last*cols], last-first, rows, cols)
	})
}

func (e *conv) update(o adam) { e.t.update(o, e.all, e.t.grads) }
