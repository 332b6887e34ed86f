package decoder

import (
	"math"

	"github.com/flashdb/flashdb/internal/simd"
)

// Which of Scratch.parts belongs to which network of the candidate.
const (
	partComponents = iota
	partGateCandidate
	partGateLogits
)

// molTile is n candidates on their way through a mixture, row-major.
type molTile struct {
	components []float32 // as the candidate's network gives them, n x components*width
	scales     []float32 // what each is multiplied by, n x components
	logits     []float32 // n x logits
	mixed      []float32 // the parts of the gate together, n x logits
	gate       []float32 // what the softmax is taken of, n x logits; may be mixed
}

func (b *molBound) Score(s *Scratch, dst, rows []float32) {
	dim := b.spec.Dim
	for len(dst) > 0 {
		n := min(tileRows, len(dst))
		simd.Prefetch(rows[n*dim : min(2*n*dim, len(rows))])
		s.begin()
		t := b.forward(s, rows[:n*dim], n, false)
		for r := range n {
			at := r * b.logits
			dst[r] = float32(softmax(nil, t.gate[at:at+b.logits], t.logits[at:at+b.logits]))
		}
		dst, rows = dst[n:], rows[n*dim:]
	}
}

// forward computes all but the softmax of n rows. With keep, everything is kept that a backward
// pass asks for.
func (b *molBound) forward(s *Scratch, rows []float32, n int, keep bool) molTile {
	t := molTile{components: rows, scales: s.take(n * b.mix.Candidate.Components), logits: s.take(n * b.logits)}
	if b.candidate != nil {
		t.components = b.candidate.forward(s, &s.parts[partComponents], rows, n, keep)
	}
	b.fillLogits(&t, n)
	t.mixed = s.take(n * b.logits)
	clear(t.mixed)
	if b.gateCandidate != nil {
		copy(t.mixed, b.gateCandidate.forward(s, &s.parts[partGateCandidate], rows, n, keep))
	}
	if len(b.gate) > 0 {
		for r := range n {
			row := t.mixed[r*b.logits : (r+1)*b.logits]
			if b.multiplies() {
				simd.Mul(row, row, b.gate)
			} else {
				simd.Axpy(row, 1, b.gate)
			}
		}
	}
	if b.gateLogits != nil {
		simd.Axpy(t.mixed, 1, b.gateLogits.forward(s, &s.parts[partGateLogits], t.logits, n, keep))
	}
	t.gate = t.mixed
	if b.multiplies() {
		if keep {
			t.gate = s.take(n * b.logits)
		}
		b.combine.apply(t.gate, t.mixed)
	}
	return t
}

// multiplies tells whether the gate is glu_silu.
func (d *mol) multiplies() bool { return d.mix.Gate.Combine == CombineGLUSiLU }

// fillLogits sets the scales and the logits. They are summed in float64: a low temperature makes a
// large logit of what rounding leaves.
func (b *molBound) fillLogits(t *molTile, n int) {
	theirs, width := b.mix.Candidate.Components, b.width
	for c := range n * theirs {
		component := t.components[c*width : (c+1)*width]
		scale := b.scale(component)
		t.scales[c] = float32(scale)
		row := t.logits[c/theirs*b.logits:]
		for i := range b.mix.Source.Components {
			row[i*theirs+c%theirs] = float32(scale * simd.DotWide(b.wide[i*width:(i+1)*width], component))
		}
	}
}

// softmax returns the mean of the logits by the softmax of gate. It writes the weights to dst
// unless that is nil.
func softmax(dst, gate, logits []float32) float64 {
	most := gate[0]
	for _, u := range gate {
		most = max(most, u)
	}
	var sum, weighed float64
	for k, u := range gate {
		w := math.Exp(float64(u - most))
		sum += w
		weighed += w * float64(logits[k])
		if dst != nil {
			dst[k] = float32(w)
		}
	}
	for k := range dst {
		dst[k] = float32(float64(dst[k]) / sum)
	}
	return weighed / sum
}
