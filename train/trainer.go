package train

import (
	"math"
	"math/rand/v2"

	"github.com/flashdb/flashdb/internal/simd"
)

// embedder makes embeddings in training: the encoder of the model. One goroutine calls it.
type embedder interface {
	// whole reports whether every step embeds all nodes. Then rows of z are nodes.
	whole() bool
	// forward sets z to the embeddings of nodes, row-major, or of all nodes if whole. If rng is not
	// nil, it applies dropout and keeps what backward needs.
	forward(z []float32, nodes []uint32, rng *rand.PCG)
	// embed sets z to the embeddings of nodes, also if whole. It keeps nothing for backward.
	embed(z []float32, nodes []uint32)
	// backward propagates the gradient of the last z back to the parameters.
	backward(dz []float32, nodes []uint32)
	// update updates the parameters that are not among the params, with the rate and decay of the
	// step.
	update(o adam)
	// tables lists the parameters that are not among the params.
	tables() []*table
	// see sets the links that make up the graph the embeddings are made of.
	see(links []Edge)
}

// chunkPairs is the number of pairs that a lane takes through the decoder at a time. Their tape
// stays in the L2 cache.
const chunkPairs = 128

// trainer fits an encoder and a decoder to links.
type trainer struct {
	crew
	g       *Graph
	o       *Options
	p       *params
	head    *head
	enc     embedder
	sampler *sampler

	b      batch
	z, dz  []float32
	grads  []float32 // of the pairs
	shared shared    // Softmax
	tapes  []*pairTape
	logits [][]float32 // gradients of logits, by worker
	losses [lanes]float64
}

// step trains on some links, given by their numbers, and returns the sum of their losses. All
// random draws follow from seed.
func (t *trainer) step(numbers []uint32, seed uint64, o adam) float64 {
	loss := t.gradients(numbers, seed)
	if t.enc.whole() {
		clip(t.p.grad)
		clip(t.enc.tables()[0].grads)
	}
	t.p.update(o)
	t.enc.update(o)
	return loss * float64(len(numbers))
}

// mostNorm is what the gradients of encoders that embed all nodes are clipped to, as in OGB's
// examples.
const mostNorm = 1

// clip scales a gradient down to a norm of mostNorm, if it is larger.
func clip(grad []float32) {
	var squares float64
	for first := 0; first < len(grad); first += 4096 {
		part := grad[first:min(len(grad), first+4096)]
		squares += float64(simd.Dot(part, part))
	}
	if norm := math.Sqrt(squares); norm > mostNorm {
		scale(grad, float32(mostNorm/norm))
	}
}

// gradients sets the gradients of all parameters for some links, and returns their mean loss.
func (t *trainer) gradients(numbers []uint32, seed uint64) float64 {
	t.sampler.fill(&t.b, numbers, rand.New(rand.NewPCG(seed, streamNegatives)))
	return t.backpropagate(seed, len(numbers))
}

// backpropagate sets the gradients for the batch, of a number of links.
func (t *trainer) backpropagate(seed uint64, links int) float64 {
	d, width := t.head.dim, t.head.width()
	t.z, t.dz = grow(t.z, t.b.rows*d), grow(t.dz, t.b.rows*d)
	t.grads = grow(t.grads, len(t.b.pairs)*width)
	t.enc.forward(t.z, t.b.nodes, rand.NewPCG(seed, streamEncoder))
	t.head.pack()
	var loss float64
	if t.head.queries {
		loss = t.softmax(links)
	} else {
		loss = t.pairs(seed, links)
	}
	t.gather()
	t.enc.backward(t.dz, t.b.nodes)
	t.p.collect()
	return loss
}

// grow returns x with n values, which are unspecified.
func grow(x []float32, n int) []float32 {
	if cap(x) < n {
		return make([]float32, n)
	}
	return x[:n]
}

// pairs runs all pairs forward and backward through the decoder, and returns the mean loss of the
// links.
func (t *trainer) pairs(seed uint64, links int) float64 {
	group, width := t.b.group, t.head.width()
	perChunk := max(1, chunkPairs/group)
	t.losses = [lanes]float64{}
	t.ready(perChunk * group)
	t.chunks(links, perChunk, func(worker, lane, first, last int) {
		tape, pairs := t.tapes[worker], t.b.pairs[first*group:last*group]
		rng := rand.NewPCG(seed, streamDecoder+uint64(first)<<8)
		tape.gather(t.z, t.head.dim, pairs)
		logit, grad := t.head.forward(tape, pairs, rng), t.logits[worker][:len(pairs)]
		for i := 0; i < len(pairs); i += group {
			t.losses[lane] += t.o.Loss.lossGroup(grad[i:i+group], logit[i:i+group], 1/float64(links))
		}
		t.head.backward(tape, lane, t.grads[first*group*width:last*group*width], grad, pairs, true)
	})
	var sum float64
	for _, loss := range t.losses {
		sum += loss
	}
	return sum
}

// ready allocates working memory for chunks of n pairs.
func (t *trainer) ready(n int) {
	for len(t.tapes) < t.cores {
		t.tapes = append(t.tapes, t.head.newTape(n))
		t.logits = append(t.logits, make([]float32, n))
	}
}

// gather sets dz, the gradient of every row, from those of the pairs it is in.
func (t *trainer) gather() {
	d, width, product := t.head.dim, t.head.width(), t.head.product()
	const size = 256
	t.ranges(t.b.rows, size, func(_, first, last int) {
		part := make([]float32, d)
		for row := first; row < last; row++ {
			sum := t.dz[row*d : (row+1)*d]
			clear(sum)
			for _, place := range t.b.places[t.b.start[row]:t.b.start[row+1]] {
				grad := t.grads[int(place/2)*width : int(place/2+1)*width]
				switch p := t.b.pairs[place/2]; {
				case !product:
					simd.Axpy(sum, 1, grad[int(place%2)*d:])
				case place%2 == 0:
					simd.Mul(part, grad, t.z[int(p.target)*d:])
					simd.Axpy(sum, 1, part)
				default:
					simd.Mul(part, grad, t.z[int(p.source)*d:])
					simd.Axpy(sum, 1, part)
				}
			}
		}
	})
	if t.head.queries {
		for i, row := range t.b.shared {
			simd.Axpy(t.dz[int(row)*d:(int(row)+1)*d], 1, t.shared.grads[i*d:(i+1)*d])
		}
	}
}
