package weights

import (
	"errors"
	"fmt"
	"slices"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/onnx"
)

// onnxSizes are dimensions that the graph computes, to reshape by them; nil where it is not
// followed how.
type onnxSizes struct{ dims []int64 }

// Dimensions that are no constants.
const (
	sizePairs = -2 // how many pairs there are
	sizeOther = -3
)

// sizeOps are the operators that exporters compute dimensions with.
var sizeOps = []string{
	"Add", "Cast", "Concat", "ConstantOfShape", "Div", "Equal", "Expand", "Gather", "Identity", "Mul", "Reshape", "Slice", "Squeeze", "Sub",
	"Unsqueeze", "Where",
}

// computeSizes computes dimensions of dimensions and constants.
func computeSizes(n *onnx.Node, in []onnxValue) onnxValue {
	out := &onnxSizes{}
	switch n.Op {
	case "Cast", "Identity", "Squeeze", "Unsqueeze": // a scalar is kept as a list of one
		out = in[0].sizes
	case "Gather":
		if len(in) < 2 {
			break
		}
		if at, ok := scalar(in[1]); ok && in[0].sizes != nil {
			dims := in[0].sizes.dims
			if at < 0 {
				at += float64(len(dims))
			}
			if at >= 0 && at < float64(len(dims)) {
				out.dims = []int64{dims[int(at)]}
			}
		}
	case "Concat":
		for _, v := range in {
			dims, ok := dimsOf(v)
			if !ok || len(out.dims)+len(dims) > maxDims {
				return onnxValue{sizes: &onnxSizes{}}
			}
			out.dims = append(out.dims, dims...)
		}
	}
	return onnxValue{sizes: out}
}

// maxDims bounds the dimensions followed.
const maxDims = 8

// dimsOf are constant or computed dimensions.
func dimsOf(v onnxValue) (dims []int64, ok bool) {
	switch {
	case v.sizes != nil:
		return v.sizes.dims, v.sizes.dims != nil
	case v.tensor == nil || len(v.tensor.Data) > maxDims:
		return nil, false
	}
	for _, x := range v.tensor.Data {
		dims = append(dims, int64(x))
	}
	return dims, true
}

// numbersOf is a list that older operators have as an attribute and newer ones as an input. ok is
// false if it is no constant.
func numbersOf(n *onnx.Node, in []onnxValue, at int, attribute string) (list []int64, ok bool) {
	if a, there := n.Attributes[attribute]; there {
		return a.Ints, len(a.Ints) <= maxDims
	}
	if at >= len(in) || in[at] == (onnxValue{}) {
		return nil, true
	}
	if in[at].tensor == nil {
		return nil, false
	}
	return dimsOf(in[at])
}

// shape is Shape: of the network's values the dimensions are known.
func (g *onnxGraph) shape(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	out := &onnxSizes{}
	switch {
	case in[0].flow != nil && g.rank == 2:
		out.dims = []int64{sizePairs, orOther(g.width)}
	case in[0].ends != nil && in[0].ends.rank == 2 && in[0].ends.of != endsNumbers:
		out.dims = []int64{sizeOther, orOther(in[0].ends.width)}
		if in[0].ends.end != endBoth {
			out.dims[0] = sizePairs
		}
	}
	return onnxValue{sizes: out}, nil
}

func orOther(width int) int64 {
	if width == 0 {
		return sizeOther
	}
	return int64(width)
}

// lastAxis tells whether an axis is that of a row's values.
func (g *onnxGraph) lastAxis(axis int64) bool { return axis == -1 || axis == int64(g.rank)-1 }

var errReshape = errors.New("changes the shape of something that is not the score: one row per pair is wanted, of which the values stay together")

// reshape keeps the rows of values as they are, or joins the two embeddings of each pair.
func (g *onnxGraph) reshape(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	dims, ok := dimsOf(in[1])
	switch v := in[0]; {
	case v.tensor != nil && len(v.tensor.Data) == 1, v.flow != nil && g.width == 1:
		return v, nil
	case !ok || len(dims) == 0:
		return onnxValue{}, errReshape
	case v.ends != nil:
		return g.reshapeEnds(v.ends, dims)
	case v.flow == nil || !keepsRows(dims, g.width, g.rank):
		return onnxValue{}, errReshape
	}
	g.rank = len(dims)
	if last := dims[g.rank-1]; g.width == 0 && last > 0 {
		g.width = int(last)
	}
	return in[0], nil
}

// keepsRows tells whether values of that many dimensions, the last as given or unknown, stay one
// row per pair.
func keepsRows(dims []int64, width, rank int) bool {
	switch last := dims[len(dims)-1]; {
	case last > 0:
		return width == 0 || last == int64(width)
	case last == -1:
		return len(dims) == rank && !slices.ContainsFunc(dims[:rank-1], func(d int64) bool { return d != sizePairs && d != 0 })
	case last == 0:
		return len(dims) == rank
	default:
		return false
	}
}

func (g *onnxGraph) reshapeEnds(e *onnxEnds, dims []int64) (onnxValue, error) {
	out := *e
	last := dims[len(dims)-1]
	switch {
	case e.of == endsRows && e.end == endBoth:
		if len(dims) != 2 || last != -1 && (last <= 0 || e.width != 0 && last != 2*int64(e.width)) {
			return onnxValue{}, errReshape
		}
		return g.join(e)
	case e.of == endsNodes || e.end == endBoth:
		return onnxValue{}, errReshape
	case e.of == endsNumbers:
		others := 0 // than 1
		for _, d := range dims {
			if d != 1 {
				others++
			}
		}
		if others > 1 {
			return onnxValue{}, errReshape
		}
		out.rank, out.column = len(dims), len(dims) > 1 && last == 1
	case keepsRows(dims, e.width, e.rank):
		out.rank = len(dims)
	default:
		return onnxValue{}, errReshape
	}
	return onnxValue{ends: &out}, nil
}

// join makes the concatenation of rows that lie source, candidate, source, candidate.
func (g *onnxGraph) join(e *onnxEnds) (onnxValue, error) {
	if e.rank != 3 || e.axis != 1 {
		return onnxValue{}, errors.New("joins the embeddings of different pairs, unless the node numbers are declared as pairs x 2: declare their shape, or " +
			"concatenate the embeddings of source and candidate")
	}
	return g.combine(decoder.ConcatMLP, 2*e.width, 2)
}

// flatten of rows from the second dimension on changes nothing.
func (g *onnxGraph) flatten(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	axis := int64(1)
	if a, ok := n.Attributes["axis"]; ok {
		axis = a.Int
	}
	switch v := in[0]; {
	case v.flow != nil && (g.width == 1 || g.rank == 2 && g.lastAxis(axis)):
		return v, nil
	case v.ends != nil && v.ends.of == endsRows && v.ends.end == endBoth && axis == 1:
		return g.join(v.ends)
	case v.ends != nil && v.ends.of == endsRows && v.ends.end != endBoth && v.ends.rank == 2 && (axis == 1 || axis == -1):
		return v, nil
	}
	return onnxValue{}, fmt.Errorf("axis is %d: %w", axis, errReshape)
}

// squeeze drops dimensions of 1.
func (g *onnxGraph) squeeze(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	axes, ok := numbersOf(n, in, 1, "axes")
	switch v := in[0]; {
	case v.tensor != nil && len(v.tensor.Data) == 1, v.flow != nil && g.width == 1:
		return v, nil
	case v.flow != nil && g.rank > 2 && slices.Equal(axes, []int64{0}):
		g.rank--
		return v, nil
	case v.ends != nil && v.ends.end != endBoth && ok:
		return v.ends.squeeze(axes)
	}
	return onnxValue{}, errReshape
}

func (e *onnxEnds) squeeze(axes []int64) (onnxValue, error) {
	out := *e
	least := 1
	if e.of == endsRows {
		least = 2
	}
	out.rank -= len(axes)
	for _, a := range axes {
		if last := a == -1 || a == int64(e.rank)-1; last && e.of == endsRows {
			return onnxValue{}, errReshape
		} else if last {
			out.column = false
		}
	}
	if len(axes) == 0 {
		out.rank, out.column = least, false
	}
	if out.rank < least {
		return onnxValue{}, errReshape
	}
	return onnxValue{ends: &out}, nil
}

// unsqueeze adds dimensions of 1.
func (g *onnxGraph) unsqueeze(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	axes, ok := numbersOf(n, in, 1, "axes")
	v := in[0]
	if v.tensor != nil && len(v.tensor.Data) == 1 || v.flow != nil && g.width == 1 {
		return v, nil
	}
	if !ok || len(axes) != 1 {
		return onnxValue{}, errReshape
	}
	behind := func(rank int) bool { return axes[0] == -1 || axes[0] == int64(rank) }
	switch {
	case v.flow != nil && g.rank < maxDims && axes[0] == 0:
		g.rank++
		return v, nil
	case v.ends == nil || v.ends.of == endsNodes || v.ends.rank == maxDims || v.ends.of == endsRows && behind(v.ends.rank):
		return onnxValue{}, errReshape
	}
	out := *v.ends
	out.rank++
	if out.column = behind(v.ends.rank); !out.column {
		out.axis = -1
	}
	return onnxValue{ends: &out}, nil
}

// expand repeats a column of node numbers, for gatherElements.
func (g *onnxGraph) expand(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	if e := in[0].ends; e == nil || !e.column {
		return onnxValue{}, errors.New("repeats what is no column of node numbers")
	}
	return in[0], nil
}

// transpose turns a constant matrix, or pairs x two to two x pairs.
func (g *onnxGraph) transpose(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	v, perm := in[0], n.Attributes["perm"].Ints
	switch {
	case v.ends != nil && v.ends.end == endBoth && v.ends.of != endsNodes:
		return v.ends.transpose(perm)
	case v.tensor == nil || len(v.tensor.Shape) != 2:
		return onnxValue{}, errors.New("turns what is neither a constant matrix nor pairs of nodes")
	case slices.Equal(perm, []int64{0, 1}):
		return v, nil
	}
	v.turned = !v.turned
	return v, nil
}

func (e *onnxEnds) transpose(perm []int64) (onnxValue, error) {
	out := *e
	if len(perm) == 0 { // reversed
		for i := range e.rank {
			perm = append(perm, int64(e.rank-1-i))
		}
	}
	if len(perm) != e.rank || (e.of == endsRows || e.column) && perm[e.rank-1] != int64(e.rank)-1 {
		return onnxValue{}, errReshape
	}
	if e.axis >= 0 {
		out.axis = slices.Index(perm, int64(e.axis))
	}
	return onnxValue{ends: &out}, nil
}
