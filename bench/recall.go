package main

import (
	"math"

	"github.com/flashdb/flashdb"
)

const (
	// tieTolerance, relative, is how far below the true k-th score a hit still counts as found:
	// nodes that tie there are equally right answers.
	tieTolerance = 1e-5
	// scoreFloor is what the tolerance is taken of at least, since a logit of zero means nothing in
	// particular.
	scoreFloor = 0.1
)

// A truth is the exact answer for one source.
type truth struct {
	scores map[string]float64 // true scores of the k best nodes, by key
	kth    float64            // the lowest of them
}

// newTruth makes a truth of nodes and their scores, best first.
func newTruth(keys []string, scores []float64) truth {
	t := truth{scores: make(map[string]float64, len(keys))}
	for i, key := range keys {
		t.scores[key] = scores[i]
		t.kth = scores[i]
	}
	return t
}

// truthOf takes the hits of an exact scan for the truth.
func truthOf(hits []flashdb.Hit) truth {
	t := truth{scores: make(map[string]float64, len(hits))}
	for _, h := range hits {
		t.scores[h.Key] = float64(h.Score)
		t.kth = float64(h.Score)
	}
	return t
}

// recall returns the share of the truth that was found, by the rule of "flashdb eval": a hit is
// found when its score is at least the true k-th score, within tieTolerance. Its score is the true
// one where the truth lists it, and the reported one for a hit that can only tie.
func (t truth) recall(hits []flashdb.Hit) float64 {
	if len(t.scores) == 0 {
		return 1
	}
	least := t.kth - tieTolerance*max(math.Abs(t.kth), scoreFloor)
	found := make(map[string]bool, len(hits))
	for _, h := range hits {
		score, ok := t.scores[h.Key]
		if !ok {
			score = float64(h.Score)
		}
		if score >= least {
			found[h.Key] = true
		}
	}
	return float64(min(len(found), len(t.scores))) / float64(len(t.scores))
}
