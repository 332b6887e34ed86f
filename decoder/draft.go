package decoder

import (
	"cmp"
	"errors"
	"fmt"
	"math"
)

// draft is a network in float64 while it is simplified. What can be expressed by the weights alone
// is folded into them, so that a row costs matrix products and activations and little else:
//
//   - a residual of the layer's input is a unit matrix added to its weight; so is a residual of z
//     at the first layer;
//   - a batch norm is an affine map of each value: before the activation it scales the rows of the
//     layer's own weight, after it the columns of the next one; one of z the columns of the first;
//   - of the last layer only the row of the logit is kept.
//
// What cannot be folded (a layer norm, a batch norm of a sum with z) stays a step of its own.
type draft struct {
	width  int        // of z
	input  *draftNorm // of z
	layers []draftLayer
	column int // the logit among the outputs of the last layer, or allColumns
}

// allColumns stands for all outputs of a network that has no single logit.
const allColumns = -1

type draftLayer struct {
	in, out       int
	weight        []float64 // row-major, out x in
	bias          []float64 // out values
	addZ          bool      // z is added to the linear output
	before, after *draftNorm
	act           activation
}

type draftNorm struct {
	moments      bool // layer norm
	eps          float64
	scale, shift []float64
}

// newDraft copies the network of a spec whose tensors fit.
func newDraft(s *Spec, tensors map[string]Tensor) *draft {
	d := newDraftLayers(s.Layers, tensors, s.zWidth())
	d.column = s.OutputColumn
	d.input = newDraftNorm(s.InputNorm, tensors, d.width)
	return d
}

// newDraftLayers copies layers that read rows of the given width and all of whose outputs are
// wanted.
func newDraftLayers(layers []LayerSpec, tensors map[string]Tensor, width int) *draft {
	d := &draft{width: width, column: allColumns}
	in := d.width
	for i := range layers {
		l := &layers[i]
		weight := widen(tensors[l.Weight].Data)
		out := len(weight) / in
		layer := draftLayer{in: in, out: out, weight: weight, act: newActivation(cmp.Or(l.Activation, Identity), l.Slope)}
		layer.bias = make([]float64, out)
		if l.Bias != "" {
			layer.bias = widen(tensors[l.Bias].Data)
		}
		if n := newDraftNorm(l.Norm, tensors, out); l.NormPosition == AfterActivation {
			layer.after = n
		} else {
			layer.before = n
		}
		if l.Residual == ResidualInput || (l.Residual == ResidualZ && i == 0) {
			layer.addUnit()
		} else if l.Residual == ResidualZ {
			layer.addZ = true
		}
		d.layers = append(d.layers, layer)
		in = out
	}
	return d
}

// newDraftNorm returns the norm of rows of the given width, nil if there is none.
func newDraftNorm(n *NormSpec, tensors map[string]Tensor, width int) *draftNorm {
	if n == nil {
		return nil
	}
	m := &draftNorm{moments: n.Kind == LayerNorm, eps: n.eps(), scale: make([]float64, width), shift: make([]float64, width)}
	for k := range m.scale {
		m.scale[k] = 1
	}
	if n.Weight != "" {
		m.scale = widen(tensors[n.Weight].Data)
	}
	if n.Bias != "" {
		m.shift = widen(tensors[n.Bias].Data)
	}
	if n.Kind == BatchNorm {
		mean, variance := tensors[n.Mean].Data, tensors[n.Var].Data
		for k := range m.scale {
			m.scale[k] /= math.Sqrt(float64(variance[k]) + m.eps)
			m.shift[k] -= float64(mean[k]) * m.scale[k]
		}
	}
	return m
}

// addUnit adds the unit matrix to a square weight.
func (l *draftLayer) addUnit() {
	for o := range l.out {
		l.weight[o*l.in+o]++
	}
}

// build rounds the draft to the network that runs.
func (d *draft) build() (*network, error) {
	net := &network{width: d.width, column: d.column, input: d.input.build(), needsZ: d.needsZ()}
	if !net.input.finite() {
		return nil, errors.New("decoder weights: input_norm overflows float32 once its statistics are folded in")
	}
	for i := range d.layers {
		l := &d.layers[i]
		built := layer{dense: newDense(l), addZ: l.addZ, before: l.before.build(), act: l.act, after: l.after.build()}
		if !built.finite() {
			return nil, fmt.Errorf("decoder weights: layers[%d] overflows float32 once norms are folded into it", i)
		}
		net.layers = append(net.layers, built)
		net.widest = max(net.widest, l.out)
	}
	return net, nil
}

func (m *draftNorm) build() *norm {
	if m == nil {
		return nil
	}
	return &norm{moments: m.moments, eps: m.eps, scale: narrow(m.scale), shift: narrow(m.shift)}
}

func widen(v []float32) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		w[i] = float64(x)
	}
	return w
}

func narrow(v []float64) []float32 {
	n := make([]float32, len(v))
	for i, x := range v {
		n[i] = float32(x)
	}
	return n
}
