package flashlight_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// steep is a decoder with given gradients, whose score is the first value of a row.
type steep struct{ gradient []float32 }

func (s steep) Score(_ *decoder.Scratch, dst, rows []float32) {
	for i := range dst {
		dst[i] = rows[i*len(s.gradient)]
	}
}
func (s steep) Gradient(_ *decoder.Scratch, dst, _, _ []float32) { copy(dst, s.gradient) }
func (s steep) Ones(dst []float32)                               { copy(dst, s.gradient) }
func (s steep) Linear() bool                                     { return false }

// finiteOnly demands finite queries.
type finiteOnly struct {
	flashlight.Searcher
	t *testing.T
}

func (f finiteOnly) Search(ctx context.Context, queries [][]float32, n int, probes index.Probes, filter index.Filter, dst [][]index.Candidate) error {
	for _, q := range queries {
		for _, x := range q {
			require.False(f.t, math.IsNaN(float64(x)) || math.IsInf(float64(x), 0), "query %v", q)
		}
	}
	return f.Searcher.Search(ctx, queries, n, probes, filter, dst)
}

// TestQueriesAreFinite checks that the searcher gets finite query vectors and finds k rows,
// whatever the gradient overflows to.
func TestQueriesAreFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	g := newGraph(t, 10, 500, 4, 8)
	for _, gradient := range [][]float32{{inf, -inf, 0, 1}, {nan, nan, nan, nan}, {nan, 1, -inf, 2}, {0, 0, 0, 0}, {math.MaxFloat32, 1, 1, 1}} {
		q := g.query(1, 10, flashlight.DefaultPlan(10, g.n()))
		q.Bound = steep{gradient}
		var e flashlight.Executor
		m := g.memory()
		hits, _, err := e.Run(t.Context(), q, finiteOnly{m.NewSearch(), t}, m, nil)
		require.NoError(t, err)
		require.Len(t, hits, 10, "gradient %v", gradient)
	}
}

// twice finds every row twice, as a damaged index with valid checksums may.
type twice struct{ flashlight.Searcher }

func (d twice) Search(ctx context.Context, queries [][]float32, n int, probes index.Probes, filter index.Filter, dst [][]index.Candidate) error {
	err := d.Searcher.Search(ctx, queries, n, probes, filter, dst)
	for i, found := range dst {
		var doubled []index.Candidate
		for _, c := range found {
			doubled = append(doubled, c, c)
		}
		dst[i] = doubled[:min(n, len(doubled))]
	}
	return err
}

// TestNoRowTwiceInALargeRound is TestNoHitTwice for a round of thousands of rows.
func TestNoRowTwiceInALargeRound(t *testing.T) {
	g := newGraph(t, 12, 6000, 2, 4)
	m := g.memory()
	_, report, err := new(flashlight.Executor).Run(t.Context(), g.query(1, 10, rounds(1, 5000, 20, flashlight.AnchorsRound)), twice{m.NewSearch()}, m, nil)
	require.NoError(t, err)
	require.Equal(t, 2500, report.RowsScored)
}

// TestNoHitTwice checks that no id is a hit twice or scored twice, whatever the searcher finds.
func TestNoHitTwice(t *testing.T) {
	g := newGraph(t, 11, 500, 4, 8)
	for _, from := range []flashlight.AnchorsFrom{flashlight.AnchorsRound, flashlight.AnchorsBoth} {
		for n := 1; n <= 3; n++ {
			q := g.query(1, 10, rounds(n, 60, 20, from))
			var e flashlight.Executor
			m := g.memory()
			hits, report, err := e.Run(t.Context(), q, twice{m.NewSearch()}, m, nil)
			require.NoError(t, err)
			require.Len(t, hits, 10)
			found := ids(hits)
			slices.Sort(found)
			require.Len(t, slices.Compact(found), 10, "%d rounds, anchors from %s", n, from)
			require.LessOrEqual(t, report.RowsScored, 60*n)
			want, _, err := e.Run(t.Context(), g.query(1, 10, rounds(1, 30, 20, from)), m.NewSearch(), m, nil)
			require.NoError(t, err)
			if n == 1 { // half of what was found is new
				require.Equal(t, want, hits)
				require.Equal(t, 30, report.RowsScored)
			}
		}
	}
}
