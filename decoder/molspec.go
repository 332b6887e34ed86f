package decoder

import (
	"slices"

	"github.com/flashdb/flashdb/decoder/internal/fault"
)

// MixtureSpec describes a mixture of logits: Zhai et al., "Revisiting Neural Retrieval on
// Accelerators", KDD 2023, and Ding and Zhai, "Retrieval with Learned Similarities", 2024. Source x
// and candidate y each have some components f_i(x) and g_j(y), all of the same width, which come
// from the one row that each node has: as slices of it, or by a network. The logit of each pair of
// components and the score are
//
//	l_ij  = f_i . g_j / Temperature
//	score = sum of w_ij l_ij,  w = softmax(gate(x, y, l))
//
// Pairs are in the order of i, then of j.
type MixtureSpec struct {
	Source      SideSpec `json:"source"`
	Candidate   SideSpec `json:"candidate"`
	Cosine      bool     `json:"cosine,omitempty"`      // components are divided by their lengths
	Eps         *float64 `json:"eps,omitempty"`         // with Cosine: the least length that is divided by; default 1e-6
	Temperature *float64 `json:"temperature,omitempty"` // default 1
	Gate        GateSpec `json:"gate"`
}

// SideSpec describes the components of a source or of a candidate.
type SideSpec struct {
	Components int         `json:"components"`       // how many, at most MaxComponents
	Layers     []LayerSpec `json:"layers,omitempty"` // from the row to its components side by side; none: they are slices of the row
}

// GateSpec describes what the softmax of a mixture is taken of: one number for each pair of
// components. It has up to three parts, each a network. They read the source's row (s), the
// candidate's row (c) and the logits (l).
type GateSpec struct {
	Source    []LayerSpec `json:"source,omitempty"`
	Candidate []LayerSpec `json:"candidate,omitempty"`
	Logits    []LayerSpec `json:"logits,omitempty"`
	Combine   string      `json:"combine"` // glu_silu: u*sigmoid(u) of u = s*c + l, which needs s and c; or sum: s + c + l
}

// The words of GateSpec.Combine.
const (
	CombineGLUSiLU = "glu_silu"
	CombineSum     = "sum"
)

// MaxComponents is how many components a side of a mixture may have.
const MaxComponents = 64

// defaultLength is the default of MixtureSpec.Eps, as the code of the papers has it.
const defaultLength = 1e-6

// mixturePart is one network of a mixture, with the field of the spec that describes it.
type mixturePart struct {
	at     string
	layers []LayerSpec
}

// parts lists the networks of a mixture; a nil one has none.
func (m *MixtureSpec) parts() []mixturePart {
	if m == nil {
		return nil
	}
	return []mixturePart{
		{"mixture.source.layers", m.Source.Layers},
		{"mixture.candidate.layers", m.Candidate.Layers},
		{"mixture.gate.source", m.Gate.Source},
		{"mixture.gate.candidate", m.Gate.Candidate},
		{"mixture.gate.logits", m.Gate.Logits},
	}
}

// gated tells whether a layer is a gated linear unit.
func (m *MixtureSpec) gated() bool {
	for _, p := range m.parts() {
		if slices.ContainsFunc(p.layers, func(l LayerSpec) bool { return l.GLU }) {
			return true
		}
	}
	return false
}

// logits is the number of pairs of components.
func (m *MixtureSpec) logits() int { return m.Source.Components * m.Candidate.Components }

// temperature is what the logits are divided by.
func (m *MixtureSpec) temperature() float64 {
	if m.Temperature == nil {
		return 1
	}
	return *m.Temperature
}

// eps is the least length that a component is divided by.
func (m *MixtureSpec) eps() float64 {
	if m.Eps == nil {
		return defaultLength
	}
	return *m.Eps
}

// mixture checks the mixture of a spec.
func (f *faults) mixture(s *Spec) {
	m := s.Mixture
	if s.Kind != MoL {
		if m != nil {
			f.Add("mixture is out of place: it belongs to kind %s", MoL)
		}
		return
	}
	if m == nil {
		f.Add("mixture is missing; want the components of source and candidate, and the gate")
		return
	}
	f.side("mixture.source", &m.Source, s.Dim)
	f.side("mixture.candidate", &m.Candidate, s.Dim)
	if t := m.temperature(); !isFinite(t) || t <= 0 {
		f.Add("mixture.temperature is %v; want a positive number", t)
	}
	if e := m.eps(); !isFinite(e) || e <= 0 || (m.Eps != nil && !m.Cosine) {
		f.Add("mixture.eps is %v; want a positive number, such as 1e-6, with cosine only", e)
	}
	for _, p := range m.parts() {
		if len(p.layers) > MaxLayers {
			f.Add("%s: %d of them; want at most %d", p.at, len(p.layers), MaxLayers)
		}
		f.layers(p.at, p.layers)
	}
	f.gate(&m.Gate)
}

// side checks the components of one side of a mixture, for rows of dim values.
func (f *faults) side(at string, s *SideSpec, dim int) {
	switch n := s.Components; {
	case n < 1 || n > MaxComponents:
		f.Add("%s.components is %d; want 1 to %d", at, n, MaxComponents)
	case len(s.Layers) == 0 && dim%n != 0:
		f.Add("%s.components is %d: without layers they are slices of the row, whose %d values it does not divide", at, n, dim)
	}
}

func (f *faults) gate(g *GateSpec) {
	f.Word("mixture.gate.combine", g.Combine, CombineGLUSiLU, CombineSum)
	switch {
	case g.Combine == "":
		f.Add("mixture.gate.combine is missing; a state dict does not record it (%s)", fault.Words(CombineGLUSiLU, CombineSum))
	case g.Combine == CombineGLUSiLU && (len(g.Source) == 0 || len(g.Candidate) == 0):
		f.Add("mixture.gate.combine %s multiplies the parts of source and candidate; give both", CombineGLUSiLU)
	case len(g.Source)+len(g.Candidate)+len(g.Logits) == 0:
		f.Add("mixture.gate has no part; want source, candidate or logits")
	}
}

// unknownMixtureFields is unknownFields for a mixture.
func (f *faults) unknownMixtureFields(tree any) {
	fields := f.object("mixture.", tree, []string{"source", "candidate", "cosine", "eps", "temperature", "gate"})
	for _, side := range []string{"source", "candidate"} {
		inner := f.object("mixture."+side+".", fields[side], []string{"components", "layers"})
		f.unknownLayerFields("mixture."+side+".layers", inner["layers"])
	}
	parts := []string{"source", "candidate", "logits"}
	gate := f.object("mixture.gate.", fields["gate"], append(parts, "combine"))
	for _, part := range parts {
		f.unknownLayerFields("mixture.gate."+part, gate[part])
	}
}

// mixture checks that the networks of a mixture lead from rows to components, and to a number for
// each pair of them.
func (c *fitter) mixture(s *Spec) {
	m := s.Mixture
	var width [2]int // of a component
	for i, side := range []*SideSpec{&m.Source, &m.Candidate} {
		p := m.parts()[i]
		out := c.layers(p.at, p.layers, s.Dim, "the row", nil)
		if out%side.Components != 0 {
			c.Add("%s: %d outputs are not %d components of one width", p.at, out, side.Components)
			out = 0
		}
		width[i] = out / side.Components
	}
	if width[0] != width[1] && width[0] > 0 && width[1] > 0 {
		c.Add("mixture: components of the source have %d values, those of the candidate %d; want the same width", width[0], width[1])
	}
	for i, p := range m.parts()[2:] {
		in, from := s.Dim, "the row"
		if i == 2 {
			in, from = m.logits(), "the logits"
		}
		if len(p.layers) == 0 {
			continue
		}
		if out := c.layers(p.at, p.layers, in, from, nil); out > 0 && out != m.logits() {
			c.Add("%s has %d outputs; want %d, one for each pair of components", p.at, out, m.logits())
		}
	}
}
