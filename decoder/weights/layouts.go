package weights

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/decoder"
)

// OGB's LinkPredictor (examples/linkproppred): lins.0, lins.1, ... with ReLU between, a sigmoid
// behind.

func isOGB(w dict) bool {
	numbers := w.numbered("lins.")
	return len(numbers) > 0 && consecutive(numbers) == len(numbers) && w.normKey() == ""
}

func ogbSpec(w dict, o *Options) (*decoder.Spec, error) {
	if key := w.normKey(); key != "" {
		return nil, fmt.Errorf("key %s looks like a norm, of which this layout has none", w.key(key))
	}
	spec, err := w.consecutiveLayers(o)
	if err == nil {
		spec.Output = decoder.OutputSigmoid
	}
	return spec, err
}

// consecutiveLayers is a network lins.0, lins.1, ... without a gap.
func (w dict) consecutiveLayers(o *Options) (*decoder.Spec, error) {
	numbers := w.numbered("lins.")
	if n := consecutive(numbers); n < len(numbers) {
		return nil, fmt.Errorf("no tensor %s: the %d weights of %s are not numbered from 0; a spec must say in which order they apply",
			w.key(fmt.Sprintf("lins.%d.weight", n)), len(numbers), w.key("lins"))
	}
	return w.network("lins.", numbers, o)
}

// consecutive is how many of the ascending numbers count up from 0.
func consecutive(numbers []int) int {
	for i, n := range numbers {
		if n != i {
			return i
		}
	}
	return len(numbers)
}

// torch_geometric.nn.MLP: lins.N, and norms.N between it and the activation. Its BatchNorm keeps
// the statistics in a submodule named "module"; a plain BatchNorm1d in its place, as forks have it,
// has none. Its LayerNorm normalises a whole batch unless mode="node", which no key tells. With
// plain_last=False the last layer has a norm, too, and an activation behind it, which is taken for
// the output: ranking is by what comes before it, as it is where the layer has no norm to tell.

func isPyG(w dict) bool {
	return w.has("norms.0.module.running_mean") || w.has("norms.0.running_mean")
}

func pygSpec(w dict, o *Options) (*decoder.Spec, error) {
	spec, err := w.consecutiveLayers(o)
	if err != nil {
		return nil, err
	}
	for i := range spec.Layers {
		at := fmt.Sprintf("norms.%d.", i)
		switch {
		case w.has(at + "module.running_mean"):
			spec.Layers[i].Norm = w.batchNorm(at + "module.")
		case w.has(at + "running_mean"):
			spec.Layers[i].Norm = w.batchNorm(at)
		case w.has(at + "weight"):
			return nil, fmt.Errorf("key %s is of PyG's LayerNorm, which by default normalises all rows of a batch together: no function of two "+
				"embeddings. If it was made with mode=\"node\", use layout refined-gae with residual none, or a spec",
				w.key(at+"weight"))
		}
	}
	if last := spec.Layers[len(spec.Layers)-1]; last.Norm != nil {
		switch o.Activation {
		case "", decoder.ReLU:
			spec.Output = decoder.OutputReLU
		case decoder.Sigmoid:
			spec.Output = decoder.OutputSigmoid
		}
	}
	return spec, nil
}

func (w dict) batchNorm(at string) *decoder.NormSpec {
	return &decoder.NormSpec{
		Kind: decoder.BatchNorm, Weight: w.optional(at + "weight"), Bias: w.optional(at + "bias"),
		Mean: at + "running_mean", Var: w.optional(at + "running_var"),
	}
}

func (w dict) layerNorm(at string) *decoder.NormSpec {
	return &decoder.NormSpec{Kind: decoder.LayerNorm, Weight: at + "weight", Bias: w.optional(at + "bias")}
}

// GiGL's LinkPredictionDecoder keeps a PyG MLP as mlp_decoder, by default without biases and with a
// ReLU behind the last layer.

const giglModule = "mlp_decoder."

func isGiGL(w dict) bool { return strings.HasSuffix(w.prefix, giglModule) }

func giglSpec(w dict, o *Options) (*decoder.Spec, error) {
	spec, err := pygSpec(w, o)
	if err == nil {
		spec.Output = decoder.OutputReLU
	}
	return spec, err
}

// The LinkPredictor of the NCN code is an nn.Sequential of Linear, LayerNorm or Identity, Dropout
// and ReLU, again and again, and a last Linear. Its CNLinkPredictor and kin look at common
// neighbours and are refused by pairTensors.

func isNCN(w dict) bool {
	numbers := w.numbered("lins.")
	if len(numbers) < 2 {
		return false
	}
	for i, n := range numbers {
		if n != 4*i {
			return false
		}
	}
	return true
}

func ncnSpec(w dict, o *Options) (*decoder.Spec, error) {
	if w.has("lins.weight") { // of one layer
		return w.single("lins", o)
	}
	return w.sequential("lins.", o)
}

func sequentialSpec(w dict, o *Options) (*decoder.Spec, error) {
	return w.sequential("", o)
}

// sequential is a network of the matrices among base.N in the order of N; a norm right behind a
// matrix comes before the activation.
func (w dict) sequential(base string, o *Options) (*decoder.Spec, error) {
	numbers := w.numbered(base)
	spec, err := w.network(base, numbers, o)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for i, n := range numbers {
		at := base + strconv.Itoa(n+1) + "."
		switch {
		case w.has(at + "running_mean"):
			spec.Layers[i].Norm = w.batchNorm(at)
		case w.has(at+"weight") && len(w.tensors[at+"weight"].Shape) == 1:
			spec.Layers[i].Norm = w.layerNorm(at)
		default:
			continue
		}
		used[at+"weight"] = true
	}
	for key, t := range w.tensors {
		if len(t.Shape) == 1 && !used[key] && isNumberedWeight(key, base) {
			return nil, fmt.Errorf("key %s has shape %v and stands behind no layer: a spec must say what it does", w.key(key), t.Shape)
		}
	}
	return spec, nil
}

// isNumberedWeight tells whether a key is base.N.weight.
func isNumberedWeight(key, base string) bool {
	const suffix = ".weight"
	if len(key) <= len(base)+len(suffix) || key[:len(base)] != base || key[len(key)-len(suffix):] != suffix {
		return false
	}
	_, err := strconv.Atoi(key[len(base) : len(key)-len(suffix)])
	return err == nil
}

// single is a network of the one layer at.weight.
func (w dict) single(at string, o *Options) (*decoder.Spec, error) {
	renamed := dict{prefix: w.prefix, tensors: map[string]decoder.Tensor{"0.weight": w.tensors[at+".weight"]}}
	spec, err := renamed.network("", []int{0}, o)
	if err == nil {
		spec.Layers[0].Weight, spec.Layers[0].Bias = at+".weight", w.optional(at+".bias")
	}
	return spec, err
}

// DGL's tutorial MLPPredictor: W2(relu(W1(cat(x, y)))). The same names are in use with the product
// in place of the concatenation; the shape of W1 tells them apart. The MLPPredictor of DGL's user
// guide is W(cat(x, y)).

func isDGL(w dict) bool {
	t := w.tensors["W1.weight"]
	return w.has("W2.weight") && len(t.Shape) == 2 && (t.Shape[1] == 2*t.Shape[0] || t.Shape[1] == t.Shape[0])
}

func dglSpec(w dict, o *Options) (*decoder.Spec, error) {
	if w.has("W.weight") && !w.has("W1.weight") {
		chosen := *o
		chosen.Kind = cmp.Or(o.Kind, decoder.ConcatMLP)
		return w.single("W", &chosen)
	}
	first, second := w.tensors["W1.weight"], w.tensors["W2.weight"]
	if len(first.Shape) != 2 || len(second.Shape) != 2 {
		return nil, fmt.Errorf("want matrices %s and %s; the weights have shapes %v and %v", w.key("W1.weight"), w.key("W2.weight"),
			first.Shape, second.Shape)
	}
	kind := o.Kind
	if kind == "" {
		switch first.Shape[1] {
		case 2 * first.Shape[0]:
			kind = decoder.ConcatMLP
		case first.Shape[0]:
			kind = decoder.HadamardMLP
		default:
			return nil, fmt.Errorf("%s has shape %v: neither twice as wide as high (%s) nor square (%s); name the kind",
				w.key("W1.weight"), first.Shape, decoder.ConcatMLP, decoder.HadamardMLP)
		}
	}
	renamed := dict{prefix: w.prefix, tensors: map[string]decoder.Tensor{"W.1.weight": first, "W.2.weight": second}}
	chosen := *o
	chosen.Kind = kind
	spec, err := renamed.network("W.", []int{1, 2}, &chosen)
	if err != nil {
		return nil, err
	}
	spec.Layers[0].Weight, spec.Layers[0].Bias = "W1.weight", w.optional("W1.bias")
	spec.Layers[1].Weight, spec.Layers[1].Bias = "W2.weight", w.optional("W2.bias")
	return spec, nil
}

// Refined-GAE (CIKM 2025): act(norms[i](lins[i](h) + z)), z normed by scale_norm where it is there.
// Whether z is added, no key tells.

func refinedSpec(w dict, o *Options) (*decoder.Spec, error) {
	if o.Residual == "" {
		return nil, fmt.Errorf("no key says whether z is added to each layer (res=True when it was trained): give the residual, %s or none", decoder.ResidualZ)
	}
	spec, err := w.consecutiveLayers(o)
	if err != nil {
		return nil, err
	}
	if w.has("scale_norm.weight") {
		spec.InputNorm = w.layerNorm("scale_norm.")
	}
	for i := range spec.Layers[:len(spec.Layers)-1] {
		if at := fmt.Sprintf("norms.%d.", i); w.has(at + "weight") {
			spec.Layers[i].Norm = w.layerNorm(at)
		}
	}
	return spec, nil
}

// nn.Bilinear(dim, dim, 1): weight is 1 x dim x dim.

func bilinearSpec(w dict, o *Options) (*decoder.Spec, error) {
	t, ok := w.tensors["weight"]
	if !ok {
		return nil, fmt.Errorf("no tensor %s", w.key("weight"))
	}
	shape := t.Shape
	if len(shape) == 3 && shape[0] == 1 {
		shape = shape[1:]
	}
	if len(shape) != 2 || shape[0] != shape[1] {
		return nil, fmt.Errorf("%s has shape %v; want [1 dim dim]: two embeddings of one width, and one output", w.key("weight"), t.Shape)
	}
	if o.Kind != "" && o.Kind != decoder.Bilinear || o.Activation != "" || o.Residual != "" {
		return nil, fmt.Errorf("a %s has no kind, activation or residual to choose", decoder.Bilinear)
	}
	if bias := w.tensors["bias"].Data; slices.ContainsFunc(bias, func(v float32) bool { return v != 0 }) {
		return nil, fmt.Errorf("%s is %v: a %s here has no bias, which changes no ranking but every score; train with bias=False, or set it to 0",
			w.key("bias"), bias, decoder.Bilinear)
	}
	return &decoder.Spec{Kind: decoder.Bilinear, Dim: shape[0], Weight: "weight"}, nil
}
