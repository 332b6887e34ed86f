package kmeans

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/simd"
)

// blobs returns n rows (row-major, n x d) around the given number of centres, and the centre of
// each.
func blobs(seed uint64, n, d, centres int, spread float64) (rows []float32, centre []int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	at := make([]float64, centres*d)
	for i := range at {
		at[i] = 10 * rng.NormFloat64()
	}
	rows, centre = make([]float32, n*d), make([]int, n)
	for i := range n {
		centre[i] = rng.IntN(centres)
		for j := range d {
			rows[i*d+j] = float32(at[centre[i]*d+j] + spread*rng.NormFloat64())
		}
	}
	return rows, centre
}

func train(t *testing.T, rows []float32, d int, opt Options) []float32 {
	t.Helper()
	centroids, err := Train(t.Context(), rows, d, opt)
	require.NoError(t, err)
	require.Len(t, centroids, opt.K*d)
	return centroids
}

func assignAll(t *testing.T, rows, centroids []float32, d, workers int) []uint32 {
	t.Helper()
	a, err := NewAssigner(t.Context(), centroids, d, workers)
	require.NoError(t, err)
	dst := make([]uint32, len(rows)/d)
	require.NoError(t, a.Assign(t.Context(), dst, rows, workers))
	return dst
}

// distortion is the mean squared distance of rows to their centroids.
func distortion(rows, centroids []float32, d int, assigned []uint32) float64 {
	var sum float64
	for i, c := range assigned {
		sum += float64(simd.SquaredL2(rows[i*d:(i+1)*d], centroids[int(c)*d:(int(c)+1)*d]))
	}
	return sum / float64(len(assigned))
}

func TestTrainFindsSeparateClusters(t *testing.T) {
	const n, d, k = 2000, 8, 12
	rows, centre := blobs(1, n, d, k, 0.01)
	centroids := train(t, rows, d, Options{K: k, Seed: 7})
	assigned := assignAll(t, rows, centroids, d, 1)
	clusterOf := map[int]uint32{}
	for i, c := range assigned {
		if _, seen := clusterOf[centre[i]]; !seen {
			clusterOf[centre[i]] = c
		}
		require.Equal(t, clusterOf[centre[i]], c, "row %d left its cluster", i)
	}
	assert.Less(t, distortion(rows, centroids, d, assigned), 0.01*0.01*d*1.5)
}

func TestOneCentroidIsTheMean(t *testing.T) {
	rows := []float32{1, 10, 2, 20, 6, 60}
	assert.Equal(t, []float32{3, 30}, train(t, rows, 2, Options{K: 1}))
}

func TestResultDoesNotDependOnWorkers(t *testing.T) {
	const n, d = 9000, 6 // three tasks
	rows, _ := blobs(2, n, d, 50, 2)
	tests := []struct {
		name string
		opt  Options
	}{
		{"k-means++ start", Options{K: 30, Seed: 1}},
		{"random start", Options{K: 90, Seed: 2}},
		{"sampled", Options{K: 20, Seed: 3}},
		{"two levels", Options{K: 300, Seed: 4, TwoLevel: 100}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.opt.Workers = 1
			want := train(t, rows, d, tt.opt)
			wantAssigned := assignAll(t, rows, want, d, 1)
			for _, workers := range []int{2, 5} {
				tt.opt.Workers = workers
				require.Equal(t, want, train(t, rows, d, tt.opt), "%d workers", workers)
				require.Equal(t, wantAssigned, assignAll(t, rows, want, d, workers), "%d workers", workers)
			}
			tt.opt.Seed += 100
			assert.NotEqual(t, want, train(t, rows, d, tt.opt), "the seed matters")
		})
	}
}

func TestTwoLevelIsNearlyAsGood(t *testing.T) {
	const n, d, k = 12_000, 8, 300
	rows, _ := blobs(3, n, d, 200, 3)
	flat := train(t, rows, d, Options{K: k, Seed: 1, TwoLevel: k})
	two := train(t, rows, d, Options{K: k, Seed: 1, TwoLevel: k - 1})
	best := distortion(rows, flat, d, assignAll(t, rows, flat, d, 2))
	assert.Less(t, distortion(rows, two, d, assignAll(t, rows, two, d, 2)), 1.05*best)
}

func TestIterationsLowerTheDistortion(t *testing.T) {
	const d, k = 4, 100
	rows, _ := blobs(4, 5000, d, 40, 5)
	last := math.Inf(1)
	for _, iterations := range []int{1, 3, 20} {
		centroids := train(t, rows, d, Options{K: k, Iterations: iterations})
		now := distortion(rows, centroids, d, assignAll(t, rows, centroids, d, 2))
		assert.Less(t, now, last)
		last = now
	}
}

func TestEmptyClustersAreSplitOff(t *testing.T) {
	// Nearly all rows are one point, so random starts coincide and all but one of them lose their
	// rows.
	const d, k = 2, 80
	rows := make([]float32, 0, 5000*d)
	for range 5000 - k {
		rows = append(rows, 1, 1)
	}
	for i := range k {
		rows = append(rows, float32(100+10*i), 0)
	}
	centroids := train(t, rows, d, Options{K: k, Iterations: 60})
	used := map[uint32]bool{}
	for _, c := range assignAll(t, rows, centroids, d, 1) {
		used[c] = true
	}
	assert.Greater(t, len(used), k/3)
}

func TestEqualRowsAndZeroRows(t *testing.T) {
	for _, k := range []int{3, 70, 200} { // k-means++, random start, two levels
		rows := make([]float32, 200*3)
		for i := range rows {
			rows[i] = 5
		}
		for i, c := range train(t, rows, 3, Options{K: k, TwoLevel: 100}) {
			require.Equal(t, float32(5), c, "value %d", i)
		}
	}
}

func TestEveryRowItsOwnCentroid(t *testing.T) {
	rows, _ := blobs(5, 60, 3, 60, 1)
	centroids := train(t, rows, 3, Options{K: 60, Iterations: 50})
	assert.Zero(t, distortion(rows, centroids, 3, assignAll(t, rows, centroids, 3, 1)))
}

func TestAssignFlatIsExact(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes: nothing for the race detector")
	}
	const n, d = 700, 5
	rows, _ := blobs(6, n, d, 10, 4)
	for _, k := range []int{1, 2, flatWidth, flatWidth + 1, 600} {
		centroids, _ := blobs(7, k, d, 10, 6)
		for i, c := range assignAll(t, rows, centroids, d, 2) {
			row := rows[i*d : (i+1)*d]
			got := simd.SquaredL2(row, centroids[int(c)*d:])
			for o := range k {
				require.LessOrEqual(t, got, simd.SquaredL2(row, centroids[o*d:])*1.0001+1e-3, "k %d, row %d", k, i)
			}
		}
	}
}

func TestAssignTiesGoToTheLowestNumber(t *testing.T) {
	centroids := slices.Repeat([]float32{3, 4}, flatLimit+500) // grouped: every centroid is equally near
	for _, k := range []int{5, flatWidth + 5, flatLimit + 500} {
		assert.Equal(t, []uint32{0, 0}, assignAll(t, []float32{1, 2, 3, 4}, centroids[:2*k], 2, 1), "%d centroids", k)
	}
}

func TestAssignGroupedIsNearlyExact(t *testing.T) {
	const n, d, k = 5000, 8, flatLimit + 400
	rows, _ := blobs(8, n, d, 300, 2)
	centroids, _ := blobs(8, k, d, 300, 2)
	flat := &Assigner{d: d, groups: flatGroups(k)}
	flat.pack(centroids)
	exact := make([]uint32, n)
	require.NoError(t, flat.Assign(t.Context(), exact, rows, 2))
	same := 0
	for i, c := range assignAll(t, rows, centroids, d, 2) {
		require.Less(t, c, uint32(k))
		if c == exact[i] {
			same++
		}
	}
	assert.Greater(t, same, n*97/100)
}

func TestAssignSurvivesHugeValues(t *testing.T) {
	huge := float32(math.MaxFloat32)
	rows := []float32{huge, huge, -huge, 1}
	for _, c := range assignAll(t, rows, []float32{huge, -huge, 0, 1, huge, huge}, 2, 1) {
		assert.Less(t, c, uint32(3))
	}
}

func TestApportion(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 500 {
		groups := 1 + rng.IntN(30)
		begin := make([]int, groups+1)
		filled := 0
		for g := range groups {
			size := rng.IntN(4) * rng.IntN(1+rng.IntN(1000))
			begin[g+1] = begin[g] + size
			if size > 0 {
				filled++
			}
		}
		n := begin[groups]
		if n == 0 {
			continue
		}
		k := filled + rng.IntN(n-filled+1)
		first := apportion(begin, k)
		require.Equal(t, k, first[groups])
		for g := range groups {
			size, share := begin[g+1]-begin[g], first[g+1]-first[g]
			require.LessOrEqual(t, share, size)
			require.Equal(t, size > 0, share > 0)
		}
	}
	assert.Equal(t, []int{0, 5, 10, 30}, apportion([]int{0, 100, 200, 600}, 30), "in proportion")
}

func TestSample(t *testing.T) {
	rows := make([]float32, 100)
	for i := range rows {
		rows[i] = float32(i / 2)
	}
	rng := func(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
	got := sample(rows, 2, 20, rng(1))
	require.Len(t, got, 40)
	for i := 2; i < len(got); i += 2 {
		assert.Greater(t, got[i], got[i-1], "in order, none twice")
		assert.Equal(t, got[i], got[i+1], "whole rows")
	}
	assert.Equal(t, got, sample(rows, 2, 20, rng(1)))
	assert.NotEqual(t, got, sample(rows, 2, 20, rng(2)))
	assert.Equal(t, rows, sample(rows, 2, 50, rng(1)))
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rows, _ := blobs(10, 3000, 2, 3, 1)
	for _, opt := range []Options{{K: 3}, {K: 100}, {K: 900}} {
		_, err := Train(ctx, rows, 2, opt)
		require.ErrorIs(t, err, context.Canceled)
	}
	_, err := NewAssigner(ctx, rows, 2, 1)
	require.ErrorIs(t, err, context.Canceled)
}

func TestBadOptions(t *testing.T) {
	rows := make([]float32, 20)
	tests := []struct {
		name string
		opt  Options
		err  string
	}{
		{"no centroids", Options{}, "train k-means: 0 centroids of 10 rows: want 1 to the number of rows"},
		{"more centroids than rows", Options{K: 11}, "train k-means: 11 centroids of 10 rows: want 1 to the number of rows"},
		{"negative", Options{K: 1, Workers: -1}, "train k-means: negative iterations 0, workers -1, two-level bound 0 or points a centroid 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Train(t.Context(), rows, 2, tt.opt)
			require.EqualError(t, err, tt.err)
		})
	}
	assert.Panics(t, func() { _, _ = Train(t.Context(), rows, 3, Options{K: 1}) }, "no whole rows")
}

func BenchmarkAssign(b *testing.B) {
	const n, d, k = 8192, 64, 3000
	rows, _ := blobs(11, n, d, 500, 3)
	centroids, _ := blobs(12, k, d, 500, 3)
	a, err := NewAssigner(b.Context(), centroids, d, 1)
	require.NoError(b, err)
	dst := make([]uint32, n)
	for b.Loop() {
		require.NoError(b, a.Assign(b.Context(), dst, rows, 1))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
}
