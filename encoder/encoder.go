// Package encoder embeds nodes that came after training, from the embeddings of the nodes they are
// linked with and from their own features. Package train fits an Encoder to a trained model, a
// collection keeps it beside the decoder, and Collection.Embed uses it.
//
// An Encoder is immutable and safe for concurrent use. The format of its blob is that of
// [Encoder.MarshalBinary].
package encoder

import (
	"errors"
	"fmt"
	"math"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/simd"
)

// An Input is what the network of an encoder reads of a node: the mean embedding of those it links
// to and the logarithm of 1 + their number, the same of those that link to it, its features, each
// less its Center and divided by its Spread, and whether they are known (1 or 0).
type Input struct {
	Dim    int  // width of an embedding
	Pooled bool // links have no direction: Node.From counts as Node.To

	// Center and Spread have one value per feature; none if nodes had no features in training.
	Center, Spread []float32
}

// A Node is what is known of a node to embed.
type Node struct {
	// To and From hold the embeddings of the nodes it links to and of those that link to it,
	// row-major, any number of rows of Dim values. Where links have no direction all of them are
	// To.
	To, From []float32
	Features []float32 // FeatureDim values, or nil: unknown
}

// Weights are those of the two layers of a network, row-major, one row per output.
type Weights struct {
	Hidden, HiddenBias []float32 // hidden x width, hidden
	Output, OutputBias []float32 // dim x hidden, dim
}

// An Encoder is a network of two layers. The embedding of a node is the mean of those it is given
// plus what the network makes of its Input, with a ReLU between the layers.
type Encoder struct {
	in      Input
	model   string // the encoder of the model, such as "hops"
	hidden  int
	weights Weights
	packed  [2]*simd.Matrix
}

const (
	maxHidden   = 1 << 16
	maxFeatures = 1 << 20
)

// New returns an encoder with these weights, which it keeps. Model names the encoder of the model
// that it was fitted to. The error says which sizes do not fit, or which value is not finite.
func New(model string, in Input, w Weights) (*Encoder, error) {
	e := &Encoder{in: in, model: model, hidden: len(w.HiddenBias), weights: w}
	if err := e.check(); err != nil {
		return nil, err
	}
	e.pack()
	return e, nil
}

// check reports sizes that do not fit together, and values that no training leaves.
func (e *Encoder) check() error {
	if e.in.Dim < 1 || e.in.Dim > decoder.MaxDim || e.hidden < 1 || e.hidden > maxHidden || len(e.in.Center) > maxFeatures {
		return fmt.Errorf("impossible sizes: dim %d, features %d, hidden %d", e.in.Dim, len(e.in.Center), e.hidden)
	}
	want := lengths(e.in.Dim, e.FeatureDim(), e.hidden)
	for i, values := range e.vectors() {
		if len(*values) != want[i] {
			return fmt.Errorf("vector %d has %d values, want %d", i, len(*values), want[i])
		}
		for _, x := range *values {
			if x-x != 0 {
				return fmt.Errorf("a weight is %v", x)
			}
		}
	}
	for i, x := range e.in.Spread {
		if !(x > 0) {
			return fmt.Errorf("the spread of feature %d is %v", i, x)
		}
	}
	return nil
}

// Dim returns the width of an embedding.
func (e *Encoder) Dim() int { return e.in.Dim }

// FeatureDim returns the number of features of a node, 0 if it had none in training.
func (e *Encoder) FeatureDim() int { return len(e.in.Center) }

// Model names the encoder of the model this one was fitted to, such as "hops".
func (e *Encoder) Model() string { return e.model }

// Embed writes the embedding of a node that was not in the graph to dst, Dim values. It fails if
// neither links nor features are given, on lengths that do not fit, and on values that are not
// finite.
func (e *Encoder) Embed(dst []float32, n Node) error {
	dim := e.in.Dim
	switch {
	case len(dst) != dim:
		return fmt.Errorf("an embedding has %d values, not %d", dim, len(dst))
	case len(n.To)%dim != 0 || len(n.From)%dim != 0:
		return fmt.Errorf("%d and %d values are no rows of %d: give whole embeddings of neighbours", len(n.To), len(n.From), dim)
	case n.Features != nil && len(n.Features) != e.FeatureDim():
		return fmt.Errorf("%d features are given, the model was trained with %d", len(n.Features), e.FeatureDim())
	case len(n.To)+len(n.From)+len(n.Features) == 0:
		return errors.New("a node without links and without features cannot be embedded: give one of them")
	}
	for _, values := range [][]float32{n.To, n.From, n.Features} {
		for i, x := range values {
			if x-x != 0 {
				return fmt.Errorf("value %d is %v: want finite numbers", i, x)
			}
		}
	}
	input, hidden := make([]float32, e.in.Width()), make([]float32, e.hidden)
	e.in.Describe(input, dst, n)
	e.packed[0].Mul(hidden, input, e.weights.HiddenBias, 1)
	simd.ReLU(hidden)
	out := make([]float32, dim)
	e.packed[1].Mul(out, hidden, e.weights.OutputBias, 1)
	simd.Axpy(dst, 1, out)
	return nil
}

// Width returns the number of values of an input.
func (in *Input) Width() int { return width(in.Dim, len(in.Center)) }

func width(dim, features int) int {
	n := 2 * (dim + 1)
	if features > 0 {
		n += features + 1
	}
	return n
}

// Describe writes the input of a node to dst, Width values, and the mean of all embeddings it is
// given to mean, Dim values. Nothing is checked.
func (in *Input) Describe(dst, mean []float32, n Node) {
	clear(dst)
	clear(mean)
	sides := [2][]float32{n.To, n.From}
	if in.Pooled {
		sides = [2][]float32{append(append([]float32(nil), n.To...), n.From...), nil}
	}
	total := 0
	for i, rows := range sides {
		part, count := dst[i*(in.Dim+1):(i+1)*(in.Dim+1)], len(rows)/in.Dim
		total += count
		for r := range count {
			simd.Axpy(part[:in.Dim], 1, rows[r*in.Dim:(r+1)*in.Dim])
		}
		simd.Axpy(mean, 1, part[:in.Dim])
		divide(part[:in.Dim], count)
		part[in.Dim] = float32(math.Log1p(float64(count)))
	}
	divide(mean, total)
	if n.Features == nil {
		return
	}
	rest := dst[2*(in.Dim+1):]
	for k, x := range n.Features {
		rest[k] = (x - in.Center[k]) / in.Spread[k]
	}
	rest[len(in.Center)] = 1
}

// divide makes a mean of a sum; that of nothing stays.
func divide(sum []float32, count int) {
	by := 1 / float32(max(1, count))
	for i := range sum {
		sum[i] *= by
	}
}

// pack readies the weights for products.
func (e *Encoder) pack() {
	e.packed[0] = simd.Pack(nil, e.weights.Hidden, e.hidden, e.in.Width(), nil)
	e.packed[1] = simd.Pack(nil, e.weights.Output, e.in.Dim, e.hidden, nil)
}
