package flashlight

import (
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/simd"
)

// Seed says which query vectors the first round has. A linear decoder has one query vector of its
// own and needs no seed.
type Seed string

// The seeds.
const (
	SeedOnes    Seed = "ones"    // the decoder's gradient with every neuron active, as in the paper
	SeedSource  Seed = "source"  // the source's row, Query.Source
	SeedBoth    Seed = "both"    // ones and source: two query vectors with half of the round each
	SeedLearned Seed = "learned" // made from the sources most similar to this one (Query.Seeds); ones without any

	// SeedLearnedOnes is learned and ones: two query vectors with half of the round each. Without
	// learned seeds it is ones.
	SeedLearnedOnes Seed = "learned+ones"

	// SeedComponents is a query vector for each pair of components of a mixture of logits, with
	// equal parts of the round. If there are more than 16 pairs, it is one for each component of
	// the candidate. If there are more than 16 of these, or for another decoder, it is ones.
	SeedComponents Seed = "components"
)

// valid reports whether there is such a seed.
func (s Seed) valid() bool {
	return s == SeedOnes || s == SeedSource || s == SeedBoth || s == SeedComponents || s.Learned()
}

// Learned reports whether the seed needs Query.Seeds.
func (s Seed) Learned() bool { return s == SeedLearned || s == SeedLearnedOnes }

// seed sets the plan, and the query vectors of its first round. If a learned seed is not available,
// it sets another plan.
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
		seed = SeedOnes // the only query vector of a linear decoder
	}
	if seed == SeedOnes || seed == SeedBoth {
		e.q.Bound.Ones(e.nextQuery(string(SeedOnes)))
	}
	if seed == SeedSource || seed == SeedBoth {
		copy(e.nextQuery(string(SeedSource)), e.q.Source)
	}
	e.bound()
}

// componentSeed makes the query vectors of SeedComponents and returns true, or makes none and
// returns false. The round takes rows from each in turn.
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

// learnedSeed makes the query vector of a learned seed and returns true, or makes none and returns
// false. It makes none without stored sources, if none of them is similar to the source, or if the
// result is all zeros or not finite.
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
	if !(e.leaders[0].cosine >= leastAlike) { // it may be NaN
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

// sources returns the ids of the stored sources that the seed was made from, most similar first, or
// nil.
func (e *Executor) sources() []uint32 {
	var ids []uint32
	for _, n := range e.leaders {
		ids = append(ids, e.q.Seeds.ids[n.at])
	}
	return ids
}
