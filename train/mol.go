package train

import (
	"math"
	"math/rand/v2"

	"github.com/flashdb/flashdb/internal/simd"
)

// mixture is a mixture of logits in training: Zhai et al., "Revisiting Neural Retrieval on
// Accelerators", KDD 2023, and Ding and Zhai, "Retrieval with Learned Similarities", 2024. Source
// and target each have some components, which one matrix makes of the embedding. The cosine of each
// pair of components, over a temperature, is a logit. The score is the mean of the logits by the
// softmax of a gate: three networks, which read the source, the target and the logits. See
// decoder.MixtureSpec.
type mixture struct {
	components int // of each side
	width      int // of a component
	source     *network
	target     *network
	gateSource *network
	gateTarget *network
	gateLogits *network
}

const (
	// mixtureComponents is the default of Options.Components.
	mixtureComponents = 4
	// mixtureTemperature is that of the published configurations.
	mixtureTemperature = 0.05
	// leastLength is the least length that a component is divided by, as the decoder has it.
	leastLength = 1e-6
)

// logits is the number of pairs of components.
func (m *mixture) logits() int { return m.components * m.components }

// componentWidth is the width of a component: half of an embedding's.
func componentWidth(dim int) int { return max(1, dim/2) }

// newMixture reserves the weights. The gate has the hidden layers of the decoder.
func newMixture(p *params, o *Options, rng *rand.Rand) *mixture {
	m := &mixture{components: o.Components, width: componentWidth(o.Dim)}
	side := func() *network { return newNetwork(p, rng, false, 0, o.Dim, m.components*m.width) }
	gate := func(in int) *network {
		widths := append([]int{in}, o.DecoderHidden...)
		return newNetwork(p, rng, o.DecoderNorm, o.Dropout, append(widths, m.logits())...)
	}
	m.source, m.target = side(), side()
	m.gateSource, m.gateTarget, m.gateLogits = gate(o.Dim), gate(o.Dim), gate(m.logits())
	return m
}

// networks lists the parts, with the names under which the decoder keeps them.
func (m *mixture) networks() map[string]*network {
	return map[string]*network{
		"source": m.source, "target": m.target,
		"gate.source": m.gateSource, "gate.target": m.gateTarget, "gate.logits": m.gateLogits,
	}
}

func (m *mixture) pack() {
	for _, n := range m.networks() {
		n.pack()
	}
}

// mixtureTape is what backward needs of the forward pass of some pairs.
type mixtureTape struct {
	source, target                     *tape
	gateSource, gateTarget, gateLogits *tape
	sides                              [2]unitRows
	logits                             []float32 // n x logits
	parts                              [3][]float32
	mixed                              []float32 // what the gate's sigmoid reads, n x logits
	weights                            []float32 // the softmax, n x logits
	score                              []float32
	grad                               [4][]float32 // of mixed, of the two parts that are multiplied, and of the logits
}

// unitRows are components over their lengths, n x components*width, and one over each length.
type unitRows struct{ unit, inverse, grad []float32 }

func (m *mixture) newTape(n int) *mixtureTape {
	t := &mixtureTape{
		source: m.source.newTape(n, n), target: m.target.newTape(n, n),
		gateSource: m.gateSource.newTape(n, n), gateTarget: m.gateTarget.newTape(n, n), gateLogits: m.gateLogits.newTape(n, n),
		score: make([]float32, n),
	}
	for i := range t.sides {
		size := n * m.components * m.width
		t.sides[i] = unitRows{make([]float32, size), make([]float32, n*m.components), make([]float32, size)}
	}
	l := n * m.logits()
	t.logits, t.mixed, t.weights = make([]float32, l), make([]float32, l), make([]float32, l)
	for i := range t.grad {
		t.grad[i] = make([]float32, l)
	}
	return t
}

// normalise divides components by their lengths.
func (u *unitRows) normalise(rows []float32, width int) {
	for i := 0; i*width < len(rows); i++ {
		row := rows[i*width : (i+1)*width]
		u.inverse[i] = 1 / max(leastLength, float32(math.Sqrt(float64(simd.Dot(row, row)))))
		for k, x := range row {
			u.unit[i*width+k] = x * u.inverse[i]
		}
	}
}

// back turns the gradient with respect to the unit rows into that with respect to the rows.
func (u *unitRows) back(n, width int) []float32 {
	grad := u.grad[:n*width]
	for i := range n {
		row, unit := grad[i*width:(i+1)*width], u.unit[i*width:(i+1)*width]
		along := simd.Dot(row, unit)
		for k := range row {
			row[k] = u.inverse[i] * (row[k] - along*unit[k])
		}
	}
	return grad
}

// forward returns the scores of n pairs of embeddings u and v.
func (m *mixture) forward(t *mixtureTape, u, v []float32, n int, rng *rand.PCG) []float32 {
	c, w, l := m.components, m.width, m.logits()
	t.sides[0].normalise(m.source.forward(t.source, u, n, rng), w)
	t.sides[1].normalise(m.target.forward(t.target, v, n, rng), w)
	for r := range n {
		for i := range c {
			from := t.sides[0].unit[(r*c+i)*w : (r*c+i+1)*w]
			for j := range c {
				t.logits[r*l+i*c+j] = simd.Dot(from, t.sides[1].unit[(r*c+j)*w:(r*c+j+1)*w]) / mixtureTemperature
			}
		}
	}
	t.parts[0] = m.gateSource.forward(t.gateSource, u, n, rng)
	t.parts[1] = m.gateTarget.forward(t.gateTarget, v, n, rng)
	t.parts[2] = m.gateLogits.forward(t.gateLogits, t.logits[:n*l], n, rng)
	for r := range n {
		var most, sum, weighed float64
		row := t.weights[r*l : (r+1)*l]
		for k := range row {
			x := t.parts[0][r*l+k]*t.parts[1][r*l+k] + t.parts[2][r*l+k]
			t.mixed[r*l+k] = x
			row[k] = x * sigmoid(x)
			most = max(most, float64(row[k]))
		}
		for k := range row {
			e := math.Exp(float64(row[k]) - most)
			row[k] = float32(e)
			sum += e
			weighed += e * float64(t.logits[r*l+k])
		}
		scale(row, float32(1/sum))
		t.score[r] = float32(weighed / sum)
	}
	return t.score[:n]
}

// sigmoid is the logistic function.
func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

// backward propagates the gradients of the scores back to the embeddings: those of u and v of each
// pair go to dst side by side.
func (m *mixture) backward(t *mixtureTape, lane int, dst, dScore []float32, n int, dropped bool) {
	l := m.logits()
	for r, g := range dScore {
		for k := r * l; k < (r+1)*l; k++ {
			x := t.mixed[k]
			s := sigmoid(x)
			d := g * t.weights[k] * (t.logits[k] - t.score[r]) * s * (1 + x*(1-s))
			t.grad[0][k], t.grad[1][k], t.grad[2][k] = d, d*t.parts[1][k], d*t.parts[0][k]
			t.grad[3][k] = g * t.weights[k]
		}
	}
	simd.Axpy(t.grad[3][:n*l], 1, m.gateLogits.backward(t.gateLogits, lane, t.grad[0][:n*l], n, true, dropped))
	m.backwardLogits(t, n)
	c, w, d := m.components, m.width, m.source.in()
	for side, part := range []struct {
		row, gate         *network
		rowTape, gateTape *tape
		gateGrad          []float32
	}{
		{m.source, m.gateSource, t.source, t.gateSource, t.grad[1]},
		{m.target, m.gateTarget, t.target, t.gateTarget, t.grad[2]},
	} {
		through := part.row.backward(part.rowTape, lane, t.sides[side].back(n*c, w), n, true, false)
		gated := part.gate.backward(part.gateTape, lane, part.gateGrad[:n*l], n, true, dropped)
		for r := range n {
			at := dst[(2*r+side)*d : (2*r+side+1)*d]
			copy(at, through[r*d:(r+1)*d])
			simd.Axpy(at, 1, gated[r*d:(r+1)*d])
		}
	}
}

// backwardLogits propagates the gradients of the logits back to the unit components.
func (m *mixture) backwardLogits(t *mixtureTape, n int) {
	c, w := m.components, m.width
	from, to := &t.sides[0], &t.sides[1]
	clear(from.grad[:n*c*w])
	clear(to.grad[:n*c*w])
	for r := range n {
		for i := range c {
			a := (r*c + i) * w
			for j := range c {
				b := (r*c + j) * w
				g := t.grad[3][r*c*c+i*c+j] / mixtureTemperature
				simd.Axpy(from.grad[a:a+w], g, to.unit[b:b+w])
				simd.Axpy(to.grad[b:b+w], g, from.unit[a:a+w])
			}
		}
	}
}
