package decoder

// needsZ tells whether a layer behind the first reads z.
func (d *draft) needsZ() bool {
	for i := range d.layers {
		if d.layers[i].addZ {
			return true
		}
	}
	return false
}

// fold simplifies the draft in place.
func (d *draft) fold() {
	if d.input.affine() && !d.needsZ() {
		d.layers[0].takeAffine(d.input)
		d.input = nil
	}
	for i := range d.layers {
		l := &d.layers[i]
		if l.before.affine() && !l.addZ {
			l.giveAffine(l.before)
			l.before = nil
		}
		if l.after.affine() && i+1 < len(d.layers) {
			d.layers[i+1].takeAffine(l.after)
			l.after = nil
		}
	}
	d.keepColumn()
}

// affine tells whether the norm maps each value on its own. A nil norm does not count.
func (m *draftNorm) affine() bool { return m != nil && !m.moments }

// takeAffine makes the layer apply m to its inputs: W(s*h + t) + b = (W diag(s)) h + (W t + b).
func (l *draftLayer) takeAffine(m *draftNorm) {
	for o := range l.out {
		row := l.weight[o*l.in : (o+1)*l.in]
		for k := range row {
			l.bias[o] += row[k] * m.shift[k]
			row[k] *= m.scale[k]
		}
	}
}

// giveAffine makes the layer apply m to its linear outputs: s*(W h + b) + t = (diag(s) W) h +
// (s*b + t).
func (l *draftLayer) giveAffine(m *draftNorm) {
	for o := range l.out {
		row := l.weight[o*l.in : (o+1)*l.in]
		for k := range row {
			row[k] *= m.scale[o]
		}
		l.bias[o] = l.bias[o]*m.scale[o] + m.shift[o]
	}
}

// keepColumn drops the outputs of the last layer that are not the logit, unless the logit depends
// on them through a layer norm or a sum with z keeps them aligned.
func (d *draft) keepColumn() {
	l := &d.layers[len(d.layers)-1]
	if d.column == allColumns || l.addZ || (l.before != nil && l.before.moments) || (l.after != nil && l.after.moments) {
		return
	}
	c := d.column
	l.weight, l.bias = l.weight[c*l.in:(c+1)*l.in], l.bias[c:c+1]
	if m := l.after; m != nil {
		m.scale, m.shift = m.scale[c:c+1], m.shift[c:c+1]
	}
	l.out, d.column = 1, 0
}

// linear tells whether the whole network is one affine map of z.
func (d *draft) linear() bool {
	affine := func(m *draftNorm) bool { return m == nil || m.affine() }
	for i := range d.layers {
		l := &d.layers[i]
		if l.act.name != Identity || !affine(l.before) || !affine(l.after) {
			return false
		}
	}
	return affine(d.input)
}

// ones returns the gradient with respect to z if every activation had derivative 1 and every norm
// were its weight. For a linear network that is the gradient.
func (d *draft) ones() []float64 {
	last := &d.layers[len(d.layers)-1]
	grad := make([]float64, last.out)
	grad[d.column] = 1
	gradZ := make([]float64, d.width)
	for i := len(d.layers) - 1; i >= 0; i-- {
		l := &d.layers[i]
		l.after.weigh(grad)
		l.before.weigh(grad)
		if l.addZ {
			for k, g := range grad {
				gradZ[k] += g
			}
		}
		next := make([]float64, l.in)
		for o, g := range grad {
			for k, w := range l.weight[o*l.in : (o+1)*l.in] {
				next[k] += g * w
			}
		}
		grad = next
	}
	for k, g := range grad {
		gradZ[k] += g
	}
	d.input.weigh(gradZ)
	return gradZ
}

func (m *draftNorm) weigh(grad []float64) {
	if m == nil {
		return
	}
	for k := range grad {
		grad[k] *= m.scale[k]
	}
}

// origin returns the logit of a linear network at z = 0.
func (d *draft) origin() float64 {
	z := make([]float64, d.width)
	d.input.move(z)
	h := z
	for i := range d.layers {
		l := &d.layers[i]
		next := make([]float64, l.out)
		for o := range next {
			next[o] = l.bias[o]
			for k, w := range l.weight[o*l.in : (o+1)*l.in] {
				next[o] += w * h[k]
			}
			if l.addZ {
				next[o] += z[o]
			}
		}
		l.before.move(next)
		l.after.move(next)
		h = next
	}
	return h[d.column]
}

// move applies an affine norm in place.
func (m *draftNorm) move(h []float64) {
	if m == nil {
		return
	}
	for k := range h {
		h[k] = h[k]*m.scale[k] + m.shift[k]
	}
}
