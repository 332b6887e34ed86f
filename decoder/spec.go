package decoder

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/flashdb/flashdb/decoder/internal/fault"
	"github.com/flashdb/flashdb/decoder/internal/pairwise"
)

// Spec says what a state dict does not: which tensors make up the decoder, in which order, and what
// happens between them. Its JSON form lies beside the weights, usually as decoder.json. Strings
// that name tensors are keys of the weight file.
type Spec struct {
	Kind Kind `json:"kind"`
	Dim  int  `json:"dim"` // width of one embedding

	Weight string `json:"weight,omitempty"` // Bilinear: W, Dim x Dim; logit = source^T W candidate

	// DistMult and ComplEx. Relation is r, Dim values; with Relations it is a table of a row for
	// each of them, and the decoder is asked for one by its name.
	Relation  string   `json:"relation,omitempty"`
	Relations []string `json:"relations,omitempty"` // names of the rows of the table, all different

	// ComplEx. A row of Dim values is Dim/2 complex numbers, of embeddings and of Relation alike.
	Complex   string `json:"complex,omitempty"`   // where the parts are: halves (default) or pairs
	Imaginary string `json:"imaginary,omitempty"` // imaginary parts of r where Relation has the real ones alone, Dim/2 values each
	Conjugate bool   `json:"conjugate,omitempty"` // the score is Re(x^T diag(conj(r)) conj(y))

	// The networks. Their input z is source*candidate (HadamardMLP) or source followed by candidate
	// (ConcatMLP).
	InputNorm    *NormSpec   `json:"input_norm,omitempty"`    // applied to z before the first layer
	Layers       []LayerSpec `json:"layers,omitempty"`        // in order
	Output       string      `json:"output,omitempty"`        // none (default), sigmoid or relu: what follows the logit
	OutputColumn int         `json:"output_column,omitempty"` // which output of the last layer is the logit

	Shapes [][]int `json:"shapes,omitempty"` // shapes of the layers' weights; compared with the tensors when given

	Mixture *MixtureSpec `json:"mixture,omitempty"` // MoL
}

// LayerSpec describes one layer: activation(norm(W h + bias + residual)), or with NormPosition
// after_activation norm(activation(W h + bias + residual)).
type LayerSpec struct {
	Weight       string     `json:"weight"`                  // outputs x inputs, as of a PyTorch Linear
	Bias         string     `json:"bias,omitempty"`          // optional
	Residual     string     `json:"residual,omitempty"`      // input (this layer's input) or z (the normed z) is added to the linear output
	Norm         *NormSpec  `json:"norm,omitempty"`          // optional
	NormPosition string     `json:"norm_position,omitempty"` // before_activation (default) or after_activation
	Activation   Activation `json:"activation"`              // may be left out of the last layer: identity
	Slope        *float64   `json:"slope,omitempty"`         // of LeakyReLU; default 0.01
	// GLU makes the layer a gated linear unit (Shazeer, arXiv 2002.05202): the activation is that
	// of the first half of the linear outputs, and is multiplied by the second half. Only layers
	// that read the source of a mixture have it. Candidates are scored by the thousand, and need a
	// gradient.
	GLU bool `json:"glu,omitempty"`
}

// NormSpec describes a layer norm over one row or a batch norm by its running statistics.
type NormSpec struct {
	Kind   string   `json:"kind"`             // layer_norm or batch_norm
	Weight string   `json:"weight,omitempty"` // default ones
	Bias   string   `json:"bias,omitempty"`   // default zeros
	Mean   string   `json:"mean,omitempty"`   // batch_norm only, needed
	Var    string   `json:"var,omitempty"`    // batch_norm only, needed
	Eps    *float64 `json:"eps,omitempty"`    // default 1e-5
}

// The words of the fields of a Spec that are plain strings.
const (
	ResidualInput = "input" // LayerSpec.Residual: the layer's input is added
	ResidualZ     = "z"     // LayerSpec.Residual: the normed z is added

	LayerNorm = "layer_norm" // NormSpec.Kind
	BatchNorm = "batch_norm" // NormSpec.Kind

	BeforeActivation = "before_activation" // LayerSpec.NormPosition, the default
	AfterActivation  = "after_activation"  // LayerSpec.NormPosition

	ComplexHalves = "halves" // Spec.Complex, the default: all real parts, then all imaginary ones
	ComplexPairs  = "pairs"  // Spec.Complex: the two parts of a number side by side

	OutputNone    = "none"    // Spec.Output, the default
	OutputSigmoid = "sigmoid" // Spec.Output
	OutputReLU    = "relu"    // Spec.Output
)

// Limits of what a Spec may ask for.
const (
	MaxDim    = 1 << 16 // values of one embedding
	MaxLayers = 64
)

// defaultEps is PyTorch's eps of layer and batch norms.
const defaultEps = 1e-5

// utf8Mark is the byte order mark that some editors put before text.
var utf8Mark = []byte("\xef\xbb\xbf")

// ParseSpec reads the JSON form of a spec and validates it. Unknown fields are faults, since a
// misspelt one would change the decoder silently; "dropout" and "comment" are ignored.
func ParseSpec(data []byte) (Spec, error) {
	data = bytes.TrimPrefix(data, utf8Mark)
	var spec Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		return Spec{}, fmt.Errorf("decoder spec: %w", fault.JSON(err))
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		return Spec{}, fmt.Errorf("decoder spec: %w", fault.JSON(err))
	}
	var found faults
	found.unknownFields(tree)
	found.List = append(found.List, spec.faults().List...)
	if err := found.Err("decoder spec"); err != nil {
		return Spec{}, err
	}
	return spec, nil
}

// Validate checks everything that can be checked without the tensors, and reports every fault at
// once.
func (s Spec) Validate() error { return s.faults().Err("decoder spec") }

func (s *Spec) faults() faults {
	var f faults
	if method := pairwise.Method(string(s.Kind)); method != "" {
		f.Add("kind %q: %s", s.Kind, pairwise.Reason(method))
		return f
	}
	switch s.Kind {
	case Dot, Bilinear, DistMult, ComplEx, HadamardMLP, ConcatMLP, MoL:
	default:
		f.Add("kind is %q; want one of %s", s.Kind, fault.Words(HadamardMLP, ConcatMLP, MoL, Bilinear, DistMult, ComplEx, Dot))
		return f // what else is wrong depends on the kind
	}
	if s.Dim < 1 || s.Dim > MaxDim {
		f.Add("dim is %d; want 1 to %d, the width of one embedding", s.Dim, MaxDim)
	}
	f.key("weight", s.Weight, s.Kind == Bilinear, "kind bilinear")
	s.relationFaults(&f)
	f.Word("output", s.Output, OutputNone, OutputSigmoid, OutputReLU)
	f.mixture(s)
	if s.Kind.network() {
		s.networkFaults(&f)
		return f
	}
	if len(s.Layers) > 0 || s.InputNorm != nil || s.OutputColumn != 0 || len(s.Shapes) > 0 {
		f.Add("kind %s has no layers, shapes, input_norm or output_column; remove them or use kind %s", s.Kind, HadamardMLP)
	}
	return f
}

func (s *Spec) networkFaults(f *faults) {
	if len(s.Layers) < 1 || len(s.Layers) > MaxLayers {
		f.Add("layers: %d of them; want 1 to %d", len(s.Layers), MaxLayers)
	}
	if s.OutputColumn < 0 {
		f.Add("output_column is %d; want the number of an output of the last layer, counted from 0", s.OutputColumn)
	}
	if s.Shapes != nil && len(s.Shapes) != len(s.Layers) {
		f.Add("shapes: %d of them for %d layers", len(s.Shapes), len(s.Layers))
	}
	f.norm("input_norm", s.InputNorm)
	f.layers("layers", s.Layers)
}

// encode returns the JSON form that ParseSpec reads.
func (s *Spec) encode() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("decoder: encode a valid spec: " + err.Error()) // only a NaN could fail, and Validate refuses it
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
