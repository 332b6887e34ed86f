package delta

import (
	"context"
	"math"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/simd"
)

// Snapshot is a Table as of one write.
type Snapshot struct {
	table  *Table
	epoch  int
	chunks []*chunk
	slots  int
	masked *roaring.Bitmap
	dead   *roaring.Bitmap
}

// Len returns the number of rows.
func (s *Snapshot) Len() int { return s.slots - int(s.dead.GetCardinality()) }

// Masked returns the ids that an older generation must not serve: all that were put or deleted. The
// caller must not change it.
func (s *Snapshot) Masked() *roaring.Bitmap { return s.masked }

// block returns the part of chunk c that the snapshot covers, and its first slot.
func (s *Snapshot) block(c int) (ids []uint32, rows []float32, first int) {
	first = c * s.table.chunkRows
	n := min(s.table.chunkRows, s.slots-first)
	return s.chunks[c].ids[:n], s.chunks[c].rows[:n*s.table.dim], first
}

// row returns the row in a slot. It aliases the table's memory, which never changes.
func (s *Snapshot) row(slot int) []float32 {
	c, i, d := s.chunks[slot/s.table.chunkRows], slot%s.table.chunkRows, s.table.dim
	return c.rows[i*d : (i+1)*d : (i+1)*d]
}

// Row returns the row of id, or false when the snapshot has none. The caller must not change the
// row.
func (s *Snapshot) Row(id uint32) ([]float32, bool) {
	if !s.masked.Contains(id) {
		return nil, false
	}
	slot, found, sure := s.table.find(s, id)
	if !sure {
		slot, found = s.look(id)
	}
	if !found {
		return nil, false
	}
	return s.row(slot), true
}

// look finds the slot of the row of id by going through all slots.
func (s *Snapshot) look(id uint32) (slot int, found bool) {
	for c := range s.chunks {
		ids, _, first := s.block(c)
		for i, other := range ids {
			if slot := first + i; other == id && !s.dead.Contains(uint32(slot)) {
				return slot, true
			}
		}
	}
	return 0, false
}

// Rows calls fn with all rows, a run of neighbouring slots at a time: rows is row-major, len(ids) x
// dim. The slices alias the table's memory and must not be changed. It stops at the first error of
// fn or of the context.
func (s *Snapshot) Rows(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	for c := range s.chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		ids, rows, first := s.block(c)
		for from := 0; from < len(ids); {
			if s.dead.Contains(uint32(first + from)) {
				from++
				continue
			}
			to := from + 1
			for to < len(ids) && !s.dead.Contains(uint32(first+to)) {
				to++
			}
			if err := fn(ids[from:to:to], rows[from*s.table.dim:to*s.table.dim:to*s.table.dim]); err != nil {
				return err
			}
			from = to
		}
	}
	return nil
}

// search is the scratch of one Search.
type search struct {
	best   []index.Best // one per query
	scores []float32    // of one chunk
}

var searches = sync.Pool{New: func() any { return new(search) }}

// Search finds, for each query, the n rows of highest inner product that the filter keeps, and
// stores them in dst[i], best first, reusing its memory. Ref is the slot, for Gather. Scores are
// exact. n must be positive, queries are of dim finite floats and len(dst) >= len(queries).
func (s *Snapshot) Search(queries [][]float32, n int, filter index.Filter, dst [][]index.Candidate) {
	sc := searches.Get().(*search)
	defer searches.Put(sc)
	for len(sc.best) < len(queries) {
		sc.best = append(sc.best, index.Best{})
	}
	if cap(sc.scores) < s.table.chunkRows {
		sc.scores = make([]float32, s.table.chunkRows)
	}
	for q := range queries {
		sc.best[q].Reset(n)
	}
	for c := range s.chunks {
		ids, rows, first := s.block(c)
		scores := sc.scores[:len(ids)]
		for q, query := range queries {
			simd.DotRows(scores, query, rows)
			s.offer(&sc.best[q], query, ids, scores, first, &filter)
		}
	}
	for q := range queries {
		dst[q] = sc.best[q].Sorted(dst[q][:0])
	}
}

// offer adds the rows of one chunk that live and that the filter keeps. A score may have overflowed
// on the way to one that is high after all.
func (s *Snapshot) offer(best *index.Best, query []float32, ids []uint32, scores []float32, first int, filter *index.Filter) {
	for i, score := range scores {
		if score < best.Threshold() && score >= -math.MaxFloat32 {
			continue
		}
		slot := uint32(first + i)
		if !simd.Safe(score) {
			score = simd.SafeDot(query, s.row(int(slot)))
		}
		if score >= best.Threshold() && !s.dead.Contains(slot) && filter.Keep(ids[i]) {
			best.Offer(index.Candidate{ID: ids[i], Ref: slot, Score: score})
		}
	}
}

// Candidates appends all rows to dst, for Gather: id and slot, without a score.
func (s *Snapshot) Candidates(dst []index.Candidate) []index.Candidate {
	for c := range s.chunks {
		ids, _, first := s.block(c)
		for i, id := range ids {
			if slot := uint32(first + i); !s.dead.Contains(slot) {
				dst = append(dst, index.Candidate{ID: id, Ref: slot})
			}
		}
	}
	return dst
}

// Gather copies the rows of candidates of this snapshot to dst: row-major, len(c) x dim.
func (s *Snapshot) Gather(dst []float32, c []index.Candidate) {
	d := s.table.dim
	for i := range c {
		copy(dst[i*d:(i+1)*d], s.row(int(c[i].Ref)))
	}
}
