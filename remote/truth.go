package remote

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/index"
)

// An asker is a source whose exact answer is wanted.
type asker struct {
	key      string
	vector   []float32
	relation string
	reverse  bool
	excluded map[string]bool // the source itself and its known links

	bound  decoder.Bound
	best   index.TopK
	rows   map[uint32][]float32 // embeddings of the rows in best, and of some that were
	scores []float32            // of the exact answer, best first
}

// answers reads every row of a version once, and sets the exact answers of all askers.
func (c *Collection) answers(ctx context.Context, s *served, t *trained, all []*asker, k int, keepRows bool, progress func(done int64)) error {
	for _, a := range all {
		d, err := decoder.ForRelation(t.Decoder, a.relation, a.reverse)
		if err != nil {
			return fmt.Errorf("%w: decoder %q: %w", flashdb.ErrInvalid, t.name, err)
		}
		a.bound = d.Bind(nil, a.vector)
		a.best.Reset(k)
		a.rows = map[uint32][]float32{}
	}
	workers := min(runtime.GOMAXPROCS(0), len(all))
	scratches := make([]decoder.Scratch, workers)
	scores := make([][]float32, workers)
	next := uint32(0)
	var values []float32
	err := c.db.engine.Scan(ctx, s.name, nil, func(rows []Row) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		values = values[:0]
		for i := range rows {
			if err := s.verify(&rows[i]); err != nil {
				return err
			}
			values = append(values, rows[i].Vector[:s.Dim]...)
		}
		var wait sync.WaitGroup
		for w := range workers {
			wait.Go(func() {
				if cap(scores[w]) < len(rows) {
					scores[w] = make([]float32, len(rows))
				}
				for i := w; i < len(all); i += workers {
					all[i].offer(&scratches[w], scores[w][:len(rows)], rows, values, s.Dim, next, keepRows)
				}
			})
		}
		wait.Wait()
		next += uint32(len(rows))
		if progress != nil {
			progress(int64(next))
		}
		return nil
	})
	for _, a := range all {
		a.scores = a.scores[:0]
		for _, h := range a.best.Sorted(nil) {
			a.scores = append(a.scores, h.Score)
		}
	}
	return gone(err)
}

// offer scores some rows, of which the first has number from.
func (a *asker) offer(scratch *decoder.Scratch, scores []float32, rows []Row, values []float32, dim int, from uint32, keepRows bool) {
	a.bound.Score(scratch, scores, values)
	worst, full := a.best.Worst()
	for i, score := range scores {
		if full && score <= worst || a.excluded[rows[i].Key] {
			continue
		}
		id := from + uint32(i)
		if a.best.Offer(id, score) && keepRows {
			a.rows[id] = slices.Clone(values[i*dim : (i+1)*dim])
		}
		worst, full = a.best.Worst()
	}
}

// recall returns the share of the exact k best that an answer has found. A hit counts if its score
// is at least that of the k-th best, within 1e-5: engines return equal rows in any order.
func (a *asker) recall(hits []flashdb.Hit, k int) float64 {
	k = min(k, len(a.scores))
	if k == 0 {
		return 1
	}
	least := float64(a.scores[k-1])
	least -= 1e-5 * max(math.Abs(least), .1)
	found := 0
	for _, h := range hits[:min(k, len(hits))] {
		if float64(h.Score) >= least {
			found++
		}
	}
	return float64(found) / float64(k)
}

// askersOf returns askers for sources. Of a decoder with relations, each asks for one that is
// drawn.
func (c *Collection) askersOf(ctx context.Context, s *served, t *trained, keys []string, o *flashdb.PredictOptions, rng *rand.Rand) (all []*asker, err error) {
	q := &query{}
	for _, key := range keys {
		o := *o
		if names := t.Spec().Relations; len(names) > 0 && o.Relation == "" {
			o.Relation, o.Reverse = names[rng.IntN(len(names))], rng.IntN(2) == 1
		}
		q.reset(c, s)
		a := &asker{key: key, relation: o.Relation, reverse: o.Reverse, excluded: map[string]bool{}}
		vector, err := c.source(ctx, s, q, key, nil, &o)
		if errors.Is(err, flashdb.ErrNotFound) && !errors.Is(err, errGone) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		a.vector = slices.Clone(vector)
		for it := q.excluded.Iterator(); it.HasNext(); {
			a.excluded[q.view.keys[it.Next()]] = true
		}
		all = append(all, a)
	}
	return all, nil
}

// sample returns up to n keys, evenly drawn from all rows of a version.
func (c *Collection) sample(ctx context.Context, of Name, n int, rng *rand.Rand) (keys []string, err error) {
	seen := 0
	err = c.db.engine.Scan(ctx, of, nil, func(rows []Row) error {
		for i := range rows { // algorithm R (Vitter 1985)
			seen++
			if len(keys) < n {
				keys = append(keys, rows[i].Key)
			} else if at := rng.IntN(seen); at < n {
				keys[at] = rows[i].Key
			}
		}
		return ctx.Err()
	})
	rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys, gone(err)
}

// linkedSources returns up to n different keys of sources, drawn in proportion to their known
// links.
func (c *Collection) linkedSources(ctx context.Context, from string, n int, rng *rand.Rand) (keys []string, err error) {
	seen, drawn := 0, make([]string, 0, n)
	for e, err := range c.local.Links(ctx) {
		if err != nil {
			return nil, err
		}
		if e.SourceCollection != from {
			continue
		}
		seen++
		if len(drawn) < n {
			drawn = append(drawn, e.Source)
		} else if at := rng.IntN(seen); at < n {
			drawn[at] = e.Source
		}
	}
	slices.Sort(drawn)
	drawn = slices.Compact(drawn)
	rng.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	return drawn, nil
}
