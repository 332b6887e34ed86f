package calibrate

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/flashdb/flashdb/decoder"
)

// Pool returns how many sources and how many rows, evenly drawn, Pick wants to see for n.
func Pool(n int) (sources, rows int) { return max(n, poolSources), weighRows }

// A Draw is how a source was drawn. The others than Even stand for how databases are asked: about
// active users and well known genes, whose many good candidates are also the hardest to tell from
// one another. Nobody knows which weighs sources best.
type Draw uint8

// The draws.
const (
	Even    Draw = iota // as it comes
	ByOdds              // in proportion to the sum of the odds that the decoder gives evenly drawn rows
	ByLinks             // in proportion to its known links, or, where none are, to the sum of the probabilities
	draws
)

// Pick returns n of a pool of evenly drawn sources, in the order in which a run is to ask them: in
// turns one of each draw.
//
// A decoder that was trained to tell links from random pairs has in exp(logit) the odds of a link
// against such a pair: their sum goes with the number of links where degrees differ a thousandfold,
// which a sum of probabilities, each at most 1, makes ten. But its largest terms, of a sample of
// rows, are mostly noise where they do not. On debian and go-stdlib the 2% of highest degree, with
// a fifth of all links, have a hundredth of the odds and a sixth of the probabilities; on genes it
// is the odds that find the few.
//
// Where enough says so, less than the whole pool is looked at, though never fewer than n. Rows is
// row-major and may be of any length.
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

// weigh returns the weights of the pool for each draw but the even one. It stops after the first n
// when that is enough, and returns the part of the pool that it has weighed.
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

// order returns the numbers up to n, drawn one after the other with probabilities in proportion to
// their weights; as they come without weights.
func order(weights []float64, n int, rng *rand.Rand) []int {
	const least = 1e-9 // so that those without weight come last in any order
	numbers, keys := make([]int, n), make([]float64, n)
	for i := range numbers {
		numbers[i] = i
		if weights != nil {
			// By ascending -log(u)/w each comes first with probability w_i / sum w (Efraimidis and
			// Spirakis 2006).
			keys[i] = -math.Log(rng.Float64()) / (weights[i] + least)
		}
	}
	slices.SortStableFunc(numbers, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	return numbers
}
