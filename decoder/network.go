package decoder

import "github.com/flashdb/flashdb/internal/simd"

// network is the part of an MLP decoder behind z, ready to run: float32 weights, packed. It is
// immutable.
type network struct {
	width  int   // of z
	input  *norm // of z, nil if there is none
	needsZ bool  // a layer behind the first adds z
	layers []layer
	column int // the logit among the outputs of the last layer
	widest int // outputs of the widest layer
}

// layer is one step: after(act(before(dense(h) + z))), where nil norms and a false addZ are left
// out.
type layer struct {
	dense
	addZ   bool
	before *norm
	act    activation
	after  *norm
}

// dense is an affine map of rows of in values to rows of out.
type dense struct {
	in, out int
	weight  []float32    // row-major, out x in; nil once packed
	bias    []float32    // out values
	forward *simd.Matrix // weight, packed; see pack
	back    *simd.Matrix // the transposed weight, packed
	exact   []float64    // weight, if out is 1: the logit is summed in float64
	offset  float64      // bias, if out is 1
}

func newDense(l *draftLayer) dense {
	d := dense{in: l.in, out: l.out, weight: narrow(l.weight), bias: narrow(l.bias)}
	if d.out == 1 {
		d.exact, d.offset = l.weight, l.bias[0]
	}
	return d
}

// pack prepares apply and backward. A first layer into which the source is folded is not packed but
// by its bounds.
func (d *dense) pack() {
	if d.out == 1 {
		return
	}
	d.forward = simd.Pack(nil, d.weight, d.out, d.in, nil)
	transposed := make([]float32, len(d.weight))
	for o := range d.out {
		for k := range d.in {
			transposed[k*d.out+o] = d.weight[o*d.in+k]
		}
	}
	d.back = simd.Pack(nil, transposed, d.in, d.out, nil)
	d.weight = nil
}

// apply maps n rows of src to dst, which may not overlap.
func (d *dense) apply(dst, src []float32, n int) {
	if d.forward != nil {
		d.forward.Mul(dst, src, d.bias, n)
		return
	}
	for i := range n {
		dst[i] = float32(simd.DotWide(d.exact, src[i*d.in:(i+1)*d.in]) + d.offset)
	}
}

// backward maps grad, the gradient with respect to n rows of outputs, to dst, that with respect to
// the inputs.
func (d *dense) backward(dst, grad []float32, n int) {
	if d.back != nil {
		d.back.Mul(dst, grad, nil, n)
		return
	}
	clear(dst)
	for i := range n {
		simd.Axpy(dst[i*d.in:(i+1)*d.in], grad[i], d.weight)
	}
}

// finite tells whether all weights are.
func (l *layer) finite() bool {
	return firstBad(l.weight) < 0 && firstBad(l.bias) < 0 && l.before.finite() && l.after.finite()
}

// frame says where the rows of one layer lie at each of its steps: n rows of in, then n of out
// values. Steps that need not be told apart may share memory.
type frame struct {
	in   []float32 // input
	lin  []float32 // linear output, z added
	pre  []float32 // input of the activation
	post []float32 // output of the activation
	out  []float32 // output
}

// scoreFrames lays the frames out so that only the layer in work is kept. It reuses the memory of
// frames.
func (net *network) scoreFrames(s *Scratch, frames []frame, in []float32, n int) []frame {
	this, next := s.take(n*net.widest), s.take(n*net.widest)
	frames = frames[:0]
	for i := range net.layers {
		rows := this[:n*net.layers[i].out]
		frames = append(frames, frame{in: in, lin: rows, pre: rows, post: rows, out: rows})
		in = rows
		this, next = next, this
	}
	return frames
}

// gradientFrames lays the frames out so that all a backward pass asks for is kept: the input of
// every activation and of every layer norm. An affine norm asks for nothing and works in place. It
// reuses the memory of frames.
func (net *network) gradientFrames(s *Scratch, frames []frame, in []float32, n int) []frame {
	frames = frames[:0]
	for i := range net.layers {
		l := &net.layers[i]
		f := frame{in: in, lin: s.take(n * l.out)}
		f.pre = f.lin
		if l.before != nil && l.before.moments {
			f.pre = s.take(n * l.out)
		}
		f.post = f.pre
		if l.act.name != Identity {
			f.post = s.take(n * l.out)
		}
		f.out = f.post
		if l.after != nil && l.after.moments {
			f.out = s.take(n * l.out)
		}
		frames = append(frames, f)
		in = f.out
	}
	return frames
}

// run evaluates n rows along the frames. First stands for the dense part of the first layer; z,
// row-major, n x width, is needed only if a later layer adds it.
func (net *network) run(frames []frame, first *dense, z []float32, n int) {
	for i := range net.layers {
		l, f := &net.layers[i], &frames[i]
		d := &l.dense
		if i == 0 {
			d = first
		}
		d.apply(f.lin, f.in, n)
		if l.addZ {
			simd.Axpy(f.lin, 1, z)
		}
		l.before.apply(f.pre, f.lin, n)
		l.act.apply(f.post, f.pre)
		l.after.apply(f.out, f.post, n)
	}
}

// backward is the vector-Jacobian product of run: it turns grad, the gradient with respect to the
// output of the last layer, into that with respect to the linear output of the first, which it
// returns. What reaches z on the way is added to gradZ. It overwrites grad; one run must have
// filled the frames.
func (net *network) backward(s *Scratch, frames []frame, grad, gradZ []float32, n int) []float32 {
	spare := s.take(n * net.widest)
	for i := len(net.layers) - 1; ; i-- {
		l, f := &net.layers[i], &frames[i]
		l.after.backward(grad, f.post, n)
		l.act.backward(grad, f.pre)
		l.before.backward(grad, f.lin, n)
		if l.addZ {
			simd.Axpy(gradZ, 1, grad)
		}
		if i == 0 {
			return grad
		}
		next := spare[:n*l.in]
		l.dense.backward(next, grad, n)
		grad, spare = next, grad[:cap(grad)]
	}
}

// backwardToInput is backward through the first dense layer, too: it returns the gradient with
// respect to the n rows that the first layer reads.
func (net *network) backwardToInput(s *Scratch, frames []frame, first *dense, grad []float32, n int) []float32 {
	gradZ := s.take(n * net.width)
	clear(gradZ)
	grad = net.backward(s, frames, grad, gradZ, n)
	through := s.take(n * net.width)
	first.backward(through, grad, n)
	simd.Axpy(gradZ, 1, through)
	return gradZ
}

// outputs is how many values the network makes of a row of in. A nil one leaves the row as it is.
func (net *network) outputs(in int) int {
	if net == nil {
		return in
	}
	return net.layers[len(net.layers)-1].out
}

// forward evaluates n rows and returns the outputs of the last layer. The frames, whose memory is
// reused, keep what backwardToInput asks for if keep is set. The network has no input norm.
func (net *network) forward(s *Scratch, frames *[]frame, rows []float32, n int, keep bool) []float32 {
	if keep {
		*frames = net.gradientFrames(s, *frames, rows, n)
	} else {
		*frames = net.scoreFrames(s, *frames, rows, n)
	}
	net.run(*frames, &net.layers[0].dense, rows, n)
	return (*frames)[len(*frames)-1].out
}

// onesGradient takes the gradient with respect to the outputs for one row to that with respect to
// the input, as if every activation had derivative 1 and every norm were its weight. It overwrites
// grad. A nil network leaves it as it is.
func (net *network) onesGradient(s *Scratch, grad []float32) []float32 {
	if net == nil {
		return grad
	}
	gradZ := s.take(net.width)
	clear(gradZ)
	for i := len(net.layers) - 1; i >= 0; i-- {
		l := &net.layers[i]
		l.after.weigh(grad)
		l.before.weigh(grad)
		if l.addZ {
			simd.Axpy(gradZ, 1, grad)
		}
		next := s.take(l.in)
		l.dense.backward(next, grad, 1)
		grad = next
	}
	simd.Axpy(grad, 1, gradZ)
	return grad
}
