package train

import (
	"fmt"
	"math"

	"github.com/flashdb/flashdb/internal/simd"
)

// Encoder embeds nodes that came after training, from the embeddings of the nodes they link to and
// from their own features. It is a small network fitted after the model, whatever the model's
// encoder: nodes of the graph are embedded from a part of their links as if they were new, and
// scored by the trained decoder on others. It needs nothing of the graph. Immutable, and safe for
// concurrent use.
//
// The embedding is the mean of the given ones plus what a two-layer network makes of them: the
// means over To and From, their counts, and the features.
type Encoder struct {
	dim, features, hidden int
	kind                  EncoderKind
	pooled                bool // links have no direction: From counts as To

	center, spread []float32    // of each feature: subtracted, then divided by
	weights        [4][]float32 // first layer hidden x width and bias, second dim x hidden and bias
	packed         [2]*simd.Matrix
}

// Newcomer is a node to embed.
type Newcomer struct {
	// To and From hold the embeddings of the nodes it links to and of those that link to it,
	// row-major, any number of rows of Dim values. Where links have no direction all of them are
	// To.
	To, From []float32
	Features []float32 // FeatureDim values, or nil: unknown
}

// Dim returns the width of an embedding.
func (e *Encoder) Dim() int { return e.dim }

// FeatureDim returns the number of features of a node, 0 if it had none in training.
func (e *Encoder) FeatureDim() int { return e.features }

// Kind returns the encoder of the model this one belongs to.
func (e *Encoder) Kind() EncoderKind { return e.kind }

// Embed writes the embedding of a node that was not in the graph to dst, Dim values. It fails if
// neither links nor features are given, and on lengths that do not fit.
func (e *Encoder) Embed(dst []float32, n Newcomer) error {
	switch {
	case len(dst) != e.dim:
		return fmt.Errorf("an embedding has %d values, not %d", e.dim, len(dst))
	case len(n.To)%e.dim != 0 || len(n.From)%e.dim != 0:
		return fmt.Errorf("%d and %d values are no rows of %d: give whole embeddings of neighbours", len(n.To), len(n.From), e.dim)
	case n.Features != nil && len(n.Features) != e.features:
		return fmt.Errorf("%d features are given, the model was trained with %d", len(n.Features), e.features)
	case len(n.To)+len(n.From)+len(n.Features) == 0:
		return fmt.Errorf("a node without links and without features cannot be embedded: give one of them")
	}
	for _, values := range [][]float32{n.To, n.From, n.Features} {
		for i, x := range values {
			if x-x != 0 {
				return fmt.Errorf("value %d is %v: want finite numbers", i, x)
			}
		}
	}
	input, hidden := make([]float32, e.width()), make([]float32, e.hidden)
	e.describe(input, dst, n)
	e.packed[0].Mul(hidden, input, e.weights[1], 1)
	simd.ReLU(hidden)
	out := make([]float32, e.dim)
	e.packed[1].Mul(out, hidden, e.weights[3], 1)
	simd.Axpy(dst, 1, out)
	return nil
}

// width is the number of values the network reads: mean and count of To and of From, then the
// features and whether they are known.
func (e *Encoder) width() int { return encoderWidth(e.dim, e.features) }

func encoderWidth(dim, features int) int {
	width := 2 * (dim + 1)
	if features > 0 {
		width += features + 1
	}
	return width
}

// describe writes what the network reads of a node to input, and the mean of all given embeddings
// to mean.
func (e *Encoder) describe(input, mean []float32, n Newcomer) {
	clear(input)
	clear(mean)
	sides := [2][]float32{n.To, n.From}
	if e.pooled {
		sides = [2][]float32{append(append([]float32(nil), n.To...), n.From...), nil}
	}
	total := 0
	for i, rows := range sides {
		part, count := input[i*(e.dim+1):(i+1)*(e.dim+1)], len(rows)/e.dim
		total += count
		for r := range count {
			simd.Axpy(part[:e.dim], 1, rows[r*e.dim:(r+1)*e.dim])
		}
		simd.Axpy(mean, 1, part[:e.dim])
		scale(part[:e.dim], 1/float32(max(1, count)))
		part[e.dim] = float32(math.Log1p(float64(count)))
	}
	scale(mean, 1/float32(max(1, total)))
	if n.Features == nil {
		return
	}
	rest := input[2*(e.dim+1):]
	for k, x := range n.Features {
		rest[k] = (x - e.center[k]) / e.spread[k]
	}
	rest[e.features] = 1
}

// pack readies the weights for products.
func (e *Encoder) pack() {
	e.packed[0] = simd.Pack(nil, e.weights[0], e.hidden, e.width(), nil)
	e.packed[1] = simd.Pack(nil, e.weights[2], e.dim, e.hidden, nil)
}
