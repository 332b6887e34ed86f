package decoder

import "github.com/flashdb/flashdb/internal/simd"

func (b *mlpBound) Gradient(s *Scratch, dst, rows, weights []float32) {
	b.GradientZ(s, dst, rows, weights)
	b.FromZ(dst, dst)
}

// FromZ implements Separable.
func (b *mlpBound) FromZ(dst, g []float32) {
	if b.spec.Kind == HadamardMLP {
		simd.Mul(dst, g, b.source)
		return
	}
	copy(dst, g)
}

// GradientZ implements Separable.
func (b *mlpBound) GradientZ(s *Scratch, dst, rows, weights []float32) {
	overTiles(s, len(b.source), dst, rows, weights, b.addGradient)
}

// overTiles sets dst to what add adds to it for all rows of dim values, a tile at a time, each row
// times its weight.
func overTiles(s *Scratch, dim int, dst, rows, weights []float32, add func(s *Scratch, dst, rows, weights []float32)) {
	n := checkGradient(dst, rows, weights, dim)
	clear(dst)
	for start := 0; start < n; start += tileRows {
		end := min(start+tileRows, n)
		s.begin()
		seed := s.take(end - start)
		for i := range seed {
			seed[i] = 1 / float32(n)
			if weights != nil {
				seed[i] = weights[start+i]
			}
		}
		add(s, dst, rows[start*dim:end*dim], seed)
	}
}

// addGradient adds to dst the gradients with respect to z at one tile of rows, each times its
// weight. The product with the Jacobian is linear in what it is seeded with, so the weights go in
// at the logit and the sum over rows comes out once, as early as it may.
func (b *mlpBound) addGradient(s *Scratch, dst, rows, weights []float32) {
	n, net := len(weights), b.net
	frames, z := b.forward(s, rows, n)
	grad := s.take(n * net.widest)[:len(frames[len(frames)-1].out)]
	clear(grad)
	for i, w := range weights {
		grad[i*len(grad)/n+net.column] = w
	}
	var sum []float32 // gradient with respect to z, summed over the rows; of the row itself for a folded ConcatMLP
	if b.explicit {
		sum = b.explicitSum(s, frames, grad, z, n)
	} else {
		sum = b.foldedSum(s, net.backward(s, frames, grad, nil, n), n)
	}
	simd.Axpy(dst, 1, sum[len(sum)-len(dst):])
}

// forward evaluates n rows and keeps all that a backward pass asks for: the frames, and z before
// its norm where the network needs it.
func (b *mlpBound) forward(s *Scratch, rows []float32, n int) (frames []frame, z []float32) {
	net, in := b.net, rows
	if b.explicit {
		z = s.take(n * net.width)
		b.fillZ(z, rows, n)
		in = z
		if net.input != nil {
			in = s.take(n * net.width)
			net.input.apply(in, z, n)
		}
	}
	s.frames = net.gradientFrames(s, s.frames, in, n)
	frames = s.frames
	net.run(frames, &b.first, in, n)
	return frames, z
}

// Active implements Neurons.
func (b *mlpBound) Active(s *Scratch, dst []bool, row []float32) []bool {
	s.begin()
	frames, _ := b.forward(s, row[:len(b.source)], 1)
	for i := range b.net.layers {
		if b.net.layers[i].act.name == Identity {
			continue
		}
		for _, x := range frames[i].pre {
			dst = append(dst, x > 0)
		}
	}
	return dst
}

// foldedSum takes grad, the gradient with respect to the outputs of the first dense layer, to its
// inputs. That map is the same for all rows, so they are summed first.
func (b *mlpBound) foldedSum(s *Scratch, grad []float32, n int) []float32 {
	sum := s.take(b.first.in)
	clear(sum)
	for o, g := range sumRows(s, grad, n) {
		simd.Axpy(sum, g, b.first.weight[o*b.first.in:(o+1)*b.first.in])
	}
	return sum
}

// explicitSum runs the whole backward pass to z, whose norm depends on the row.
func (b *mlpBound) explicitSum(s *Scratch, frames []frame, grad, z []float32, n int) []float32 {
	gradZ := b.net.backwardToInput(s, frames, &b.first, grad, n)
	b.net.input.backward(gradZ, z, n)
	return sumRows(s, gradZ, n)
}

// sumRows returns the sum of n rows.
func sumRows(s *Scratch, rows []float32, n int) []float32 {
	width := len(rows) / n
	sum := s.take(width)
	clear(sum)
	for i := range n {
		simd.Axpy(sum, 1, rows[i*width:(i+1)*width])
	}
	return sum
}
