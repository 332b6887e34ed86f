package weights

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/decoder"
)

// RAILS (Ding and Zhai, "Retrieval with Learned Similarities", 2024) keeps its mixture of logits in
// a larger model, as _ndp_module. The parts are
//
//	_query_embeddings_fn._query_emb_proj_module   the components of a source: one matrix, or a gated
//	                                              linear unit and a matrix
//	_item_embeddings_fn._item_emb_proj_module     those of a candidate: one matrix. Earlier versions
//	                                              name it _item_proj_module
//	_gating_fn._query_only_partial_module         the gate: one or two matrices each, with SiLU
//	_gating_fn._item_only_partial_module          between them
//	_gating_fn._qi_partial_module
//
// A gated linear unit keeps its weight as inputs x outputs, in _w, and its bias in _b. Components
// are cosines, and the gate is combined by glu_silu: that is what the published configurations
// have. No key tells the temperature, nor GeGLU from SwiGLU. The number of components follows from
// the shapes: with p x q logits, the outputs of the two sides are p and q times the width.

const (
	railsQuery    = "_query_embeddings_fn._query_emb_proj_module."
	railsItem     = "_item_embeddings_fn._item_emb_proj_module."
	railsItemOld  = "_item_proj_module."
	railsGate     = "_gating_fn."
	railsAnchor   = railsGate + "_query_only_partial_module.0.weight"
	railsUnit     = "._w"
	railsUnitBias = "._b"
)

func isRAILS(w dict) bool { return w.has(railsAnchor) }

func railsSpec(w dict, o *Options) (*decoder.Spec, error) {
	if err := railsRefused(w); err != nil {
		return nil, err
	}
	if o.Temperature == 0 {
		return nil, fmt.Errorf("no key says what the logits are divided by: give the temperature of the configuration, such as 0.05")
	}
	if o.Kind != "" && o.Kind != decoder.MoL || o.Residual != "" {
		return nil, fmt.Errorf("a %s has no other kind nor residual to choose", decoder.MoL)
	}
	source, err := w.railsLayers(railsQuery, decoder.Identity)
	if err != nil {
		return nil, err
	}
	if source, err = w.railsUnitOf(source, o); err != nil {
		return nil, err
	}
	item := railsItem
	if len(w.below(item).tensors) == 0 {
		item = railsItemOld
	}
	candidate, err := w.railsLayers(item, decoder.Identity)
	if err != nil {
		return nil, err
	}
	m := &decoder.MixtureSpec{Cosine: true, Temperature: &o.Temperature, Gate: decoder.GateSpec{Combine: decoder.CombineGLUSiLU}}
	m.Source.Layers, m.Candidate.Layers = source, candidate
	for name, part := range map[string]*[]decoder.LayerSpec{
		"_query_only_partial_module.": &m.Gate.Source, "_item_only_partial_module.": &m.Gate.Candidate, "_qi_partial_module.": &m.Gate.Logits,
	} {
		if *part, err = w.railsLayers(railsGate+name, decoder.SiLU); err != nil {
			return nil, err
		}
	}
	logits := w.outputs(m.Gate.Source)
	from, to := w.outputs(source), w.outputs(candidate)
	width := int(math.Round(math.Sqrt(float64(from) * float64(to) / float64(max(1, logits)))))
	if width == 0 || width*width*logits != from*to || from%width != 0 || to%width != 0 {
		return nil, fmt.Errorf("%d and %d values of components do not make the %d logits of the gate: want p x width, q x width and p x q", from, to, logits)
	}
	m.Source.Components, m.Candidate.Components = from/width, to/width
	return &decoder.Spec{Kind: decoder.MoL, Dim: w.tensors[m.Gate.Source[0].Weight].Shape[1], Mixture: m}, nil
}

// railsRefused says why a model of RAILS has no score of two rows, or none that can be told.
func railsRefused(w dict) error {
	for key := range w.tensors {
		switch {
		case strings.Contains(key, "_uid_embeddings_"):
			return fmt.Errorf("key %s holds components that are looked up by the id of a user, which are no function of an embedding: "+
				"let the model compute the components, append them to the embeddings, and describe the mixture by a spec (docs/import.md)", w.key(key))
		case strings.Contains(key, "_mixing_weights."):
			return fmt.Errorf("key %s mixes the tokens of a text, and a node has one embedding here: let the model compute the components, "+
				"append them to it, and describe the mixture by a spec (docs/import.md)", w.key(key))
		case strings.Contains(key, "._proj_mlp."):
			return fmt.Errorf("key %s: the first component is a part of the embedding, and the others are computed: a spec must give one matrix for all", w.key(key))
		case strings.HasPrefix(key, "_item") && strings.HasSuffix(key, railsUnit):
			return fmt.Errorf("key %s is a gated linear unit of the items: only sources may have one here. Let the model compute "+
				"the components, append them to the embeddings, and describe the mixture by a spec (docs/import.md)", w.key(key))
		}
	}
	return nil
}

// railsLayers lists the matrices below a prefix in the order of their numbers, with an activation
// between them.
func (w dict) railsLayers(base string, between decoder.Activation) (layers []decoder.LayerSpec, err error) {
	numbers := w.numbered(base)
	for i, n := range numbers {
		at := base + strconv.Itoa(n)
		l := decoder.LayerSpec{Weight: at + ".weight", Bias: w.optional(at + ".bias"), Activation: between}
		if len(w.tensors[l.Weight].Shape) != 2 {
			return nil, fmt.Errorf("%s has shape %v; want a matrix", w.key(l.Weight), w.tensors[l.Weight].Shape)
		}
		if i == len(numbers)-1 {
			l.Activation = decoder.Identity
		}
		layers = append(layers, l)
	}
	if len(layers) == 0 {
		return nil, fmt.Errorf("no matrix below %s: the gate %s reads source, candidate and logits, and both have components by a matrix; "+
			"a spec may describe another mixture", w.key(base), decoder.CombineGLUSiLU)
	}
	return layers, nil
}

// railsUnitOf returns layers with the gated linear unit of the sources, if they have one, before
// their matrix. Its weight is turned as that of a Linear.
func (w dict) railsUnitOf(layers []decoder.LayerSpec, o *Options) ([]decoder.LayerSpec, error) {
	var key string
	for k := range w.tensors {
		if strings.HasPrefix(k, railsQuery) && strings.HasSuffix(k, railsUnit) {
			key = k
		}
	}
	switch {
	case key == "" && o.Activation != "":
		return nil, fmt.Errorf("no gated linear unit %s: there is no activation to choose", w.key(railsQuery+"1"+railsUnit))
	case key == "":
		return layers, nil
	case o.Activation != decoder.GELU && o.Activation != decoder.SiLU:
		return nil, fmt.Errorf("key %s is a gated linear unit, and no key says of which kind: give the activation, %s of GeGLU or %s of SwiGLU",
			w.key(key), decoder.GELU, decoder.SiLU)
	}
	bias := strings.TrimSuffix(key, railsUnit) + railsUnitBias
	weight, b := w.tensors[key], w.tensors[bias]
	if len(weight.Shape) != 2 || len(b.Data) != weight.Shape[1] {
		return nil, fmt.Errorf("%s has shape %v and %s %v; want a matrix and a value for each of its columns", w.key(key), weight.Shape, w.key(bias), b.Shape)
	}
	w.tensors[key], w.tensors[bias] = turned(weight), decoder.Tensor{Shape: []int{len(b.Data)}, Data: b.Data}
	return append([]decoder.LayerSpec{{Weight: key, Bias: bias, Activation: o.Activation, GLU: true}}, layers...), nil
}

// outputs is how many values layers make.
func (w dict) outputs(layers []decoder.LayerSpec) int {
	return w.tensors[layers[len(layers)-1].Weight].Shape[0]
}

// turned is the transposed matrix.
func turned(t decoder.Tensor) decoder.Tensor {
	rows, columns := t.Shape[0], t.Shape[1]
	out := decoder.Tensor{Shape: []int{columns, rows}, Data: slices.Clone(t.Data)}
	for r := range rows {
		for c := range columns {
			out.Data[c*rows+r] = t.Data[r*columns+c]
		}
	}
	return out
}
