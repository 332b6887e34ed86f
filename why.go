package flashdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/flashdb/flashdb/decoder"
)

const (
	whyNamed  = 3  // default of WhyOptions.Named
	whyBlocks = 8  // blocks of dimensions of a Reason, or fewer
	whyHits   = 64 // hits that are read at once, which bounds the memory
	whyRead   = 96 // nodes linked from a source that are looked at
	whyBound  = 16 // of them, those that a decoder that is not symmetric scores: each is bound
)

// WhyOptions are the options of one Why. The zero value, or nil, means the defaults.
type WhyOptions struct {
	// Decoder, Relation, Reverse and SourceCollection are as in PredictOptions.
	Decoder          string
	Relation         string
	Reverse          bool
	SourceCollection string
	// Named is how many nodes each list of a Reason names at most. Default 3.
	Named int
}

func (o *WhyOptions) validate() error {
	var errs []error
	if o.Named < 0 || o.Named > whyRead {
		errs = append(errs, fmt.Errorf("%w: WhyOptions.Named is %d, want 1 to %d, or 0 for the default", ErrInvalid, o.Named, whyRead))
	}
	if o.Reverse && o.Relation == "" {
		errs = append(errs, errReverse)
	}
	return errors.Join(errs...)
}

// A Reason says what supports one hit: which known links of the source resemble it, how it is
// connected to the source through stored links, and which dimensions of the embedding carry its
// score. It is an indication. A decoder sees nothing but two embeddings: it does not look at links,
// and its slope at the hit says nothing about nodes far from it.
type Reason struct {
	Key    string
	Score  float32 // of the decoder
	Linked bool    // the hit is a known link of the source already

	// Known counts the known links of the source: those that Predict leaves out. Compared counts
	// the ones that the lists below are chosen from: at most 96, those that the hit is linked to
	// first, and the others spread evenly.
	Known, Compared int
	// ByScore are the known links that the decoder scores highest as sources of a link to the hit,
	// and ByCosine those whose embeddings point most nearly the same way. ByScore is empty where
	// the decoder scores no such pair: for sources of another collection, and for relations.
	ByScore, ByCosine []Neighbor

	// Paths lead from the source to the hit by two stored links. The first ones are through the
	// nodes that have the fewest links themselves, which say the most. PathCount counts the nodes
	// that paths lead through, of at most 96 that are chosen in the same way.
	Paths     []Path
	PathCount int

	// Blocks are the parts of the score that the dimensions of the hit's embedding carry, in order:
	// value times slope of the score there. Sum is that of all blocks, and Score - Sum is what does
	// not depend on the hit to the first order: biases, and for a concat_mlp the source's own part.
	// Sum is Score for a linear decoder without a constant, and for a hadamard_mlp with activations
	// relu, leaky_relu or identity and without biases and norms.
	Blocks []Block
	Sum    float64
	// For and Against are the known links with the highest sums above 0, and the lowest below 0,
	// when their own values take the place of the hit's in all blocks.
	For, Against []Neighbor
}

// A Neighbor is a known link of the source, compared with a hit.
type Neighbor struct {
	Key    string
	Score  float32 // of the decoder from this node to the hit, in ByScore
	Cosine float32 // of the two embeddings
	Along  float32 // what it has in place of Reason.Sum
}

// A Path is two stored links, between the source and a node, and between that node and a hit.
type Path struct {
	Via string
	// Collection names that of Via, where it is the source's and not that of the hit.
	Collection string
	// Links are the first and the second link in the direction in which they are stored.
	Links [2]Edge
	// Shared tells that the source and the hit are both linked to Via, which is a shared neighbour.
	Shared bool
}

// A Block is the dimensions From, From + 1 to To - 1 of the embedding.
type Block struct {
	From, To     int
	Contribution float64
}

// Why says what supports hits of the node stored under source: one Reason for each, in the order of
// the hits. Hits are keys of any nodes of the collection. The options are those the hits were
// predicted with. A source without links has reasons in the decoder alone. What is said of a hit is
// as of one write.
func (c *Collection) Why(ctx context.Context, source string, hits []string, opts *WhyOptions) ([]Reason, error) {
	leave, err := c.db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	var o WhyOptions
	if opts != nil {
		o = *opts
	}
	if err := cmp.Or(ctx.Err(), o.validate()); err != nil {
		return nil, fmt.Errorf("why in %q: %w", c.name, err)
	}
	o.Named = cmp.Or(o.Named, whyNamed)
	reasons := make([]Reason, 0, len(hits))
	for part := range slices.Chunk(hits, whyHits) {
		e, err := c.evidence(ctx, source, part, o)
		if err != nil {
			return nil, fmt.Errorf("why in %q: %w", c.name, err)
		}
		for i := range part {
			reasons = append(reasons, e.reason(i, o.Named))
		}
	}
	return reasons, nil
}

// reason compares the known links with one hit.
func (e *evidence) reason(i, named int) Reason {
	hit := &e.hits[i]
	r := Reason{Key: hit.key, Linked: hit.linked, Known: e.known, Compared: len(hit.keys), PathCount: len(hit.paths)}
	dim := len(hit.row)
	var score [1]float32
	e.bound.Score(&e.scratch, score[:], hit.row)
	r.Score = score[0]
	slope := make([]float32, dim)
	e.bound.Gradient(&e.scratch, slope, hit.row, nil)
	r.Blocks, r.Sum = blocksOf(hit.row, slope)

	all := make([]Neighbor, len(hit.keys))
	for n := range all {
		row := hit.rows[n*dim : (n+1)*dim]
		all[n] = Neighbor{Key: hit.keys[n], Cosine: cosine(row, hit.row), Along: float32(product(row, slope))}
	}
	cosineOf := func(n Neighbor) float32 { return n.Cosine }
	along := func(n Neighbor) float32 { return n.Along }
	against := func(n Neighbor) float32 { return -n.Along }
	if e.pairs {
		scored := e.scored(all, hit)
		r.ByScore = best(scored, named, func(n Neighbor) float32 { return n.Score })
	}
	r.ByCosine = best(all, named, cosineOf)
	r.For, r.Against = positive(best(all, named, along), along), positive(best(all, named, against), against)
	for _, p := range best(hit.paths, named, func(p foundPath) float32 { return -float32(p.degree) }) {
		r.Paths = append(r.Paths, p.Path)
	}
	return r
}

// scored sets the scores of neighbours against a hit, and returns those that have one. A symmetric
// decoder scores all in one batch, with the hit as the source. Another one must be bound to each
// neighbour, so that only the ones most alike are scored.
func (e *evidence) scored(all []Neighbor, hit *hitEvidence) []Neighbor {
	dim := len(hit.row)
	scores := make([]float32, len(all))
	if symmetric(e.decoder.Kind()) {
		e.pair = e.decoder.Bind(e.pair, hit.row)
		e.pair.Score(&e.scratch, scores, hit.rows)
		for n := range all {
			all[n].Score = scores[n]
		}
		return all
	}
	order := make([]int, len(all))
	for n := range order {
		order[n] = n
	}
	order = best(order, whyBound, func(n int) float32 { return all[n].Cosine })
	scored := make([]Neighbor, len(order))
	for i, n := range order {
		e.pair = e.decoder.Bind(e.pair, hit.rows[n*dim:(n+1)*dim])
		e.pair.Score(&e.scratch, scores[:1], hit.row)
		all[n].Score = scores[0]
		scored[i] = all[n]
	}
	return scored
}

// symmetric tells whether decoders of a kind score a pair the same in both directions.
func symmetric(k decoder.Kind) bool {
	return k == decoder.Dot || k == decoder.DistMult || k == decoder.HadamardMLP
}

// blocksOf returns the products of values and slopes, summed over blocks of nearly the same width.
func blocksOf(row, slope []float32) (blocks []Block, sum float64) {
	n := min(whyBlocks, len(row))
	for b := range n {
		block := Block{From: b * len(row) / n, To: (b + 1) * len(row) / n}
		block.Contribution = product(row[block.From:block.To], slope[block.From:block.To])
		sum += block.Contribution
		blocks = append(blocks, block)
	}
	return blocks, sum
}

// best returns the n values with the highest measure, the highest first. Of equal ones, it takes
// the earlier.
func best[T any](all []T, n int, measure func(T) float32) []T {
	top := make([]T, 0, min(n, len(all)))
	for _, x := range all {
		at := len(top)
		for at > 0 && cmp.Less(measure(top[at-1]), measure(x)) {
			at--
		}
		if at == n {
			continue
		}
		if len(top) == n {
			top = top[:n-1]
		}
		top = slices.Insert(top, at, x)
	}
	return top
}

// positive drops the values whose measure is not above 0.
func positive(all []Neighbor, measure func(Neighbor) float32) []Neighbor {
	return slices.DeleteFunc(all, func(n Neighbor) bool { return !(measure(n) > 0) })
}

// product returns the inner product of two rows.
func product(a, b []float32) (sum float64) {
	for i, x := range a {
		sum += float64(x) * float64(b[i])
	}
	return sum
}

// cosine returns that of the angle between two rows, or 0 if one of them is zero.
func cosine(a, b []float32) float32 {
	lengths := math.Sqrt(product(a, a)) * math.Sqrt(product(b, b))
	if lengths == 0 {
		return 0
	}
	return float32(product(a, b) / lengths)
}
