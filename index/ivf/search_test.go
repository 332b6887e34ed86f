package ivf

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/index"
)

var everything = index.Probes{Share: 1}

// subset returns a random part of ids, or nil: no filter.
func subset(rng *rand.Rand, ids []uint32) *roaring.Bitmap {
	if rng.IntN(3) == 0 {
		return nil
	}
	share := rng.Float64()
	bits := roaring.New()
	for _, id := range ids {
		if rng.Float64() < share {
			bits.Add(id)
		}
	}
	return bits
}

// TestEverythingVisitedIsExact is the main property: with all lists visited and all rows wanted,
// the answer is that of an exact scan, for any filter and shape of the index.
func TestEverythingVisitedIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		dim := 1 + rng.IntN(20)
		rows := clustered(rng.Uint64(), 1+rng.IntN(500), dim)
		ix := build(t, rows, BuildOptions{
			Dim: dim, Bits: []int{4, 8}[rng.IntN(2)], Lists: 1 + rng.IntN(40), Seed: rng.Uint64(), Workers: 1 + rng.IntN(3),
		})
		s := ix.NewSearch()
		for _, q := range rows.queries(rng.Uint64(), 3) {
			filter := index.Filter{Allowed: subset(rng, rows.ids), Excluded: subset(rng, rows.ids), Masked: subset(rng, rows.ids)}
			dst := make([][]index.Candidate, 1)
			require.NoError(t, s.Search(t.Context(), [][]float32{q}, math.MaxInt32, everything, filter, dst))
			require.True(t, s.Exhausted())
			var got []index.Hit
			for _, c := range dst[0] {
				got = append(got, index.Hit{ID: c.ID, Score: c.Score})
				require.Equal(t, c.ID, ix.ids[c.Ref], "Ref locates the row")
			}
			require.Equal(t, rows.exact(q, len(rows.ids), filter), got)
		}
	}
}

func TestFewOfManyAreNearlyExact(t *testing.T) {
	for _, bits := range []int{4, 8} {
		rows := clustered(2, 4000, 16)
		ix := build(t, rows, BuildOptions{Dim: 16, Bits: bits})
		excluded := roaring.New()
		for i, id := range rows.ids {
			if i%3 == 0 {
				excluded.Add(id)
			}
		}
		filter := index.Filter{Excluded: excluded}
		var found float64
		queries := rows.queries(3, 30)
		for _, q := range queries {
			got := search(t, ix, q, 50, everything, filter)
			require.Len(t, got, 50)
			for i, c := range got {
				require.False(t, excluded.Contains(c.ID))
				require.True(t, i == 0 || got[i-1].Score >= c.Score, "best first")
			}
			found += recall(rows.exact(q, 50, filter), got)
		}
		assert.Greater(t, found/float64(len(queries)), 0.97, "%d bits", bits)
	}
}

func TestProbingFindsMostInAFewLists(t *testing.T) {
	rows := clustered(4, 8000, 16)
	ix := build(t, rows, BuildOptions{Dim: 16})
	share := func(probes index.Probes) (found float64) {
		queries := rows.queries(5, 30)
		for _, q := range queries {
			found += recall(rows.exact(q, 20, index.Filter{}), search(t, ix, q, 20, probes, index.Filter{}))
		}
		return found / float64(len(queries))
	}
	assert.Greater(t, share(index.Probes{Share: 0.1}), 0.75)
	assert.Greater(t, share(index.Probes{Share: 0.4}), 0.95)
}

// TestPriority checks the lists visited against the formula, list by list.
func TestPriority(t *testing.T) {
	rows := clustered(6, 900, 5)
	ix := build(t, rows, BuildOptions{Dim: 5, Lists: 30})
	q := rows.queries(7, 1)[0]
	type scored struct {
		list     int
		priority float64
	}
	within := make([]float64, 5) // mean variance of the residuals in each dimension
	for l := range ix.header.lists {
		for j := range q {
			within[j] += float64(ix.begin[l+1]-ix.begin[l]) / 900 * float64(ix.variances[l*5+j])
		}
	}
	var along, mean float64 // variance of a residual along the query, and in any dimension
	for j, x := range q {
		along += float64(x) * float64(x) * within[j]
		mean += within[j] / 5
	}
	var want []scored
	for l := range ix.header.lists {
		var product, variance float64
		for j, x := range q {
			product += float64(x) * float64(ix.centroids[l*5+j])
			variance += float64(ix.variances[l*5+j]) / 5 * along / mean
		}
		n := float64(ix.begin[l+1] - ix.begin[l])
		want = append(want, scored{l, product + math.Sqrt(2*math.Log(n)*variance)})
	}
	slices.SortFunc(want, func(a, b scored) int { return int(math.Copysign(1, b.priority-a.priority)) })
	s := ix.NewSearch()
	dst := make([][]index.Candidate, 1)
	for lists := 1; lists <= ix.header.lists; lists++ {
		require.NoError(t, s.Search(t.Context(), [][]float32{q}, 1, index.Probes{Lists: lists}, index.Filter{}, dst))
		require.Equal(t, lists, s.Cost().Lists)
		for i, w := range want {
			require.Equal(t, i < lists, s.Visited(w.list), "%d lists, rank %d", lists, i)
		}
	}
	require.True(t, s.Exhausted())
}

// TestChooseEqualsSorting chooses among many lists, where only those that reach a guess are
// compared, with scores that tie, that mislead the guess and that are no numbers.
func TestChooseEqualsSorting(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 2))
	q := queryVector{wanted: index.NewBest(1), leading: index.NewBest(1)}
	for range 200 {
		lists := 1 + rng.IntN(6000)
		n := 1 + rng.IntN(lists)
		if rng.IntN(2) == 0 {
			n = 1 + n/20
		}
		q.priorities = resize(q.priorities, lists)
		visited := newBitset(lists)
		misleading, share := rng.IntN(3) == 0, rng.Float64()
		for l := range q.priorities {
			switch score := float32(rng.NormFloat64()); {
			case rng.IntN(50) == 0:
				q.priorities[l] = float32(math.NaN())
			case misleading && l%16 == 0:
				q.priorities[l] = 9
			default:
				q.priorities[l] = float32(math.Round(float64(score)*100) / 100)
			}
			if rng.Float64() < share/2 {
				visited.add(l)
			}
		}
		var want []uint32
		for l := range q.priorities {
			if !visited.has(l) {
				want = append(want, uint32(l))
			}
		}
		slices.SortStableFunc(want, func(a, b uint32) int {
			return cmp.Compare(ordered(q.priorities[b]), ordered(q.priorities[a]))
		})
		q.choose(n, visited)
		var got []uint32
		for _, c := range q.turns {
			got = append(got, c.ID)
		}
		require.Equal(t, want[:min(n, len(want))], got, "%d of %d lists", n, lists)
	}
}

func TestQueriesTakeTurns(t *testing.T) {
	rows := clustered(8, 900, 5)
	ix := build(t, rows, BuildOptions{Dim: 5, Lists: 30})
	queries := rows.queries(9, 3)
	alone := make([]bitset, len(queries)) // the best two lists of each
	dst := make([][]index.Candidate, 3)
	for i, q := range queries {
		s := ix.NewSearch()
		require.NoError(t, s.Search(t.Context(), [][]float32{q}, 1, index.Probes{Lists: 2}, index.Filter{}, dst[:1]))
		alone[i] = s.visited
	}
	s := ix.NewSearch()
	require.NoError(t, s.Search(t.Context(), queries, 1, index.Probes{Lists: 6}, index.Filter{}, dst))
	for i := range alone {
		for l := range ix.header.lists {
			assert.True(t, s.Visited(l) || !alone[i].has(l), "query %d has had its turns, list %d", i, l)
		}
	}
}

func TestSearchSetGrows(t *testing.T) {
	rows := clustered(10, 2000, 8)
	ix := build(t, rows, BuildOptions{Dim: 8, Lists: 50})
	first, second := rows.queries(11, 1)[0], rows.queries(12, 1)[0]
	s := ix.NewSearch()
	dst := make([][]index.Candidate, 1)
	run := func(q []float32, probes index.Probes) index.Cost {
		t.Helper()
		before := slices.Clone(s.visited)
		require.NoError(t, s.Search(t.Context(), [][]float32{q}, 2000, probes, index.Filter{}, dst))
		for l := range ix.header.lists {
			require.True(t, s.Visited(l) || !before.has(l), "no list is left")
		}
		require.Len(t, dst[0], s.Cost().Rows, "every visited row is a candidate, whichever query visited it")
		return s.Cost()
	}
	one := run(first, index.Probes{Share: 0.1})
	assert.GreaterOrEqual(t, one.Rows, 200)
	assert.Equal(t, one.Rows, one.Codes)
	two := run(second, index.Probes{Share: 0.3})
	assert.GreaterOrEqual(t, two.Rows, 600)
	assert.Equal(t, one.Codes+two.Rows, two.Codes, "every visited list is scanned again")
	three := run(first, index.Probes{Share: 0.2})
	assert.Equal(t, index.Cost{Lists: two.Lists, Rows: two.Rows, Codes: two.Codes + two.Rows}, three, "the budget was met before")
	assert.False(t, s.Exhausted())
	four := run(first, index.Probes{Lists: 1000})
	assert.Equal(t, []int{ix.Info().Lists, 2000}, []int{four.Lists, four.Rows})
	assert.True(t, s.Exhausted())

	s.Reset()
	assert.Equal(t, index.Cost{}, s.Cost())
	assert.False(t, s.Exhausted())
	assert.Equal(t, one, run(first, index.Probes{Share: 0.1}), "as if new")
}

func TestBudgetIsMetNotExceeded(t *testing.T) {
	rows := clustered(13, 2000, 8)
	ix := build(t, rows, BuildOptions{Dim: 8, Lists: 50})
	largest := 0
	for l := range ix.header.lists {
		largest = max(largest, int(ix.begin[l+1]-ix.begin[l]))
	}
	for _, share := range []float64{1e-9, 0.01, 0.2, 0.999} {
		s := ix.NewSearch()
		dst := make([][]index.Candidate, 1)
		require.NoError(t, s.Search(t.Context(), rows.queries(14, 1), 5, index.Probes{Share: share}, index.Filter{}, dst))
		assert.GreaterOrEqual(t, s.Cost().Rows, int(share*2000))
		assert.LessOrEqual(t, s.Cost().Rows, int(share*2000)+largest)
	}
}

func TestSeveralQueriesAnswerAsEachAlone(t *testing.T) {
	rows := clustered(15, 3000, 12)
	ix := build(t, rows, BuildOptions{Dim: 12})
	queries := rows.queries(16, 4)
	dst := make([][]index.Candidate, 4)
	require.NoError(t, ix.NewSearch().Search(t.Context(), queries, 20, everything, index.Filter{}, dst))
	for i, q := range queries {
		assert.Equal(t, search(t, ix, q, 20, everything, index.Filter{}), dst[i])
	}
}

func TestOneLongList(t *testing.T) {
	const n = 3*scanCodes + 77
	rows := clustered(17, n, 4)
	for _, bits := range []int{4, 8} {
		ix := build(t, rows, BuildOptions{Dim: 4, Lists: 1, Bits: bits})
		q := rows.queries(18, 1)[0]
		got := search(t, ix, q, n, everything, index.Filter{})
		require.Len(t, got, n)
		for i, h := range rows.exact(q, n, index.Filter{}) {
			require.Equal(t, h, index.Hit{ID: got[i].ID, Score: got[i].Score})
		}
	}
}

func TestWithoutRowsScoresAreEstimates(t *testing.T) {
	rows := clustered(19, 2000, 16)
	for _, bits := range []int{4, 8} {
		ix := build(t, rows, BuildOptions{Dim: 16, OmitRows: true, Bits: bits})
		require.False(t, ix.Info().HasRows)
		q := rows.queries(20, 1)[0]
		exact := map[uint32]float32{}
		for _, h := range rows.exact(q, 2000, index.Filter{}) {
			exact[h.ID] = h.Score
		}
		got := search(t, ix, q, 2000, everything, index.Filter{})
		require.Len(t, got, 2000)
		var wrong, all float64
		for _, c := range got {
			wrong += math.Pow(float64(c.Score-exact[c.ID]), 2)
			all += math.Pow(float64(exact[c.ID]), 2)
		}
		assert.Less(t, wrong/all, 0.1)
		assert.Len(t, search(t, ix, q, 7, everything, index.Filter{}), 7)

		err := ix.Gather(make([]float32, 16), got[:1])
		require.ErrorIs(t, err, ErrNoRows)
		require.ErrorIs(t, ix.Rows(t.Context(), nil), ErrNoRows)
	}
}

func TestSelectiveFilterIsExact(t *testing.T) {
	rows := clustered(21, 4000, 16)
	ix := build(t, rows, BuildOptions{Dim: 16})
	allowed := roaring.New()
	for i := 0; i < 4000; i += 401 {
		allowed.Add(rows.ids[i])
	}
	filter := index.Filter{Allowed: allowed}
	for _, q := range rows.queries(22, 5) {
		got := search(t, ix, q, 20, everything, filter)
		require.Len(t, got, 10, "filtered rows take no candidate's place")
		assert.InDelta(t, 1, recall(rows.exact(q, 20, filter), got), 0)
	}
}

func TestZeroQuery(t *testing.T) {
	rows := clustered(23, 300, 6)
	ix := build(t, rows, BuildOptions{Dim: 6, Lists: 5})
	got := search(t, ix, make([]float32, 6), 300, everything, index.Filter{})
	for i, c := range got {
		require.Equal(t, index.Hit{ID: rows.ids[i]}, index.Hit{ID: c.ID, Score: c.Score}, "ties by id")
	}
}

func TestStrangeQueriesDoNoHarm(t *testing.T) {
	rows := clustered(24, 300, 3)
	ix := build(t, rows, BuildOptions{Dim: 3, Lists: 5})
	nan, inf, huge := float32(math.NaN()), float32(math.Inf(1)), float32(math.MaxFloat32)
	for _, q := range [][]float32{{huge, -huge, huge}, {huge, huge, huge}, {1e-45, 0, 0}, {1e-45, huge, -1e-45}} {
		for _, probes := range []index.Probes{everything, {Lists: 3}} {
			found := search(t, ix, q, 50, probes, index.Filter{})
			require.Len(t, found, 50)
			for _, c := range found {
				require.False(t, math.IsNaN(float64(c.Score)))
			}
		}
	}
	for _, q := range [][]float32{{nan, nan, nan}, {inf, 0, -inf}, {1, 2, nan}} {
		err := ix.NewSearch().Search(t.Context(), [][]float32{q}, 50, everything, index.Filter{}, make([][]index.Candidate, 1))
		require.EqualError(t, err, "search index: query 0 has a value that is not finite")
	}
}

func TestSearchFaults(t *testing.T) {
	rows := clustered(25, 100, 3)
	ix := build(t, rows, BuildOptions{Dim: 3})
	q, short := rows.queries(26, 1), [][]float32{{1, 2}}
	one := make([][]index.Candidate, 1)
	tests := []struct {
		name    string
		queries [][]float32
		n       int
		probes  index.Probes
		dst     [][]index.Candidate
		err     string
	}{
		{"no queries", nil, 1, everything, nil, "search index: no queries"},
		{"no room", q, 1, everything, nil, "search index: 1 queries and room for the results of 0"},
		{"no candidates", q, 0, everything, one, "search index: 0 candidates wanted: want at least 1"},
		{"dimension", short, 1, everything, one, "search index: query 0 has dimension 2, the index 3"},
		{"probes", q, 1, index.Probes{}, one, "search index: probes: neither lists nor share is set"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := ix.NewSearch()
			require.EqualError(t, s.Search(t.Context(), tt.queries, tt.n, tt.probes, index.Filter{}, tt.dst), tt.err)
			assert.Equal(t, index.Cost{}, s.Cost())
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, ix.NewSearch().Search(ctx, q, 1, everything, index.Filter{}, one), context.Canceled)
}

func TestSteadySearchDoesNotAllocate(t *testing.T) {
	rows := clustered(27, 3000, 16)
	excluded := roaring.BitmapOf(rows.ids[:500]...)
	for _, bits := range []int{4, 8} {
		ix := build(t, rows, BuildOptions{Dim: 16, Bits: bits})
		s := ix.NewSearch()
		queries := rows.queries(28, 2)
		dst := make([][]index.Candidate, 2)
		run := func() {
			s.Reset()
			for _, share := range []float64{0.1, 0.3, 1} {
				err := s.Search(t.Context(), queries, 100, index.Probes{Share: share}, index.Filter{Excluded: excluded}, dst)
				if err != nil {
					t.Error(err)
				}
			}
		}
		run()
		assert.Zero(t, testing.AllocsPerRun(10, run))
	}
}

func TestLeastSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 29))
	for range 2000 {
		base, scale := float32(rng.NormFloat64()), float32(rng.ExpFloat64()/1000)
		threshold := base + scale*float32(rng.IntN(100_000)-20_000)
		least, ok := leastSum(threshold, base, scale)
		for _, sum := range []int{0, int(least) - 1, int(least), 65535, rng.IntN(65536)} {
			if sum >= 0 && base+scale*float32(sum) >= threshold {
				require.True(t, ok)
				require.GreaterOrEqual(t, sum, int(least), "a code that reaches the threshold is not sorted out")
			}
		}
		if ok && least > 0 {
			require.Less(t, base+scale*float32(int(least)-2), threshold, "few codes below it are let through")
		}
	}
	inf := float32(math.Inf(-1))
	least, ok := leastSum(inf, 1, 1)
	assert.True(t, ok && least == 0, "no threshold yet")
}

func TestRecallOnGraph(t *testing.T) {
	computes(t)
	const n = 15_000 // the race detector makes more take long; BenchmarkSearch has them all
	rows := graph(t, "debian", 0)
	rows.ids, rows.rows = rows.ids[:n], rows.rows[:n*rows.dim]
	ix := build(t, rows, BuildOptions{Dim: rows.dim})
	shares := []float64{0.05, 0.15, 0.35, 1}
	found := make([]float64, len(shares))
	queries := rows.queries(5, 10)
	for _, q := range queries {
		exact := rows.exact(q, 50, index.Filter{})
		for i, share := range shares {
			found[i] += recall(exact, search(t, ix, q, 50, index.Probes{Share: share}, index.Filter{})) / float64(len(queries))
		}
	}
	t.Logf("recall@50 of random queries by share of rows visited: %v: %.4f", shares, found)
	assert.Greater(t, found[3], 0.85, "what the codes alone lose")
	assert.Greater(t, found[2], 0.8, "what a third of the rows holds")
}

func BenchmarkSearch(b *testing.B) {
	rows := clustered(30, 60_000, 128)
	if os.Getenv("FLASHDB_DATA") != "" {
		rows = graph(b, "debian", 0)
	}
	ix := build(b, rows, BuildOptions{Dim: rows.dim})
	queries := rows.queries(31, 50)
	exact := make([][]index.Hit, len(queries))
	for i, q := range queries {
		exact[i] = rows.exact(q, 200, index.Filter{})
	}
	for _, probes := range []index.Probes{{Share: 0.05}, {Share: 0.15}, {Share: 0.35}, {Share: 1}} {
		b.Run(probes.String(), func(b *testing.B) {
			s := ix.NewSearch()
			dst := make([][]index.Candidate, 1)
			var found float64
			i := 0
			for b.Loop() {
				s.Reset()
				q := i % len(queries)
				require.NoError(b, s.Search(b.Context(), queries[q:q+1], 200, probes, index.Filter{}, dst))
				found += recall(exact[q], dst[0])
				i++
			}
			b.ReportMetric(found/float64(i), "recall")
			b.ReportMetric(float64(s.Cost().Codes), "codes/op")
		})
	}
}
