package decoder

import (
	"fmt"
	"math"
	"slices"
)

// anySize stands for a size a shape may have freely.
const anySize = -1

// fit checks that the tensors have the shapes the spec implies and hold finite numbers, and reports
// every fault at once.
func fit(spec Spec, tensors map[string]Tensor) error {
	c := fitter{tensors: tensors}
	switch spec.Kind {
	case Bilinear:
		c.shape("weight", spec.Weight, fmt.Sprintf("dim is %d", spec.Dim), spec.Dim, spec.Dim)
	case DistMult, ComplEx:
		c.relationShapes(&spec)
	case HadamardMLP, ConcatMLP:
		c.network(&spec)
	case MoL:
		c.mixture(&spec)
	}
	return c.Err("decoder weights")
}

type fitter struct {
	faults
	tensors map[string]Tensor
}

func (c *fitter) network(s *Spec) {
	zWidth := s.zWidth()
	c.norm("input_norm", s.InputNorm, zWidth)
	width := c.layers("layers", s.Layers, zWidth, inputOf(s), s.Shapes)
	if width > 0 && s.OutputColumn >= width {
		last := s.Layers[len(s.Layers)-1].Weight
		c.Add("output_column is %d; the last layer's weight %q has %d outputs", s.OutputColumn, last, width)
	}
}

// layers follows the width of a row, of which from says where it comes from, through the layers of
// one network, and returns that of the outputs: 0 where it cannot be told. Shapes are the spec's,
// nil for none.
func (c *fitter) layers(at string, layers []LayerSpec, zWidth int, from string, shapes [][]int) int {
	width := zWidth
	for i := range layers {
		l := &layers[i]
		at := fmt.Sprintf("%s[%d]", at, i)
		shape, ok := c.shape(at+".weight", l.Weight, from, anySize, width)
		if shape == nil {
			return 0 // without its width the next layers cannot be judged
		}
		out := shape[0]
		if shapes != nil && ok && !slices.Equal(shapes[i], shape) {
			c.Add("%s.weight %q has shape %v; shapes[%d] of the spec is %v", at, l.Weight, shape, i, shapes[i])
		}
		if l.Bias != "" {
			c.shape(at+".bias", l.Bias, "the layer's outputs", out)
		}
		c.norm(at+".norm", l.Norm, out)
		c.residual(at, l, out, width, zWidth)
		if l.GLU {
			if out%2 != 0 {
				c.Add("%s.weight %q has %d outputs; a gated linear unit needs an even number", at, l.Weight, out)
			}
			out /= 2
		}
		width, from = out, fmt.Sprintf("the outputs of %s", at)
	}
	return width
}

// inputOf words the width of z for a message.
func inputOf(s *Spec) string {
	if s.Kind == ConcatMLP {
		return fmt.Sprintf("source and candidate of dim %d side by side", s.Dim)
	}
	return fmt.Sprintf("source * candidate of dim %d; a first layer twice as wide is kind %s", s.Dim, ConcatMLP)
}

// zWidth returns the width of the input of a network.
func (s *Spec) zWidth() int {
	if s.Kind == ConcatMLP {
		return 2 * s.Dim
	}
	return s.Dim
}

// residual checks that what is added to the outputs of a layer is as wide as they are.
func (c *fitter) residual(at string, l *LayerSpec, out, in, z int) {
	var width int
	switch l.Residual {
	case ResidualInput:
		width = in
	case ResidualZ:
		width = z
	default:
		return
	}
	if width != out {
		c.Add("%s.weight %q has %d outputs; residual %q needs %d", at, l.Weight, out, l.Residual, width)
	}
}

func (c *fitter) norm(at string, n *NormSpec, width int) {
	if n == nil {
		return
	}
	const why = "the width it normalises"
	for _, part := range []wanted{{".weight", n.Weight}, {".bias", n.Bias}, {".mean", n.Mean}} {
		if part.key != "" {
			c.shape(at+part.field, part.key, why, width)
		}
	}
	if n.Kind != BatchNorm {
		return
	}
	if _, ok := c.shape(at+".var", n.Var, why, width); !ok {
		return
	}
	for i, v := range c.tensors[n.Var].Data {
		if float64(v)+n.eps() <= 0 {
			c.Add("%s.var %q: value %d is %v; want a variance (0 or more, and more than 0 with eps)", at, n.Var, i, v)
			return
		}
	}
}

// eps returns what is added to the variance.
func (n *NormSpec) eps() float64 {
	if n.Eps == nil {
		return defaultEps
	}
	return *n.Eps
}

// shape checks one tensor against the sizes wanted, for the reason why. It returns the tensor's
// shape without the leading ones it has beyond that many sizes, nil if it has another number of
// them, and whether all is well.
func (c *fitter) shape(field, key, why string, want ...int) (shape []int, ok bool) {
	t := c.tensors[key]
	shape = t.Shape
	for len(shape) > len(want) && shape[0] == 1 {
		shape = shape[1:]
	}
	if elements(t.Shape) != len(t.Data) {
		c.Add("%s %q has shape %v and %d values", field, key, t.Shape, len(t.Data))
		return nil, false
	}
	if len(shape) != len(want) || slices.Contains(shape, 0) {
		c.Add("%s %q has shape %v; want %s (%s)", field, key, t.Shape, sizes(want), why)
		return nil, false
	}
	ok = true
	for i := range want {
		ok = ok && (want[i] == anySize || want[i] == shape[i])
	}
	if !ok {
		c.Add("%s %q has shape %v; want %s (%s)", field, key, t.Shape, sizes(want), why)
	}
	if i := firstBad(t.Data); i >= 0 {
		c.Add("%s %q: value %d is %v; want finite numbers", field, key, i, t.Data[i])
		ok = false
	}
	return shape, ok
}

// elements returns the number of values a shape stands for, or -1 if it stands for none.
func elements(shape []int) int {
	n := 1
	for _, size := range shape {
		if size < 0 || (size > 0 && n > math.MaxInt/size) {
			return -1
		}
		n *= size
	}
	return n
}

// sizes writes a wanted shape as fmt writes one, "any" for a free size.
func sizes(want []int) string {
	words := make([]any, len(want))
	for i, size := range want {
		words[i] = size
		if size == anySize {
			words[i] = "any"
		}
	}
	return fmt.Sprint(words)
}
