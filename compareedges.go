package flashdb

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/calibrate"
	"github.com/flashdb/flashdb/storage"
)

// rankCandidates is among how many nodes a target is ranked at most. Their embeddings in both
// releases are held in memory. More of them would leave time for fewer links, and the number of
// links is what a difference is judged by.
const rankCandidates = 2000

// A ranker ranks the same links in two releases.
type ranker struct {
	d     *DecoderComparison
	p     pair
	o     CompareOptions
	edges []Edge
	began time.Time

	ids     []uint32 // candidates
	rows    [2][]float32
	scores  []float32
	inverse [2][]float64 // 1 / rank
}

// run ranks the links, and returns the inverse of the ranks in each release.
func (r *ranker) run(ctx context.Context) ([2][]float64, error) {
	if err := r.load(); err != nil {
		return r.inverse, err
	}
	e := &EdgeComparison{Candidates: len(r.ids)}
	r.d.Edges = e
	// In any order: there may be time for some of them only.
	for i, at := range rand.New(rand.NewPCG(r.o.RandomSeed, 0xed6e)).Perm(len(r.edges)) {
		edge := r.edges[at]
		if ctx.Err() != nil {
			return r.inverse, context.Cause(ctx)
		}
		if i >= 2 && time.Since(r.began) > r.o.Time {
			e.LeftOut += len(r.edges) - i
			break
		}
		ok, err := r.rank(edge)
		if err != nil {
			return r.inverse, fmt.Errorf("link %d, from %q to %q: %w", at+1, edge.Source, edge.Target, err)
		}
		if !ok {
			e.LeftOut++
		}
		if r.o.Progress != nil {
			r.o.Progress("rank links of "+r.d.Collection, int64(i+1), int64(len(r.edges)))
		}
	}
	e.Edges = len(r.inverse[0])
	e.Live, e.Staged = ranksOf(r.inverse[0]), ranksOf(r.inverse[1])
	e.Difference, e.Margin = e.Staged.MRR-e.Live.MRR, margin(r.inverse[0], r.inverse[1])
	return r.inverse, nil
}

// ranksOf sums up inverse ranks.
func ranksOf(inverse []float64) (s EdgeRanks) {
	n := float64(max(1, len(inverse)))
	for _, x := range inverse {
		for _, hits := range []struct {
			sum *float64
			k   float64
		}{{&s.Hits1, 1}, {&s.Hits10, 10}, {&s.Hits50, 50}} {
			if x >= 1/hits.k {
				*hits.sum += 1 / n
			}
		}
	}
	s.MRR = calibrate.Mean(inverse)
	return s
}

// load draws the candidates and reads their embeddings.
func (r *ranker) load() error {
	both, err := r.p.both()
	if err != nil {
		return err
	}
	dim := r.p.live.schema.Dim
	for i, of := range r.p.each() {
		err := of.view(func(v *storage.View) error {
			if i == 0 {
				info, _ := v.Collection(of.name)
				info.Rows = int(both.GetCardinality())
				r.ids = sampleIDs(info, v.Tombs(of.uid), both, rankCandidates, r.o.RandomSeed)
				slices.Sort(r.ids)
			}
			r.rows[i] = make([]float32, len(r.ids)*dim)
			for j, id := range r.ids {
				v.Row(r.rows[i][j*dim:(j+1)*dim], of.uid, id) // of a node deleted meanwhile it is zero
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	r.scores = make([]float32, len(r.ids))
	return nil
}

// rank ranks one link in both releases. It returns false if it cannot be ranked in both.
func (r *ranker) rank(e Edge) (bool, error) {
	var inverse [2]float64
	for i, of := range r.p.each() {
		var from, to []float32
		var bound decoder.Bound
		out := roaring.New()
		err := of.viewedWith(context.Background(), r.d.Decoder, func(v *storage.View, t *trained) error {
			d, err := t.of(e.Relation, false)
			if err != nil {
				return err
			}
			source, err := of.rowsOfSources(v, e.SourceCollection)
			if err != nil {
				return err
			}
			from, to = nil, nil
			id, ok := v.ID(source.UID, e.Source)
			if !ok || hasNoRow(v, source.UID, id) {
				return nil
			}
			target, ok := v.ID(of.uid, e.Target)
			if !ok || hasNoRow(v, of.uid, target) {
				return nil
			}
			from, to = make([]float32, of.schema.Dim), make([]float32, of.schema.Dim)
			if _, err := of.sourceRow(v, source, from, e.Source); err != nil {
				return err
			}
			v.Row(to, of.uid, target)
			if links := knownLinks(v, source.UID, id, of.uid, e.Relation, false); links != nil {
				out.Or(links)
			}
			if source.UID == of.uid {
				out.Add(id)
			}
			out.Add(target)
			bound = d.Bind(nil, from)
			return nil
		})
		if err != nil || from == nil || to == nil {
			return false, err
		}
		inverse[i] = 1 / r.rankOf(bound, r.rows[i], to, out)
	}
	for i, x := range inverse {
		r.inverse[i] = append(r.inverse[i], x)
	}
	return true, nil
}

// rankOf returns the rank of a row among the candidates, the mean of the best and the worst where
// others have the same score.
func (r *ranker) rankOf(b decoder.Bound, rows, row []float32, out *roaring.Bitmap) float64 {
	var scratch decoder.Scratch
	var own [1]float32
	b.Score(&scratch, own[:], row)
	b.Score(&scratch, r.scores, rows)
	better, same := 0, 0
	for i, id := range r.ids {
		if out.Contains(id) {
			continue
		}
		switch cmp.Compare(r.scores[i], own[0]) {
		case 1:
			better++
		case 0:
			same++
		}
	}
	return 1 + float64(better) + float64(same)/2
}
