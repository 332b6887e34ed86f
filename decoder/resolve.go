package decoder

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/decoder/internal/fault"
	"github.com/flashdb/flashdb/decoder/internal/pairwise"
)

// wanted is one place of a spec that names a tensor.
type wanted struct{ field, key string }

// wants lists the tensors the spec names, in its order.
func (s *Spec) wants() []wanted {
	var w []wanted
	add := func(field, key string) {
		if key != "" {
			w = append(w, wanted{field, key})
		}
	}
	addNorm := func(at string, n *NormSpec) {
		if n == nil {
			return
		}
		add(at+".weight", n.Weight)
		add(at+".bias", n.Bias)
		add(at+".mean", n.Mean)
		add(at+".var", n.Var)
	}
	add("weight", s.Weight)
	add("relation", s.Relation)
	add("imaginary", s.Imaginary)
	addNorm("input_norm", s.InputNorm)
	addLayers := func(at string, layers []LayerSpec) {
		for i := range layers {
			at := fmt.Sprintf("%s[%d]", at, i)
			add(at+".weight", layers[i].Weight)
			add(at+".bias", layers[i].Bias)
			addNorm(at+".norm", layers[i].Norm)
		}
	}
	addLayers("layers", s.Layers)
	for _, p := range s.Mixture.parts() {
		addLayers(p.at, p.layers)
	}
	return w
}

// resolve returns the tensors the spec names, by the spec's keys. If the keys are not there as they
// are, the one prefix under which all of them are is accepted: models are saved as parts of larger
// ones ("predictor.") and wrapped ("module.").
func resolve(spec Spec, tensors map[string]Tensor) (map[string]Tensor, error) {
	wants := spec.wants()
	if len(wants) == 0 {
		return nil, nil
	}
	prefix := ""
	if !resolves(wants, tensors, "") {
		prefixes := prefixesOf(wants, tensors)
		switch len(prefixes) {
		case 0:
			return nil, missing(wants, tensors)
		case 1:
			prefix = prefixes[0]
		default:
			return nil, fmt.Errorf("decoder weights: key %q is ambiguous: all keys of the spec are found under each of the prefixes %s; "+
				"write the full keys in the spec", wants[0].key, fault.Quoted(prefixes))
		}
	}
	if method, key := pairwise.Find(tensors, prefix+wants[0].key); method != "" {
		return nil, fmt.Errorf("decoder weights: %w", pairwise.Error(method, key))
	}
	used := make(map[string]Tensor, len(wants))
	for _, w := range wants {
		used[w.key] = tensors[prefix+w.key]
	}
	return used, nil
}

// resolves tells whether every wanted key, prefixed, names a tensor.
func resolves(wants []wanted, tensors map[string]Tensor, prefix string) bool {
	for _, w := range wants {
		if _, ok := tensors[prefix+w.key]; !ok {
			return false
		}
	}
	return true
}

// prefixesOf returns the prefixes, of whole path elements, under which all wanted keys are found.
func prefixesOf(wants []wanted, tensors map[string]Tensor) []string {
	var prefixes []string
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		prefix, ok := strings.CutSuffix(name, wants[0].key)
		if ok && strings.HasSuffix(prefix, ".") && resolves(wants, tensors, prefix) {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes
}

// missing is the error for a spec some keys of which are nowhere.
func missing(wants []wanted, tensors map[string]Tensor) error {
	if method, key := pairwise.Find(tensors, ""); method != "" {
		return fmt.Errorf("decoder weights: %w", pairwise.Error(method, key))
	}
	var f faults
	for _, w := range wants {
		if _, ok := tensors[w.key]; !ok {
			f.Add("%s: no tensor %q", w.field, w.key)
		}
	}
	return fmt.Errorf("%w; the weights have %s", f.Err("decoder weights"), fault.Quoted(slices.Sorted(maps.Keys(tensors))))
}
