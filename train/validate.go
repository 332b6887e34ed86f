package train

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// validNegatives is the number of negatives that a validation link is ranked among, and validLinks
// bounds the links. If all links share one list of negatives, a link costs only one score, and
// validLinksShared bounds them.
const (
	validNegatives   = 100
	validLinks       = 5000
	validLinksShared = 40_000
)

// validator ranks the validation links, always the same ones among the same negatives.
type validator struct {
	b      batch
	links  int
	lists  [][]uint32 // the negatives of each link, where they are given
	hits   int        // k of Hits@k; 0: the mean reciprocal rank
	logits []float32
}

func newValidator(s *sampler, split Split, o *Options) *validator {
	v := &validator{}
	own := *s
	own.kind, own.perLink, own.shared, own.fixed = Uniform, validNegatives, 0, true
	v.links = split.validated()
	own.links = evenly(split.Valid, v.links)
	switch {
	case len(split.ValidNegatives) > 0:
		v.hits, own.perLink = o.ValidHits, 0
		own.links = append(own.links, split.ValidNegatives...)
	case split.ValidCandidates != nil:
		own.perLink = 0
		own.lists = evenly(split.ValidCandidates, v.links)
		v.lists = own.lists
	}
	numbers := make([]uint32, len(own.links))
	for i := range numbers {
		numbers[i] = uint32(i)
	}
	own.fill(&v.b, numbers, rand.New(rand.NewPCG(o.Seed, streamSample)))
	v.logits = make([]float32, len(v.b.pairs))
	return v
}

// validated is the number of validation links that are ranked.
func (s *Split) validated() int {
	if len(s.ValidNegatives) > 0 {
		return min(len(s.Valid), validLinksShared)
	}
	return min(len(s.Valid), validLinks)
}

// validPairs is the number of scores of a validation.
func (s *Split) validPairs() int {
	n := s.validated()
	switch {
	case len(s.ValidNegatives) > 0:
		return n + len(s.ValidNegatives)
	case s.ValidCandidates != nil:
		for _, list := range evenly(s.ValidCandidates, n) {
			n += len(list)
		}
		return n
	}
	return n * (1 + validNegatives)
}

// evenly returns n of the items, evenly spaced over the list, because files are often sorted.
func evenly[T any](items []T, n int) []T {
	some := make([]T, n)
	for i := range some {
		some[i] = items[i*len(items)/n]
	}
	return some
}

// metric returns the name of the metric.
func (v *validator) metric() string {
	if v.hits > 0 {
		return fmt.Sprintf("Hits@%d", v.hits)
	}
	return "MRR"
}

// measure returns the metric of the links, or 0 without links. In a rank, a tie counts half a
// place.
func (v *validator) measure(t *trainer) float64 {
	if v.links == 0 {
		return 0
	}
	d := t.head.dim
	z := make([]float32, v.b.rows*d)
	t.enc.embed(z, v.b.nodes)
	t.head.pack()
	perChunk := max(1, chunkPairs/v.b.group) * v.b.group
	tapes := make([]*pairTape, t.cores)
	t.chunks(len(v.b.pairs), perChunk, func(worker, _, first, last int) {
		if tapes[worker] == nil {
			tapes[worker] = t.head.newTape(perChunk)
		}
		pairs := v.b.pairs[first:last]
		tapes[worker].gather(z, d, pairs)
		copy(v.logits[first:last], t.head.forward(tapes[worker], pairs, nil))
	})
	if v.hits > 0 {
		negatives := v.logits[v.links:]
		slices.Sort(negatives) // ascending, NaN first
		return hitsAt(v.logits[:v.links], negatives, v.hits)
	}
	var sum float64
	first := 0
	for i := range v.links {
		last := first + v.b.group
		if v.lists != nil {
			last = first + 1 + len(v.lists[i])
		}
		sum += 1 / rankOf(v.logits[first], v.logits[first+1:last])
		first = last
	}
	return sum / float64(v.links)
}

// hitsAt returns the share of the links that score above the k-th best negative, as OGB counts.
// negatives ascend. With fewer than k negatives every link is a hit.
func hitsAt(links, negatives []float32, k int) float64 {
	if len(negatives) < k {
		return 1
	}
	hits := 0
	for _, x := range links {
		if x > negatives[len(negatives)-k] {
			hits++
		}
	}
	return float64(hits) / float64(len(links))
}

// rankOf returns the place of a score among others, counted from 1. A tie counts half a place. NaN
// is below all.
func rankOf(score float32, others []float32) float64 {
	rank := 1.0
	for _, x := range others {
		switch {
		case x > score || score != score:
			rank++
		case x == score:
			rank += 0.5
		}
	}
	return rank
}
