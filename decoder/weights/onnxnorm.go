package weights

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/onnx"
)

// layerNorm takes x, scale and, optionally, shift.
func (g *onnxGraph) layerNorm(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	if a, ok := n.Attributes["axis"]; ok && !g.lastAxis(a.Int) {
		return onnxValue{}, fmt.Errorf("axis is %d: want the last", a.Int)
	}
	return g.norm(decoder.LayerNorm, epsilonOf(n), in[0].flow, in[1:min(len(in), 3)])
}

// batchNorm takes x, scale, shift, mean and variance.
func (g *onnxGraph) batchNorm(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	outputs := 0
	for _, name := range n.Outputs {
		if name != "" {
			outputs++
		}
	}
	if n.Attributes["training_mode"].Int != 0 || outputs > 1 {
		return onnxValue{}, errTraining
	}
	return g.norm(decoder.BatchNorm, epsilonOf(n), in[0].flow, in[1:5])
}

// defaultEpsilon is ONNX's, of both norms.
const defaultEpsilon = 1e-5

func epsilonOf(n *onnx.Node) float64 {
	if a, ok := n.Attributes["epsilon"]; ok {
		return float64(a.Float)
	}
	return defaultEpsilon
}

// normKeys are the ends of the keys of a norm's tensors.
var normKeys = []string{"weight", "bias", "mean", "var"}

// norm puts a norm behind f: on z, before the activation of a layer, or after it.
func (g *onnxGraph) norm(kind string, eps float64, f *onnxFlow, params []onnxValue) (onnxValue, error) {
	if err := g.onHead(f); err != nil {
		return onnxValue{}, err
	}
	spec := &decoder.NormSpec{Kind: kind, Eps: &eps}
	stage := stageZ
	if l := g.layer(); l != nil {
		if l.Norm != nil {
			return onnxValue{}, errors.New("two norms behind one layer")
		}
		if err := g.settle(f); err != nil {
			return onnxValue{}, err
		}
		l.Norm, stage = spec, stageNormed
		if f.curve != nil {
			l.NormPosition, stage = decoder.AfterActivation, stageAfter
		}
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
			return onnxValue{}, fmt.Errorf("its %s is not a constant", normKeys[i])
		}
		*field = g.put(g.normKey(normKeys[i]), []int{len(t.Data)}, t.Data)
	}
	v := onnxValue{flow: g.advance(stage)}
	g.newNorm = spec
	return v, nil
}

// normKey is the key of a tensor of the newest norm.
func (g *onnxGraph) normKey(end string) string {
	if len(g.spec.Layers) == 0 {
		return "input_norm." + end
	}
	return fmt.Sprintf("layers.%d.norm.%s", len(g.spec.Layers)-1, end)
}

// normPart makes a constant row that the output of a norm is multiplied with its weight, and one
// that is added its bias. ok is false where it is neither.
func (g *onnxGraph) normPart(in []onnxValue, part string) (v onnxValue, ok bool) {
	f, t := in[0].flow, in[1].tensor
	if f == nil {
		f, t = in[1].flow, in[0].tensor
	}
	norm := g.newNorm
	if norm == nil || f != g.head || t == nil || len(t.Data) < 2 || !isRow(t, cmp.Or(g.width, len(t.Data))) {
		return onnxValue{}, false
	}
	field := &norm.Bias
	if part == "weight" {
		field = &norm.Weight
	}
	if norm.Bias != "" || *field != "" {
		return onnxValue{}, false
	}
	*field = g.put(g.normKey(part), []int{len(t.Data)}, t.Data)
	v = onnxValue{flow: g.advance(f.stage)}
	g.newNorm = norm
	return v, true
}
