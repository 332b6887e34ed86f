package calibrate

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/flashdb/flashdb/decoder"
)

// Pick looks at up to poolSources sources and scores each against weighRows rows. The few nodes that have a good part of all
// links, and are asked about as often, must have a chance to be in the pool: a hundredth of the genes has 28% of the links,
// and 2,000 of 46,898 genes held so few of those that plans which fail them looked good.
const (
	poolSources = 20_000
	weighRows   = 64
	mostLogit   = 10 // so that no single row decides
)

// Pool returns how many sources and how many rows, evenly drawn, Pick wants to see for n.
func Pool(n int) (sources, rows int) { return max(n, poolSources), weighRows }

// Pick returns n of a pool of evenly drawn sources, in the order in which a run is to ask them: in turns one as it comes,
// and one drawn in proportion to the links that the decoder expects it to have. A decoder that was trained to tell links
// from random pairs has in exp(logit) the odds of a link against such a pair: their sum over evenly drawn rows goes with the
// number of links, where the sum of probabilities, each at most 1, makes a node with a thousand times the links look like ten times. The second kind stands for how databases are asked: about active users and well known genes, whose many good
// candidates are also the hardest to tell from one another. On four trained graphs the expected links rank sources as
// their true degrees do, with correlations of about 0.5 (debian) to 0.95 (ddi).
//
// Rows is row-major and may be of any length.
func Pick(ctx context.Context, d decoder.Decoder, pool []Source, rows []float32, n int, rng *rand.Rand) ([]Source, error) {
	n = min(n, len(pool))
	weights := make([]float64, len(pool))
	var scratch decoder.Scratch
	var bound decoder.Bound
	scores := make([]float32, len(rows)/d.Dim())
	for i := range pool {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		bound = d.Bind(bound, pool[i].Vector)
		bound.Score(&scratch, scores, rows)
		for _, s := range scores {
			weights[i] += math.Exp(min(float64(s), mostLogit))
		}
	}
	picked := make([]Source, 0, n)
	taken := make([]bool, len(pool))
	take := func(i int, expected bool) {
		taken[i] = true
		s := pool[i]
		s.Expected = expected
		picked = append(picked, s)
	}
	next := 0
	for len(picked) < n {
		for taken[next] {
			next++
		}
		take(next, false)
		if len(picked) < n {
			take(draw(weights, taken, rng), true)
		}
	}
	return picked, nil
}

// draw returns one that is not taken, with a probability in proportion to its weight. One is left.
func draw(weights []float64, taken []bool, rng *rand.Rand) int {
	const least = 1e-9 // so that one is found when all weights vanish
	best, at := math.Inf(-1), -1
	for i, w := range weights {
		if taken[i] {
			continue
		}
		// The largest of log(u)/w is that of i with probability w_i / sum w (Efraimidis and Spirakis 2006).
		if key := math.Log(rng.Float64()) / (w + least); at < 0 || key > best {
			best, at = key, i
		}
	}
	return at
}
