package decoder

import (
	"fmt"
	"math"

	"github.com/flashdb/flashdb/internal/simd"
)

// mol is a mixture of logits: see MixtureSpec.
type mol struct {
	model
	mix    *MixtureSpec
	width  int // of a component
	logits int // pairs of components

	// The networks, nil where the spec has no layers.
	source, gateSource                   *gatedNetwork
	candidate, gateCandidate, gateLogits *network

	combine activation // of the gate: SiLU or none
}

func newMoL(m model) (*mol, error) {
	d := &mol{model: m, mix: m.spec.Mixture, combine: newActivation(Identity, nil)}
	d.logits = d.mix.logits()
	if d.mix.Gate.Combine == CombineGLUSiLU {
		d.combine = newActivation(SiLU, nil)
	}
	var err error
	for i, p := range d.mix.parts() {
		switch i {
		case 0:
			d.source, err = m.gatedPart(p.layers, m.spec.Dim)
		case 1:
			d.candidate, err = m.part(p.layers, m.spec.Dim)
		case 2:
			d.gateSource, err = m.gatedPart(p.layers, m.spec.Dim)
		case 3:
			d.gateCandidate, err = m.part(p.layers, m.spec.Dim)
		case 4:
			d.gateLogits, err = m.part(p.layers, d.logits)
		}
		if err != nil {
			return nil, fmt.Errorf("%w (of %s)", err, p.at)
		}
	}
	d.width = m.spec.Dim
	if d.source != nil {
		d.width = d.source.out
	}
	d.width /= d.mix.Source.Components
	return d, nil
}

// part builds a network of a mixture, nil of no layers.
func (m *model) part(layers []LayerSpec, width int) (*network, error) {
	if len(layers) == 0 {
		return nil, nil
	}
	from := newDraftLayers(layers, m.tensors, width)
	from.fold()
	built, err := from.build()
	if err != nil {
		return nil, err
	}
	for l := range built.layers {
		built.layers[l].pack()
	}
	return built, nil
}

func (d *mol) String() string {
	return fmt.Sprintf("%s %d, %d x %d components of %d", d.spec.Kind, d.spec.Dim, d.mix.Source.Components, d.mix.Candidate.Components, d.width)
}

// molBound is a mixture whose source is fixed.
type molBound struct {
	*mol
	wide   []float64 // components of the source over the temperature, row-major, components x width
	narrow []float32 // the same
	ones   []float32 // see Ones
	gate   []float32 // the gate's part of the source, one for each logit; empty if it has none
	bind   Scratch   // of Bind
}

func (d *mol) Bind(into Bound, source []float32) Bound {
	d.checkSource(source)
	b, ok := into.(*molBound)
	if !ok || b.mol != d {
		n := d.mix.Source.Components * d.width
		b = &molBound{mol: d, wide: make([]float64, n), narrow: make([]float32, n), ones: make([]float32, d.spec.Dim)}
	}
	b.bind.begin()
	components := source
	if d.source != nil {
		components = d.source.forward(&b.bind, source)
	}
	for from := 0; from < len(b.wide); from += d.width {
		scale := d.scale(components[from:from+d.width]) / d.mix.temperature()
		for k := from; k < from+d.width; k++ {
			b.wide[k] = float64(components[k]) * scale
			b.narrow[k] = float32(b.wide[k])
		}
	}
	b.bindOnes()
	if d.gateSource != nil {
		b.bind.begin()
		b.gate = append(b.gate[:0], d.gateSource.forward(&b.bind, source)...)
	}
	return b
}

// scale is what a component is multiplied by before its inner products.
func (d *mol) scale(component []float32) float64 {
	if !d.mix.Cosine {
		return 1
	}
	square := 0.0
	for _, x := range component {
		square += float64(x) * float64(x)
	}
	return 1 / max(math.Sqrt(square), d.mix.eps())
}

func (b *molBound) Linear() bool { return false }

// Ones is the mean of the queries of all logits: what the gradient would be if every neuron were
// active, every weight of the gate the same and every length 1.
func (b *molBound) Ones(dst []float32) { copy(dst, b.ones) }

func (b *molBound) bindOnes() {
	b.bind.begin()
	outputs := b.bind.take(b.mix.Candidate.Components * b.width)
	clear(outputs)
	for from := 0; from < len(outputs); from += b.width {
		for i := 0; i < len(b.narrow); i += b.width {
			simd.Axpy(outputs[from:from+b.width], 1/float32(b.logits), b.narrow[i:i+b.width])
		}
	}
	copy(b.ones, b.candidate.onesGradient(&b.bind, outputs))
}

// Components implements Mixture.
func (b *molBound) Components() (source, candidate int) {
	return b.mix.Source.Components, b.mix.Candidate.Components
}

// LogitQuery implements Mixture.
func (b *molBound) LogitQuery(s *Scratch, dst []float32, i, j int) {
	s.begin()
	outputs := s.take(b.mix.Candidate.Components * b.width)
	clear(outputs)
	copy(outputs[j*b.width:], b.narrow[i*b.width:(i+1)*b.width])
	copy(dst, b.candidate.onesGradient(s, outputs))
}
