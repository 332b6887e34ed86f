package flashdb

import (
	"context"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/index/ivf"
)

// positions maps ids to the positions of their rows in a generation. It takes four bytes for each
// id. The first query that needs it builds it.
type positions struct {
	gen *ivf.Index
	of  []uint32 // by id; noPosition where the generation has no row
}

const noPosition = math.MaxUint32

// positionsOf returns the positions of a generation.
func (s *served) positionsOf(gen *ivf.Index) *positions {
	if p := s.positions.Load(); p != nil && p.gen == gen {
		return p
	}
	var last uint32
	for _, id := range gen.Positions() {
		last = max(last, id)
	}
	p := &positions{gen: gen, of: make([]uint32, int(last)+1)}
	for id := range p.of {
		p.of[id] = noPosition
	}
	for at, id := range gen.Positions() {
		p.of[id] = at
	}
	s.positions.Store(p)
	return p
}

// filteredRows are the rows of a view that match a filter, for an exact scan. It also passes on
// every row of the delta: the scan filters those.
type filteredRows struct {
	*view
	allowed *roaring.Bitmap
}

// Rows implements flashlight.Rows.
func (r *filteredRows) Rows(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	if r.pinned.gen != nil {
		if err := r.indexed(ctx, fn); err != nil {
			return err
		}
	}
	return r.pinned.delta.Rows(ctx, fn)
}

// indexed passes the allowed rows of the generation to fn. It does not reuse memory: the scan may
// still read earlier blocks.
func (r *filteredRows) indexed(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	const block = 512
	at := r.c.served.positionsOf(r.pinned.gen).of
	ids := make([]uint32, block)
	found := make([]index.Candidate, 0, block)
	it := r.allowed.ManyIterator()
	for n := it.NextMany(ids); n > 0; n = it.NextMany(ids) {
		if err := ctx.Err(); err != nil {
			return err
		}
		found = found[:0]
		kept := make([]uint32, 0, n)
		for _, id := range ids[:n] {
			if uint64(id) < uint64(len(at)) && at[id] != noPosition && !r.masked.Contains(id) {
				found = append(found, index.Candidate{ID: id, Ref: at[id]})
				kept = append(kept, id)
			}
		}
		rows := make([]float32, len(found)*r.Dim())
		if err := r.Gather(rows, found); err != nil {
			return err
		}
		if err := fn(kept, rows); err != nil {
			return err
		}
	}
	return nil
}
