package decoder

import "github.com/flashdb/flashdb/internal/simd"

// gatedNetwork is a network that may have gated linear units: networks, and behind each but perhaps
// the last one a unit. It reads one row, that of a source, and has no gradient.
type gatedNetwork struct {
	parts []*network   // of the linear map of a unit, and of the layers before it
	units []activation // units[i] follows parts[i]
	out   int          // outputs
}

// gatedPart builds a network of a mixture that reads the source, nil of no layers.
func (m *model) gatedPart(layers []LayerSpec, width int) (*gatedNetwork, error) {
	if len(layers) == 0 {
		return nil, nil
	}
	n := &gatedNetwork{}
	from := 0
	for i := range layers {
		if !layers[i].GLU && i < len(layers)-1 {
			continue
		}
		some := append([]LayerSpec(nil), layers[from:i+1]...)
		last := &some[len(some)-1]
		unit := newActivation(last.Activation, last.Slope)
		if last.GLU {
			last.Activation, last.Slope = Identity, nil
		}
		part, err := m.part(some, width)
		if err != nil {
			return nil, err
		}
		width = part.outputs(width)
		n.parts = append(n.parts, part)
		if last.GLU {
			width /= 2
			n.units = append(n.units, unit)
		}
		from = i + 1
	}
	n.out = width
	return n, nil
}

// forward evaluates one row. The outputs are part of the scratch.
func (n *gatedNetwork) forward(s *Scratch, row []float32) []float32 {
	for i, part := range n.parts {
		row = part.forward(s, &s.frames, row, 1, false)
		if i < len(n.units) {
			half := len(row) / 2
			unit := s.take(half)
			copy(unit, row[:half])
			n.units[i].apply(unit, unit)
			simd.Mul(unit, unit, row[half:])
			row = unit
		}
	}
	return row
}
