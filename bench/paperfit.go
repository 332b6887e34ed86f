package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/flashdb/flashdb/internal/simd"
)

// fitRecord is appendix A: mean squared errors on held-out pairs, whose labels have variance 1. An
// error of 1 is that of the mean. Errors are means over the repeats, and Spread their standard
// deviations.
type fitRecord struct {
	Dim     int       `json:"dim"`
	Samples []int     `json:"samples"`
	Epochs  []int     `json:"epochs"`
	Lines   []fitLine `json:"lines"`
}

// fitLine is one learner and what it learned.
type fitLine struct {
	Name      string    `json:"name"`
	BySamples []float64 `json:"by_samples"` // after the last epoch
	Spread    []float64 `json:"spread"`
	ByEpoch   []float64 `json:"by_epoch"` // of the most samples
}

// The learners of appendix A.
const (
	fitMLPOfDot = "an MLP learns the dot product"
	fitMLPOfMLP = "an MLP learns another MLP"
	fitDotOfMLP = "a dot product learns an MLP"
)

// fitDim measures the learners at one width.
func (r *paperRun) fitDim(ctx context.Context, dim int) (fitRecord, error) {
	f := r.settings.Fit
	return recorded(r.records, fmt.Sprintf("fit/%d", dim), func() (fitRecord, error) {
		record := fitRecord{Dim: dim, Samples: f.Samples}
		for epoch := range f.Epochs {
			record.Epochs = append(record.Epochs, epoch+1)
		}
		for _, l := range []struct {
			name    string
			hidden  int
			teacher bool
		}{{fitMLPOfDot, f.Hidden, false}, {fitMLPOfMLP, f.Hidden, true}, {fitDotOfMLP, 0, true}} {
			line := fitLine{Name: l.name, ByEpoch: make([]float64, f.Epochs)}
			for _, samples := range f.Samples {
				var last []float64
				for repeat := range f.Repeats {
					if ctx.Err() != nil {
						return record, ctx.Err()
					}
					task := fitTask{dim: dim, hidden: l.hidden, samples: samples, epochs: f.Epochs, seed: uint64(repeat)}
					if l.teacher {
						task.teacher = f.Hidden
					}
					errors := task.run()
					last = append(last, errors[len(errors)-1])
					if samples == f.Samples[len(f.Samples)-1] {
						addTo(line.ByEpoch, errors, 1/float64(f.Repeats))
					}
				}
				line.BySamples, line.Spread = append(line.BySamples, mean(last)), append(line.Spread, deviation(last))
			}
			record.Lines = append(record.Lines, line)
		}
		return record, nil
	})
}

// addTo adds factor times x to sum.
func addTo(sum, x []float64, factor float64) {
	for i := range sum {
		sum[i] += factor * x[i]
	}
}

// deviation returns the standard deviation of a sample, NaN of fewer than two values.
func deviation(values []float64) float64 {
	if len(values) < 2 {
		return math.NaN()
	}
	m, squares := mean(values), 0.0
	for _, v := range values {
		squares += (v - m) * (v - m)
	}
	return math.Sqrt(squares / float64(len(values)-1))
}

// fitPairs are products z = x * y of random rows, and labels of variance 1.
type fitPairs struct {
	z      []float32 // row-major
	labels []float32
}

// newFitPairs draws n pairs. The values of x and y are normal with a variance of d^-1/2, so that
// x.y has a variance of 1. The label is x.y, or what teacher makes of z.
func newFitPairs(rng *rand.Rand, n, dim int, teacher *fitNet) fitPairs {
	p := fitPairs{z: make([]float32, n*dim), labels: make([]float32, n)}
	sd := math.Pow(float64(dim), -.25)
	for i := range p.z {
		p.z[i] = float32(rng.NormFloat64() * sd * rng.NormFloat64() * sd)
	}
	for i := range p.labels {
		z := p.z[i*dim : (i+1)*dim]
		if teacher != nil {
			p.labels[i] = teacher.score(z)
			continue
		}
		for _, v := range z {
			p.labels[i] += v
		}
	}
	return p
}

// standardise gives the labels of a teacher mean 0 and variance 1, by those of many pairs.
func standardise(labels []float32, center, scale float64) {
	for i := range labels {
		labels[i] = float32((float64(labels[i]) - center) / scale)
	}
}

// fitTask is what one learner has to learn.
type fitTask struct {
	dim     int
	hidden  int // units of the learner; 0: a dot product with a weight for each dimension
	teacher int // units of the MLP that is learned; 0: the dot product is
	samples int
	epochs  int
	seed    uint64
}

// run trains the learner and returns its error on held-out pairs after each epoch.
func (f fitTask) run() []float64 {
	dim := f.dim
	rng := rand.New(rand.NewPCG(f.seed, 4))
	var teacher *fitNet
	center, scale := 0.0, 1.0
	if f.teacher > 0 {
		teacher = newFitNet(rng, dim, f.teacher)
		// Rows of z have a length of about 1: these weights bend the teacher where they lie.
		for i := range teacher.first(0, f.teacher*dim) {
			teacher.value[i] *= float32(math.Sqrt(float64(dim)))
		}
		many := newFitPairs(rng, 4000, dim, teacher)
		for _, y := range many.labels {
			center += float64(y) / float64(len(many.labels))
		}
		squares := 0.0
		for _, y := range many.labels {
			squares += math.Pow(float64(y)-center, 2) / float64(len(many.labels))
		}
		scale = math.Sqrt(squares)
	}
	pairs, held := newFitPairs(rng, f.samples, dim, teacher), newFitPairs(rng, 2000, dim, teacher)
	standardise(pairs.labels, center, scale)
	standardise(held.labels, center, scale)
	net := newFitNet(rng, dim, f.hidden)
	errors := make([]float64, f.epochs)
	for epoch := range errors {
		rate := 0.005 * (1 - 0.95*float64(epoch)/float64(f.epochs))
		net.epoch(rng, pairs, rate)
		for i, y := range held.labels {
			errors[epoch] += math.Pow(float64(net.score(held.z[i*dim:(i+1)*dim])-y), 2) / float64(len(held.labels))
		}
	}
	return errors
}

// fitNet is a network of one hidden layer with ReLU on z, or without hidden units w.z + b, trained
// by Adam.
type fitNet struct {
	dim, hidden int
	value       []float32 // weights of the hidden layer, row-major; its biases; those of the output; its bias
	grad        []float32
	mean, power []float32
	step        int
	units       []float32
}

func newFitNet(rng *rand.Rand, dim, hidden int) *fitNet {
	n := &fitNet{dim: dim, hidden: hidden, units: make([]float32, hidden)}
	size := hidden*dim + 2*hidden + 1
	if hidden == 0 {
		size = dim + 1
	}
	n.value, n.grad = make([]float32, size), make([]float32, size)
	n.mean, n.power = make([]float32, size), make([]float32, size)
	for i := range n.first(0, hidden*dim) {
		n.value[i] = float32(rng.NormFloat64() * math.Sqrt(2/float64(dim)))
	}
	for i := range n.first(hidden*dim+hidden, hidden) {
		n.value[hidden*dim+hidden+i] = float32(rng.NormFloat64() * math.Sqrt(1/float64(hidden)))
	}
	return n
}

// first returns n values from one on.
func (n *fitNet) first(from, count int) []float32 { return n.value[from : from+count] }

// score returns the output, and leaves the hidden units in n.units.
func (n *fitNet) score(z []float32) float32 {
	if n.hidden == 0 {
		return simd.Dot(n.first(0, n.dim), z) + n.value[n.dim]
	}
	h, d := n.hidden, n.dim
	simd.DotRows(n.units, z, n.first(0, h*d))
	for i, b := range n.first(h*d, h) {
		n.units[i] = max(0, n.units[i]+b)
	}
	return simd.Dot(n.units, n.first(h*d+h, h)) + n.value[len(n.value)-1]
}

// back adds the gradient of a half of the squared error, whose derivative is slope.
func (n *fitNet) back(z []float32, slope float32) {
	n.grad[len(n.grad)-1] += slope
	if n.hidden == 0 {
		simd.Axpy(n.grad[:n.dim], slope, z)
		return
	}
	h, d := n.hidden, n.dim
	output := n.first(h*d+h, h)
	simd.Axpy(n.grad[h*d+h:h*d+2*h], slope, n.units)
	for i, unit := range n.units {
		if unit > 0 {
			simd.Axpy(n.grad[i*d:(i+1)*d], slope*output[i], z)
			n.grad[h*d+i] += slope * output[i]
		}
	}
}

// epoch learns every pair once, in a random order.
func (n *fitNet) epoch(rng *rand.Rand, p fitPairs, rate float64) {
	const batch = 32
	order := rng.Perm(len(p.labels))
	for first := 0; first < len(order); first += batch {
		some := order[first:min(len(order), first+batch)]
		clear(n.grad)
		for _, i := range some {
			z := p.z[i*n.dim : (i+1)*n.dim]
			n.back(z, (n.score(z)-p.labels[i])/float32(len(some)))
		}
		n.adam(rate)
	}
}

// adam takes a step (Kingma and Ba, arXiv 1412.6980, algorithm 1).
func (n *fitNet) adam(rate float64) {
	const first, second, epsilon = 0.9, 0.999, 1e-8
	n.step++
	size := float32(rate * math.Sqrt(1-math.Pow(second, float64(n.step))) / (1 - math.Pow(first, float64(n.step))))
	for i, g := range n.grad {
		n.mean[i] = first*n.mean[i] + (1-first)*g
		n.power[i] = second*n.power[i] + (1-second)*g*g
		n.value[i] -= size * n.mean[i] / (float32(math.Sqrt(float64(n.power[i]))) + epsilon)
	}
}
