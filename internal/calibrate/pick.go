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

// A Draw is how a source was drawn. The others than Even stand for how databases are asked: about active users and well known
// genes, whose many good candidates are also the hardest to tell from one another. Nobody knows which weighs sources best.
type Draw uint8

// The draws.
const (
	Even    Draw = iota // as it comes
	ByOdds              // in proportion to the sum of the odds that the decoder gives evenly drawn rows
	ByLinks             // in proportion to its known links, or, where none are, to the sum of the probabilities
	draws
)

// Pick returns n of a pool of evenly drawn sources, in the order in which a run is to ask them: in turns one of each draw.
//
// A decoder that was trained to tell links from random pairs has in exp(logit) the odds of a link against such a pair: their
// sum goes with the number of links where degrees differ a thousandfold, which a sum of probabilities, each at most 1, makes
// ten. But its largest terms, of a sample of rows, are mostly noise where they do not. On debian and go-stdlib the 2% of highest
// degree, with a fifth of all links, have a hundredth of the odds and a sixth of the probabilities; on genes it is the odds
// that find the few.
//
// Rows is row-major and may be of any length. A source excludes itself and those it is known to be linked to.
func Pick(ctx context.Context, d decoder.Decoder, pool []Source, rows []float32, n int, rng *rand.Rand) ([]Source, error) {
	n = min(n, len(pool))
	weights, err := weigh(ctx, d, pool, rows)
	if err != nil {
		return nil, err
	}
	picked := make([]Source, 0, n)
	taken := make([]bool, len(pool))
	for next := 0; len(picked) < n; {
		for taken[next] {
			next++
		}
		drawn, at := Draw(len(picked)%int(draws)), next
		if drawn != Even {
			at = draw(weights[drawn], taken, rng)
		}
		taken[at] = true
		s := pool[at]
		s.Drawn = drawn
		picked = append(picked, s)
	}
	return picked, nil
}

// weigh returns the weights of the pool for each draw but the even one.
func weigh(ctx context.Context, d decoder.Decoder, pool []Source, rows []float32) (weights [draws][]float64, err error) {
	odds, chances, links := make([]float64, len(pool)), make([]float64, len(pool)), make([]float64, len(pool))
	linked := false
	var scratch decoder.Scratch
	var bound decoder.Bound
	scores := make([]float32, len(rows)/d.Dim())
	for i := range pool {
		if err := ctx.Err(); err != nil {
			return weights, err
		}
		links[i] = float64(max(1, len(pool[i].Excluded)) - 1)
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
	return weights, nil
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
