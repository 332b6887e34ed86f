package decoder

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/flashdb/flashdb/internal/onnx"
)

// apply returns what a node computes. Of a node with several outputs only the first may be used.
func (g *onnxGraph) apply(n *onnx.Node) (onnxValue, error) {
	if n.Domain != "" {
		return onnxValue{}, fmt.Errorf("operators of domain %s are not served: export with the standard ones", quote(n.Domain))
	}
	if n.Op == "Constant" {
		return constantOf(n)
	}
	in := make([]onnxValue, len(n.Inputs))
	for i, name := range n.Inputs {
		v, ok := g.values[name]
		if !ok && name != "" {
			return onnxValue{}, fmt.Errorf("input %s is computed nowhere before it", quote(name))
		}
		if v.tensor != nil && v.tensor.Fault != nil {
			return onnxValue{}, v.tensor.Fault
		}
		in[i] = v
	}
	op, ok := onnxOps[n.Op]
	if !ok {
		return onnxValue{}, errors.New("this operator is not served; a decoder is made of Gemm, MatMul, Add, Mul, Concat, norms and activations")
	}
	if len(in) < op.inputs {
		return onnxValue{}, fmt.Errorf("%d inputs, want %d", len(in), op.inputs)
	}
	return op.run(g, n, in)
}

type onnxOp struct {
	inputs int // at least
	run    func(g *onnxGraph, n *onnx.Node, in []onnxValue) (onnxValue, error)
}

var onnxOps map[string]onnxOp

func init() { // the table refers to methods that refer to it
	onnxOps = map[string]onnxOp{
		"Gemm": {2, (*onnxGraph).gemm}, "MatMul": {2, (*onnxGraph).matMul}, "Concat": {2, (*onnxGraph).concat},
		"Add": {2, (*onnxGraph).add}, "Mul": {2, (*onnxGraph).mul}, "Sub": {2, (*onnxGraph).sub}, "Div": {2, (*onnxGraph).div},
		"Pow": {2, (*onnxGraph).pow}, "Clip": {1, (*onnxGraph).clip}, "Max": {2, (*onnxGraph).most},
		"LayerNormalization": {2, (*onnxGraph).layerNorm}, "BatchNormalization": {5, (*onnxGraph).batchNorm},
		"Relu": each(relu), "Sigmoid": each(sigmoid), "Tanh": each(math.Tanh), "Erf": each(math.Erf), "Neg": each(func(x float64) float64 { return -x }),
		"Exp": each(math.Exp), "Sqrt": each(math.Sqrt), "LeakyRelu": {1, (*onnxGraph).leakyRelu}, "Gelu": {1, (*onnxGraph).gelu},
		"Identity": same, "Dropout": same, "Cast": same, "Flatten": {1, (*onnxGraph).flatten},
		"Squeeze": scalarShape, "Reshape": scalarShape, "Unsqueeze": scalarShape,
		"Transpose": {1, (*onnxGraph).transpose}, "ReduceSum": {1, (*onnxGraph).reduceSum},
	}
}

func relu(x float64) float64 { return max(x, 0) }

// same passes its first input on: dropout is nothing outside training, and all is computed in float32.
var same = onnxOp{1, func(_ *onnxGraph, _ *onnx.Node, in []onnxValue) (onnxValue, error) { return in[0], nil }}

// scalarShape changes the shape of scores, which are one value a pair, or of a constant of one value.
var scalarShape = onnxOp{1, func(g *onnxGraph, _ *onnx.Node, in []onnxValue) (onnxValue, error) {
	if t := in[0].tensor; t != nil && len(t.Data) == 1 {
		return in[0], nil
	}
	if in[0].flow == nil || g.width != 1 {
		return onnxValue{}, errors.New("changes the shape of something that is not the score")
	}
	return in[0], nil
}}

// each applies a function to every element.
func each(curve func(x float64) float64) onnxOp {
	return onnxOp{1, func(_ *onnxGraph, _ *onnx.Node, in []onnxValue) (onnxValue, error) { return elementwise(in[0], curve) }}
}

func elementwise(v onnxValue, curve func(x float64) float64) (onnxValue, error) {
	if v.flow != nil {
		return onnxValue{flow: v.flow.then(curve)}, nil
	}
	x, ok := scalar(v)
	if !ok {
		return onnxValue{}, errors.New("computes with a constant of many values")
	}
	return onnxValue{tensor: &onnx.Tensor{Data: []float32{float32(curve(x))}}}, nil
}

// scalar is the value of a constant of one element.
func scalar(v onnxValue) (float64, bool) {
	if v.tensor == nil || len(v.tensor.Data) != 1 {
		return 0, false
	}
	return float64(v.tensor.Data[0]), true
}

func constantOf(n *onnx.Node) (onnxValue, error) {
	if a, ok := n.Attributes["value"]; ok && a.Tensor != nil {
		return onnxValue{tensor: a.Tensor}, nil
	}
	t := &onnx.Tensor{}
	if a, ok := n.Attributes["value_float"]; ok {
		t.Data = []float32{a.Float}
	} else if a, ok := n.Attributes["value_int"]; ok {
		t.Data = []float32{float32(a.Int)}
	} else if a, ok := n.Attributes["value_floats"]; ok {
		t.Shape, t.Data = []int{len(a.Floats)}, a.Floats
	} else if a, ok := n.Attributes["value_ints"]; ok {
		t.Shape = []int{len(a.Ints)}
		for _, v := range a.Ints {
			t.Data = append(t.Data, float32(v))
		}
	} else {
		return onnxValue{}, errors.New("a constant of neither numbers nor a tensor")
	}
	return onnxValue{tensor: t}, nil
}

// binary combines two functions of the same elements, or one and a constant number. ok is false where it is neither.
func binary(in []onnxValue, combine func(x, y float64) float64) (v onnxValue, ok bool, err error) {
	f, h := in[0].flow, in[1].flow
	x, isX := scalar(in[0])
	y, isY := scalar(in[1])
	switch {
	case f != nil && h != nil && f.root() == h.root() && f.root().stage > stageCandidate:
		return onnxValue{flow: &onnxFlow{stage: f.stage, base: f.root(), curve: func(x float64) float64 { return combine(f.at(x), h.at(x)) }}}, true, nil
	case f != nil && isY:
		v, err = elementwise(in[0], func(x float64) float64 { return combine(x, y) })
	case isX && (h != nil || isY):
		v, err = elementwise(in[1], func(y float64) float64 { return combine(x, y) })
	default:
		return onnxValue{}, false, nil
	}
	return v, true, err
}

func (g *onnxGraph) sub(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	return numberOnly(in, func(x, y float64) float64 { return x - y })
}

func (g *onnxGraph) div(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	return numberOnly(in, func(x, y float64) float64 { return x / y })
}

func (g *onnxGraph) pow(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	return numberOnly(in, math.Pow)
}

func (g *onnxGraph) most(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	return numberOnly(in, math.Max)
}

func numberOnly(in []onnxValue, combine func(x, y float64) float64) (onnxValue, error) {
	v, ok, err := binary(in, combine)
	if err == nil && !ok {
		err = errors.New("is served only inside an activation, on one value and a number")
	}
	return v, err
}

// mul is the product of the two embeddings, or part of an activation.
func (g *onnxGraph) mul(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	if isPair(in[0].flow, in[1].flow) || isPair(in[1].flow, in[0].flow) {
		return g.begin(HadamardMLP)
	}
	v, ok, err := binary(in, func(x, y float64) float64 { return x * y })
	if err == nil && !ok {
		err = errors.New("multiplies two things that are neither the two embeddings nor parts of one activation")
	}
	return v, err
}

func isPair(f, h *onnxFlow) bool {
	return f != nil && h != nil && f.base == nil && h.base == nil && f.stage == stageSource && h.stage == stageCandidate
}

// begin makes z of the two embeddings.
func (g *onnxGraph) begin(kind Kind) (onnxValue, error) {
	if g.head != nil {
		return onnxValue{}, errors.New("the embeddings are combined twice")
	}
	g.spec.Kind = kind
	return onnxValue{flow: g.start()}, nil
}

func (g *onnxGraph) concat(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	axis := n.Attributes["axis"].Int
	switch {
	case len(in) == 2 && isPair(in[1].flow, in[0].flow):
		return onnxValue{}, errors.New("the second input comes first in the concatenation: export the model with the inputs in the other order")
	case len(in) != 2 || !isPair(in[0].flow, in[1].flow):
		return onnxValue{}, errors.New("concatenates something that is not the two embeddings alone")
	case axis != 1 && axis != -1:
		return onnxValue{}, fmt.Errorf("axis is %d: want the last", axis)
	}
	return g.begin(ConcatMLP)
}

// reduceSum of the product is the inner product.
func (g *onnxGraph) reduceSum(*onnx.Node, []onnxValue) (onnxValue, error) {
	return onnxValue{}, fmt.Errorf("a sum of products is an inner product: a %s decoder needs no weights; give its spec instead", Dot)
}

// gemm is alpha A B + beta C, each of A and B transposed or not.
func (g *onnxGraph) gemm(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	number := func(name string) float64 {
		if a, ok := n.Attributes[name]; ok {
			return float64(a.Float)
		}
		return 1
	}
	if n.Attributes["transA"].Int != 0 {
		return onnxValue{}, errors.New("transA is set: the rows must be pairs")
	}
	v, err := g.linear(in, n.Attributes["transB"].Int != 0, number("alpha"))
	if err != nil || len(in) < 3 || in[2] == (onnxValue{}) {
		return v, err
	}
	if in[2].tensor == nil {
		return onnxValue{}, errors.New("its bias is not a constant")
	}
	bias := slices.Clone(in[2].tensor.Data)
	if len(bias) == 1 {
		bias = slices.Repeat(bias, g.width)
	}
	for i := range bias {
		bias[i] = float32(number("beta") * float64(bias[i]))
	}
	return v, g.addBias(bias)
}

func (g *onnxGraph) matMul(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	return g.linear(in, false, 1)
}

// linear adds a layer: x times a constant matrix, which is inputs x outputs unless it is transposed.
func (g *onnxGraph) linear(in []onnxValue, transposed bool, alpha float64) (onnxValue, error) {
	f, t := in[0].flow, in[1].tensor
	if err := g.onHead(f); err != nil {
		return onnxValue{}, err
	}
	if t == nil || len(t.Shape) != 2 {
		return onnxValue{}, errors.New("its second input is not a constant matrix")
	}
	if err := g.settle(f); err != nil {
		return onnxValue{}, err
	}
	if len(g.spec.Layers) == maxLayers {
		return onnxValue{}, fmt.Errorf("more than %d layers", maxLayers)
	}
	rows, columns := t.Shape[0], t.Shape[1]
	data := t.Data
	if !transposed {
		data = make([]float32, len(t.Data))
		for i := range rows {
			for j := range columns {
				data[j*rows+i] = t.Data[i*columns+j]
			}
		}
		rows, columns = columns, rows
	}
	if alpha != 1 {
		data = slices.Clone(data)
		for i := range data {
			data[i] = float32(alpha * float64(data[i]))
		}
	}
	if g.width != 0 && columns != g.width {
		return onnxValue{}, fmt.Errorf("its matrix %s takes %d values, the value before it has %d", quote(t.Name), columns, g.width)
	}
	if len(g.spec.Layers) == 0 {
		g.spec.Dim = columns
		if g.spec.Kind == ConcatMLP {
			g.spec.Dim /= 2
		}
	}
	key := fmt.Sprintf("layers.%d.weight", len(g.spec.Layers))
	g.spec.Layers = append(g.spec.Layers, LayerSpec{Weight: g.put(key, []int{rows, columns}, data), Activation: Identity})
	g.inputOf = append(g.inputOf, f)
	g.width = rows
	return onnxValue{flow: g.advance(stageLinear)}, nil
}

// addBias gives the newest layer a bias.
func (g *onnxGraph) addBias(bias []float32) error {
	l := g.layer()
	if len(bias) != g.width {
		return fmt.Errorf("a bias of %d values for %d outputs", len(bias), g.width)
	}
	if l.Bias != "" {
		return errors.New("two biases of one layer")
	}
	l.Bias = g.put(fmt.Sprintf("layers.%d.bias", len(g.spec.Layers)-1), []int{len(bias)}, bias)
	return nil
}

// add is a bias, a residual, or part of an activation.
func (g *onnxGraph) add(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		f, other := in[order[0]].flow, in[order[1]]
		if f == nil || f != g.head || f.stage != stageLinear {
			continue
		}
		if t := other.tensor; t != nil && len(t.Data) == g.width && (g.width > 1 || len(t.Data) == 1) && g.layer().Bias == "" {
			if err := g.addBias(t.Data); err != nil {
				return onnxValue{}, err
			}
			return onnxValue{flow: g.advance(stageLinear)}, nil
		}
		if other.flow == nil || g.layer().Residual != "" {
			continue
		}
		switch other.flow {
		case g.inputOf[len(g.inputOf)-1]:
			g.layer().Residual = residualInput
		case g.inputOf[0]:
			g.layer().Residual = residualZ
		default:
			continue
		}
		return onnxValue{flow: g.advance(stageLinear)}, nil
	}
	v, ok, err := binary(in, func(x, y float64) float64 { return x + y })
	if err == nil && !ok {
		err = errors.New("adds something that is neither a bias nor a residual (the input of the layer, or of the first one, to its linear output)")
	}
	return v, err
}

func (g *onnxGraph) clip(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	low, high := math.Inf(-1), math.Inf(1)
	for i, bound := range []*float64{&low, &high} {
		if i+1 < len(in) && in[i+1] != (onnxValue{}) {
			v, ok := scalar(in[i+1])
			if !ok {
				return onnxValue{}, errors.New("its bounds are not constant numbers")
			}
			*bound = v
		} else if a, ok := n.Attributes[[]string{"min", "max"}[i]]; ok {
			*bound = float64(a.Float)
		}
	}
	return elementwise(in[0], func(x float64) float64 { return min(max(x, low), high) })
}

func (g *onnxGraph) leakyRelu(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	slope := defaultSlope
	if a, ok := n.Attributes["alpha"]; ok {
		slope = float64(a.Float)
	}
	return elementwise(in[0], func(x float64) float64 {
		if x > 0 {
			return x
		}
		return slope * x
	})
}

func (g *onnxGraph) gelu(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	if cmp.Or(n.Attributes["approximate"].Text, "none") == "tanh" {
		return elementwise(in[0], geluTanh)
	}
	return elementwise(in[0], gelu)
}

// flatten of pairs' rows from the second dimension on changes nothing.
func (g *onnxGraph) flatten(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	if a, ok := n.Attributes["axis"]; ok && a.Int != 1 && a.Int != -1 {
		return onnxValue{}, fmt.Errorf("axis is %d: want 1", a.Int)
	}
	return in[0], nil
}

// transpose turns a constant matrix.
func (g *onnxGraph) transpose(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	t := in[0].tensor
	if t == nil || len(t.Shape) != 2 {
		return onnxValue{}, errors.New("turns something that is not a constant matrix")
	}
	if perm := n.Attributes["perm"].Ints; slices.Equal(perm, []int64{0, 1}) {
		return in[0], nil
	}
	rows, columns := t.Shape[0], t.Shape[1]
	turned := &onnx.Tensor{Name: t.Name, Shape: []int{columns, rows}, Data: make([]float32, len(t.Data))}
	for i := range rows {
		for j := range columns {
			turned.Data[j*rows+i] = t.Data[i*columns+j]
		}
	}
	return onnxValue{tensor: turned}, nil
}
