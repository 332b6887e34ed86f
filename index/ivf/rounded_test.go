package ivf

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/index"
)

// TestRoundedPriorities compares the priorities by rounded centroids with those in float64, which
// differ by what is the same for all lists and by at most half a step in every factor.
func TestRoundedPriorities(t *testing.T) {
	computes(t)
	for _, dim := range []int{1, 6, 33} {
		rows := clustered(90, 4000, dim)
		for i := range rows.ids { // dimensions of different width and place, one of them constant
			for j := range dim {
				rows.row(i)[j] = (rows.row(i)[j] + float32(j)) * float32(math.Pow(10, float64(j%7-3)))
			}
			if dim > 3 {
				rows.row(i)[3] = 1e10
			}
		}
		ix := build(t, rows, BuildOptions{Dim: dim, Lists: roundedLists + 77})
		require.NotNil(t, ix.rounded.rows)
		medians := make([]float32, dim)
		for j := range medians {
			var unit float32
			medians[j], unit = medianDeviation(ix.centroids, dim, j)
			require.Equal(t, unit, ix.rounded.unit[j])
		}
		queries := rows.queries(91, 20)
		clear(queries[3])
		scale(queries[4], 1e25)
		scale(queries[5], 1e-25)
		for i, vector := range queries {
			if dim > 3 && i%2 == 0 {
				vector[3] = 0 // or else there is nothing in the query but that
			}
		}
		active := make([]queryVector, len(queries))
		for i := range active {
			active[i].take(ix, queries[i])
		}
		rateRounded(ix, active)
		for i := range active {
			requireRoundedPriorities(t, ix, &active[i], medians, fmt.Sprintf("dim %d, query %d", dim, i))
		}
	}
}

func requireRoundedPriorities(t *testing.T, ix *Index, q *queryVector, medians []float32, msg string) {
	t.Helper()
	d := ix.header.dim
	var largest float64
	for j, x := range q.vector {
		largest = max(largest, math.Abs(float64(x)*float64(ix.rounded.unit[j])))
	}
	step := largest / 127
	for l := range ix.header.lists {
		var product, sumQ, sumC, most float64
		for j, x := range q.vector {
			by := float64(ix.centroid(uint32(l))[j]) - float64(medians[j])
			product += float64(x) * by
			if u := float64(ix.rounded.unit[j]); u > 0 {
				sumQ += math.Abs(float64(x) * u)
				sumC += math.Abs(by / u)
				most = max(most, math.Abs(by/u))
			}
		}
		want := product + float64(ix.breadth[l])*float64(q.unit)
		bound := most/127/2*(sumQ+float64(d)*step/2) + step/2*sumC
		require.InDelta(t, want, q.priorities[l], 1.001*bound+1e-6*math.Abs(want)+1e-30, "list %d, %s", l, msg)
	}
}

// TestRoundedChoiceFindsAsMuch checks that recall does not depend on whether lists are chosen by
// rounded centroids, and that every query vector has its products with all visited lists.
func TestRoundedChoiceFindsAsMuch(t *testing.T) {
	computes(t)
	for name, rows := range map[string]func(t *testing.T) *table{
		"clustered": func(*testing.T) *table { return clustered(92, 20_000, 24) },
		"debian":    func(t *testing.T) *table { return graph(t, "debian", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			rows := rows(t)
			data := buildBytes(t, rows, BuildOptions{Dim: rows.dim})
			ix, err := Load(data, testPath)
			require.NoError(t, err)
			require.NotNil(t, ix.rounded.rows)
			plain, err := Load(data, testPath)
			require.NoError(t, err)
			plain.rounded = rounded{}
			queries := rows.queries(93, 61)
			for _, share := range []float64{.01, .03, .1} {
				var by, without, same float64
				for i := range queries[1:] {
					exact := rows.exact(queries[i], 100, index.Filter{})
					got, lists := searchTwo(t, ix, queries[i:i+2], share)
					want, wantLists := searchTwo(t, plain, queries[i:i+2], share)
					by += recall(exact, got) / 60
					without += recall(exact, want) / 60
					for _, l := range lists {
						if slices.Contains(wantLists, l) {
							same += 1 / float64(len(lists)) / 60
						}
					}
				}
				t.Logf("recall@100 in %v of the rows: %.4f by rounded centroids, %.4f without; %.4f of the lists are the same", share, by, without, same)
				assert.InDelta(t, without, by, .01)
				assert.Greater(t, same, .9)
			}
		})
	}
}

// searchTwo visits half of a share of the rows for one query and the other half for two. It returns
// what the first query finds then, and the lists.
func searchTwo(t *testing.T, ix *Index, queries [][]float32, share float64) ([]index.Candidate, []uint32) {
	t.Helper()
	s := ix.NewSearch()
	dst := make([][]index.Candidate, 2)
	require.NoError(t, s.Search(t.Context(), queries[1:], 100, index.Probes{Share: share / 2}, index.Filter{}, dst[:1]))
	require.NoError(t, s.Search(t.Context(), queries, 100, index.Probes{Share: share}, index.Filter{}, dst))
	for k := range queries {
		for _, l := range s.lists {
			var want float64
			for j, x := range queries[k] {
				want += float64(x) * float64(ix.centroid(l)[j])
			}
			require.InDelta(t, want, s.queries[k].products[l], 1e-3+1e-5*math.Abs(want))
		}
	}
	return dst[0], s.lists
}

func TestPartOfListsIsChosenByRoundedCentroids(t *testing.T) {
	rows := clustered(94, 4000, 6)
	ix := build(t, rows, BuildOptions{Dim: 6, Lists: roundedLists})
	s := ix.NewSearch()
	part := ix.header.lists / partVisited
	for probes, want := range map[index.Probes]bool{
		{Lists: 1}: true, {Lists: part - 1}: true, {Lists: part + 1}: false, {Share: .5 / partVisited}: true, {Share: 2. / partVisited}: false, everything: false,
	} {
		assert.Equal(t, want, s.wantsPart(probes), "%v", probes)
	}
	for l := range part {
		s.visit(l)
	}
	assert.False(t, s.wantsPart(index.Probes{Lists: part + 1}), "lists that were visited before count")
	assert.False(t, build(t, rows, BuildOptions{Dim: 6, Lists: roundedLists - 1}).NewSearch().wantsPart(index.Probes{Lists: 1}), "of few lists")

	dst := make([][]index.Candidate, 2)
	queries := rows.queries(95, 2)
	run := func() {
		s.Reset()
		for lists := 10; lists <= part; lists += part / 4 {
			if err := s.Search(t.Context(), queries, 20, index.Probes{Lists: lists}, index.Filter{}, dst); err != nil {
				t.Error(err)
			}
		}
	}
	run()
	assert.Zero(t, testing.AllocsPerRun(10, run))
}

// TestCentroidsThatAreNotRounded are so different that 8 bits of their largest values say nothing
// of most.
func TestCentroidsThatAreNotRounded(t *testing.T) {
	const lists, dim = 3000, 5
	last := func(i int, x float32, strange float64) float32 {
		if i == lists-1 {
			return float32(strange)
		}
		return x
	}
	for name, tt := range map[string]struct {
		change func(i int, row []float32)
		fit    bool
	}{
		"ordinary":              {func(int, []float32) {}, true},
		"all of 1e15":           {func(_ int, row []float32) { scale(row, 1e15) }, true},
		"all of 1e-15":          {func(_ int, row []float32) { scale(row, 1e-15) }, true},
		"a wide dimension":      {func(_ int, row []float32) { row[2] *= 1e12 }, true},
		"a constant dimension":  {func(_ int, row []float32) { row[2] = 1e30 }, true},
		"all equal":             {func(_ int, row []float32) { copy(row, []float32{1, 2, 3, 4, 5}) }, true},
		"a list a bit longer":   {func(i int, row []float32) { scale(row, 1+float64(i/(lists-1))*3) }, true},
		"a list of 1e6":         {func(i int, row []float32) { scale(row, 1+float64(i/(lists-1))*1e6) }, false},
		"a third of 1e6":        {func(i int, row []float32) { scale(row, 1+float64(i%3/2)*1e6) }, false},
		"all of 1e30":           {func(_ int, row []float32) { scale(row, 1e30) }, false},
		"all of 1e-30":          {func(_ int, row []float32) { scale(row, 1e-30) }, false},
		"a mostly constant one": {func(i int, row []float32) { row[2] = float32(i / (lists - 1)) }, false},
		"NaN":                   {func(i int, row []float32) { row[4] = last(i, row[4], math.NaN()) }, false},
		"infinite":              {func(i int, row []float32) { row[4] = last(i, row[4], math.Inf(1)) }, false},
	} {
		rng := rand.New(rand.NewPCG(96, 1))
		centroids := make([]float32, lists*dim)
		for i := range lists {
			row := centroids[i*dim : (i+1)*dim]
			for j := range row {
				row[j] = float32(rng.NormFloat64())
			}
			tt.change(i, row)
		}
		assert.Equal(t, tt.fit, roundCentroids(centroids, dim).rows != nil, name)
	}
}

// TestExtremeRowsInManyLists is TestExtremeRows for lists that are rounded if they can be.
func TestExtremeRowsInManyLists(t *testing.T) {
	computes(t)
	const n = 6000
	for _, tt := range extremes {
		rows := ordinary(97, n, extremeDim, tt.change)
		data := buildBytes(t, rows, BuildOptions{Dim: extremeDim, Lists: roundedLists + 100})
		ix, err := Load(data, testPath)
		require.NoError(t, err)
		plain, err := Load(data, testPath)
		require.NoError(t, err)
		plain.rounded = rounded{}
		var by, without float64
		rng := rand.New(rand.NewPCG(98, 1))
		probes := index.Probes{Lists: max(1, ix.header.lists/10)}
		for range 5 {
			for name, q := range extremeQueries(rows, rng) {
				got := search(t, ix, q, 10, probes, index.Filter{})
				require.Len(t, got, 10, "%s, query %s", tt.name, name)
				if tt.ties || name == "1e-44" || name == "zeros" {
					continue // nearly all scores are the same
				}
				exact := rows.wideExact(q, 10)
				by += recall(exact, got)
				without += recall(exact, search(t, plain, q, 10, probes, index.Filter{}))
			}
		}
		t.Logf("%s: rounded %t; recall %.2f, by float32 %.2f", tt.name, ix.rounded.rows != nil, by/25, without/25)
		assert.InDelta(t, without/25, by/25, .05, tt.name)
	}
}
