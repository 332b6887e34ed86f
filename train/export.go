package train

import (
	"slices"
	"strconv"

	"github.com/flashdb/flashdb/decoder"
)

// decoders returns the trained decoder in the form the database keeps: one, or with DistMult one a
// relation.
func (h *head) decoders() ([]decoder.Decoder, error) {
	switch h.kind {
	case decoder.HadamardMLP, decoder.ConcatMLP:
		d, err := h.net.decoder(h.kind, h.dim)
		return []decoder.Decoder{d}, err
	case decoder.Bilinear:
		d, err := decoder.NewBilinear(h.dim, slices.Clone(h.p.of(h.weight)))
		return []decoder.Decoder{d}, err
	case decoder.DistMult:
		all := make([]decoder.Decoder, h.relation)
		for r := range all {
			d, err := decoder.NewDistMult(slices.Clone(h.relationRow(uint16(r))))
			if err != nil {
				return nil, err
			}
			all[r] = d
		}
		return all, nil
	default:
		d, err := decoder.NewDot(h.dim)
		return []decoder.Decoder{d}, err
	}
}

// decoder returns a network as a decoder that ends in a sigmoid. Its tensors have the names PyTorch
// would give them.
func (n *network) decoder(kind decoder.Kind, dim int) (decoder.Decoder, error) {
	spec := decoder.Spec{Kind: kind, Dim: dim, Output: decoder.OutputSigmoid}
	tensors := map[string]decoder.Tensor{}
	add := func(name string, w param, shape ...int) string {
		tensors[name] = decoder.Tensor{Shape: shape, Data: slices.Clone(n.p.of(w))}
		return name
	}
	for i, l := range n.layers {
		prefix := "lins." + strconv.Itoa(i) + "."
		layer := decoder.LayerSpec{Activation: decoder.ReLU}
		if i == len(n.layers)-1 {
			layer.Activation = decoder.Identity
		}
		layer.Weight = add(prefix+"weight", l.weight, l.out, l.in)
		layer.Bias = add(prefix+"bias", l.bias, l.out)
		if l.norm {
			norms := "norms." + strconv.Itoa(i) + "."
			layer.Norm = &decoder.NormSpec{
				Kind:   decoder.LayerNorm,
				Weight: add(norms+"weight", l.gamma, l.out), Bias: add(norms+"bias", l.beta, l.out),
			}
		}
		spec.Layers = append(spec.Layers, layer)
	}
	return decoder.New(spec, tensors)
}
