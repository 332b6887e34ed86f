package weights

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/internal/fault"
	"github.com/flashdb/flashdb/decoder/internal/pairwise"
)

// A layout is a way in which a model in use keeps its decoder in a state dict: the names of its
// keys, and what they do not say (activation, place of the norm, output) as that model computes it.
type layout struct {
	name string
	// detect tells whether the tensors, all below one prefix, are of this layout without doubt.
	// Nil: only by name.
	detect func(w dict) bool
	spec   func(w dict, o *Options) (*decoder.Spec, error)
}

// layouts are tried in this order where none is named.
var layouts = []layout{
	{"gigl", isGiGL, giglSpec},          // GiGL's LinkPredictionDecoder
	{"ogb", isOGB, ogbSpec},             // OGB's LinkPredictor
	{"pyg", isPyG, pygSpec},             // PyG's MLP on the product
	{"ncn", isNCN, ncnSpec},             // the LinkPredictor of the NCN code
	{"dgl", isDGL, dglSpec},             // DGL's MLPPredictor
	{"pykeen", isPyKEEN, pykeenSpec},    // PyKEEN's DistMult and ComplEx
	{"rails", isRAILS, railsSpec},       // the mixture of logits of RAILS
	{"refined-gae", nil, refinedSpec},   // the Hadamard_MLPPredictor of Refined-GAE
	{"sequential", nil, sequentialSpec}, // an nn.Sequential
	{"bilinear", nil, bilinearSpec},     // nn.Bilinear with one output
}

// Layouts are the names Options.Layout may have.
func Layouts() []string {
	names := make([]string, len(layouts))
	for i := range layouts {
		names[i] = layouts[i].name
	}
	return names
}

// dict is the tensors below one prefix of a state dict, by the rest of their keys.
type dict struct {
	prefix  string
	tensors map[string]decoder.Tensor
}

// key is the full key of a tensor, for messages.
func (w dict) key(rest string) string { return fault.Quote(w.prefix + rest) }

func (w dict) has(rest string) bool { _, ok := w.tensors[rest]; return ok }

// optional returns the key if there is such a tensor and "" if there is none.
func (w dict) optional(rest string) string {
	if w.has(rest) {
		return rest
	}
	return ""
}

// below narrows the weights to those under a further prefix.
func (w dict) below(prefix string) dict {
	inner := dict{prefix: w.prefix + prefix, tensors: map[string]decoder.Tensor{}}
	for key, t := range w.tensors {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			inner.tensors[rest] = t
		}
	}
	return inner
}

// anchorKey matches the keys by which a layout that is to be detected stands out: prefix, then a
// first weight.
var anchorKey = regexp.MustCompile(`^((?:.*\.)?)(?:lins\.\d+|W1|relation_representations\.0\._embeddings|_gating_fn\._query_only_partial_module\.0)\.weight$`)

// detectSpec finds the layout and the prefix of the decoder among tensors that may hold more than
// it.
func detectSpec(tensors map[string]decoder.Tensor, o *Options) (dict, *decoder.Spec, error) {
	found := map[string]bool{}
	for key := range tensors {
		if m := anchorKey.FindStringSubmatch(key); m != nil {
			found[m[1]] = true
		}
	}
	prefixes := slices.Sorted(maps.Keys(found))
	all := dict{prefix: o.Prefix, tensors: tensors}
	switch len(prefixes) {
	case 0:
		if method, key := pairwise.Find(tensors, ""); method != "" {
			return all, nil, pairwise.Error(method, key)
		}
		return all, nil, fmt.Errorf("no keys lins.0.weight, lins.1.weight, ...: a spec or the name of a layout (%s) must say what these weights are; "+
			"they have %s", strings.Join(Layouts(), ", "), fault.Quoted(slices.Sorted(maps.Keys(tensors))))
	case 1:
	default:
		return all, nil, fmt.Errorf("decoders are found under each of the prefixes %s: name one as the prefix", fault.Quoted(prefixes))
	}
	w := all.below(prefixes[0])
	for _, l := range layouts {
		if l.detect != nil && l.detect(w) {
			spec, err := l.spec(w, o)
			return w, spec, err
		}
	}
	if key := w.normKey(); key != "" {
		return w, nil, fmt.Errorf("key %s looks like a norm beside the layers %s: a spec or the name of a layout (refined-gae, sequential) must say "+
			"where it applies", w.key(key), w.key("lins"))
	}
	if w.has("W1.weight") {
		_, err := dglSpec(w, o)
		return w, nil, err
	}
	spec, err := ogbSpec(w, o)
	return w, spec, err
}

// namedSpec reads the weights in the layout the caller names.
func namedSpec(tensors map[string]decoder.Tensor, o *Options) (dict, *decoder.Spec, error) {
	at := slices.IndexFunc(layouts, func(l layout) bool { return l.name == o.Layout })
	if at < 0 {
		return dict{}, nil, fmt.Errorf("layout %q is not known; want one of %s", o.Layout, strings.Join(Layouts(), ", "))
	}
	w := dict{prefix: o.Prefix, tensors: tensors}
	if o.Prefix == "" {
		w = w.below(w.soleAnchor(o.Layout))
	} else if inner := w.below(giglModule); o.Layout == "gigl" && len(inner.tensors) > 0 {
		w = inner
	}
	spec, err := layouts[at].spec(w, o)
	if err != nil {
		err = fmt.Errorf("layout %s: %w", o.Layout, err)
	}
	return w, spec, err
}

// soleAnchor is the one prefix under which a layer of a named layout begins, "" if there is none or
// more than one.
func (w dict) soleAnchor(name string) string {
	first := regexp.MustCompile(`^((?:.*\.)?)lins\.0\.weight$`)
	switch name {
	case "gigl":
		first = regexp.MustCompile(`^((?:.*\.)?mlp_decoder\.)lins\.0\.weight$`)
	case "dgl":
		first = regexp.MustCompile(`^((?:.*\.)?)W1?\.weight$`)
	case "ncn":
		first = regexp.MustCompile(`^((?:.*\.)?)lins(?:\.0)?\.weight$`)
	case "sequential":
		first = regexp.MustCompile(`^((?:.*\.)?)0\.weight$`)
	case "rails":
		first = regexp.MustCompile(`^((?:.*\.)?)_gating_fn\._query_only_partial_module\.0\.weight$`)
	case "bilinear":
		first = regexp.MustCompile(`^((?:.*\.)?)weight$`)
	}
	var prefixes []string
	for key := range w.tensors {
		if m := first.FindStringSubmatch(key); m != nil {
			prefixes = append(prefixes, m[1])
		}
	}
	if len(prefixes) == 1 {
		return prefixes[0]
	}
	return ""
}

// normKey returns a key whose module is named like a norm, or "". Guessing that it is not used
// would give wrong scores.
func (w dict) normKey() string {
	for _, key := range slices.Sorted(maps.Keys(w.tensors)) {
		module, _, _ := strings.Cut(strings.ToLower(key), ".")
		if strings.HasPrefix(module, "bn") || strings.HasPrefix(module, "ln") || strings.Contains(module, "norm") {
			return key
		}
	}
	return ""
}

// numbered returns the numbers N of keys base.N.weight with a matrix, ascending. An empty base
// stands for keys N.weight.
func (w dict) numbered(base string) (numbers []int) {
	for key, t := range w.tensors {
		rest, ok := strings.CutPrefix(key, base)
		if !ok || len(t.Shape) == 1 {
			continue
		}
		digits, ok := strings.CutSuffix(rest, ".weight")
		if n, err := strconv.Atoi(digits); ok && err == nil && n >= 0 && strconv.Itoa(n) == digits {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// network makes the spec of a network whose layers are base.N.weight for the given numbers. Layers
// lack their norms.
func (w dict) network(base string, numbers []int, o *Options) (*decoder.Spec, error) {
	spec := &decoder.Spec{Kind: decoder.HadamardMLP}
	if o.Kind != "" {
		spec.Kind = o.Kind
	}
	if spec.Kind != decoder.HadamardMLP && spec.Kind != decoder.ConcatMLP {
		return nil, fmt.Errorf("kind %s has no layers: these weights are a network; want %s or %s", spec.Kind, decoder.HadamardMLP, decoder.ConcatMLP)
	}
	for i, n := range numbers {
		at := base + strconv.Itoa(n)
		l := decoder.LayerSpec{Weight: at + ".weight", Bias: w.optional(at + ".bias"), Activation: decoder.ReLU}
		if o.Activation != "" {
			l.Activation = o.Activation
		}
		if i == len(numbers)-1 {
			l.Activation = decoder.Identity
		} else {
			l.Residual = o.Residual
		}
		spec.Layers = append(spec.Layers, l)
	}
	if len(spec.Layers) == 0 {
		return nil, fmt.Errorf("no matrix %s; the weights have %s", w.key(base+"0.weight"), fault.Quoted(slices.Sorted(maps.Keys(w.tensors))))
	}
	shape := w.tensors[spec.Layers[0].Weight].Shape
	if len(shape) != 2 {
		return nil, fmt.Errorf("%s has shape %v; want [any dim]", w.key(spec.Layers[0].Weight), shape)
	}
	spec.Dim = shape[1]
	if spec.Kind == decoder.ConcatMLP {
		if shape[1]%2 != 0 {
			return nil, fmt.Errorf("%s has shape %v: a %s takes two embeddings of equal width", w.key(spec.Layers[0].Weight), shape, decoder.ConcatMLP)
		}
		spec.Dim /= 2
	}
	return spec, nil
}
