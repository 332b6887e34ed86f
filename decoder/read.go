package decoder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/internal/codec"
)

// ReadFile reads the weights of a decoder from a .safetensors, .npz or PyTorch .pt or .pth file and makes the decoder spec says
// they are.
//
// A nil spec is for weights in the layout of OGB's link predictors: lins.0.weight, lins.0.bias, lins.1.weight and so on, under any
// one prefix, are a HadamardMLP with ReLU between its layers and a sigmoid behind the logit.
//
// A .json file is taken as the spec of a decoder that has no weights: a Dot decoder. No other file is looked for: a spec that lies
// beside the weights is for the caller to pass.
func ReadFile(path string, spec *Spec) (Decoder, error) {
	if strings.EqualFold(filepath.Ext(path), ".json") {
		d, err := readSpecOnly(path, spec)
		if err != nil {
			if located := (*fs.PathError)(nil); errors.As(err, &located) {
				err = located.Err // the path is named below
			}
			return nil, fmt.Errorf("read decoder %s: %w", path, err)
		}
		return d, nil
	}
	tensors, err := codec.ReadTensors(path)
	if err != nil {
		return nil, fmt.Errorf("read decoder: %w", err) // names the file
	}
	if spec == nil {
		if spec, err = ogbSpec(tensors); err != nil {
			return nil, fmt.Errorf("read decoder %s: %w", path, err)
		}
	}
	d, err := New(*spec, tensors)
	if err != nil {
		return nil, fmt.Errorf("read decoder %s: %w", path, err)
	}
	return d, nil
}

// maxSpecFile bounds the size of a spec read from a file.
const maxSpecFile = 1 << 20

func readSpecOnly(path string, spec *Spec) (Decoder, error) {
	if spec != nil {
		return nil, errors.New("this is no file of weights: give the .safetensors, .npz or .pt file that the spec describes")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSpecFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSpecFile {
		return nil, fmt.Errorf("more than %d bytes are too many for a decoder spec", maxSpecFile)
	}
	parsed, err := ParseSpec(data)
	if err != nil {
		return nil, err
	}
	if len(parsed.wants()) > 0 {
		return nil, fmt.Errorf("this spec describes a decoder with weights (%s): give the .safetensors, .npz or .pt file and pass this one as its spec",
			parsed.Kind)
	}
	return New(parsed, nil)
}

// ogbKey matches the keys of the layers in OGB's layout: prefix, number, parameter.
var ogbKey = regexp.MustCompile(`^((?:.*\.)?)lins\.(\d+)\.(weight|bias)$`)

// ogbSpec recognises a HadamardMLP by the key names of OGB's link predictors (examples/linkproppred). Its keys are
// without the prefix, which New finds again.
func ogbSpec(tensors map[string]Tensor) (*Spec, error) {
	keys := slices.Sorted(maps.Keys(tensors))
	layers := map[string]int{} // prefix -> number of weights
	for _, key := range keys {
		if m := ogbKey.FindStringSubmatch(key); m != nil && m[3] == "weight" {
			layers[m[1]]++
		}
	}
	switch len(layers) {
	case 0:
		if method, key := pairTensors(tensors, ""); method != "" {
			return nil, pairError(method, key)
		}
		return nil, fmt.Errorf("no keys lins.0.weight, lins.1.weight, ...: a spec must say what these weights are; they have %s", quoted(keys))
	case 1:
	default:
		return nil, fmt.Errorf("keys lins.0.weight, ... are found under each of the prefixes %s: a spec with full keys must say which are the decoder",
			quoted(slices.Sorted(maps.Keys(layers))))
	}
	prefix := slices.Collect(maps.Keys(layers))[0]
	if key := normKey(keys, prefix); key != "" {
		return nil, fmt.Errorf("key %s looks like a norm beside the layers %s: a spec must say where it applies", quote(key), quote(prefix+"lins"))
	}
	return ogbLayers(tensors, prefix, layers[prefix])
}

// ogbLayers writes the spec of n layers numbered from 0.
func ogbLayers(tensors map[string]Tensor, prefix string, n int) (*Spec, error) {
	spec := &Spec{Kind: HadamardMLP, Output: outputSigmoid}
	for i := range n {
		layer := LayerSpec{Weight: fmt.Sprintf("lins.%d.weight", i), Activation: ReLU}
		weight, ok := tensors[prefix+layer.Weight]
		if !ok {
			return nil, fmt.Errorf("no tensor %s: the %d weights of %s are not numbered from 0; a spec must say in which order they apply",
				quote(prefix+layer.Weight), n, quote(prefix+"lins"))
		}
		if bias := fmt.Sprintf("lins.%d.bias", i); tensors[prefix+bias].Data != nil {
			layer.Bias = bias
		}
		if i == n-1 {
			layer.Activation = Identity
		}
		if i == 0 {
			if len(weight.Shape) != 2 {
				return nil, fmt.Errorf("%s has shape %v; want [any dim]", quote(prefix+layer.Weight), weight.Shape)
			}
			spec.Dim = weight.Shape[1]
		}
		spec.Layers = append(spec.Layers, layer)
	}
	return spec, nil
}

// normKey returns a key below prefix whose module is named like a norm, or "". Guessing that it is not used would give wrong
// scores.
func normKey(keys []string, prefix string) string {
	for _, key := range keys {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		module, _, _ := strings.Cut(strings.ToLower(rest), ".")
		if strings.HasPrefix(module, "bn") || strings.HasPrefix(module, "ln") || strings.Contains(module, "norm") {
			return key
		}
	}
	return ""
}
