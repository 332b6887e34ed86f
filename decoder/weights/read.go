package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/internal/fault"
	"github.com/flashdb/flashdb/decoder/internal/pairwise"
	"github.com/flashdb/flashdb/internal/codec"
)

// Options say what a file of weights does not. Either Spec describes the decoder, or Layout names a
// known way of keeping one in a state dict and the fields after it answer what that layout leaves
// open.
type Options struct {
	// Spec describes the decoder. Nil: Layout does, or the keys tell.
	Spec *decoder.Spec
	// Prefix is that of the decoder's keys in a larger model or checkpoint: "model.predictor." of
	// {"model": {"predictor": ...}}. A dot at its end may be left out. Empty: the one prefix under
	// which a decoder is found.
	Prefix string
	// Layout is one of Layouts. Empty: told by the keys.
	Layout string
	// Kind is HadamardMLP or ConcatMLP, or DistMult or ComplEx where the layout is pykeen. Empty:
	// HadamardMLP, or what the layout fixes.
	Kind decoder.Kind
	// Relations names the rows of the decoder's table of relations, where Spec does not.
	Relations []string
	// Activation is that of all layers but the last. Empty: what the layout has by default, ReLU.
	Activation decoder.Activation
	// Temperature is what the logits of a mixture are divided by, where the layout is rails.
	Temperature float64
	// Residual is z, input or none: what is added to every layer's linear output but the last.
	// Empty: none, where the layout fixes it.
	Residual string
}

// residualNone is the word of Options.Residual for no residual. A Spec leaves the field empty.
const residualNone = "none"

// Validate reports every fault of the options at once.
func (o *Options) Validate() error {
	if o == nil {
		return nil
	}
	var f fault.List
	if math.IsNaN(o.Temperature) || math.IsInf(o.Temperature, 0) || o.Temperature < 0 {
		f.Add("temperature is %v; want a positive number", o.Temperature)
	}
	if o.Spec != nil && o.Temperature != 0 {
		f.Add("a spec says it all: give no temperature beside it")
	}
	if o.Spec != nil && (o.Layout != "" || o.Kind != "" || o.Activation != "" || o.Residual != "") {
		f.Add("a spec says it all: give no layout, kind, activation or residual beside it")
	}
	if o.Layout != "" && !slices.Contains(Layouts(), o.Layout) {
		f.Add("layout %q is not known; want one of %s", o.Layout, strings.Join(Layouts(), ", "))
	}
	f.Word("kind", string(o.Kind), string(decoder.HadamardMLP), string(decoder.ConcatMLP), string(decoder.DistMult), string(decoder.ComplEx))
	if o.Spec != nil && len(o.Spec.Relations) > 0 && len(o.Relations) > 0 {
		f.Add("the spec has names of relations: give none beside it")
	}
	f.Word("activation", string(o.Activation), string(decoder.ReLU), string(decoder.LeakyReLU), string(decoder.GELU), string(decoder.GELUTanh), string(decoder.SiLU), string(decoder.Tanh),
		string(decoder.Sigmoid), string(decoder.Identity))
	f.Word("residual", o.Residual, decoder.ResidualZ, decoder.ResidualInput, residualNone)
	return f.Err("decoder")
}

// Read reads the weights of a decoder from a .safetensors, .npz or PyTorch .pt or .pth file, which
// may be compressed (.zst, .gz), and makes the decoder of them. An .onnx file says itself what it
// computes and takes no option but Kind: see onnxop.go for the operators.
//
// Nil options are for weights whose keys tell the layout they are in (see [Layouts]), under any one
// prefix. With OGB's, lins.0.weight, lins.0.bias, lins.1.weight and so on are a HadamardMLP with
// ReLU between its layers and a sigmoid behind the logit.
//
// A .json file is taken as the spec of a decoder that has no weights: a Dot decoder. No other file
// is looked for: a spec that lies beside the weights is for the caller to pass.
//
// An error is one line. It names the file, and the key or the node that is at fault. Faults of the
// options are found before the file is opened.
func Read(path string, o *Options) (decoder.Decoder, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	var opts Options
	if o != nil {
		opts = *o
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json":
		d, err := readSpecOnly(path, opts.Spec)
		if err != nil {
			return nil, fmt.Errorf("read decoder %s: %w", path, pathless(err))
		}
		return d, nil
	case ".onnx":
		d, err := readONNX(path, opts)
		if err != nil {
			return nil, fmt.Errorf("read decoder %s: %w", path, err)
		}
		return d, nil
	}
	read, err := codec.ReadTensors(path)
	if err != nil {
		return nil, fmt.Errorf("read decoder: %w", err) // names the file
	}
	tensors := make(map[string]decoder.Tensor, len(read))
	for key, t := range read {
		tensors[key] = decoder.Tensor(t)
	}
	d, err := fromTensors(tensors, opts)
	if err != nil {
		return nil, fmt.Errorf("read decoder %s: %w", path, err)
	}
	return d, nil
}

// pathless is an error of opening a file without the path, for messages that name it already.
func pathless(err error) error {
	if located := (*fs.PathError)(nil); errors.As(err, &located) {
		return located.Err
	}
	return err
}

// fromTensors makes the decoder that the options find in a state dict.
func fromTensors(tensors map[string]decoder.Tensor, o Options) (decoder.Decoder, error) {
	w := dict{tensors: tensors}
	if o.Prefix != "" {
		if !strings.HasSuffix(o.Prefix, ".") {
			o.Prefix += "."
		}
		if w = w.below(o.Prefix); len(w.tensors) == 0 {
			return nil, fmt.Errorf("no key begins with the prefix %s; the weights have %s", fault.Quote(o.Prefix), fault.Quoted(slices.Sorted(maps.Keys(tensors))))
		}
	}
	if o.Spec != nil {
		spec := *o.Spec
		if len(o.Relations) > 0 {
			spec.Relations = o.Relations
		}
		return decoder.New(spec, w.tensors)
	}
	find := detectSpec
	if o.Layout != "" {
		find = namedSpec
	}
	found, spec, err := find(w.tensors, &o)
	member := found.prefix + "weight"
	if err != nil && found.prefix == "" {
		member = "" // nothing was found: the telltale may be why
	}
	if method, key := pairwise.Find(tensors, member); method != "" {
		return nil, pairwise.Error(method, key)
	}
	if err != nil {
		return nil, err
	}
	if len(o.Relations) > 0 && len(spec.Relations) == 0 {
		return nil, fmt.Errorf("names of %d relations for a decoder of kind %s, which has none", len(o.Relations), spec.Kind)
	}
	if o.Temperature != 0 && spec.Kind != decoder.MoL {
		return nil, fmt.Errorf("a temperature for a decoder of kind %s, which has none", spec.Kind)
	}
	for i := range spec.Layers {
		if spec.Layers[i].Residual == residualNone {
			spec.Layers[i].Residual = ""
		}
	}
	return decoder.New(*spec, found.tensors)
}

// maxSpecFile bounds the size of a spec read from a file.
const maxSpecFile = 1 << 20

func readSpecOnly(path string, spec *decoder.Spec) (decoder.Decoder, error) {
	if spec != nil {
		return nil, errors.New("this is no file of weights: give the .safetensors, .npz or .pt file that the spec describes")
	}
	data, err := codec.ReadSmall(path, maxSpecFile)
	if err != nil {
		return nil, err
	}
	parsed, err := decoder.ParseSpec(data)
	if err != nil {
		return nil, err
	}
	if parsed.Kind != decoder.Dot {
		return nil, fmt.Errorf("this spec describes a decoder with weights (%s): give the .safetensors, .npz or .pt file and pass this one as its spec",
			parsed.Kind)
	}
	return decoder.New(parsed, nil)
}
