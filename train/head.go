package train

import (
	"math"
	"math/rand/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/simd"
)

// head is a decoder in training. It scores pairs of embeddings and propagates gradients of the
// logits back to them.
//
// The gradient of a pair is kept in the cheapest form. If the decoder reads the product z of the
// two embeddings, it is that of z, with Dim values. Otherwise it is those of source and target side
// by side, with 2 x Dim values.
type head struct {
	kind     decoder.Kind
	dim      int
	p        *params
	net      *network // HadamardMLP and ConcatMLP
	mix      *mixture // MoL
	weight   param    // Bilinear: W, dim x dim; DistMult and ComplEx: a row of dim values per relation
	packed   *simd.Matrix
	back     *simd.Matrix
	relation int      // DistMult and ComplEx: number of relations
	queries  bool     // Softmax: targets are multiplied with queries
	names    []string // names of the relations; nil if there is one without a name
}

// newHead reserves the weights of a decoder.
func newHead(p *params, o *Options, relations int, names []string, rng *rand.Rand) *head {
	h := &head{kind: o.Decoder, dim: o.Dim, p: p, relation: relations, queries: o.sharesNegatives(), names: names}
	widths := append([]int{o.Dim}, o.DecoderHidden...)
	switch o.Decoder {
	case decoder.HadamardMLP:
		h.net = newNetwork(p, rng, o.DecoderNorm, o.Dropout, append(widths, 1)...)
		h.net.addInputs(o.DecoderResidual)
	case decoder.ConcatMLP:
		widths[0] = 2 * o.Dim
		h.net = newNetwork(p, rng, o.DecoderNorm, o.Dropout, append(widths, 1)...)
		h.net.addInputs(o.DecoderResidual)
	case decoder.MoL:
		h.mix = newMixture(p, o, rng)
	case decoder.Bilinear:
		h.weight = p.matrix(rng, o.Dim, o.Dim)
	case decoder.DistMult:
		h.weight = p.reserve(relations * o.Dim)
		for i := range p.of(h.weight) {
			// Relations that began almost alike would score a pair alike. Where most pairs have a
			// link of some relation, the embeddings would learn nothing until the relations differ.
			p.of(h.weight)[i] = float32(rng.NormFloat64())
		}
	case decoder.ComplEx:
		h.weight = p.reserve(relations * o.Dim)
		for i := range p.of(h.weight) {
			p.of(h.weight)[i] = 0.7 * float32(rng.NormFloat64()) // so that the mean squared length of a complex number is about 1
		}
	}
	return h
}

// paired returns the head with gradients for pairs that are scored one by one.
func (h *head) paired() *head {
	own := *h
	own.queries = false
	return &own
}

// product reports whether the gradient of a pair is that of the product of its embeddings.
func (h *head) product() bool {
	return !h.queries && (h.kind == decoder.HadamardMLP || h.kind == decoder.Dot || h.kind == decoder.DistMult)
}

// width is the number of values of a pair's gradient.
func (h *head) width() int {
	if h.product() {
		return h.dim
	}
	return 2 * h.dim
}

// pack packs the weights for a step.
func (h *head) pack() {
	switch {
	case h.net != nil:
		h.net.pack()
	case h.mix != nil:
		h.mix.pack()
	case h.kind == decoder.Bilinear:
		w := h.p.of(h.weight)
		h.packed = simd.Pack(h.packed, w, h.dim, h.dim, nil)  // W v
		h.back = simd.PackTransposed(h.back, w, h.dim, h.dim) // W^T u
	}
}

// pairTape is the working memory for a chunk of pairs. One goroutine uses it at a time.
type pairTape struct {
	net    *tape
	mix    *mixtureTape
	u, v   []float32 // the embeddings of the pairs, n x dim
	z      []float32 // what the network reads
	turned []float32 // Bilinear: W^T u
	sums   simd.Product
	logit  []float32
}

// newTape has room for n pairs.
func (h *head) newTape(n int) *pairTape {
	t := &pairTape{u: make([]float32, n*h.dim), v: make([]float32, n*h.dim), logit: make([]float32, n)}
	if h.net != nil {
		t.net = h.net.newTape(n, n)
		t.z = make([]float32, n*h.net.in())
	}
	if h.mix != nil {
		t.mix = h.mix.newTape(n)
	}
	if h.kind == decoder.Bilinear {
		t.turned = make([]float32, n*h.dim)
	}
	return t
}

// gather copies the embeddings of pairs of rows of z.
func (t *pairTape) gather(z []float32, dim int, pairs []pair) {
	for i, p := range pairs {
		copy(t.u[i*dim:(i+1)*dim], z[int(p.source)*dim:])
		copy(t.v[i*dim:(i+1)*dim], z[int(p.target)*dim:])
	}
}

// forward returns the logits of the n pairs gathered. Relations are read by DistMult and ComplEx
// alone.
func (h *head) forward(t *pairTape, pairs []pair, rng *rand.PCG) []float32 {
	n, d := len(pairs), h.dim
	u, v, logit := t.u[:n*d], t.v[:n*d], t.logit[:n]
	switch h.kind {
	case decoder.HadamardMLP:
		simd.Mul(t.z[:n*d], u, v)
		return h.net.forward(t.net, t.z[:n*d], n, rng)
	case decoder.ConcatMLP:
		for i := range n {
			copy(t.z[2*i*d:(2*i+1)*d], u[i*d:])
			copy(t.z[(2*i+1)*d:(2*i+2)*d], v[i*d:])
		}
		return h.net.forward(t.net, t.z[:2*n*d], n, rng)
	case decoder.MoL:
		return h.mix.forward(t.mix, u, v, n, rng)
	case decoder.Bilinear:
		h.back.Mul(t.turned[:n*d], u, nil, n)
		for i := range logit {
			logit[i] = simd.Dot(t.turned[i*d:(i+1)*d], v[i*d:])
		}
	case decoder.DistMult:
		for i := range logit {
			logit[i] = simd.MulDot(u[i*d:(i+1)*d], v[i*d:], h.relationRow(pairs[i].relation))
		}
	case decoder.ComplEx:
		for i := range logit {
			logit[i] = forwardComplex(u[i*d:(i+1)*d], v[i*d:(i+1)*d], h.relationRow(pairs[i].relation), pairs[i].reverse)
		}
	default:
		for i := range logit {
			logit[i] = simd.Dot(u[i*d:(i+1)*d], v[i*d:])
		}
	}
	return logit
}

func (h *head) relationRow(r uint16) []float32 {
	return h.p.of(h.weight)[int(r)*h.dim : (int(r)+1)*h.dim]
}

// backward propagates the gradients of the logits of the last forward back. It adds the gradients
// of the weights to the lane's and writes those of the pairs, n x width, to dst.
func (h *head) backward(t *pairTape, lane int, dst, dLogit []float32, pairs []pair, dropped bool) {
	n, d := len(pairs), h.dim
	u, v := t.u[:n*d], t.v[:n*d]
	switch h.kind {
	case decoder.HadamardMLP, decoder.ConcatMLP:
		copy(dst, h.net.backward(t.net, lane, dLogit, n, true, dropped))
	case decoder.MoL:
		h.mix.backward(t.mix, lane, dst, dLogit, n, dropped)
	case decoder.Bilinear:
		h.backwardBilinear(t, lane, dst, dLogit, n)
	case decoder.DistMult:
		grads := h.p.laneGrad(lane, h.weight)
		for i, g := range dLogit {
			r := int(pairs[i].relation)
			row := dst[i*d : (i+1)*d]
			simd.Mul(row, u[i*d:(i+1)*d], v[i*d:(i+1)*d])
			simd.Axpy(grads[r*d:(r+1)*d], g, row)
			for k, x := range h.relationRow(pairs[i].relation) {
				row[k] = g * x
			}
		}
	case decoder.ComplEx:
		grads := h.p.laneGrad(lane, h.weight)
		for i, g := range dLogit {
			r := int(pairs[i].relation)
			backwardComplex(dst[2*i*d:(2*i+2)*d], grads[r*d:(r+1)*d], g, u[i*d:(i+1)*d], v[i*d:(i+1)*d], h.relationRow(pairs[i].relation), pairs[i].reverse)
		}
	default:
		for i, g := range dLogit {
			for k := range dst[i*d : (i+1)*d] {
				dst[i*d+k] = g
			}
		}
	}
}

// backwardBilinear writes dlogit * W v and dlogit * W^T u, and adds the sum of dlogit * u v^T to
// the gradient of W.
func (h *head) backwardBilinear(t *pairTape, lane int, dst, dLogit []float32, n int) {
	d := h.dim
	scaled := dst[:n*d] // lent; overwritten below
	for i, g := range dLogit {
		for k, x := range t.u[i*d : (i+1)*d] {
			scaled[i*d+k] = g * x
		}
	}
	t.sums.Add(h.p.laneGrad(lane, h.weight), scaled, t.v, n, d, d)
	forward := t.u[:n*d] // no longer needed
	h.packed.Mul(forward, t.v, nil, n)
	for i, g := range dLogit {
		for k := range d {
			dst[2*i*d+k] = g * forward[i*d+k]
			dst[(2*i+1)*d+k] = g * t.turned[i*d+k]
		}
	}
}

// softplus returns log(1 + e^x) and its derivative, the sigmoid of x, without overflow.
func softplus(x float64) (value, slope float64) {
	e := math.Exp(-math.Abs(x))
	if x > 0 {
		return x + math.Log1p(e), 1 / (1 + e)
	}
	return math.Log1p(e), e / (1 + e)
}
