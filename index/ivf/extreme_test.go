package ivf

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/attempts"
)

// wideExact returns the n rows of highest inner product in float64, rounded to float32: what no
// overflow on the way spoils.
func (t *table) wideExact(q []float32, n int) []index.Hit {
	top := index.NewTopK(n)
	for i, id := range t.ids {
		var sum float64
		for j, x := range t.row(i) {
			sum += float64(x) * float64(q[j])
		}
		top.Offer(id, float32(sum))
	}
	return top.Sorted(nil)
}

// ordinary returns n rows of a standard normal; change, if not nil, makes one of them extreme.
func ordinary(seed uint64, n, dim int, change func(i int, row []float32, rng *rand.Rand)) *table {
	rng := rand.New(rand.NewPCG(seed, 79))
	t := &table{dim: dim, cut: 100, rows: make([]float32, n*dim)}
	for i := range t.rows {
		t.rows[i] = float32(rng.NormFloat64())
	}
	for i := range n {
		t.ids = append(t.ids, uint32(i))
		if change != nil {
			change(i, t.row(i), rng)
		}
	}
	return t
}

func scale(row []float32, by float64) {
	for j := range row {
		row[j] = float32(max(-math.MaxFloat32, min(math.MaxFloat32, float64(row[j])*by)))
	}
}

const extremeDim = 16

// extremes are collections that float32 arithmetic does not take in its stride.
var extremes = []struct {
	name   string
	change func(i int, row []float32, rng *rand.Rand)
	ties   bool // exact scores are nearly all the same infinity, zero or number
}{
	{"two rows of 1e38", func(i int, row []float32, _ *rand.Rand) {
		if i == 100 || i == 2000 {
			scale(row, 1e38)
		}
	}, false},
	{"one row of 1e30", func(i int, row []float32, _ *rand.Rand) {
		if i == 100 {
			scale(row, 1e30)
		}
	}, false},
	{"one row in a hundred of 1e30", func(i int, row []float32, _ *rand.Rand) {
		if i%100 == 7 {
			scale(row, 1e30)
		}
	}, false},
	{"all rows of 1e30", func(_ int, row []float32, _ *rand.Rand) { scale(row, 1e30) }, false},
	{"all rows of 1e-30", func(_ int, row []float32, _ *rand.Rand) { scale(row, 1e-30) }, false},
	{"subnormal", func(_ int, row []float32, _ *rand.Rand) { scale(row, 1e-42) }, false},
	{"half of the rows of 1e-30", func(i int, row []float32, _ *rand.Rand) {
		if i%2 == 0 {
			scale(row, 1e-30)
		}
	}, false},
	{"norms over all magnitudes", func(_ int, row []float32, rng *rand.Rand) { scale(row, math.Pow(10, 76*rng.Float64()-40)) }, false},
	{"all rows equal", func(_ int, row []float32, _ *rand.Rand) {
		for j := range row {
			row[j] = float32(j) * 1e20
		}
	}, true},
	{"ten different rows", func(i int, row []float32, _ *rand.Rand) {
		for j := range row {
			row[j] = float32((i%10 + j) % 10)
		}
	}, true},
	{"half of the rows zeros", func(i int, row []float32, _ *rand.Rand) {
		if i%2 == 0 {
			clear(row)
		}
	}, false},
	{"zeros and 1e30", func(i int, row []float32, _ *rand.Rand) {
		if i%2 == 0 {
			clear(row)
		}
		scale(row, 1e30)
	}, false},
	{"all zeros", func(_ int, row []float32, _ *rand.Rand) { clear(row) }, true},
	{"a constant dimension of 0", func(_ int, row []float32, _ *rand.Rand) { row[3] = 0 }, false},
	{"a constant dimension of 1e10", func(_ int, row []float32, _ *rand.Rand) { row[3] = 1e10 }, false},
	{"a constant dimension of 1e30", func(_ int, row []float32, _ *rand.Rand) { row[3] = 1e30 }, false},
	{"a dimension of 1e30", func(_ int, row []float32, _ *rand.Rand) { row[3] *= 1e30 }, false},
	{"signs of the largest number", func(_ int, row []float32, rng *rand.Rand) {
		for j := range row {
			row[j] = math.MaxFloat32 * float32(1-2*rng.IntN(2))
		}
	}, false},
	{"up to the largest number", func(_ int, row []float32, rng *rand.Rand) {
		for j := range row {
			row[j] = math.MaxFloat32 * (2*rng.Float32() - 1)
		}
	}, false},
}

// extremeQueries are of ordinary length, a product of rows, of the largest numbers, of the least,
// and one dimension only.
func extremeQueries(rows *table, rng *rand.Rand) map[string][]float32 {
	d := rows.dim
	out := map[string][]float32{"ordinary": make([]float32, d), "zeros": make([]float32, d), "a row": rows.row(rng.IntN(len(rows.ids)))}
	for j := range d {
		out["ordinary"][j] = float32(rng.NormFloat64())
	}
	for name, by := range map[string]float64{"1e38": 1e38, "1e-30": 1e-30, "1e-44": 1e-44} {
		q := append([]float32(nil), out["ordinary"]...)
		scale(q, by)
		out[name] = q
	}
	first := make([]float32, d)
	copy(first, out["ordinary"])
	first[3%d] = 0
	out["without the fourth dimension"] = first
	return out
}

// TestExtremeRows builds an index of every collection and compares it with the exact scan: all that
// there is, in the right order, where everything is asked for; and of ten, most with everything
// visited and many with a part. Check recomputes codes.
func TestExtremeRows(t *testing.T) {
	computes(t)
	const n = 2000
	for _, tt := range extremes {
		t.Run(tt.name, func(t *testing.T) {
			rows := ordinary(41, n, extremeDim, tt.change)
			for _, opt := range []BuildOptions{{}, {Bits: 8}, {OmitRows: true}} {
				opt.Dim = extremeDim
				ix := build(t, rows, opt)
				require.Equal(t, n, ix.Info().Rows)
				for name, q := range extremeQueries(rows, rand.New(rand.NewPCG(42, 1))) {
					all := search(t, ix, q, n+1, everything, index.Filter{})
					require.Len(t, all, n, "query %s", name)
					require.Len(t, search(t, ix, q, n, index.Probes{Lists: 1 << 20}, index.Filter{}), n, "query %s", name)
					if opt.OmitRows {
						continue
					}
					requireAllInOrder(t, rows, q, all, "query "+name)
				}
				if tt.ties || opt.OmitRows {
					continue
				}
				whole, part := extremeRecall(t, ix, rows, strings.Contains(tt.name, "constant"))
				t.Logf("%d bits: %d lists; recall@10 with everything visited %.3f, with a third %.3f", ix.header.bits, ix.Info().Lists, whole, part)
				assert.Greater(t, whole, 0.9)
				assert.Greater(t, part, 0.7)
			}
		})
	}
}

// requireAllInOrder demands every row once, best first, with its inner product to the precision of
// float32.
func requireAllInOrder(t *testing.T, rows *table, q []float32, found []index.Candidate, name string) {
	t.Helper()
	exact := map[uint32]float32{}
	for _, h := range rows.wideExact(q, len(rows.ids)) {
		exact[h.ID] = h.Score
	}
	for i, c := range found {
		got := index.Hit{ID: c.ID, Score: c.Score}
		want, ok := exact[c.ID]
		require.True(t, ok, "%s: id %d is of another row, or found twice", name, c.ID)
		delete(exact, c.ID)
		var terms float64
		for j, x := range rows.row(int(c.ID)) {
			terms += math.Abs(float64(x) * float64(q[j]))
		}
		if want != got.Score {
			require.InDelta(t, want, got.Score, 1e-6*terms+1e-43, "%s: hit %d is %v", name, i, got)
		}
		if i > 0 {
			before := index.Hit{ID: found[i-1].ID, Score: found[i-1].Score}
			require.True(t, before.Before(got), "%s: hit %d is %v, after %v", name, i, got, before)
		}
	}
}

// extremeRecall is the mean recall of random queries, which leave out a dimension that alone would
// decide the order as far as float32 can tell.
func extremeRecall(t *testing.T, ix *Index, rows *table, constant bool) (whole, part float64) {
	kind := "ordinary"
	if constant {
		kind = "without the fourth dimension"
	}
	rng := rand.New(rand.NewPCG(43, 1))
	const queries = 60
	for range queries {
		q := extremeQueries(rows, rng)[kind]
		want := rows.wideExact(q, 10)
		whole += recall(want, search(t, ix, q, 10, everything, index.Filter{})) / queries
		part += recall(want, search(t, ix, q, 10, index.Probes{Share: 0.35}, index.Filter{})) / queries
	}
	return whole, part
}

// TestExtremeRowsByChance draws collections whose values are of any magnitude, and searches them
// with everything visited for all that there is. The file does not depend on the workers.
func TestExtremeRowsByChance(t *testing.T) {
	computes(t)
	values := []float64{0, 1, -1, 3, 1e-45, -1e-40, 1e-38, 1e-20, -1e-10, 1e10, -1e19, 2e19, 1e30, -1e38, math.MaxFloat32, -math.MaxFloat32}
	const collections = 150
	for seed := range uint64(collections) {
		rng := rand.New(rand.NewPCG(seed, 80))
		n, dim := 1+rng.IntN(300), 1+rng.IntN(9)
		some := make([]float64, 1+rng.IntN(4))
		for i := range some {
			some[i] = values[rng.IntN(len(values))]
		}
		draw := func(row []float32) {
			by := some[rng.IntN(len(some))]
			for j := range row {
				row[j] = float32(rng.NormFloat64())
				if rng.IntN(8) == 0 {
					by = some[rng.IntN(len(some))]
				}
			}
			scale(row, by)
		}
		rows := ordinary(seed, n, dim, func(_ int, row []float32, _ *rand.Rand) { draw(row) })
		opt := BuildOptions{Dim: dim, Seed: seed, Bits: 4 << rng.IntN(2), Lists: rng.IntN(2) * (1 + rng.IntN(n)), Workers: 1}
		data := buildBytes(t, rows, opt)
		opt.Workers = 3
		require.Equal(t, data, buildBytes(t, rows, opt), "seed %d", seed)
		ix, err := Load(data, testPath)
		require.NoError(t, err)
		require.NoError(t, ix.Check(), "seed %d", seed)
		for i := range 4 {
			q := make([]float32, dim)
			draw(q)
			if i == 0 {
				q = rows.row(rng.IntN(n))
			}
			found := search(t, ix, q, n+rng.IntN(3), everything, index.Filter{})
			require.Len(t, found, n, "seed %d", seed)
			requireAllInOrder(t, rows, q, found, fmt.Sprintf("seed %d", seed))
			require.Len(t, search(t, ix, q, n, index.Probes{Lists: n}, index.Filter{}), n, "seed %d", seed)
		}
	}
	attempts.Count(t, collections, "collections")
}

// TestStrata checks that rows of ordinary norms share one stratum, which is not scaled, and that
// other rows have separate lists, which are trained on them alone.
func TestStrata(t *testing.T) {
	const n, dim = 3000, 8
	strata := func(change func(i int, row []float32, rng *rand.Rand)) *partition {
		return newPartition(ordinary(44, n, dim, change).rows, dim, 200)
	}
	size := func(s *stratum) int { return len(s.rows) / dim }
	p := strata(nil)
	require.Len(t, p.strata, 1)
	assert.True(t, p.plain(&p.strata[0]))
	assert.Equal(t, 200, p.strata[0].lists)

	p = strata(func(i int, row []float32, _ *rand.Rand) {
		switch {
		case i%30 == 1:
			scale(row, 1e3)
		case i%30 == 2:
			scale(row, 1e30)
		case i%30 == 3:
			scale(row, 1e-20)
		case i%30 == 4:
			clear(row)
		}
	})
	require.Len(t, p.strata, 4)
	assert.Equal(t, n-300, size(&p.strata[0]), "rows of zeros are of the first")
	assert.True(t, p.plain(&p.strata[0]))
	assert.Equal(t, 182, p.strata[0].lists)
	begin := 182
	for i, magnitude := range []int{-66, 11, 101} {
		s := &p.strata[i+1]
		assert.Equal(t, 100, size(s))
		assert.Equal(t, 6, s.lists, "in proportion to the rows")
		assert.Equal(t, begin, s.begin)
		begin += 6
		assert.True(t, s.first <= magnitude && magnitude <= s.last, "%d is in %d to %d", magnitude, s.first, s.last)
	}
	assert.Equal(t, begin, p.lists)

	p = strata(func(_ int, row []float32, _ *rand.Rand) { row[2] = 1e10 })
	require.Len(t, p.strata, 1)
	assert.EqualValues(t, 1e10, p.offset[2])
	for i, x := range p.strata[0].rows {
		require.True(t, x > -9 && x < 9, "value %d is %v", i, x)
	}
}

// TestStrayRows checks that extreme rows of the second pass that fit no stratum of the sample are
// found nevertheless.
func TestStrayRows(t *testing.T) {
	const n, dim = 500, 4
	first := ordinary(45, n, dim, nil)
	second := ordinary(45, n, dim, func(i int, row []float32, _ *rand.Rand) {
		switch i {
		case 3, 4:
			scale(row, 1e37)
		case 5:
			scale(row, 1e9)
		case 6:
			scale(row, 1e-44)
		}
	})
	ix := build(t, &changing{passes: []*table{first, second}}, BuildOptions{Dim: dim})
	for i, q := range [][]float32{second.row(0), second.row(3), {1, 0, 0, 0}} {
		found := search(t, ix, q, n, everything, index.Filter{})
		require.Len(t, found, n)
		requireAllInOrder(t, second, q, found, fmt.Sprint("query ", i))
	}
	// The rows of trained lists may go away between the passes.
	gone := &table{dim: dim, cut: 100, ids: first.ids[:3], rows: first.rows[:3*dim]}
	assert.Equal(t, 3, build(t, &changing{passes: []*table{first, gone}}, BuildOptions{Dim: dim}).Info().Rows)
}

// TestBlockBorders has lists that end beside the end of a block of 32 codes, and rows that end
// within a sub-vector.
func TestBlockBorders(t *testing.T) {
	computes(t)
	for _, dim := range []int{1, 2, 3, 5, 17, 8191, 8192} {
		for _, n := range []int{1, 2, 31, 32, 33, 63, 64, 65} {
			if dim > 100 && n != 33 {
				continue
			}
			rows := ordinary(46, n, dim, nil)
			for _, opt := range []BuildOptions{{Lists: 1}, {Lists: 1, Bits: 8}, {Lists: 1, OmitRows: true}} {
				opt.Dim = dim
				ix := build(t, rows, opt)
				require.Equal(t, []int{n}, ix.ListSizes())
				q := rows.row(n - 1)
				for _, k := range []int{n - 1, n, n + 1} {
					if k == 0 {
						continue
					}
					found := search(t, ix, q, k, everything, index.Filter{})
					require.Len(t, found, min(k, n), "%d rows of dimension %d", n, dim)
					if k >= n && !opt.OmitRows {
						requireAllInOrder(t, rows, q, found, fmt.Sprintf("%d rows of dimension %d", n, dim))
					}
				}
			}
		}
	}
}
