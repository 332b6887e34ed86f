package decoder_test

import (
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/flashdb/flashdb/decoder"
)

// reference evaluates a network in float64, step by step as the spec reads, with nothing folded:
// what the package is checked against where PyTorch's numbers do not reach.
type reference struct {
	spec    decoder.Spec
	tensors map[string]decoder.Tensor
}

func (r *reference) logit(source, candidate []float64) float64 {
	var z []float64
	if r.spec.Kind == decoder.HadamardMLP {
		for k := range source {
			z = append(z, source[k]*candidate[k])
		}
	} else {
		z = append(append(z, source...), candidate...)
	}
	z = r.norm(r.spec.InputNorm, z)
	h := z
	for _, l := range r.spec.Layers {
		out := r.linear(l, h)
		switch l.Residual {
		case "input":
			addTo(out, h)
		case "z":
			addTo(out, z)
		}
		if l.NormPosition != "after_activation" {
			out = r.norm(l.Norm, out)
		}
		for k := range out {
			out[k] = activate(l, out[k])
		}
		if l.NormPosition == "after_activation" {
			out = r.norm(l.Norm, out)
		}
		h = out
	}
	return h[r.spec.OutputColumn]
}

func (r *reference) linear(l decoder.LayerSpec, h []float64) []float64 {
	w := r.tensors[l.Weight]
	out := make([]float64, w.Shape[0])
	for o := range out {
		if l.Bias != "" {
			out[o] = float64(r.tensors[l.Bias].Data[o])
		}
		for k := range h {
			out[o] += float64(w.Data[o*len(h)+k]) * h[k]
		}
	}
	return out
}

func (r *reference) norm(n *decoder.NormSpec, h []float64) []float64 {
	if n == nil {
		return h
	}
	eps := 1e-5
	if n.Eps != nil {
		eps = *n.Eps
	}
	var mean, variance float64
	for _, x := range h {
		mean += x / float64(len(h))
	}
	for _, x := range h {
		variance += (x - mean) * (x - mean) / float64(len(h))
	}
	out := make([]float64, len(h))
	for k, x := range h {
		if n.Kind == "batch_norm" {
			mean, variance = float64(r.tensors[n.Mean].Data[k]), float64(r.tensors[n.Var].Data[k])
		}
		out[k] = (x - mean) / math.Sqrt(variance+eps)
		if n.Weight != "" {
			out[k] *= float64(r.tensors[n.Weight].Data[k])
		}
		if n.Bias != "" {
			out[k] += float64(r.tensors[n.Bias].Data[k])
		}
	}
	return out
}

func activate(l decoder.LayerSpec, x float64) float64 {
	switch l.Activation {
	case decoder.ReLU:
		return max(x, 0)
	case decoder.LeakyReLU:
		slope := 0.01
		if l.Slope != nil {
			slope = *l.Slope
		}
		if x > 0 {
			return x
		}
		return slope * x
	case decoder.GELU:
		return x * 0.5 * (1 + math.Erf(x/math.Sqrt2))
	case decoder.GELUTanh:
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	case decoder.SiLU:
		return x / (1 + math.Exp(-x))
	case decoder.Tanh:
		return math.Tanh(x)
	case decoder.Sigmoid:
		return 1 / (1 + math.Exp(-x))
	}
	return x
}

// gradient differentiates logit with respect to the candidate by central differences.
func (r *reference) gradient(source, candidate []float64) []float64 {
	const step = 1e-5
	grad := make([]float64, len(candidate))
	at := append([]float64(nil), candidate...)
	for k := range at {
		at[k] = candidate[k] + step
		up := r.logit(source, at)
		at[k] = candidate[k] - step
		down := r.logit(source, at)
		at[k] = candidate[k]
		grad[k] = (up - down) / (2 * step)
	}
	return grad
}

func addTo(dst, x []float64) {
	for k := range dst {
		dst[k] += x[k]
	}
}

func widen(v []float32) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		w[i] = float64(x)
	}
	return w
}

// builder makes random networks.
type builder struct {
	rng *rand.Rand
	reference
	width int
}

func newBuilder(seed uint64, kind decoder.Kind, dim int) *builder {
	b := &builder{rng: rand.New(rand.NewPCG(seed, 1))}
	b.spec = decoder.Spec{Kind: kind, Dim: dim}
	b.tensors = map[string]decoder.Tensor{}
	b.width = dim
	if kind == decoder.ConcatMLP {
		b.width = 2 * dim
	}
	return b
}

// tensor adds random values of the given spread around mean and returns their key.
func (b *builder) tensor(mean, spread float64, shape ...int) string {
	n := 1
	for _, size := range shape {
		n *= size
	}
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(mean + spread*b.rng.NormFloat64())
	}
	key := "t." + strconv.Itoa(len(b.tensors))
	b.tensors[key] = decoder.Tensor{Shape: shape, Data: data}
	return key
}

func (b *builder) norm(kind string, width int) *decoder.NormSpec {
	n := &decoder.NormSpec{Kind: kind, Weight: b.tensor(1, 0.3, width), Bias: b.tensor(0, 0.3, width)}
	if kind == "batch_norm" {
		n.Mean = b.tensor(0, 0.5, width)
		n.Var = b.tensor(0.7, 0.1, width)
	}
	return n
}

// layer appends a layer of the given width, changed by the given functions.
func (b *builder) layer(out int, act decoder.Activation, change ...func(*decoder.LayerSpec, int)) *builder {
	in := b.width
	if n := len(b.spec.Layers); n > 0 {
		in = b.tensors[b.spec.Layers[n-1].Weight].Shape[0]
	}
	l := decoder.LayerSpec{
		Weight: b.tensor(0, 1/math.Sqrt(float64(in)), out, in), Bias: b.tensor(0, 0.3, out),
		Activation: act,
	}
	for _, c := range change {
		c(&l, out)
	}
	b.spec.Layers = append(b.spec.Layers, l)
	return b
}

func (b *builder) vector() []float32 {
	v := make([]float32, b.spec.Dim)
	for k := range v {
		v[k] = float32(b.rng.NormFloat64())
	}
	return v
}

// rows returns n random rows side by side.
func (b *builder) rows(n int) []float32 {
	var rows []float32
	for range n {
		rows = append(rows, b.vector()...)
	}
	return rows
}
