package train

import (
	"math"
	"math/rand/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/simd"
)

// The loss Softmax ranks every link of a batch among the same negatives. Its decoders are linear in
// the target: the logit of a pair is the inner product of the target and a query, which is made
// from the source and the relation. So all logits of a batch are one product of matrices, and a
// link can have a thousand negatives for what a few cost each pair by pair.

// sharedNegatives is the default of Options.PerLink where links share them.
const sharedNegatives = 1024

// hasQuery reports whether a decoder in training has a query.
func hasQuery(kind decoder.Kind) bool {
	return kind == decoder.Dot || kind == decoder.DistMult || kind == decoder.ComplEx
}

// shared is the working memory of Softmax for one batch.
type shared struct {
	rows, grads []float32   // of the negatives, n x dim
	packed      simd.Matrix // rows
	back        simd.Matrix // rows, transposed
	lane        [lanes][]float32
	sums        [lanes]simd.Product
	workers     []sharedTape
}

// sharedTape is the working memory for a chunk of links. One goroutine uses it at a time.
type sharedTape struct {
	query, slope []float32 // and the gradient of the query; chunkPairs x dim
	logits       []float32 // chunkPairs x n, then their gradients
}

// ready makes room for a batch.
func (s *shared) ready(cores, dim int, b *batch, z []float32) {
	n := len(b.shared)
	s.rows, s.grads = grow(s.rows, n*dim), grow(s.grads, n*dim)
	for i, row := range b.shared {
		copy(s.rows[i*dim:(i+1)*dim], z[int(row)*dim:])
	}
	simd.Pack(&s.packed, s.rows, n, dim, nil)
	simd.PackTransposed(&s.back, s.rows, dim, n)
	for i := range s.lane {
		s.lane[i] = grow(s.lane[i], n*dim)
		clear(s.lane[i])
	}
	if s.workers == nil {
		s.workers = make([]sharedTape, cores)
	}
	for i := range s.workers {
		w := &s.workers[i]
		w.query, w.slope = grow(w.query, chunkPairs*dim), grow(w.slope, chunkPairs*dim)
		w.logits = grow(w.logits, chunkPairs*n)
	}
}

// softmax runs all links forward and backward against the shared negatives, and returns their mean
// loss. It sets the gradients of the pairs, source and target side by side, and of the negatives.
func (t *trainer) softmax(links int) float64 {
	d, n, s := t.head.dim, len(t.b.shared), &t.shared
	s.ready(t.cores, d, &t.b, t.z)
	t.losses = [lanes]float64{}
	t.chunks(links, chunkPairs, func(worker, lane, first, last int) {
		w, m := &s.workers[worker], last-first
		pairs, grads := t.b.pairs[first:last], t.grads[2*first*d:2*last*d]
		for i, p := range pairs {
			t.head.query(w.query[i*d:(i+1)*d], t.zRow(p.source), p)
		}
		logits := w.logits[:m*n]
		s.packed.Mul(logits, w.query[:m*d], nil, m)
		for i, p := range pairs {
			row := logits[i*n : (i+1)*n]
			for _, known := range t.b.masked[t.b.maskStart[first+i]:t.b.maskStart[first+i+1]] {
				row[known] = float32(math.Inf(-1))
			}
			loss, slope := softmaxGroup(row, simd.Dot(w.query[i*d:(i+1)*d], t.zRow(p.target)), 1/float64(links))
			t.losses[lane] += loss
			target := grads[(2*i+1)*d : (2*i+2)*d] // its gradient is the query times the slope
			clear(target)
			simd.Axpy(target, slope, w.query[i*d:(i+1)*d])
			grads[2*i*d] = slope // lent until the gradient of the query is known
		}
		s.back.Mul(w.slope[:m*d], logits, nil, m)
		s.sums[lane].Add(s.lane[lane], logits, w.query, m, n, d)
		for i, p := range pairs {
			slope := w.slope[i*d : (i+1)*d]
			simd.Axpy(slope, grads[2*i*d], t.zRow(p.target))
			t.head.backwardQuery(lane, grads[2*i*d:(2*i+1)*d], slope, t.zRow(p.source), p)
		}
	})
	clear(s.grads)
	var sum float64
	for lane, loss := range t.losses {
		sum += loss
		simd.Axpy(s.grads, 1, s.lane[lane])
	}
	return sum
}

// zRow is the embedding of a row of the batch.
func (t *trainer) zRow(row uint32) []float32 {
	return t.z[int(row)*t.head.dim : (int(row)+1)*t.head.dim]
}

// softmaxGroup returns the cross-entropy of a link among negatives, and the gradient of its logit.
// It turns the logits of the negatives into their gradients. All are multiplied by weight.
func softmaxGroup(logits []float32, link float32, weight float64) (loss float64, slope float32) {
	most := link
	for _, x := range logits {
		most = max(most, x)
	}
	own := math.Exp(float64(link - most))
	sum := own
	for i, x := range logits {
		e := math.Exp(float64(x - most))
		logits[i] = float32(e)
		sum += e
	}
	scale(logits, float32(weight/sum))
	return (math.Log(sum) + float64(most-link)) * weight, float32((own/sum - 1) * weight)
}

// query writes what the target of a pair is multiplied with.
func (h *head) query(dst, source []float32, p pair) {
	switch h.kind {
	case decoder.DistMult:
		simd.Mul(dst, source, h.relationRow(p.relation))
	case decoder.ComplEx:
		queryComplex(dst, source, h.relationRow(p.relation), p.reverse)
	default:
		copy(dst, source)
	}
}

// backwardQuery writes the gradient of the source to dst, from that of the query, and adds that of
// the relation to the lane's.
func (h *head) backwardQuery(lane int, dst, slope, source []float32, p pair) {
	if h.kind == decoder.Dot {
		copy(dst, slope)
		return
	}
	r := int(p.relation)
	relation, grads := h.relationRow(p.relation), h.p.laneGrad(lane, h.weight)[r*h.dim:(r+1)*h.dim]
	if h.kind == decoder.ComplEx {
		backwardQueryComplex(dst, grads, slope, source, relation, p.reverse)
		return
	}
	simd.Mul(dst, slope, source)
	simd.Axpy(grads, 1, dst)
	simd.Mul(dst, slope, relation)
}

// fillShared is fill for Softmax: a pair for each link, and negatives that they share, each once.
// If there are no more candidates than negatives wanted, all of them are negatives.
func (s *sampler) fillShared(b *batch, links []Edge, rng *rand.Rand) {
	b.group, b.nodes, b.pairs, b.shared = 1, b.nodes[:0], b.pairs[:0], b.shared[:0]
	for i, e := range links {
		reverse := s.turned && rng.Uint64()&1 == 0
		if reverse {
			links[i].Source, links[i].Target = e.Target, e.Source
			e = links[i]
		}
		b.pairs = append(b.pairs, pair{s.rowOf(b, e.Source), s.rowOf(b, e.Target), e.Relation, reverse})
	}
	first, candidates := s.g.firstTarget(), s.g.Nodes-s.g.firstTarget()
	negatives := make([]uint32, 0, min(s.shared, candidates))
	for i := range min(s.shared, candidates) {
		node := uint32(first + i)
		if candidates > s.shared {
			node = s.candidate(rng, links)
		}
		if s.place[node] == 0 {
			negatives = append(negatives, node)
			s.place[node] = int32(len(negatives))
			b.shared = append(b.shared, s.rowOf(b, node))
		}
	}
	b.maskStart, b.masked = append(b.maskStart[:0], 0), b.masked[:0]
	for i, e := range links {
		s.mask(b, e, b.pairs[i].reverse)
		b.maskStart = append(b.maskStart, uint32(len(b.masked)))
	}
	for _, node := range negatives {
		s.place[node] = 0
	}
	s.finish(b)
}

// mask lists the shared negatives that are known to be targets of the source of e, among them its
// own target, and the source.
func (s *sampler) mask(b *batch, e Edge, reverse bool) {
	if at := s.place[e.Source]; at > 0 {
		b.masked = append(b.masked, uint32(at-1))
	}
	for _, node := range s.targets.of(e.Source) {
		e.Target = node
		if at := s.place[node]; at > 0 && (!s.related || s.known(e, reverse)) {
			b.masked = append(b.masked, uint32(at-1))
		}
	}
}
