package decoder

import (
	"cmp"
	"fmt"
)

// Layer is one layer of a network made in Go: activation(Weight h + Bias). Norms and residuals take
// a [Spec] and [New].
type Layer struct {
	Weight     []float32  // row-major, outputs x inputs, as of a PyTorch Linear
	Bias       []float32  // one value an output, or nil
	Activation Activation // default ReLU, and Identity for the last layer
}

// NewDot returns the inner product of embeddings of the given width.
func NewDot(dim int) (Decoder, error) {
	return New(Spec{Kind: Dot, Dim: dim}, nil)
}

// NewBilinear returns the decoder source^T W candidate; weight is W, row-major dim x dim, and is
// retained.
func NewBilinear(dim int, weight []float32) (Decoder, error) {
	return New(Spec{Kind: Bilinear, Dim: dim, Weight: "weight"},
		map[string]Tensor{"weight": {Shape: []int{dim, dim}, Data: weight}})
}

// NewDistMult returns the decoder sum of source*relation*candidate. Relation is retained.
func NewDistMult(relation []float32) (Decoder, error) {
	return New(Spec{Kind: DistMult, Dim: len(relation), Relation: "relation"},
		map[string]Tensor{"relation": {Shape: []int{len(relation)}, Data: relation}})
}

// NewComplEx returns the decoder Re(source * relation * conj(candidate)) of complex numbers, as
// many as half of the values. A row holds all real parts and then all imaginary ones. Relation is
// retained.
func NewComplEx(relation []float32) (Decoder, error) {
	return New(Spec{Kind: ComplEx, Dim: len(relation), Relation: "relation"},
		map[string]Tensor{"relation": {Shape: []int{len(relation)}, Data: relation}})
}

// NewRelations returns a DistMult or ComplEx decoder with a row of a table for each of the names.
// The table is row-major, len(names) x dim, and retained, as are the names. See [ForRelation].
func NewRelations(kind Kind, dim int, names []string, table []float32) (Decoder, error) {
	return New(Spec{Kind: kind, Dim: dim, Relation: "relations", Relations: names},
		map[string]Tensor{"relations": {Shape: []int{len(names), dim}, Data: table}})
}

// NewHadamardMLP returns a network on source*candidate, of embeddings of the given width. The last
// layer has one output, the logit. The slices are retained.
func NewHadamardMLP(dim int, layers ...Layer) (Decoder, error) {
	return newNetwork(HadamardMLP, dim, layers)
}

// NewConcatMLP returns a network on source followed by candidate. The last layer has one output,
// the logit. The slices are retained.
func NewConcatMLP(dim int, layers ...Layer) (Decoder, error) {
	return newNetwork(ConcatMLP, dim, layers)
}

func newNetwork(kind Kind, dim int, layers []Layer) (Decoder, error) {
	spec := Spec{Kind: kind, Dim: dim}
	tensors := map[string]Tensor{}
	in := spec.zWidth()
	for i, l := range layers {
		at := fmt.Sprintf("lins.%d", i)
		def := ReLU
		if i == len(layers)-1 {
			def = Identity
		}
		s := LayerSpec{Weight: at + ".weight", Activation: cmp.Or(l.Activation, def)}
		out := len(l.Weight) / max(in, 1)
		if i == len(layers)-1 && out > 1 {
			return nil, fmt.Errorf("decoder: the last layer has %d outputs: want 1, the logit; a Spec with OutputColumn takes one of several", out)
		}
		tensors[s.Weight] = Tensor{Shape: []int{out, in}, Data: l.Weight}
		if l.Bias != nil {
			s.Bias = at + ".bias"
			tensors[s.Bias] = Tensor{Shape: []int{len(l.Bias)}, Data: l.Bias}
		}
		spec.Layers = append(spec.Layers, s)
		in = out
	}
	return New(spec, tensors)
}
