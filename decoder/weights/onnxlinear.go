package weights

import (
	"errors"
	"fmt"
	"slices"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/internal/fault"
	"github.com/flashdb/flashdb/internal/onnx"
)

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
	if n := len(in[2].tensor.Data); n != 1 && n != g.width {
		return onnxValue{}, fmt.Errorf("a bias of %d values for %d outputs", n, g.width)
	}
	bias := make([]float32, g.width)
	for i := range bias {
		bias[i] = in[2].tensor.Data[min(i, len(in[2].tensor.Data)-1)]
	}
	for i := range bias {
		bias[i] = float32(number("beta") * float64(bias[i]))
	}
	return v, g.addBias(bias)
}

func (g *onnxGraph) matMul(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	return g.linear(in, false, 1)
}

// linear adds a layer: x times a constant matrix, which is inputs x outputs unless it is
// transposed.
func (g *onnxGraph) linear(in []onnxValue, transposed bool, alpha float64) (onnxValue, error) {
	f, t := in[0].flow, in[1].tensor
	transposed = transposed != in[1].turned
	if err := g.onHead(f); err != nil {
		return onnxValue{}, err
	}
	if t == nil || len(t.Shape) != 2 {
		return onnxValue{}, errors.New("its second input is not a constant matrix: a layer multiplies rows by its weights")
	}
	if g.picked {
		return onnxValue{}, errors.New("follows one output taken of several: only the last layer may have outputs that are not used")
	}
	if err := g.settle(f); err != nil {
		return onnxValue{}, err
	}
	if len(g.spec.Layers) == decoder.MaxLayers {
		return onnxValue{}, fmt.Errorf("more than %d layers", decoder.MaxLayers)
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
		return onnxValue{}, fmt.Errorf("its matrix %s takes %d values, the value before it has %d", fault.Quote(t.Name), columns, g.width)
	}
	if len(g.spec.Layers) == 0 {
		if g.spec.Kind == decoder.ConcatMLP && columns%2 != 0 {
			return onnxValue{}, fmt.Errorf("its matrix %s takes %d values: a %s takes two embeddings of equal width", fault.Quote(t.Name), columns, decoder.ConcatMLP)
		}
		g.spec.Dim = columns
		if g.spec.Kind == decoder.ConcatMLP {
			g.spec.Dim /= 2
		}
	}
	key := fmt.Sprintf("layers.%d.weight", len(g.spec.Layers))
	g.spec.Layers = append(g.spec.Layers, decoder.LayerSpec{Weight: g.put(key, []int{rows, columns}, data), Activation: decoder.Identity})
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
	l.Bias = g.put(biasKey(len(g.spec.Layers)-1), []int{len(bias)}, bias)
	return nil
}

// add is a bias, a residual, or part of an activation.
func (g *onnxGraph) add(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		f, other := in[order[0]].flow, in[order[1]]
		if f == nil || f != g.head || f.stage != stageLinear {
			continue
		}
		if t := other.tensor; t != nil && isRow(t, g.width) && g.layer().Bias == "" && !g.picked {
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
			g.layer().Residual = decoder.ResidualInput
		case g.inputOf[0]:
			g.layer().Residual = decoder.ResidualZ
		default:
			continue
		}
		return onnxValue{flow: g.advance(stageLinear)}, nil
	}
	if in[0].moment != nil || in[1].moment != nil {
		return addEps(in)
	}
	if v, ok := g.normPart(in, "bias"); ok {
		return v, nil
	}
	v, ok, err := binary(in, func(x, y float64) float64 { return x + y })
	if err == nil && !ok {
		err = errors.New("adds something that is neither a bias nor a residual (the input of the layer, or of the first one, to its linear output)")
	}
	return v, err
}

// isRow tells whether a constant is added to or multiplied with each row alike.
func isRow(t *onnx.Tensor, width int) bool {
	return len(t.Data) == width && (len(t.Shape) == 0 || t.Shape[len(t.Shape)-1] == width)
}

// column takes one output of the last layer as the logit.
func (g *onnxGraph) column(f *onnxFlow, axis int, number float64) (onnxValue, error) {
	if number < 0 {
		number += float64(g.width)
	}
	switch {
	case f.root() != g.head || g.layer() == nil || g.picked:
		return onnxValue{}, errors.New("takes a part of what is not the outputs of the last layer")
	case !g.lastAxis(int64(axis)) || number < 0 || number >= float64(g.width):
		return onnxValue{}, fmt.Errorf("takes number %v along dimension %d of the outputs: want one of the %d of each pair", number, axis, g.width)
	}
	g.spec.OutputColumn, g.width, g.picked = int(number), 1, true
	return onnxValue{flow: f}, nil
}
