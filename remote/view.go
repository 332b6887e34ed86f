package remote

import (
	"context"
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/index"
)

// A view is what one query sees of a version: the rows that the engine has returned so far. It
// numbers keys in the order in which it meets them, because the executor knows rows by number. It
// implements flashlight.Searcher and flashlight.Rows.
type view struct {
	c       *Collection
	s       *served
	filter  *Filter
	partial string // which part of the rows did not answer, of any round

	ids     map[string]uint32
	keys    []string
	found   []Row // by Candidate.Ref
	cost    index.Cost
	whole   bool // the last search compared every row
	vectors [][]float32
	exclude []string
}

// open begins another query.
func (v *view) open(c *Collection, s *served, f *Filter) {
	v.c, v.s, v.filter, v.partial = c, s, f, ""
	if v.ids == nil {
		v.ids = map[string]uint32{}
	}
	clear(v.ids)
	clear(v.keys) // so that the rows of a query can be freed after it
	clear(v.found)
	v.keys, v.found = v.keys[:0], v.found[:0]
	v.Reset()
}

// Reset begins another search for the same query. Keys keep their numbers.
func (v *view) Reset() {
	clear(v.found)
	v.found, v.cost, v.whole = v.found[:0], index.Cost{}, false
}

// id returns the number of a key.
func (v *view) id(key string) uint32 {
	id, ok := v.ids[key]
	if !ok {
		id = uint32(len(v.keys))
		v.ids[key], v.keys = id, append(v.keys, key)
	}
	return id
}

// effort returns the Effort for a share of the rows.
func (v *view) effort(p index.Probes) int {
	if p.Lists > 0 {
		return p.Lists
	}
	return int(math.Ceil(p.Share * float64(v.s.rows)))
}

// Search implements flashlight.Searcher by one call of the engine. Probes are the Effort: a number
// of lists is the effort itself, and a share is that share of the rows.
func (v *view) Search(ctx context.Context, queries [][]float32, n int, probes index.Probes, filter index.Filter, dst [][]index.Candidate) error {
	for len(v.vectors) < len(queries) {
		v.vectors = append(v.vectors, nil)
	}
	for i, q := range queries {
		v.vectors[i] = asked(v.vectors[i], q, v.s.Norm)
	}
	a, err := v.c.db.engine.Search(ctx, v.s.name, &Query{
		Vectors: v.vectors[:len(queries)], N: n, Effort: max(n, v.effort(probes)), Exact: probes.All(),
		Exclude: v.excluded(filter.Excluded), Filter: v.filter,
	})
	switch {
	case err != nil:
		return gone(err)
	case len(a.Rows) != len(queries):
		return fmt.Errorf("the engine answered %d of %d query vectors", len(a.Rows), len(queries))
	case a.Missing != "":
		v.partial = a.Missing
	}
	v.whole = probes.All()
	for i, rows := range a.Rows {
		dst[i] = dst[i][:0]
		for j := range rows {
			r := &rows[j]
			if err := v.s.verify(r); err != nil {
				return err
			}
			id := v.id(r.Key)
			if filter.Excluded != nil && filter.Excluded.Contains(id) { // the engine has not left it out
				continue
			}
			dst[i] = append(dst[i], index.Candidate{ID: id, Ref: uint32(len(v.found)), Score: product(queries[i], r.Vector)})
			v.found = append(v.found, *r)
		}
		v.cost.Rows += len(rows)
	}
	v.cost.Lists++ // a round trip
	return nil
}

// excluded returns the keys of the excluded numbers.
func (v *view) excluded(ids *roaring.Bitmap) []string {
	v.exclude = v.exclude[:0]
	if ids != nil {
		for it := ids.Iterator(); it.HasNext(); {
			v.exclude = append(v.exclude, v.keys[it.Next()])
		}
	}
	return v.exclude
}

// product is the inner product of a query with the embedding of a row.
func product(q, row []float32) float32 {
	var sum float64
	for i, x := range q {
		sum += float64(x) * float64(row[i])
	}
	return float32(sum)
}

// Cost implements flashlight.Searcher: Lists counts round trips, and Rows the rows that came back.
func (v *view) Cost() index.Cost { return v.cost }

// Exhausted implements flashlight.Searcher.
func (v *view) Exhausted() bool { return v.whole }

// Dim implements flashlight.Rows.
func (v *view) Dim() int { return v.s.Dim }

// Gather implements flashlight.Rows.
func (v *view) Gather(dst []float32, c []index.Candidate) error {
	for i := range c {
		copy(dst[i*v.s.Dim:(i+1)*v.s.Dim], v.found[c[i].Ref].Vector)
	}
	return nil
}

// Rows implements flashlight.Rows by a Scan. It numbers every key, so it needs memory for all keys.
func (v *view) Rows(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	err := v.c.db.engine.Scan(ctx, v.s.name, v.filter, func(rows []Row) error {
		// A new block each time: workers may read the one before until Rows returns.
		ids, values := make([]uint32, 0, len(rows)), make([]float32, 0, len(rows)*v.s.Dim)
		for i := range rows {
			if err := v.s.verify(&rows[i]); err != nil {
				return err
			}
			ids = append(ids, v.id(rows[i].Key))
			values = append(values, rows[i].Vector[:v.s.Dim]...)
		}
		v.cost.Rows += len(rows)
		return fn(ids, values)
	})
	return gone(err)
}
