package decoder

import "github.com/flashdb/flashdb/internal/simd"

func (b *molBound) Gradient(s *Scratch, dst, rows, weights []float32) {
	overTiles(s, b.spec.Dim, dst, rows, weights, b.addGradient)
}

// GradientZ implements Separable. z is the inner product f_i . c_j of each pair of components,
// before c_j is divided by its length. How a row changes the lengths, and the gate's part of the
// candidate, is left out: it differs from source to source. The values of dst beyond the number of
// pairs are zero. With more pairs than Dim, z is the row itself.
func (b *molBound) GradientZ(s *Scratch, dst, rows, weights []float32) {
	if b.logits > b.spec.Dim {
		b.Gradient(s, dst, rows, weights)
		return
	}
	overTiles(s, b.spec.Dim, dst, rows, weights, b.addGradientZ)
}

// FromZ implements Separable. The candidate's network is taken to have every neuron active.
func (b *molBound) FromZ(dst, g []float32) {
	if b.logits > b.spec.Dim {
		copy(dst, g)
		return
	}
	var s Scratch
	theirs := b.mix.Candidate.Components
	outputs := make([]float32, theirs*b.width)
	for l, x := range g[:b.logits] {
		i, j := l/theirs, l%theirs
		simd.Axpy(outputs[j*b.width:(j+1)*b.width], x, b.narrow[i*b.width:(i+1)*b.width])
	}
	copy(dst, b.candidate.onesGradient(&s, outputs))
}

// logitGradients returns the gradients of the score of each row of a tile, times its weight, with
// respect to the logits and to what the gate combines, n x logits each. With w the softmax of u,
// the derivatives of the score sum w_k l_k are w_k by l_k and w_k (l_k - score) by u_k.
func (b *molBound) logitGradients(s *Scratch, t *molTile, weights []float32) (byLogits, byGate []float32) {
	n := len(weights)
	byLogits, byGate = s.take(n*b.logits), s.take(n*b.logits)
	for r, weight := range weights {
		from, to := r*b.logits, (r+1)*b.logits
		score := softmax(byLogits[from:to], t.gate[from:to], t.logits[from:to])
		for k := from; k < to; k++ {
			byLogits[k] *= weight
			byGate[k] = float32(float64(byLogits[k]) * (float64(t.logits[k]) - score))
		}
	}
	b.combine.backward(byGate, t.mixed)
	if b.gateLogits != nil {
		simd.Axpy(byLogits, 1, b.backward(s, b.gateLogits, partGateLogits, byGate, n))
	}
	return byLogits, byGate
}

// addGradientZ adds to dst the gradients with respect to z at one tile of rows, each times its
// weight.
func (b *molBound) addGradientZ(s *Scratch, dst, rows, weights []float32) {
	n, theirs := len(weights), b.mix.Candidate.Components
	t := b.forward(s, rows, n, true)
	byLogits, _ := b.logitGradients(s, &t, weights)
	for k := range byLogits {
		byLogits[k] *= t.scales[k/b.logits*theirs+k%b.logits%theirs]
	}
	simd.Axpy(dst[:b.logits], 1, sumRows(s, byLogits, n))
}

// addGradient adds to dst the gradients at one tile of rows, each times its weight.
func (b *molBound) addGradient(s *Scratch, dst, rows, weights []float32) {
	n := len(weights)
	t := b.forward(s, rows, n, true)
	byLogits, byGate := b.logitGradients(s, &t, weights)
	byComponents := b.componentGradients(s, &t, byLogits, n)
	if b.candidate != nil {
		byComponents = b.backward(s, b.candidate, partComponents, byComponents, n)
	}
	simd.Axpy(dst, 1, sumRows(s, byComponents, n))
	if b.gateCandidate == nil {
		return
	}
	if b.multiplies() {
		for r := range n {
			row := byGate[r*b.logits : (r+1)*b.logits]
			simd.Mul(row, row, b.gate)
		}
	}
	simd.Axpy(dst, 1, sumRows(s, b.backward(s, b.gateCandidate, partGateCandidate, byGate, n), n))
}

// backward takes the gradient with respect to the outputs of a network to its inputs. It leaves
// grad as it is.
func (b *molBound) backward(s *Scratch, net *network, part int, grad []float32, n int) []float32 {
	own := s.take(n * net.widest)[:len(grad)]
	copy(own, grad)
	return net.backwardToInput(s, s.parts[part], &net.layers[0].dense, own, n)
}

// componentGradients takes the gradient with respect to the logits to the candidate's components.
// With c the component, e = c/|c| and g the gradient with respect to e, that with respect to c is
// (g - e (e . g)) / |c|.
func (b *molBound) componentGradients(s *Scratch, t *molTile, byLogits []float32, n int) []float32 {
	theirs, width := b.mix.Candidate.Components, b.width
	grad := s.take(n * theirs * width)
	clear(grad)
	shortest := float32(1 / b.mix.eps())
	for c := range n * theirs {
		g, row := grad[c*width:(c+1)*width], byLogits[c/theirs*b.logits:]
		for i := range b.mix.Source.Components {
			simd.Axpy(g, row[i*theirs+c%theirs], b.narrow[i*width:(i+1)*width])
		}
		if !b.mix.Cosine {
			continue
		}
		component, scale := t.components[c*width:(c+1)*width], t.scales[c]
		along := float32(0)
		if scale < shortest { // a shorter one is divided by a constant
			along = scale * scale * simd.SafeDot(component, g)
		}
		for k := range g {
			g[k] = scale * (g[k] - along*component[k])
		}
	}
	return grad
}
