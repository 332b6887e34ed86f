package flashlight

import (
	"context"
	"fmt"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/simd"
)

// Memory holds rows in memory. It implements Rows, and makes Searchers that compute every inner
// product. It is immutable and safe for concurrent use.
type Memory struct {
	dim  int
	ids  []uint32
	rows []float32
}

// NewMemory returns a Memory of rows, row-major, len(ids) x dim. The ids must not repeat. If ids is
// nil, the rows are numbered from 0. The slices are kept, not copied. It panics if the lengths do
// not fit.
func NewMemory(dim int, ids []uint32, rows []float32) *Memory {
	if dim < 1 || len(rows)%dim != 0 || (ids != nil && len(ids)*dim != len(rows)) {
		panic(fmt.Sprintf("flashlight: NewMemory of %d ids and %d floats of dim %d", len(ids), len(rows), dim))
	}
	if ids == nil {
		ids = make([]uint32, len(rows)/dim)
		for i := range ids {
			ids[i] = uint32(i)
		}
	}
	return &Memory{dim: dim, ids: ids, rows: rows}
}

// Dim returns the length of a row.
func (m *Memory) Dim() int { return m.dim }

// Gather copies to dst the rows of candidates that a MemorySearch of m has found: row-major, len(c)
// x Dim.
func (m *Memory) Gather(dst []float32, c []index.Candidate) error {
	for i := range c {
		copy(dst[i*m.dim:(i+1)*m.dim], m.row(int(c[i].Ref)))
	}
	return nil
}

// Rows calls fn with all rows.
func (m *Memory) Rows(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fn(m.ids, m.rows)
}

func (m *Memory) row(i int) []float32 { return m.rows[i*m.dim : (i+1)*m.dim] }

// NewSearch returns a Searcher of the rows for one goroutine.
func (m *Memory) NewSearch() *MemorySearch { return &MemorySearch{m: m} }

// MemorySearch is a Searcher by exact inner product. It ignores probes: its search set is every row
// from the first search on. That counts as one list.
type MemorySearch struct {
	m    *Memory
	cost index.Cost
	best [maxQueries]index.Best

	scores [scoreBlock]float32
}

// Reset begins another query.
func (s *MemorySearch) Reset() { s.cost = index.Cost{} }

// Search implements Searcher, for at most 16 query vectors.
func (s *MemorySearch) Search(ctx context.Context, queries [][]float32, n int, _ index.Probes, filter index.Filter,
	dst [][]index.Candidate,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for q, query := range queries {
		best := &s.best[q]
		best.Reset(n)
		for from := 0; from < len(s.m.ids); from += len(s.scores) {
			scores := s.scores[:min(len(s.scores), len(s.m.ids)-from)]
			simd.DotRows(scores, query, s.m.rows[from*s.m.dim:])
			for i, score := range scores {
				at := from + i
				if score-score != 0 {
					score = wideDot(query, s.m.row(at))
				}
				if score >= best.Threshold() && filter.Keep(s.m.ids[at]) {
					best.Offer(index.Candidate{ID: s.m.ids[at], Ref: uint32(at), Score: score})
				}
			}
		}
		dst[q] = best.Sorted(dst[q][:0])
	}
	s.cost.Lists, s.cost.Rows = 1, len(s.m.ids)
	s.cost.Codes += len(queries) * len(s.m.ids)
	return nil
}

// Cost implements Searcher.
func (s *MemorySearch) Cost() index.Cost { return s.cost }

// Exhausted implements Searcher.
func (s *MemorySearch) Exhausted() bool { return s.cost.Lists > 0 }

// wideDot is the inner product of two finite rows, summed so that it is never NaN even where sums
// in float32 overflow.
func wideDot(a, b []float32) float32 {
	var sum float64
	for i, v := range a {
		sum += float64(v) * float64(b[i])
	}
	return float32(sum)
}
