package decoder

import (
	"errors"
	"fmt"
	"math"

	"github.com/flashdb/flashdb/internal/onnx"
)

// layerNorm takes x, scale and, optionally, shift.
func (g *onnxGraph) layerNorm(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	if a, ok := n.Attributes["axis"]; ok && a.Int != -1 && a.Int != 1 {
		return onnxValue{}, fmt.Errorf("axis is %d: want the last", a.Int)
	}
	keys := []string{"weight", "bias"}
	return g.norm(layerNorm, n, in[0].flow, in[1:min(len(in), 3)], keys)
}

// batchNorm takes x, scale, shift, mean and variance.
func (g *onnxGraph) batchNorm(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	if n.Attributes["training_mode"].Int != 0 {
		return onnxValue{}, errors.New("is in training mode: export the model after eval()")
	}
	return g.norm(batchNorm, n, in[0].flow, in[1:5], []string{"weight", "bias", "mean", "var"})
}

// norm puts a norm behind f: on z, before the activation of a layer, or after it.
func (g *onnxGraph) norm(kind string, n *onnx.Node, f *onnxFlow, params []onnxValue, keys []string) (onnxValue, error) {
	if err := g.onHead(f); err != nil {
		return onnxValue{}, err
	}
	eps := defaultEps
	if a, ok := n.Attributes["epsilon"]; ok {
		eps = float64(a.Float)
	}
	spec := &NormSpec{Kind: kind, Eps: &eps}
	at, stage := "input_norm", stageZ
	if l := g.layer(); l != nil {
		if l.Norm != nil {
			return onnxValue{}, errors.New("two norms behind one layer")
		}
		if err := g.settle(f); err != nil {
			return onnxValue{}, err
		}
		l.Norm, stage = spec, stageNormed
		if f.curve != nil {
			l.NormPosition, stage = afterActivation, stageAfter
		}
		at = fmt.Sprintf("layers.%d.norm", len(g.spec.Layers)-1)
	} else {
		if f.curve != nil || g.spec.InputNorm != nil {
			return onnxValue{}, errors.New("more than one norm of the product or concatenation itself is not served")
		}
		g.spec.InputNorm = spec
	}
	for i, field := range []*string{&spec.Weight, &spec.Bias, &spec.Mean, &spec.Var}[:len(params)] {
		if params[i] == (onnxValue{}) {
			continue
		}
		t := params[i].tensor
		if t == nil || len(t.Data) == 0 {
			return onnxValue{}, fmt.Errorf("its %s is not a constant", keys[i])
		}
		*field = g.put(at+"."+keys[i], []int{len(t.Data)}, t.Data)
	}
	return onnxValue{flow: g.advance(stage)}, nil
}

// curvePoints are where two activations are compared: near zero, where the smooth ones bend, and far out, where a clipped one would show.
var curvePoints = func() (points []float64) {
	for _, x := range []float64{0, 0.05, 0.1, 0.3, 0.5, 0.75, 1, 1.3, 1.7, 2, 2.5, 3, 4, 5, 6.5, 8, 20, 60} {
		points = append(points, x, -x)
	}
	return points
}()

// recognise finds the activation that a function of one element is. Exporters write one activation in many ways (GELU as five nodes,
// SiLU as two), so it is the values that are compared and not the nodes.
func recognise(curve func(x float64) float64) (Activation, *float64, error) {
	slope := -curve(-1)
	for _, known := range []struct {
		name  Activation
		value func(x float64) float64
	}{
		{Identity, func(x float64) float64 { return x }},
		{ReLU, relu},
		{GELU, gelu},
		{GELUTanh, geluTanh},
		{SiLU, silu},
		{Tanh, math.Tanh},
		{Sigmoid, sigmoid},
		{LeakyReLU, func(x float64) float64 {
			if x > 0 {
				return x
			}
			return slope * x
		}},
	} {
		if agrees(curve, known.value) {
			if known.name == LeakyReLU {
				return LeakyReLU, &slope, nil
			}
			return known.name, nil, nil
		}
	}
	return "", nil, fmt.Errorf("the activation with values %.4g at -1, %.4g at 0 and %.4g at 1 is none of %s", curve(-1), curve(0), curve(1),
		list(ReLU, LeakyReLU, GELU, GELUTanh, SiLU, Tanh, Sigmoid))
}

// agrees compares two functions to what constants rounded to float32 cost.
func agrees(f, h func(x float64) float64) bool {
	for _, x := range curvePoints {
		if want := h(x); !(math.Abs(f(x)-want) <= 2e-6*max(1, math.Abs(want))) {
			return false
		}
	}
	return true
}
