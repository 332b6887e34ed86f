package calibrate

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/flashdb/flashdb/decoder"
)

// Pool returns how many evenly drawn sources and rows to pass to Pick for n sources. The sources
// take about half of memory bytes at most, if that is not 0, but there are never fewer than n. They
// are most of what a calibration holds.
func Pool(n, dim int, memory int64) (sources, rows int) {
	sources = poolSources
	if memory > 0 {
		sources = int(min(int64(sources), memory/2/int64(4*dim+sourceBytes)))
	}
	return max(n, sources), weighRows
}

// A Draw is how a source was drawn. ByOdds and ByLinks imitate real queries, which are often about
// active users or well known genes. Such sources have many good candidates, which are hard to rank.
// Nobody knows which of the draws is closest to real queries.
type Draw uint8

// The draws.
const (
	Even    Draw = iota // each source with the same probability
	ByOdds              // in proportion to the summed odds that the decoder gives evenly drawn rows
	ByLinks             // in proportion to its known links, or, if no source has any, to the summed probabilities
	draws
)

// Pick returns n of a pool of evenly drawn sources, in the order in which a run uses them. The
// draws take turns.
//
// Why there are two weights: for a decoder that was trained to tell links from random pairs,
// exp(logit) is the odds of a link. Where degrees differ a thousandfold, as on genes, the sum of
// the odds grows with the degree, while sums of probabilities, each at most 1, differ only tenfold.
// Where degrees differ less, the sum over a sample of rows is mostly noise: on debian and go-stdlib
// the 2% of highest degree have a fifth of all links, but a hundredth of the odds and a sixth of
// the probabilities.
//
// Once enough returns true, the rest of the pool is not looked at, but at least n sources are. rows
// is row-major and may have any number of rows.
func Pick(ctx context.Context, d decoder.Decoder, pool []Source, rows []float32, n int, rng *rand.Rand, enough func() bool) ([]Source, error) {
	n = min(n, len(pool))
	pool, weights, err := weigh(ctx, d, pool, rows, n, enough)
	if err != nil {
		return nil, err
	}
	var orders [draws][]int
	for drawn := range draws {
		orders[drawn] = order(weights[drawn], len(pool), rng)
	}
	picked := make([]Source, 0, n)
	taken := make([]bool, len(pool))
	for len(picked) < n {
		drawn := Draw(len(picked) % int(draws))
		of := orders[drawn]
		for taken[of[0]] {
			of = of[1:]
		}
		taken[of[0]] = true
		s := pool[of[0]]
		s.Drawn = drawn
		picked = append(picked, s)
		orders[drawn] = of
	}
	return picked, nil
}

// weigh returns the weights of the pool for each draw but Even. After the first n it stops when
// enough returns true. It returns the part of the pool that it has weighed.
func weigh(ctx context.Context, d decoder.Decoder, pool []Source, rows []float32, n int, enough func() bool) (weighed []Source, weights [draws][]float64, err error) {
	odds, chances, links := make([]float64, len(pool)), make([]float64, len(pool)), make([]float64, len(pool))
	linked := false
	var scratch decoder.Scratch
	var bound decoder.Bound
	scores := make([]float32, len(rows)/d.Dim())
	for i := range pool {
		if err := ctx.Err(); err != nil {
			return nil, weights, err
		}
		if i >= n && enough() {
			pool = pool[:i]
			break
		}
		links[i] = float64(pool[i].Links)
		linked = linked || links[i] > 0
		bound = d.Bind(bound, pool[i].Vector)
		bound.Score(&scratch, scores, rows)
		for _, s := range scores {
			odds[i] += math.Exp(min(float64(s), mostLogit))
			chances[i] += 1 / (1 + math.Exp(-float64(s)))
		}
	}
	weights[ByOdds], weights[ByLinks] = odds, chances
	if linked {
		weights[ByLinks] = links
	}
	return pool, weights, nil
}

// order returns the numbers below n, drawn one after the other with probabilities in proportion to
// their weights. Without weights it returns them in ascending order.
func order(weights []float64, n int, rng *rand.Rand) []int {
	const least = 1e-9 // so that numbers of weight 0 come last, in random order
	numbers, keys := make([]int, n), make([]float64, n)
	for i := range numbers {
		numbers[i] = i
		if weights != nil {
			// Sorted by -log(u)/w, number i comes first with probability w_i / sum w (Efraimidis
			// and Spirakis 2006).
			keys[i] = -math.Log(rng.Float64()) / (weights[i] + least)
		}
	}
	slices.SortStableFunc(numbers, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	return numbers
}
