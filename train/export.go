package train

import (
	"slices"
	"strconv"

	"github.com/flashdb/flashdb/decoder"
)

// decoder returns the trained decoder in the form the database keeps.
func (h *head) decoder() (decoder.Decoder, error) {
	switch h.kind {
	case decoder.HadamardMLP, decoder.ConcatMLP:
		return h.net.decoder(h.kind, h.dim)
	case decoder.MoL:
		return h.mix.decoder(h.dim)
	case decoder.Bilinear:
		return decoder.NewBilinear(h.dim, slices.Clone(h.p.of(h.weight)))
	case decoder.DistMult, decoder.ComplEx:
		return h.relationDecoder()
	default:
		return decoder.NewDot(h.dim)
	}
}

// relationDecoder returns a decoder with a table of relations, or of one vector where none has a
// name.
func (h *head) relationDecoder() (decoder.Decoder, error) {
	table := slices.Clone(h.p.of(h.weight))
	switch {
	case len(h.names) > 0:
		return decoder.NewRelations(h.kind, h.dim, h.names, table)
	case h.kind == decoder.DistMult:
		return decoder.NewDistMult(table)
	}
	return decoder.NewComplEx(table)
}

// decoder returns a network as a decoder that ends in a sigmoid. Its tensors have the names PyTorch
// would give them.
func (n *network) decoder(kind decoder.Kind, dim int) (decoder.Decoder, error) {
	spec := decoder.Spec{Kind: kind, Dim: dim, Output: decoder.OutputSigmoid}
	tensors := map[string]decoder.Tensor{}
	spec.Layers = n.specs("", tensors)
	return decoder.New(spec, tensors)
}

// decoder returns the mixture in the form the database keeps.
func (m *mixture) decoder(dim int) (decoder.Decoder, error) {
	tensors := map[string]decoder.Tensor{}
	layers := map[string][]decoder.LayerSpec{}
	for name, n := range m.networks() {
		layers[name] = n.specs(name+".", tensors)
	}
	temperature := mixtureTemperature
	return decoder.New(decoder.Spec{Kind: decoder.MoL, Dim: dim, Mixture: &decoder.MixtureSpec{
		Source:    decoder.SideSpec{Components: m.components, Layers: layers["source"]},
		Candidate: decoder.SideSpec{Components: m.components, Layers: layers["target"]},
		Cosine:    true, Temperature: &temperature,
		Gate: decoder.GateSpec{
			Source: layers["gate.source"], Candidate: layers["gate.target"], Logits: layers["gate.logits"],
			Combine: decoder.CombineGLUSiLU,
		},
	}}, tensors)
}

// specs describes the layers of a network, and adds their tensors under names that begin with at.
func (n *network) specs(at string, tensors map[string]decoder.Tensor) (layers []decoder.LayerSpec) {
	add := func(name string, w param, shape ...int) string {
		tensors[name] = decoder.Tensor{Shape: shape, Data: slices.Clone(n.p.of(w))}
		return name
	}
	for i, l := range n.layers {
		prefix := at + "lins." + strconv.Itoa(i) + "."
		layer := decoder.LayerSpec{Activation: decoder.ReLU}
		if i == len(n.layers)-1 {
			layer.Activation = decoder.Identity
		}
		layer.Weight = add(prefix+"weight", l.weight, l.out, l.in)
		layer.Bias = add(prefix+"bias", l.bias, l.out)
		if l.norm {
			norms := at + "norms." + strconv.Itoa(i) + "."
			layer.Norm = &decoder.NormSpec{
				Kind:   decoder.LayerNorm,
				Weight: add(norms+"weight", l.gamma, l.out), Bias: add(norms+"bias", l.beta, l.out),
			}
		}
		if l.residual {
			layer.Residual = decoder.ResidualInput
		}
		layers = append(layers, layer)
	}
	return layers
}
