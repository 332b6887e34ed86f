package flashlight

import (
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/simd"
)

// Seed says what the first round searches for. Linear decoders have one query of their own and need no seed.
type Seed string

// The seeds. The last four are learned and need Query.Seeds; without, and where what they lead to is no query (zeros, or
// not finite), a query begins with the ones seed.
const (
	SeedOnes        Seed = "ones"         // the decoder's gradient with every neuron taken active, as in the paper
	SeedSource      Seed = "source"       // the source's row, Query.Source
	SeedBoth        Seed = "both"         // ones and source: two queries, half of the round each
	SeedMean        Seed = "mean"         // the mean of the stored gradients
	SeedNearest     Seed = "nearest"      // the mean of the gradients of the stored sources most like this one
	SeedOnesNearest Seed = "ones+nearest" // the sum of ones and nearest, each divided by its length: one query
	SeedMeanNearest Seed = "mean+nearest" // the sum of mean and nearest, likewise
)

// Learned reports whether the seed needs Query.Seeds.
func (s Seed) Learned() bool {
	switch s {
	case SeedMean, SeedNearest, SeedOnesNearest, SeedMeanNearest:
		return true
	}
	return false
}

// valid reports whether there is such a seed.
func (s Seed) valid() bool {
	return s == SeedOnes || s == SeedSource || s == SeedBoth || s.Learned()
}

// seed sets the queries of the first round. The plan of the report has the seed that was used.
func (e *Executor) seed() {
	e.queries, e.leaders = e.queries[:0], e.leaders[:0]
	seed := e.q.Plan.Seed
	if e.q.Bound.Linear() {
		seed = SeedOnes // the one query that a linear decoder has
	}
	if seed.Learned() {
		if e.learnedSeed(seed) {
			return
		}
		seed = SeedOnes
		e.report.Plan.Seed = seed
	}
	if seed == SeedOnes || seed == SeedBoth {
		e.q.Bound.Ones(e.nextQuery(string(SeedOnes)))
	}
	if seed == SeedSource || seed == SeedBoth {
		copy(e.nextQuery(string(SeedSource)), e.q.Source)
	}
}

// learnedSeed makes the query of a learned seed, or reports false and makes none.
func (e *Executor) learnedSeed(seed Seed) bool {
	stored := e.q.Seeds
	bound, ok := e.q.Bound.(decoder.Separable)
	if !ok || stored.Len() == 0 || stored.dim != e.dim {
		return false
	}
	query, other := e.vectors[0], e.vectors[1] // neither is in use yet
	if seed == SeedMean {
		bound.FromZ(query, stored.mean)
	} else {
		if len(e.q.Source) != e.dim || !usable(e.q.Source) {
			return false
		}
		copy(other, e.q.Source)
		scaleTo1(other)
		e.seedScores = sized(e.seedScores, stored.Len())
		e.leaders = stored.nearest(e.leaders, e.seedScores, other)
		stored.meanOf(query, e.leaders)
		bound.FromZ(query, query)
	}
	switch seed {
	case SeedOnesNearest:
		e.q.Bound.Ones(other)
	case SeedMeanNearest:
		bound.FromZ(other, stored.mean)
	default:
		other = nil
	}
	if other != nil && !addUnits(query, other) || !usable(query) {
		e.leaders = e.leaders[:0]
		return false
	}
	e.nextQuery(string(seed))
	return true
}

// addUnits sets a to a/|a| + b/|b|, or reports false where one has no length.
func addUnits(a, b []float32) bool {
	if !usable(a) || !usable(b) {
		return false
	}
	scaleTo1(a)
	scaleTo1(b)
	simd.Axpy(a, 1, b)
	return true
}

// sources returns the ids of the stored sources that led to the seed, most alike first, or nil.
func (e *Executor) sources() []uint32 {
	var ids []uint32
	for _, n := range e.leaders {
		ids = append(ids, e.q.Seeds.ids[n.at])
	}
	return ids
}
