package weights

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/internal/fault"
	"github.com/flashdb/flashdb/internal/onnx"
)

// onnxEnds is what the source and the candidate of every pair are on the way from the inputs to
// their product or concatenation: numbers of nodes, as of an edge_index, and the rows of embeddings
// they pick. Picking an end and picking a row may come in either order.
type onnxEnds struct {
	of     onnxEndsOf
	end    onnxEnd
	axis   int  // of endBoth: along which dimension the two lie, -1 if no shape tells
	rank   int  // dimensions
	column bool // of numbers: the last dimension was added and holds one of them, or one again and again
	width  int  // of nodes and rows: values of an embedding, 0 while nobody knows
}

type onnxEndsOf uint8

const (
	endsNodes   onnxEndsOf = iota // the embeddings of all nodes
	endsNumbers                   // which nodes the pairs are of
	endsRows                      // the embeddings of the pairs
)

type onnxEnd uint8

const (
	endBoth onnxEnd = iota
	endSource
	endCandidate
)

// inputs finds what the graph is given: the two embeddings, the source first; or the embeddings of
// all nodes and the numbers of those to pair, in one tensor or two; or z.
func (g *onnxGraph) inputs(m *onnx.Model, kind decoder.Kind) error {
	const most = 4 // inputs; one more than any form has, to be named in the refusal
	var names []string
	var real, whole []onnx.Input
	for _, in := range m.Inputs {
		if m.Tensors[in.Name] != nil || len(names) == most {
			continue
		}
		if slices.Contains(names, in.Name) {
			return fmt.Errorf("two inputs have the name %s", fault.Quote(in.Name))
		}
		names = append(names, in.Name)
		switch {
		case in.Type.Floats():
			real = append(real, in)
		case in.Type.Integers():
			whole = append(whole, in)
		}
	}
	switch {
	case len(real)+len(whole) != len(names):
	case len(whole) == 0 && len(real) == 2:
		for i, in := range real {
			g.values[in.Name] = onnxValue{ends: &onnxEnds{of: endsRows, end: endSource + onnxEnd(i), axis: -1, rank: rankOf(in, 2), width: lastOf(in)}}
		}
		return nil
	case len(whole) == 0 && len(real) == 1:
		if kind == "" {
			return fmt.Errorf("the graph has the one input %s: name the kind (--kind), %s if it is the product of two embeddings or %s if it is one "+
				"after the other", fault.Quote(names[0]), decoder.HadamardMLP, decoder.ConcatMLP)
		}
		g.values[names[0]] = g.begin(kind, lastOf(real[0]), rankOf(real[0], 2))
		return nil
	case len(real) <= 2 && g.numbers(whole):
		for _, in := range real {
			g.values[in.Name] = onnxValue{ends: &onnxEnds{of: endsNodes, axis: -1, rank: 2, width: lastOf(in)}}
		}
		return nil
	}
	return fmt.Errorf("the graph has the inputs %s: want two, the embeddings of source and candidate; or the embeddings of all nodes and the numbers "+
		"of those to pair (edge_index, or source and candidate); or one with the kind named: export the decoder without its encoder", fault.Quoted(names))
}

// numbers takes one input as the pairs, two x pairs or pairs x two, or two inputs as their sources
// and candidates.
func (g *onnxGraph) numbers(in []onnx.Input) bool {
	switch len(in) {
	case 1:
		e := &onnxEnds{of: endsNumbers, axis: -1, rank: rankOf(in[0], 2)}
		if s := in[0].Shape; len(s) == 2 && (s[0] == 2) != (s[1] == 2) {
			e.axis = slices.Index(s, 2)
		}
		g.values[in[0].Name] = onnxValue{ends: e}
		return e.rank == 2
	case 2:
		for i := range in {
			if s := in[i].Shape; len(s) > 2 || len(s) == 2 && s[0] != 1 && s[1] != 1 {
				return false
			}
			g.values[in[i].Name] = onnxValue{ends: &onnxEnds{of: endsNumbers, end: endSource + onnxEnd(i), axis: -1, rank: rankOf(in[i], 1)}}
		}
		return true
	}
	return false
}

// rankOf is how many dimensions an input declares to have.
func rankOf(in onnx.Input, undeclared int) int {
	if in.Shape == nil {
		return undeclared
	}
	return len(in.Shape)
}

// lastOf is the last dimension an input declares, 0 if it is free.
func lastOf(in onnx.Input) int {
	if len(in.Shape) == 0 {
		return 0
	}
	return max(in.Shape[len(in.Shape)-1], 0)
}

// misuse says why an operator may not have such inputs.
func misuse(op string, in []*onnxEnds) error {
	switch {
	case slices.ContainsFunc(in, func(e *onnxEnds) bool { return e.of == endsNodes }):
		return errors.New("works on the embeddings of all nodes, which is for the encoder: export the decoder alone, and import the embeddings it is given")
	case slices.ContainsFunc(in, func(e *onnxEnds) bool { return e.of == endsNumbers }):
		return errors.New("works on the numbers of the nodes, which a decoder only takes embeddings by: export the decoder without its encoder")
	case len(in) > 1:
		return errors.New("combines the two embeddings in another way than by their product or concatenation: train the decoder on one of these")
	case op == "MatMul" || op == "Gemm":
		return errors.New("works on one embedding alone, before the product or concatenation of the two: do it to the embeddings before the import; " +
			"x^T W y is a bilinear decoder, whose matrix is read from a .pt by the layout bilinear")
	}
	return errors.New("works on one embedding alone, before the product or concatenation of the two: do it to the embeddings before the import")
}

// gather takes rows of embeddings by numbers of nodes, or one end of both, or one output of a
// layer.
func (g *onnxGraph) gather(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	axis := int(n.Attributes["axis"].Int)
	data, at := in[0], in[1]
	if at.ends != nil {
		return takeRows(data, at.ends, axis, at.ends.rank+1)
	}
	number, ok := scalar(at)
	if !ok {
		return onnxValue{}, errors.New("takes more than one number, or by what is no constant")
	}
	switch {
	case data.ends != nil:
		return data.ends.pick(axis, number, len(at.tensor.Shape) > 0)
	case data.flow != nil:
		return g.column(data.flow, axis, number)
	}
	return onnxValue{}, errors.New("takes from what is neither embeddings nor the outputs of the last layer")
}

// gatherND takes rows by numbers that were made a column.
func (g *onnxGraph) gatherND(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	if e := in[1].ends; e != nil && e.column && n.Attributes["batch_dims"].Int == 0 {
		return takeRows(in[0], e, 0, e.rank)
	}
	return onnxValue{}, errors.New("takes by what is no column of node numbers")
}

// gatherElements takes rows by numbers that were made a column and repeated along it.
func (g *onnxGraph) gatherElements(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	if e := in[1].ends; e != nil && e.column {
		return takeRows(in[0], e, int(n.Attributes["axis"].Int), e.rank)
	}
	return onnxValue{}, errors.New("takes by what is no column of node numbers")
}

// takeRows gives the rows of a matrix, which is an input or, as of an nn.Embedding, a constant.
func takeRows(data onnxValue, numbers *onnxEnds, axis, rank int) (onnxValue, error) {
	rows := *numbers
	rows.of, rows.column, rows.rank = endsRows, false, rank
	switch {
	case numbers.of != endsNumbers:
		return onnxValue{}, errors.New("takes by embeddings in place of node numbers")
	case data.ends != nil && data.ends.of == endsNodes:
		rows.width = data.ends.width
	case data.tensor != nil && len(data.tensor.Shape) == 2 && !data.turned:
		rows.width = data.tensor.Shape[1]
	default:
		return onnxValue{}, errors.New("takes by node numbers from what is no matrix of embeddings")
	}
	if axis != 0 && axis != -2 {
		return onnxValue{}, fmt.Errorf("takes embeddings along dimension %d: want 0, one row per node", axis)
	}
	return onnxValue{ends: &rows}, nil
}

// pick takes one end of both. keep leaves a dimension of 1 in its place.
func (e *onnxEnds) pick(axis int, number float64, keep bool) (onnxValue, error) {
	if axis < 0 {
		axis += e.rank
	}
	one := *e
	switch {
	case e.of == endsNodes:
		return onnxValue{}, errors.New("takes one node by a constant")
	case e.end != endBoth:
		return onnxValue{}, errors.New("takes a part of what is one end of the pairs already")
	case axis < 0 || axis >= e.rank || e.of == endsRows && axis == e.rank-1:
		return onnxValue{}, fmt.Errorf("takes along dimension %d of %d", axis, e.rank)
	case e.axis >= 0 && e.axis != axis:
		return onnxValue{}, fmt.Errorf("takes along dimension %d: source and candidate lie along %d", axis, e.axis)
	case number == 0 || number == -2:
		one.end = endSource
	case number == 1 || number == -1:
		one.end = endCandidate
	default:
		return onnxValue{}, fmt.Errorf("takes number %v of each pair: want 0, the source, or 1, the candidate", number)
	}
	one.axis = -1
	if !keep {
		one.rank--
	}
	return onnxValue{ends: &one}, nil
}

// slice takes one end of both.
func (g *onnxGraph) slice(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	e := in[0].ends
	if e == nil {
		return onnxValue{}, errors.New("takes a range of what is no pair of nodes")
	}
	starts, ok1 := numbersOf(n, in, 1, "starts")
	ends, ok2 := numbersOf(n, in, 2, "ends")
	axes, ok3 := numbersOf(n, in, 3, "axes")
	steps, ok4 := numbersOf(n, in, 4, "steps")
	if len(axes) == 0 {
		axes = []int64{0}
	}
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return onnxValue{}, errors.New("takes a range that is no constant: write x[0] and x[1] in place of chunk(), or export with dynamo=True")
	}
	if len(starts) != 1 || len(ends) != 1 || len(axes) != 1 || len(steps) > 0 && !slices.Equal(steps, []int64{1}) {
		return onnxValue{}, errors.New("takes more than one range, or steps in it: want that of the sources or of the candidates")
	}
	if starts[0] == 0 && ends[0] >= math.MaxInt32 {
		return in[0], nil
	}
	bound := func(v int64) int64 { // within a pair
		if v < 0 {
			v += 2
		}
		return min(max(v, 0), 2)
	}
	if bound(ends[0])-bound(starts[0]) != 1 {
		return onnxValue{}, fmt.Errorf("takes %d to %d of each pair: want one of them", starts[0], ends[0])
	}
	return e.pick(int(axes[0]), float64(bound(starts[0])), true)
}

// split takes both ends apart.
func (g *onnxGraph) split(n *onnx.Node, in []onnxValue) ([]onnxValue, error) {
	sizes, ok := numbersOf(n, in, 1, "split")
	if len(in) == 0 || in[0].ends == nil || !ok || len(n.Outputs) != 2 || len(sizes) > 0 && !slices.Equal(sizes, []int64{1, 1}) {
		return nil, errors.New("splits what is no pair of nodes, or not into source and candidate")
	}
	source, err := in[0].ends.pick(int(n.Attributes["axis"].Int), 0, true)
	if err != nil {
		return nil, err
	}
	candidate, err := in[0].ends.pick(int(n.Attributes["axis"].Int), 1, true)
	return []onnxValue{source, candidate}, err
}

// reduceProd multiplies the two embeddings of each pair.
func (g *onnxGraph) reduceProd(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	e := in[0].ends
	axes, ok := numbersOf(n, in, 1, "axes")
	if e == nil || e.of != endsRows || !ok || len(axes) != 1 {
		return onnxValue{}, errors.New("is served only as the product of the two embeddings of each pair")
	}
	keep := true
	if a, ok := n.Attributes["keepdims"]; ok {
		keep = a.Int != 0
	}
	one, err := e.pick(int(axes[0]), 0, keep)
	if err != nil {
		return onnxValue{}, err
	}
	return g.combine(decoder.HadamardMLP, one.ends.width, one.ends.rank)
}

// isPair tells whether two values are the embeddings of source and candidate.
func isPair(x, y *onnxEnds) bool {
	return x != nil && y != nil && x.of == endsRows && y.of == endsRows && x.end == endSource && y.end == endCandidate
}

// pair makes z of the embeddings of source and candidate.
func (g *onnxGraph) pair(kind decoder.Kind, x, y *onnxEnds) (onnxValue, error) {
	if x.width != y.width && x.width != 0 && y.width != 0 {
		return onnxValue{}, fmt.Errorf("the embeddings of source and candidate have %d and %d values: want as many of both", x.width, y.width)
	}
	width := cmp.Or(x.width, y.width)
	if kind == decoder.ConcatMLP {
		width *= 2
	}
	return g.combine(kind, width, max(x.rank, y.rank))
}

var errTwice = errors.New("the embeddings are combined twice: only one product or concatenation is served")

// combine begins the network.
func (g *onnxGraph) combine(kind decoder.Kind, width, rank int) (onnxValue, error) {
	if g.head != nil {
		return onnxValue{}, errTwice
	}
	return g.begin(kind, width, rank), nil
}
