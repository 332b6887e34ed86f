package train

import "math/rand/v2"

// validNegatives is the number of negatives a validation link is ranked among, and validLinks
// bounds the links.
const (
	validNegatives = 100
	validLinks     = 5000
)

// validator ranks the validation links, always the same ones among the same negatives.
type validator struct {
	b     batch
	links int
}

func newValidator(s *sampler, valid []Edge, seed uint64) *validator {
	v := &validator{links: min(len(valid), validLinks)}
	own := *s
	own.kind, own.perLink, own.links = Uniform, validNegatives, valid
	own.fixed = true
	numbers := make([]uint32, v.links)
	for i := range numbers {
		numbers[i] = uint32(i)
	}
	own.fill(&v.b, numbers, rand.New(rand.NewPCG(seed, streamSample)))
	return v
}

// mrr returns the mean reciprocal rank of the links. A tie counts half a place.
func (v *validator) mrr(t *trainer) float64 {
	if v.links == 0 {
		return 0
	}
	d, group := t.head.dim, v.b.group
	z := make([]float32, v.b.rows*d)
	t.enc.embed(z, v.b.nodes)
	t.head.pack()
	sums := [lanes]float64{}
	tapes := make([]*pairTape, t.cores)
	t.chunks(v.links, 1, func(worker, lane, first, last int) {
		if tapes[worker] == nil {
			tapes[worker] = t.head.newTape(group)
		}
		pairs := v.b.pairs[first*group : last*group]
		tapes[worker].gather(z, d, pairs)
		logit := t.head.forward(tapes[worker], pairs, nil)
		sums[lane] += 1 / rankOf(logit[0], logit[1:])
	})
	var sum float64
	for _, s := range sums {
		sum += s
	}
	return sum / float64(v.links)
}

// rankOf is the place of a score among others, from 1. A tie counts half a place; what is no number
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
