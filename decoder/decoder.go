// Package decoder holds trained link-prediction decoders: functions that score how likely a source
// node links to a candidate node, given the embeddings of both.
//
// A [Decoder] is the trained model. Binding it to the embedding of one source gives a [Bound], a
// function of the candidate's row alone, which scores rows in batches and says in which direction
// of embedding space the score grows: that gradient is what turns a neural decoder into
// inner-product queries (Wang et al., "Flashlight: Scalable Link Prediction with Effective
// Decoders", LoG 2022, arXiv 2209.10100, section 4).
//
//	kind           score of source x and candidate y        bound form
//	dot            x . y                                    query x
//	bilinear       x^T W y                                  query W^T x
//	distmult       x^T diag(r) y                            query r * x
//	complex        Re(x^T diag(r) conj(y))                  query r * x, in complex numbers
//	hadamard_mlp   MLP(x * y)                               x scales the columns of the first weight
//	concat_mlp     MLP(x || y)                              x joins the bias of the first layer
//	mol            mean of f_i(x) . g_j(y) by a gate        f(x) and the gate's part of x are computed once
//
// The score is the logit: what the network yields before the final sigmoid or ReLU its [Spec] may
// name. All ranking is done on it, because a float32 sigmoid saturates above about 17 and a final
// ReLU ties every negative.
//
// # Extreme rows
//
// Rows may hold any finite float32. A score that is beyond the range of a float32 is an infinity. A
// linear decoder sums in float64 and never scores NaN. A network may: where a hidden value
// overflows, later layers compute with an infinity, and infinities of both signs add up to a NaN. A
// ReLU makes zero of a NaN. Every way to ask yields the same score then.
//
// # Relations
//
// A DistMult or ComplEx decoder may have a table of relations, one row for each, as models of
// knowledge graphs do: the score then depends on source, relation and candidate. [Spec] names the
// relations, and [ForRelation] returns the decoder of one of them, in either direction.
//
// Weights are tensors in memory ([New]) or slices ([NewHadamardMLP] and the other constructors).
// Package decoder/weights reads them from .safetensors, .npz, PyTorch .pt and .onnx files; this
// package reads no file. [Marshal] and [Unmarshal] keep a decoder in a database; blob.go has the
// layout.
//
// # Arithmetic
//
// Hidden layers run in float32. Final inner products, moments of layer norms and smooth activations
// (by tables good to 1e-9) are computed in float64, as is everything that is folded once: batch
// norms, residuals, the source's part of a concatenation. The tests hold logits within 1e-5 of
// those PyTorch computes in float64, relative to the larger of the logit and 0.1.
//
// # Concurrency
//
// A Decoder and a Bound are immutable and safe for concurrent use. A [Scratch] belongs to one
// goroutine at a time. Binding into an earlier Bound overwrites it: nobody may be using it any
// more.
package decoder

import (
	"fmt"
	"math"

	"github.com/flashdb/flashdb/decoder/internal/smooth"
)

// Tensor is one array of weights.
type Tensor struct {
	Shape []int
	Data  []float32 // row-major
}

// Kind names a family of decoders.
type Kind string

// The kinds of decoder there are.
const (
	Dot         Kind = "dot"          // x . y
	Bilinear    Kind = "bilinear"     // x^T W y
	DistMult    Kind = "distmult"     // x^T diag(r) y
	ComplEx     Kind = "complex"      // Re(x^T diag(r) conj(y)), of complex numbers
	HadamardMLP Kind = "hadamard_mlp" // a network on x * y
	ConcatMLP   Kind = "concat_mlp"   // a network on x followed by y
	MoL         Kind = "mol"          // a mixture of logits, weighted by a gate: see MixtureSpec
)

// network tells whether decoders of this kind have layers.
func (k Kind) network() bool { return k == HadamardMLP || k == ConcatMLP }

// Decoder is a trained model that scores pairs of embeddings.
type Decoder interface {
	Kind() Kind
	Dim() int // width of one embedding

	// Bind fixes the source, an embedding of Dim values, which is not retained. The memory of into
	// is reused if into is an earlier Bound of this decoder; into may be nil. A decoder with
	// relations panics: ForRelation returns one that can be bound.
	Bind(into Bound, source []float32) Bound

	// Spec and Tensors are what New made the decoder of: tensors are by the keys the spec names.
	// Neither may be changed.
	Spec() Spec
	Tensors() map[string]Tensor

	String() string // one line: kind and widths
}

// Bound is a decoder whose source is fixed: a function of the candidate's row. Rows are row-major,
// n x Dim.
type Bound interface {
	// Score writes the logits of len(dst) rows.
	Score(s *Scratch, dst, rows []float32)

	// Gradient writes the weighted sum of the gradients of the score at the given rows with respect
	// to the row, Dim values. Nil weights mean 1/n each. A neuron is active iff its pre-activation
	// is greater than zero.
	Gradient(s *Scratch, dst, rows, weights []float32)

	// Ones writes the gradient the network would have if every neuron were active (derivative 1, a
	// norm counted as its weight): the first query of Flashlight, algorithm 1. For a linear decoder
	// that is its only query, scaled to fit where its values are beyond a float32.
	Ones(dst []float32)

	// Linear tells whether the score is the inner product with Ones, times a positive number, plus
	// a constant.
	Linear() bool
}

// Neurons is implemented by the Bounds of networks.
type Neurons interface {
	// Active appends to dst, for every neuron that has an activation, layer by layer, whether it is
	// active at a row. Where two rows agree in all of them, a ReLU network is the same affine
	// function at both.
	Active(s *Scratch, dst []bool, row []float32) []bool
}

// Separable is implemented by the Bounds of networks and of mixtures, whose gradient comes in two
// steps: with respect to z, what the network reads, and from there to the row. The first step
// hardly depends on the source's own values, so what it gives for one source serves others.
type Separable interface {
	// GradientZ is Gradient with respect to z in place of the row: source * row for a HadamardMLP,
	// before any norm, for a ConcatMLP the half of z that is the row, and for a MoL the inner
	// products of components, where there are at most Dim. dst has Dim values. Nothing is divided
	// by the source.
	GradientZ(s *Scratch, dst, rows, weights []float32)

	// FromZ turns a gradient with respect to z into that with respect to the row: it sets dst to
	// source * g for a HadamardMLP, to g for a ConcatMLP, and to the sum of the queries of the
	// logits, each times its value of g, for a MoL. For a MoL that is the main part of the gradient
	// and not all of it. dst may be g.
	FromZ(dst, g []float32)
}

// Mixture is implemented by the Bounds of mixtures of logits, whose score is a weighted mean of
// logits, each of which has a query of its own.
type Mixture interface {
	// Components is how many components the source and the candidate have. Each pair of them has a
	// logit.
	Components() (source, candidate int)

	// LogitQuery writes the query of the logit of component i of the source and j of the candidate,
	// Dim values: its gradient with respect to the row if every neuron were active and the
	// component of the row of length 1.
	LogitQuery(s *Scratch, dst []float32, i, j int)
}

// New makes the decoder the spec describes of the tensors it names. A prefix that all keys of the
// file share ("predictor.module.") may be missing from the spec; tensors the spec does not name are
// ignored. The data of the tensors is retained and must not be changed. The error lists every
// fault.
func New(spec Spec, tensors map[string]Tensor) (Decoder, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	used, err := resolve(spec, tensors)
	if err != nil {
		return nil, err
	}
	if err := fit(spec, used); err != nil {
		return nil, err
	}
	m := model{spec: spec, tensors: used}
	switch {
	case spec.Kind.network():
		return newMLP(m)
	case spec.Kind == MoL:
		return newMoL(m)
	}
	if len(spec.Relations) > 0 {
		return newRelationTable(m), nil
	}
	return newLinear(m), nil
}

// Probability returns the sigmoid of a logit.
func Probability(logit float32) float32 { return float32(smooth.Sigmoid(float64(logit))) }

// model is what all decoders share: where they came from.
type model struct {
	spec    Spec
	tensors map[string]Tensor // by the keys of spec
}

func (m *model) Kind() Kind                 { return m.spec.Kind }
func (m *model) Dim() int                   { return m.spec.Dim }
func (m *model) Spec() Spec                 { return m.spec }
func (m *model) Tensors() map[string]Tensor { return m.tensors }

func (m *model) String() string { return fmt.Sprintf("%s %d", m.spec.Kind, m.spec.Dim) }

// checkSource panics unless source is an embedding of this decoder.
func (m *model) checkSource(source []float32) {
	if len(source) != m.spec.Dim {
		panic(fmt.Sprintf("decoder: source of %d values bound to a decoder of dim %d", len(source), m.spec.Dim))
	}
}

// checkGradient panics unless dst, rows and weights fit together, and returns the number of rows.
func checkGradient(dst, rows, weights []float32, dim int) int {
	n := len(rows) / dim
	if len(dst) != dim || len(rows) != n*dim || (weights != nil && len(weights) != n) {
		panic(fmt.Sprintf("decoder: gradient of %d values, %d row values and %d weights for dim %d",
			len(dst), len(rows), len(weights), dim))
	}
	return n
}

// firstBad returns the index of the first value that is NaN or infinite, or -1.
func firstBad(v []float32) int {
	for i, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return i
		}
	}
	return -1
}
