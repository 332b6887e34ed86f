package train

import (
	"math"
	"math/rand/v2"

	"github.com/flashdb/flashdb/internal/simd"
)

// network is a stack of linear layers in training. All but the last are followed by an optional
// layer norm, a ReLU and dropout.
type network struct {
	p       *params
	layers  []linear
	dropout float32
}

// linear is one layer of a network: its weight, row-major out x in, and what follows.
type linear struct {
	out, in      int
	weight, bias param
	norm         bool
	residual     bool         // the input is added to the linear output
	gamma, beta  param        // of the norm
	packed, back *simd.Matrix // of the weight, as of the last pack
}

// normEpsilon is the epsilon of PyTorch's LayerNorm.
const normEpsilon = 1e-5

// newNetwork reserves the layers of a network. Widths begin with that of the input.
func newNetwork(p *params, rng *rand.Rand, norm bool, dropout float64, widths ...int) *network {
	n := &network{p: p, dropout: float32(dropout)}
	for i := range len(widths) - 1 {
		l := linear{out: widths[i+1], in: widths[i]}
		l.weight, l.bias = p.matrix(rng, l.out, l.in), p.reserve(l.out)
		if norm && i+2 < len(widths) {
			l.norm, l.gamma, l.beta = true, p.ones(l.out), p.reserve(l.out)
		}
		n.layers = append(n.layers, l)
	}
	return n
}

// addInputs adds its input to the linear output of each layer that keeps the width, if wanted.
func (n *network) addInputs(wanted bool) {
	for i := range n.layers {
		l := &n.layers[i]
		l.residual = wanted && l.in == l.out && i < len(n.layers)-1
	}
}

// pack packs the weights for products. They must not change until the next pack.
func (n *network) pack() {
	for i := range n.layers {
		l := &n.layers[i]
		w := n.p.of(l.weight)
		l.packed = simd.Pack(l.packed, w, l.out, l.in, nil)
		l.back = simd.PackTransposed(l.back, w, l.in, l.out)
	}
}

// in is the number of values of an input.
func (n *network) in() int { return n.layers[0].in }

// tape holds what backward needs of the forward pass of some rows. It does not own the input.
type tape struct {
	input  []float32
	output [][]float32 // of each layer, after activation and dropout; n x out
	normed [][]float32 // of each layer with a norm, before gamma and beta; n x out
	spread [][]float32 // 1/standard deviation of each row
	grad   [2][]float32
	sums   simd.Product
}

// newTape returns a tape for so many rows, and for back of them at a time in backward.
func (n *network) newTape(rows, back int) *tape {
	t := &tape{output: make([][]float32, len(n.layers)), normed: make([][]float32, len(n.layers)), spread: make([][]float32, len(n.layers))}
	widest := n.in()
	for i, l := range n.layers {
		t.output[i] = make([]float32, rows*l.out)
		if l.norm {
			t.normed[i], t.spread[i] = make([]float32, rows*l.out), make([]float32, rows)
		}
		widest = max(widest, l.out)
	}
	for i := range t.grad {
		t.grad[i] = make([]float32, back*widest)
	}
	return t
}

// forward returns the outputs of rows, n x out, which are part of the tape. Input is row-major and
// kept until backward. With a nil rng there is no dropout.
func (n *network) forward(t *tape, input []float32, rows int, rng *rand.PCG) []float32 {
	t.input = input
	for i := range n.layers {
		l := &n.layers[i]
		out := t.output[i][:rows*l.out]
		l.packed.Mul(out, input, n.p.of(l.bias), rows)
		if l.residual {
			simd.Axpy(out, 1, input[:len(out)])
		}
		if l.norm {
			n.normalise(l, t.normed[i], t.spread[i], out)
		}
		if i < len(n.layers)-1 {
			simd.ReLU(out)
			if rng != nil && n.dropout > 0 {
				drop(out, n.dropout, rng)
			}
		}
		input = out
	}
	return input
}

// normalise applies a layer norm to rows of out, and keeps what backward needs of it.
func (n *network) normalise(l *linear, normed, spread, out []float32) {
	gamma, beta := n.p.of(l.gamma), n.p.of(l.beta)
	for i := 0; i*l.out < len(out); i++ {
		row, hat := out[i*l.out:(i+1)*l.out], normed[i*l.out:(i+1)*l.out]
		var sum, squares float64
		for _, x := range row {
			sum += float64(x)
		}
		mean := sum / float64(l.out)
		for _, x := range row {
			squares += (float64(x) - mean) * (float64(x) - mean)
		}
		scale := 1 / math.Sqrt(squares/float64(l.out)+normEpsilon)
		spread[i] = float32(scale)
		for k, x := range row {
			hat[k] = float32((float64(x) - mean) * scale)
			row[k] = hat[k]*gamma[k] + beta[k]
		}
	}
}

// drop sets a share of the values to zero and scales the others so that their expectation stays.
func drop(x []float32, share float32, rng *rand.PCG) {
	keep := 1 / (1 - share)
	below := uint32(float64(share) * (1 << 16))
	for i := 0; i < len(x); i += 4 {
		bits := rng.Uint64()
		for k, v := range x[i:min(i+4, len(x))] {
			// All ones where the value is dropped. A branch here is guessed wrong half of the time.
			dropped := uint32(int32(uint32(bits>>(16*k))&0xffff-below) >> 31)
			x[i+k] = math.Float32frombits(math.Float32bits(v*keep) &^ dropped)
		}
	}
}

// backward propagates the gradient of the outputs, n x out, back through the network. It adds the
// gradients of the weights to those of the lane. If wanted, it returns the gradient of the inputs,
// which is part of the tape. It does not change dOut.
func (n *network) backward(t *tape, lane int, dOut []float32, rows int, wantInput, dropped bool) []float32 {
	grad := dOut
	for i := len(n.layers) - 1; i >= 0; i-- {
		l := &n.layers[i]
		if i < len(n.layers)-1 {
			out := t.output[i][:rows*l.out]
			simd.Gate(grad, out)
			if dropped && n.dropout > 0 {
				scale(grad, 1/(1-n.dropout))
			}
		}
		if l.norm {
			n.denormalise(l, lane, t.normed[i], t.spread[i], grad)
		}
		bias := n.p.laneGrad(lane, l.bias)
		for r := range rows {
			simd.Axpy(bias, 1, grad[r*l.out:(r+1)*l.out])
		}
		input := t.input
		if i > 0 {
			input = t.output[i-1]
		}
		t.sums.Add(n.p.laneGrad(lane, l.weight), grad, input, rows, l.out, l.in)
		if i == 0 && !wantInput {
			return nil
		}
		next := t.grad[i%2][:rows*l.in]
		l.back.Mul(next, grad, nil, rows)
		if l.residual {
			simd.Axpy(next, 1, grad[:len(next)])
		}
		grad = next
	}
	return grad
}

// denormalise propagates gradients back through a layer norm, in place.
func (n *network) denormalise(l *linear, lane int, normed, spread, grad []float32) {
	gamma, dGamma, dBeta := n.p.of(l.gamma), n.p.laneGrad(lane, l.gamma), n.p.laneGrad(lane, l.beta)
	for i := 0; i*l.out < len(grad); i++ {
		row, hat := grad[i*l.out:(i+1)*l.out], normed[i*l.out:(i+1)*l.out]
		var sum, along float64
		for k, g := range row {
			dGamma[k] += g * hat[k]
			dBeta[k] += g
			g *= gamma[k]
			row[k] = g
			sum += float64(g)
			along += float64(g) * float64(hat[k])
		}
		sum, along = sum/float64(l.out), along/float64(l.out)
		for k, g := range row {
			row[k] = spread[i] * float32(float64(g)-sum-float64(hat[k])*along)
		}
	}
}

// scale multiplies x by a number.
func scale(x []float32, by float32) {
	for i := range x {
		x[i] *= by
	}
}

// part makes into a tape of the rows of whole from first on, with working memory of its own.
func (n *network) part(into, whole *tape, first int) {
	for i, l := range n.layers {
		into.output[i] = whole.output[i][first*l.out:]
		if l.norm {
			into.normed[i], into.spread[i] = whole.normed[i][first*l.out:], whole.spread[i][first:]
		}
	}
}
