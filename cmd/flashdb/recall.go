package main

import (
	"math"
	"slices"

	"github.com/flashdb/flashdb"
)

const (
	// tieTolerance, relative, is how far below the true k-th score a hit still counts as found:
	// nodes that tie there are equally right answers.
	tieTolerance = 1e-5
	// scoreFloor is what differences are taken relative to at least, since a logit of zero means
	// nothing in particular.
	scoreFloor = 0.1
)

// A truth is the exact answer of one source, best first.
type truth struct {
	keys   []string
	scores []float64
}

// cut shortens the truth to its best k.
func (t truth) cut(k int) truth {
	k = min(k, len(t.keys))
	return truth{t.keys[:k], t.scores[:k]}
}

// An outcome is how one answer compares with the truth.
type outcome struct {
	recall         float64 // share of the truth found
	maxAbs, maxRel float64 // largest differences of score on common hits
}

// compare judges hits against the exact top-k. A hit is found when its score is at least the true
// k-th score: the true score where the truth lists the hit, the reported one for a hit that can
// only tie.
func compare(hits []flashdb.Hit, exact truth) outcome {
	if len(exact.keys) == 0 {
		return outcome{recall: 1}
	}
	known := make(map[string]float64, len(exact.keys))
	for i, key := range exact.keys {
		known[key] = exact.scores[i]
	}
	kth := exact.scores[len(exact.scores)-1]
	least := kth
	if !math.IsInf(kth, 0) {
		least -= tieTolerance * max(math.Abs(kth), scoreFloor)
	}
	var o outcome
	counted := make(map[string]bool, len(hits))
	for _, h := range hits {
		score := float64(h.Score)
		if want, ok := known[h.Key]; ok {
			abs, rel := differ(score, want)
			o.maxAbs, o.maxRel = max(o.maxAbs, abs), max(o.maxRel, rel)
			score = want
		}
		if score >= least || math.IsNaN(least) { // a NaN ranks last: no score is below it
			counted[h.Key] = true
		}
	}
	o.recall = float64(min(len(counted), len(exact.keys))) / float64(len(exact.keys))
	return o
}

// differ returns how far a score is from the true one, and that relative to it. The same infinity
// twice, or NaN, is no difference; to any other score each is infinite.
func differ(score, want float64) (abs, rel float64) {
	if score == want || math.IsNaN(score) && math.IsNaN(want) {
		return 0, 0
	}
	if abs = math.Abs(score - want); math.IsNaN(abs) || math.IsInf(abs, 0) {
		return math.Inf(1), math.Inf(1)
	}
	return abs, abs / max(math.Abs(want), scoreFloor)
}

// spread returns the mean, the 5th percentile (nearest rank) and the smallest of at least one
// value.
func spread(values []float64) (mean, p5, worst float64) {
	sorted := slices.Sorted(slices.Values(values))
	for _, v := range sorted {
		mean += v
	}
	mean /= float64(len(sorted))
	rank := int(math.Ceil(0.05 * float64(len(sorted))))
	return mean, sorted[max(0, rank-1)], sorted[0]
}
