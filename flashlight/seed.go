package flashlight

import (
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/simd"
)

// Seed says what the first round searches for. Linear decoders have one query of their own and need
// no seed.
type Seed string

// The seeds.
const (
	SeedOnes    Seed = "ones"    // the decoder's gradient with every neuron taken active, as in the paper
	SeedSource  Seed = "source"  // the source's row, Query.Source
	SeedBoth    Seed = "both"    // ones and source: two queries, half of the round each
	SeedLearned Seed = "learned" // what searches for the sources most like this one ended with (Query.Seeds); ones without

	// SeedLearnedOnes is learned and ones: two queries, half of the round each; ones without
	// learned.
	SeedLearnedOnes Seed = "learned+ones"

	// SeedComponents is a query for each pair of components of a mixture of logits, with equal
	// parts of the round; for each component of the candidate where there are more than 16 pairs;
	// ones where there are more than 16 of those, and for another decoder.
	SeedComponents Seed = "components"
)

// valid reports whether there is such a seed.
func (s Seed) valid() bool {
	return s == SeedOnes || s == SeedSource || s == SeedBoth || s == SeedComponents || s.Learned()
}

// Learned reports whether the seed needs stored sources: see Query.Seeds.
func (s Seed) Learned() bool { return s == SeedLearned || s == SeedLearnedOnes }

// seed sets the plan, and the queries of its first round. Where the learned seed cannot be had the
// plan is another.
func (e *Executor) seed() {
	e.queries, e.leaders = e.queries[:0], e.leaders[:0]
	e.plan = e.q.Plan
	if len(e.q.Start) > 0 && !e.q.Bound.Linear() {
		e.q.Bound.Gradient(&e.decoder, e.nextQuery("start"), e.q.Start, nil)
		e.bound()
		return
	}
	if e.plan.Seed.Learned() {
		if e.learnedSeed() {
			if e.plan.Seed == SeedLearnedOnes {
				e.q.Bound.Ones(e.nextQuery(string(SeedOnes)))
				e.bound()
			}
			return
		}
		e.plan.Seed = SeedOnes
		if e.q.Fallback != nil {
			e.plan = *e.q.Fallback
		}
	}
	if e.plan.Seed == SeedComponents && !e.componentSeed() {
		e.plan.Seed = SeedOnes
	}
	seed := e.plan.Seed
	if e.q.Bound.Linear() {
		seed = SeedOnes // the one query that a linear decoder has
	}
	if seed == SeedOnes || seed == SeedBoth {
		e.q.Bound.Ones(e.nextQuery(string(SeedOnes)))
	}
	if seed == SeedSource || seed == SeedBoth {
		copy(e.nextQuery(string(SeedSource)), e.q.Source)
	}
	e.bound()
}

// componentSeed makes the queries of the components, or reports false and makes none. The round
// takes rows from each in turn.
func (e *Executor) componentSeed() bool {
	mixture, ok := e.q.Bound.(decoder.Mixture)
	if !ok {
		return false
	}
	source, candidate := mixture.Components()
	switch {
	case source*candidate <= maxQueries:
		for i := range source {
			for j := range candidate {
				mixture.LogitQuery(&e.decoder, e.nextQuery(string(SeedComponents)), i, j)
			}
		}
	case candidate <= maxQueries:
		e.rows = sized(e.rows, e.dim)
		for j := range candidate {
			sum := e.nextQuery(string(SeedComponents))
			clear(sum)
			for i := range source {
				mixture.LogitQuery(&e.decoder, e.rows, i, j)
				simd.Axpy(sum, 1, e.rows)
			}
		}
	default:
		return false
	}
	return true
}

// learnedSeed makes the query of the learned seed, or reports false and makes none: without stored
// sources, where none of them resembles the source, and where what they lead to is no query (zeros,
// or not finite).
func (e *Executor) learnedSeed() bool {
	stored := e.q.Seeds
	bound, ok := e.q.Bound.(decoder.Separable)
	if !ok || stored.Len() == 0 || stored.dim != e.dim || len(e.q.Source) != e.dim || !usable(e.q.Source) {
		return false
	}
	for i := range 2 {
		e.vectors[i] = sized(e.vectors[i], e.dim)
	}
	query, ones := e.vectors[0], e.vectors[1] // neither is in use yet
	copy(ones, e.q.Source)
	scaleTo1(ones)
	e.seedScores = sized(e.seedScores, stored.Len())
	e.leaders = stored.nearest(e.leaders, e.seedScores, ones)
	if !(e.leaders[0].cosine >= leastAlike) { // it may be a NaN
		e.leaders = e.leaders[:0]
		return false
	}
	stored.meanOf(query, e.leaders)
	bound.FromZ(query, query)
	if !usable(query) {
		e.leaders = e.leaders[:0]
		return false
	}
	scaleTo1(query)
	if e.q.Bound.Ones(ones); usable(ones) {
		scaleTo1(ones)
		simd.Axpy(query, onesShare, ones)
	}
	e.nextQuery(string(SeedLearned))
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
