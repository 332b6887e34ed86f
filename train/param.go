package train

import (
	"math"
	"math/rand/v2"

	"github.com/flashdb/flashdb/internal/simd"
)

// params holds the dense weights of a model side by side, so that an optimizer or a checkpoint sees
// one vector. A lane adds its gradients to a vector of its own; collect adds the lanes up.
type params struct {
	crew
	value    []float32
	grad     []float32
	lane     [lanes][]float32 // gradients
	dirty    [lanes]bool      // lanes whose gradients may not be zero
	m, v     []float32        // moments of Adam
	step     int
	all      []param // in the order they were reserved
	decaying []param // the matrices, to which weight decay applies
}

// param is a range of the weights.
type param struct{ first, n int }

// reserve makes room for one more tensor of zeros.
func (p *params) reserve(n int) param {
	first := len(p.value)
	p.value = append(p.value, make([]float32, n)...)
	p.all = append(p.all, param{first, n})
	return param{first, n}
}

// matrix reserves a weight matrix that is to be multiplied with in values, filled uniformly within
// sqrt(6/(in+out)) (Glorot and Bengio, AISTATS 2010, eq. 16).
func (p *params) matrix(rng *rand.Rand, out, in int) param {
	w := p.reserve(out * in)
	bound := float32(math.Sqrt(6 / float64(in+out)))
	for i := range p.of(w) {
		p.of(w)[i] = (2*rng.Float32() - 1) * bound
	}
	p.decaying = append(p.decaying, w)
	return w
}

// identity reserves a weight matrix that begins as the identity, as far as it is square.
func (p *params) identity(out, in int) param {
	w := p.reserve(out * in)
	for i := range min(out, in) {
		p.of(w)[i*in+i] = 1
	}
	p.decaying = append(p.decaying, w)
	return w
}

// ones reserves a vector of ones.
func (p *params) ones(n int) param {
	w := p.reserve(n)
	for i := range p.of(w) {
		p.of(w)[i] = 1
	}
	return w
}

// ready allocates gradients and moments, once all tensors are reserved.
func (p *params) ready() {
	p.grad = make([]float32, len(p.value))
	p.m, p.v = make([]float32, len(p.value)), make([]float32, len(p.value))
	for i := range p.lane {
		p.lane[i] = make([]float32, len(p.value))
	}
}

// of returns the values of a tensor.
func (p *params) of(w param) []float32 { return p.value[w.first : w.first+w.n : w.first+w.n] }

// laneGrad returns where a lane adds the gradient of a tensor.
func (p *params) laneGrad(lane int, w param) []float32 {
	p.dirty[lane] = true
	return p.lane[lane][w.first : w.first+w.n : w.first+w.n]
}

// collect sets the gradient to the sum of the lanes, in their order, and clears them.
func (p *params) collect() {
	const size = 1 << 14
	p.ranges(len(p.value), size, func(_, first, last int) {
		sum := p.grad[first:last]
		clear(sum)
		for i, lane := range p.lane {
			if p.dirty[i] {
				simd.Axpy(sum, 1, lane[first:last])
				clear(lane[first:last])
			}
		}
	})
	p.dirty = [lanes]bool{}
}

// adam holds the constants of the optimizer of the same name (Kingma and Ba, arXiv 1412.6980,
// algorithm 1). The decay is decoupled from the gradient (Loshchilov and Hutter, arXiv 1711.05101).
type adam struct {
	rate, decay float64
}

const (
	adamBeta1   = 0.9
	adamBeta2   = 0.999
	adamEpsilon = 1e-8
)

// update changes the weights by the collected gradient.
func (p *params) update(o adam) {
	p.step++
	for _, w := range p.decaying {
		values := p.of(w)
		for i := range values {
			values[i] *= float32(1 - o.rate*o.decay)
		}
	}
	const size = 1 << 14
	p.ranges(len(p.value), size, func(_, first, last int) {
		o.apply(p.step, p.value[first:last], p.grad[first:last], p.m[first:last], p.v[first:last])
	})
}

// apply is one step of Adam on a vector: the step-th, from 1.
func (o adam) apply(step int, value, grad, m, v []float32) {
	rate := float32(o.rate / (1 - math.Pow(adamBeta1, float64(step))))
	unbias := float32(1 / math.Sqrt(1-math.Pow(adamBeta2, float64(step))))
	grad, m, v = grad[:len(value)], m[:len(value)], v[:len(value)]
	for i, g := range grad {
		m1 := adamBeta1*m[i] + (1-adamBeta1)*g
		v1 := adamBeta2*v[i] + (1-adamBeta2)*g*g
		m[i], v[i] = m1, v1
		value[i] -= rate * m1 / (float32(math.Sqrt(float64(v1)))*unbias + adamEpsilon)
	}
}
