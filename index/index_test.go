package index_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/index"
)

func TestFilterKeep(t *testing.T) {
	bits := roaring.BitmapOf
	tests := []struct {
		name   string
		filter index.Filter
		kept   []uint32 // of 0..5
	}{
		{"zero filter keeps everything", index.Filter{}, []uint32{0, 1, 2, 3, 4, 5}},
		{"allowed", index.Filter{Allowed: bits(1, 3, 9)}, []uint32{1, 3}},
		{"empty allowed keeps nothing", index.Filter{Allowed: bits()}, nil},
		{"excluded", index.Filter{Excluded: bits(0, 5)}, []uint32{1, 2, 3, 4}},
		{"masked", index.Filter{Masked: bits(2)}, []uint32{0, 1, 3, 4, 5}},
		{"all three", index.Filter{Allowed: bits(0, 1, 2, 3), Excluded: bits(1), Masked: bits(2)}, []uint32{0, 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var kept []uint32
			for id := range uint32(6) {
				if tt.filter.Keep(id) {
					kept = append(kept, id)
				}
			}
			assert.Equal(t, tt.kept, kept)
		})
	}
}

func TestProbes(t *testing.T) {
	tests := []struct {
		name   string
		probes index.Probes
		str    string
		half   index.Probes // Scale(0.5)
		triple index.Probes // Scale(3)
		all    bool
		err    string
	}{
		{"everything", index.Probes{Share: 1}, "all", index.Probes{Share: 0.5}, index.Probes{Share: 1}, true, ""},
		{"share", index.Probes{Share: 0.05}, "5%", index.Probes{Share: 0.025}, index.Probes{Share: 0.15000000000000002}, false, ""},
		{"lists", index.Probes{Lists: 9}, "9 lists", index.Probes{Lists: 5}, index.Probes{Lists: 27}, false, ""},
		{"one list stays one", index.Probes{Lists: 1, Share: 1}, "1 lists", index.Probes{Lists: 1}, index.Probes{Lists: 3}, false, ""},
		{"unset", index.Probes{}, "0%", index.Probes{}, index.Probes{}, false, "probes: neither lists nor share is set"},
		{"negative lists", index.Probes{Lists: -2}, "0%", index.Probes{}, index.Probes{}, false, "probes: -2 lists: want a positive number"},
		{"share above one", index.Probes{Share: 1.5}, "all", index.Probes{Share: 0.75}, index.Probes{Share: 1}, true, "probes: share 1.5 of the rows: want more than 0 and at most 1"},
		{"share not a number", index.Probes{Share: math.NaN()}, "NaN%", index.Probes{Share: math.NaN()}, index.Probes{Share: math.NaN()}, false, "probes: share NaN of the rows: want more than 0 and at most 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.str, tt.probes.String())
			assert.Equal(t, tt.all, tt.probes.All())
			if tt.err == "" {
				require.NoError(t, tt.probes.Validate())
				assert.Equal(t, tt.half, tt.probes.Scale(0.5))
				assert.Equal(t, tt.triple, tt.probes.Scale(3))
			} else {
				require.EqualError(t, tt.probes.Validate(), tt.err)
			}
		})
	}
	assert.Equal(t, index.Probes{Lists: math.MaxInt32}, index.Probes{Lists: math.MaxInt32}.Scale(1e9), "scaling saturates")
}

// randomHits returns n hits with distinct ids and few distinct scores, so that ties matter.
func randomHits(rng *rand.Rand, n int) []index.Hit {
	hits := make([]index.Hit, n)
	for i, id := range rng.Perm(n) {
		hits[i] = index.Hit{ID: uint32(id), Score: float32(rng.IntN(max(1, n/3))) - 5}
	}
	return hits
}

// ranked returns the k best of hits by sorting them all.
func ranked(hits []index.Hit, k int) []index.Hit {
	all := slices.Clone(hits)
	slices.SortFunc(all, func(a, b index.Hit) int {
		if a.Score != b.Score {
			if a.Score > b.Score {
				return -1
			}
			return 1
		}
		return int(a.ID) - int(b.ID)
	})
	return all[:min(k, len(all))]
}

func TestTopKEqualsSorting(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	top := index.NewTopK(1)
	for range 60 {
		n, k := rng.IntN(200), 1+rng.IntN(40)
		hits := randomHits(rng, n)
		top.Reset(k)
		for i, h := range hits {
			seen := append(ranked(hits[:i], k), h)
			assert.Equal(t, slices.Contains(ranked(seen, k), h), top.Offer(h.ID, h.Score), "entered")
		}
		want := ranked(hits, k)
		got := top.Sorted(nil)
		require.Len(t, got, len(want))
		require.Equal(t, want, append([]index.Hit{}, got...))
		require.Equal(t, len(want), top.Len())
		score, full := top.Worst()
		require.Equal(t, len(want) == k, full)
		if len(want) > 0 {
			require.Equal(t, want[len(want)-1].Score, score)
		} else {
			require.True(t, math.IsInf(float64(score), -1))
		}
	}
}

func TestTopKSortedAppendsAndKeeps(t *testing.T) {
	top := index.NewTopK(2)
	top.Offer(7, 1)
	top.Offer(3, 1)
	top.Offer(9, 2)
	first := index.Hit{ID: 100, Score: 100}
	want := []index.Hit{first, {ID: 9, Score: 2}, {ID: 3, Score: 1}}
	assert.Equal(t, want, top.Sorted([]index.Hit{first}))
	assert.Equal(t, want[1:], top.Sorted(nil), "a second call gives the same hits")
}

// TestNaNRanksLast: whatever the order of the offers, the order of the hits is the same.
func TestNaNRanksLast(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	ranked := []index.Hit{
		{ID: 4, Score: inf},
		{ID: 9, Score: inf},
		{ID: 3, Score: math.MaxFloat32},
		{ID: 1, Score: 0},
		{ID: 8, Score: float32(math.Copysign(0, -1))}, // equal to zero
		{ID: 2, Score: -inf},
		{ID: 7, Score: -inf},
		{ID: 0, Score: nan},
		{ID: 5, Score: math.Float32frombits(0xffc00001)}, // a NaN with a sign and other bits
		{ID: 6, Score: nan},
	}
	text := func(hits []index.Hit) string { return fmt.Sprint(hits) }
	rng := rand.New(rand.NewPCG(5, 6))
	for i, a := range ranked {
		for j, b := range ranked {
			require.Equal(t, i < j, a.Before(b), "%v before %v", a, b)
			require.Equal(t, cmp.Compare(i, j), a.Compare(b))
		}
	}
	for range 200 {
		for k := range len(ranked) + 2 {
			top := index.NewTopK(k + 1)
			for _, i := range rng.Perm(len(ranked)) {
				top.Offer(ranked[i].ID, ranked[i].Score)
			}
			want := ranked[:min(k+1, len(ranked))]
			require.Equal(t, text(want), text(top.Sorted(nil)))
			require.Equal(t, min(len(want), 7), top.Numbers())
		}
	}
	best := index.NewBest(2)
	best.Offer(index.Candidate{ID: 1, Score: nan})
	assert.Empty(t, best.Sorted(nil), "a candidate is an inner product of finite vectors")
}

func TestBestEqualsSorting(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	best := index.NewBest(1)
	for range 100 {
		n, k := rng.IntN(3000), 1+rng.IntN(40)
		if rng.IntN(3) == 0 {
			k *= 20
		}
		hits := randomHits(rng, n)
		best.Reset(k)
		for i, h := range hits {
			best.Offer(index.Candidate{ID: h.ID, Ref: h.ID + 1, Score: h.Score})
			if threshold := best.Threshold(); i%50 == 0 && !math.IsInf(float64(threshold), -1) {
				seen := ranked(hits[:i+1], k)
				require.LessOrEqual(t, threshold, seen[k-1].Score, "the threshold never runs ahead")
			}
		}
		want := ranked(hits, k)
		got := best.Sorted(nil)
		require.Len(t, got, len(want))
		for i, c := range got {
			require.Equal(t, index.Candidate{ID: want[i].ID, Ref: want[i].ID + 1, Score: want[i].Score}, c)
		}
		require.Len(t, best.Kept(), len(want))
	}
}

func TestBestOfExtremes(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, scores := range [][]float32{{inf, 1, -inf}, {3e38, -3e38, 0}, {1e-45, 0}, {7}, {0, float32(math.Copysign(0, -1)), -1}} {
		var hits []index.Hit
		best := index.NewBest(100)
		for id := range uint32(1000) {
			h := index.Hit{ID: id, Score: scores[id%uint32(len(scores))]}
			hits = append(hits, h)
			best.Offer(index.Candidate{ID: h.ID, Score: h.Score})
		}
		for i, c := range best.Sorted(nil) {
			assert.Equal(t, ranked(hits, 100)[i], index.Hit{ID: c.ID, Score: c.Score}, "scores %v", scores)
		}
	}
}

func TestBestThresholdRises(t *testing.T) {
	best := index.NewBest(10)
	for id := range uint32(10_000) {
		best.Offer(index.Candidate{ID: id, Score: float32(id)})
	}
	assert.Greater(t, best.Threshold(), float32(9_000))
}

func TestReuseDoesNotAllocate(t *testing.T) {
	top, best := index.NewTopK(50), index.NewBest(50)
	hits, candidates := make([]index.Hit, 0, 50), make([]index.Candidate, 0, 50)
	run := func() {
		top.Reset(50)
		best.Reset(50)
		for id := range uint32(1000) {
			score := float32((id * 7919) % 1000)
			top.Offer(id, score)
			best.Offer(index.Candidate{ID: id, Score: score})
		}
		hits, candidates = top.Sorted(hits[:0]), best.Sorted(candidates[:0])
	}
	run()
	assert.Zero(t, testing.AllocsPerRun(20, run))
}

func TestSizeBelowOnePanics(t *testing.T) {
	assert.Panics(t, func() { index.NewTopK(0) })
	assert.Panics(t, func() { index.NewBest(0) })
}

// BenchmarkBest keeps 600 of 10,000 scores, never twice the same: a processor learns the outcome of
// comparisons by heart.
func BenchmarkBest(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 6))
	scores := make([]float32, 1<<20)
	for i := range scores {
		scores[i] = float32(rng.NormFloat64())
	}
	best := index.NewBest(600)
	from := 0
	for b.Loop() {
		best.Reset(600)
		for i, s := range scores[from : from+10_000] {
			if s >= best.Threshold() {
				best.Offer(index.Candidate{ID: uint32(i), Score: s})
			}
		}
		from = (from + 10_000) % (len(scores) - 10_000)
	}
}
