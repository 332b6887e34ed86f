package weights

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/internal/fault"
	"github.com/flashdb/flashdb/decoder/internal/smooth"
	"github.com/flashdb/flashdb/internal/onnx"
)

// apply returns what a node computes: its first output, and of Split both.
func (g *onnxGraph) apply(n *onnx.Node) ([]onnxValue, error) {
	if n.Domain != "" {
		return nil, fmt.Errorf("operators of domain %s are not served: export with the standard ones", fault.Quote(n.Domain))
	}
	in := make([]onnxValue, len(n.Inputs))
	var ends []*onnxEnds
	var network, dims bool
	for i, name := range n.Inputs {
		v, ok := g.values[name]
		if !ok && name != "" {
			return nil, fmt.Errorf("input %s is computed nowhere before it", fault.Quote(name))
		}
		if v.tensor != nil && v.tensor.Fault != nil {
			return nil, v.tensor.Fault
		}
		in[i] = v
		if v.ends != nil {
			ends = append(ends, v.ends)
		}
		network = network || v.flow != nil || v.moment != nil
		dims = dims || v.sizes != nil
	}
	op, ok := onnxOps[n.Op]
	switch {
	case len(ends) > 0 && !op.ends:
		return nil, misuse(n.Op, ends)
	case dims && !network && len(ends) == 0 && slices.Contains(sizeOps, n.Op):
		return []onnxValue{computeSizes(n, in)}, nil
	case !ok:
		return nil, unserved(n)
	case len(in) < op.inputs:
		return nil, fmt.Errorf("%d inputs, want %d", len(in), op.inputs)
	case n.Op == "Split":
		return g.split(n, in)
	}
	v, err := op.run(g, n, in)
	return []onnxValue{v}, err
}

// unserved says what to do about an operator that is none of onnxOps.
func unserved(n *onnx.Node) error {
	for _, a := range n.Attributes {
		if a.Graph {
			return errors.New("chooses between graphs at run time: give squeeze() its dimension and write x[0], x[1] for chunk(), " +
				"or export with dynamo=True")
		}
	}
	if slices.Contains(otherActivations, n.Op) {
		return fmt.Errorf("this activation is none of %s: train the decoder with one of them", fault.Words(networkActivations...))
	}
	return errors.New("this operator is not served; a decoder is made of Gemm, MatMul, Add, Mul, Concat, norms and activations")
}

// networkActivations are those a layer may have.
var networkActivations = []decoder.Activation{decoder.ReLU, decoder.LeakyReLU, decoder.GELU, decoder.GELUTanh, decoder.SiLU, decoder.Tanh, decoder.Sigmoid}

// otherActivations are activations of ONNX that no layer may have.
var otherActivations = []string{
	"Celu", "Elu", "HardSigmoid", "HardSwish", "LogSoftmax", "Mish", "Selu", "Softmax", "Softplus", "Softsign", "ThresholdedRelu",
}

type onnxOp struct {
	inputs int // at least
	run    func(g *onnxGraph, n *onnx.Node, in []onnxValue) (onnxValue, error)
	ends   bool // takes what is not combined yet
}

var onnxOps map[string]onnxOp

func init() { // the table refers to methods that refer to it
	network := func(inputs int, run func(g *onnxGraph, n *onnx.Node, in []onnxValue) (onnxValue, error)) onnxOp {
		return onnxOp{inputs: inputs, run: run}
	}
	pairs := func(inputs int, run func(g *onnxGraph, n *onnx.Node, in []onnxValue) (onnxValue, error)) onnxOp {
		return onnxOp{inputs: inputs, run: run, ends: true}
	}
	onnxOps = map[string]onnxOp{
		"Gemm": network(2, (*onnxGraph).gemm), "MatMul": network(2, (*onnxGraph).matMul), "Add": network(2, (*onnxGraph).add),
		"Sub": network(2, (*onnxGraph).sub), "Div": network(2, (*onnxGraph).div), "Pow": network(2, (*onnxGraph).pow),
		"Clip": network(1, (*onnxGraph).clip), "Max": network(2, (*onnxGraph).most), "ReduceMean": network(1, (*onnxGraph).reduceMean),
		"ReduceSum": network(1, (*onnxGraph).reduceSum), "LayerNormalization": network(2, (*onnxGraph).layerNorm),
		"BatchNormalization": network(5, (*onnxGraph).batchNorm), "LeakyRelu": network(1, (*onnxGraph).leakyRelu),
		"PRelu": network(2, (*onnxGraph).pRelu), "Gelu": network(1, (*onnxGraph).gelu), "Sqrt": network(1, (*onnxGraph).sqrt),
		"Reciprocal": network(1, (*onnxGraph).reciprocal),
		"Relu":       each(relu), "Sigmoid": each(smooth.Sigmoid), "Tanh": each(math.Tanh), "Erf": each(math.Erf), "Exp": each(math.Exp), "Abs": each(math.Abs),
		"Neg": each(func(x float64) float64 { return -x }),
		"Mul": pairs(2, (*onnxGraph).mul), "Concat": pairs(1, (*onnxGraph).concat), "ReduceProd": pairs(1, (*onnxGraph).reduceProd),
		"Gather": pairs(2, (*onnxGraph).gather), "GatherND": pairs(2, (*onnxGraph).gatherND), "GatherElements": pairs(2, (*onnxGraph).gatherElements),
		"Slice": pairs(1, (*onnxGraph).slice), "Split": pairs(1, nil), "Expand": pairs(2, (*onnxGraph).expand),
		"Identity": pairs(1, (*onnxGraph).identity), "Dropout": pairs(1, (*onnxGraph).dropout), "Cast": pairs(1, (*onnxGraph).cast),
		"Shape": pairs(1, (*onnxGraph).shape), "Reshape": pairs(2, (*onnxGraph).reshape), "Flatten": pairs(1, (*onnxGraph).flatten),
		"Squeeze": pairs(1, (*onnxGraph).squeeze), "Unsqueeze": pairs(1, (*onnxGraph).unsqueeze), "Transpose": pairs(1, (*onnxGraph).transpose),
		"Constant": pairs(0, constantOf),
	}
}

func relu(x float64) float64 { return max(x, 0) }

func (g *onnxGraph) identity(_ *onnx.Node, in []onnxValue) (onnxValue, error) { return in[0], nil }

// dropout is nothing outside training.
func (g *onnxGraph) dropout(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	if len(in) > 2 && in[2] != (onnxValue{}) {
		if training, ok := scalar(in[2]); !ok || training != 0 {
			return onnxValue{}, errTraining
		}
	}
	return in[0], nil
}

var errTraining = errors.New("is in training mode: export the model after eval()")

// cast changes no value: all is computed in float32 and node numbers are integers.
func (g *onnxGraph) cast(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	to := onnx.Type(n.Attributes["to"].Int)
	whole := in[0].ends != nil && in[0].ends.of == endsNumbers
	if in[0].tensor == nil && (whole && !to.Integers() || !whole && !to.Floats()) {
		return onnxValue{}, fmt.Errorf("changes the values: to data type %d", to)
	}
	return in[0], nil
}

// each applies a function to every element.
func each(curve func(x float64) float64) onnxOp {
	return onnxOp{inputs: 1, run: func(_ *onnxGraph, _ *onnx.Node, in []onnxValue) (onnxValue, error) { return elementwise(in[0], curve) }}
}

func elementwise(v onnxValue, curve func(x float64) float64) (onnxValue, error) {
	if v.moment != nil {
		return onnxValue{}, errMoment
	}
	if v.flow != nil {
		if v.flow.steps >= maxSteps {
			return onnxValue{}, errSteps
		}
		return onnxValue{flow: v.flow.then(curve)}, nil
	}
	x, ok := scalar(v)
	if !ok {
		return onnxValue{}, errors.New("computes with a constant of many values")
	}
	return onnxValue{tensor: &onnx.Tensor{Data: []float32{float32(curve(x))}}}, nil
}

var errSteps = fmt.Errorf("more than %d steps between two layers are no activation", maxSteps)

// scalar is the value of a constant of one element.
func scalar(v onnxValue) (float64, bool) {
	if v.tensor == nil || len(v.tensor.Data) != 1 {
		return 0, false
	}
	return float64(v.tensor.Data[0]), true
}

func constantOf(_ *onnxGraph, n *onnx.Node, _ []onnxValue) (onnxValue, error) {
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

// binary combines two functions of the same elements, or one and a constant number. ok is false
// where it is neither.
func binary(in []onnxValue, combine func(x, y float64) float64) (v onnxValue, ok bool, err error) {
	f, h := in[0].flow, in[1].flow
	x, isX := scalar(in[0])
	y, isY := scalar(in[1])
	switch {
	case f != nil && h != nil && f.root() == h.root():
		steps := f.steps + h.steps + 1
		if steps > maxSteps {
			return onnxValue{}, true, errSteps
		}
		return onnxValue{flow: &onnxFlow{
			stage: f.stage, base: f.root(), steps: steps,
			curve: func(x float64) float64 { return combine(f.at(x), h.at(x)) },
		}}, true, nil
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
	if m := in[1].moment; m != nil {
		return m.centre(in[0])
	}
	return numberOnly(in, func(x, y float64) float64 { return x - y })
}

func (g *onnxGraph) div(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	if m := in[1].moment; m != nil {
		return g.overDeviation(in[0], m)
	}
	return numberOnly(in, func(x, y float64) float64 { return x / y })
}

func (g *onnxGraph) pow(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	if m := in[0].moment; m != nil {
		return m.power(in[1])
	}
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
	if isPair(in[0].ends, in[1].ends) || isPair(in[1].ends, in[0].ends) {
		return g.pair(decoder.HadamardMLP, in[0].ends, in[1].ends)
	}
	if in[0].moment != nil || in[1].moment != nil {
		return g.multiplyMoment(in)
	}
	if v, ok := g.normPart(in, "weight"); ok {
		return v, nil
	}
	v, ok, err := binary(in, func(x, y float64) float64 { return x * y })
	if err == nil && !ok {
		err = errors.New("multiplies two things that are neither the two embeddings nor parts of one activation or norm")
	}
	return v, err
}

func (g *onnxGraph) concat(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	axis := n.Attributes["axis"].Int
	switch {
	case g.head != nil:
		return onnxValue{}, errTwice
	case len(in) == 2 && isPair(in[1].ends, in[0].ends):
		return onnxValue{}, errors.New("the second input comes first in the concatenation: export the model with the inputs in the other order")
	case len(in) != 2 || !isPair(in[0].ends, in[1].ends):
		return onnxValue{}, errors.New("concatenates something that is not the two embeddings alone")
	case axis != -1 && axis != int64(max(in[0].ends.rank, in[1].ends.rank))-1:
		return onnxValue{}, fmt.Errorf("axis is %d: want the last", axis)
	}
	return g.pair(decoder.ConcatMLP, in[0].ends, in[1].ends)
}

// reduceSum of the product is the inner product.
func (g *onnxGraph) reduceSum(*onnx.Node, []onnxValue) (onnxValue, error) {
	return onnxValue{}, fmt.Errorf("a sum of products is an inner product: a %s decoder needs no weights; give its spec, "+
		`{"kind": "%[1]s", "dim": N}, as a .json file instead`, decoder.Dot)
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

// defaultAlpha is ONNX's slope of a LeakyRelu.
const defaultAlpha = 0.01

func (g *onnxGraph) leakyRelu(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	slope := defaultAlpha
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
		return elementwise(in[0], smooth.GELUTanh)
	}
	return elementwise(in[0], smooth.GELU)
}

// pRelu with one slope is a leaky ReLU.
func (g *onnxGraph) pRelu(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	t := in[1].tensor
	if t == nil || len(t.Data) == 0 || slices.ContainsFunc(t.Data, func(v float32) bool { return v != t.Data[0] }) {
		return onnxValue{}, errors.New("has a slope for each neuron: only one for all of them is served, a leaky_relu")
	}
	slope := float64(t.Data[0])
	return elementwise(in[0], func(x float64) float64 {
		if x > 0 {
			return x
		}
		return slope * x
	})
}
