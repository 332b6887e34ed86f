package main

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/train"
)

// flashlightRecord is how well a model predicts where all scores come from the index.
type flashlightRecord struct {
	Metrics map[string]float64 `json:"metrics"` // as trainedRecord has them
	Queries int                `json:"queries"` // one for each source, for Hits@k
	Asked   int                `json:"asked"`   // rows, by each of these queries
	Scored  float64            `json:"scored"`  // rows, mean of these queries
}

// The searches of the last column of table 2. For Hits@k each source is asked once, for many
// candidates it is not linked to: the best of the negatives are of sources that have many good
// candidates. For the MRR each test link is asked for, among its own negatives: half as many rows
// are retrieved as there are.
var tableOwn = struct{ rounds, perRound, k int }{2, 250, 500}

const (
	deepRounds = 4
	leastDeep  = 1000
	mostDeep   = 10_000     // unless few sources are asked
	deepInAll  = 20_000_000 // rows of all sources
)

// deep returns the number of candidates that are retrieved for Hits@k, where so many sources are
// asked: half of the candidates, or fewer of a large graph.
func (s *paperServed) deep(sources int) int {
	return min(max(mostDeep, deepInAll/max(1, sources)), max(leastDeep, s.n/2))
}

// flashlighted measures a model by the rule of its graph with what Flashlight retrieves from an
// index. A pair that is not retrieved scores below all others.
func (r *paperRun) flashlighted(ctx context.Context, graph string, encoder train.EncoderKind, seed int) (flashlightRecord, error) {
	return recorded(r.records, "flashlight/"+modelKey(graph, encoder, "hadamard_mlp", seed), func() (record flashlightRecord, err error) {
		p, err := r.graph(graph)
		if err != nil {
			return record, err
		}
		s, remove, err := r.indexedSeed(ctx, graph, encoder, seed)
		if err != nil {
			return record, err
		}
		defer func() { err = errors.Join(err, remove()) }()
		record.Metrics = map[string]float64{}
		if p.negatives != nil {
			err = s.hits(ctx, p, &record)
		}
		if err != nil || p.lists == nil {
			return record, err
		}
		record.Metrics[mrrName], err = s.mrr(ctx, p)
		return record, err
	})
}

// indexedSeed returns the model of any seed behind an index, and what removes the index where it is
// not kept.
func (r *paperRun) indexedSeed(ctx context.Context, graph string, encoder train.EncoderKind, seed int) (s *paperServed, remove func() error, err error) {
	if seed == 1 {
		s, err = r.indexed(ctx, paperServing{graph, encoder})
		return s, func() error { return nil }, err
	}
	m, err := r.model(ctx, graph, encoder, seed)
	if err != nil {
		return nil, nil, err
	}
	s, err = servePaper(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	return s, s.close, nil
}

// hits measures Hits@k: the links and the negatives have the scores that the index returned.
func (s *paperServed) hits(ctx context.Context, p *paperGraph, record *flashlightRecord) error {
	scores, err := s.retrievedScores(ctx, p, slices.Concat(p.split.Test, p.negatives), record)
	if err != nil {
		return err
	}
	links, negatives := scores[:len(p.split.Test)], scores[len(p.split.Test):]
	slices.Sort(negatives)
	for _, k := range p.rule.Hits {
		record.Metrics[hitsName(k)] = hitsAt(links, negatives, k)
	}
	return nil
}

// hitsAt is the share of the links that score above the k-th best of the negatives, which ascend.
// Of fewer than k negatives every link is a hit, as OGB counts.
func hitsAt(links, negatives []float32, k int) float64 {
	hits := 0
	for _, x := range links {
		if len(negatives) < k || x > negatives[len(negatives)-k] {
			hits++
		}
	}
	return float64(hits) / float64(len(links))
}

// retrievedScores returns the scores of pairs, in their order: minus infinity where the search for
// the source did not bring the target.
func (s *paperServed) retrievedScores(ctx context.Context, p *paperGraph, pairs []train.Edge, record *flashlightRecord) ([]float32, error) {
	known := p.known()
	bySource := map[uint32][]int{}
	for i, e := range pairs {
		bySource[e.Source] = append(bySource[e.Source], i)
	}
	scores := make([]float32, len(pairs))
	k := s.deep(len(bySource))
	record.Asked = k
	plan := ours(deepRounds, (k+deepRounds-1)/deepRounds, flashlight.SeedOnes)
	found := map[uint32]float32{}
	for source, numbers := range bySource {
		q := s.query(int(source), k, plan)
		if q.Excluded == nil {
			q.Excluded = roaring.New()
		}
		for _, node := range known[source] {
			q.Excluded.Add(node - uint32(s.first))
		}
		hits, report, err := s.run(ctx, q, s.ix)
		if err != nil {
			return nil, err
		}
		record.Queries++
		record.Scored += float64(report.RowsScored) / float64(len(bySource))
		clear(found)
		for _, h := range hits {
			found[h.ID] = h.Score
		}
		for _, i := range numbers {
			score, ok := found[pairs[i].Target-uint32(s.first)]
			if !ok {
				score = float32(math.Inf(-1))
			}
			scores[i] = score
		}
	}
	return scores, nil
}

// mrr ranks each test link among its own negatives, by a search that may return no other rows. What
// is not retrieved ties for the places behind what is.
func (s *paperServed) mrr(ctx context.Context, p *paperGraph) (float64, error) {
	plan := ours(tableOwn.rounds, tableOwn.perRound, flashlight.SeedOnes)
	var sum float64
	for i, e := range p.split.Test {
		allowed := roaring.BitmapOf(e.Target - uint32(s.first))
		for _, node := range p.lists[i] {
			allowed.Add(node - uint32(s.first))
		}
		q := s.query(int(e.Source), tableOwn.k, plan)
		q.Allowed = allowed
		hits, _, err := s.run(ctx, q, s.ix)
		if err != nil {
			return 0, err
		}
		scores := map[uint32]float32{}
		for _, h := range hits {
			scores[h.ID] = h.Score
		}
		sum += 1 / retrievedRank(scores, e.Target-uint32(s.first), p.lists[i], uint32(s.first))
	}
	return sum / float64(len(p.split.Test)), nil
}

// retrievedRank is the place of a target among negatives, by the scores of those of them that were
// retrieved. A tie counts half a place.
func retrievedRank(scores map[uint32]float32, target uint32, negatives []uint32, first uint32) float64 {
	own, found := scores[target]
	rank := 1.0
	for _, node := range negatives {
		score, ok := scores[node-first]
		switch {
		case ok && (!found || score > own):
			rank++
		case ok == found && (!ok || score == own):
			rank += .5
		}
	}
	return rank
}
