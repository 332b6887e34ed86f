package flashlight_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// learnedPlan is one round of n from the learned seed, in everything.
func learnedPlan(n int) flashlight.Plan {
	plan := rounds(1, n, 20, flashlight.AnchorsBoth)
	plan.Seed = flashlight.SeedLearned
	return plan
}

// learn returns the prototypes of the sources.
func learn(t testing.TB, g *graph, sources []uint32) []flashlight.Prototype {
	t.Helper()
	m := g.memory()
	var e flashlight.Executor
	var prototypes []flashlight.Prototype
	for _, source := range sources {
		q := g.query(source, 100, flashlight.LearnPlan(g.n()))
		q.Excluded = roaring.BitmapOf(source)
		p, err := e.Learn(context.Background(), source, q, m.NewSearch(), m)
		require.NoError(t, err)
		prototypes = append(prototypes, p)
	}
	return prototypes
}

// upTo returns 0, step, 2 step and so on, n of them.
func upTo(n, step int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i * step)
	}
	return out
}

// TestLearn checks that a prototype is the mean gradient with respect to z at the best 50 of all
// rows.
func TestLearn(t *testing.T) {
	g := newGraph(t, 31, 900, 6, 12, 8)
	plan := flashlight.LearnPlan(g.n())
	plan.PerRound, plan.Probes.Share = g.n(), 1
	m := g.memory()
	q := g.query(5, 10, plan)
	p, err := new(flashlight.Executor).Learn(context.Background(), 77, q, m.NewSearch(), m)
	require.NoError(t, err)
	assert.Equal(t, uint32(77), p.ID)
	assert.Equal(t, g.row(5), p.Source)

	bound := g.dec.Bind(nil, g.row(5))
	want, one := make([]float64, g.dim), make([]float32, g.dim)
	for _, h := range bruteForce(g, bound, 50, nil) {
		bound.(decoder.Separable).GradientZ(new(decoder.Scratch), one, g.row(h.ID), nil)
		for d := range want {
			want[d] += float64(one[d]) / 50
		}
	}
	assert.InDeltaSlice(t, want, p.Gradient, 1e-4)
	q.Source[0]++
	assert.NotEqual(t, q.Source, p.Source, "a copy")
	q.Source[0]--
}

func TestLearnErrors(t *testing.T) {
	g := newGraph(t, 32, 300, 4, 8)
	m := g.memory()
	learn := func(ctx context.Context, change func(q *flashlight.Query)) error {
		q := g.query(1, 10, flashlight.LearnPlan(g.n()))
		change(q)
		_, err := new(flashlight.Executor).Learn(ctx, 1, q, m.NewSearch(), m)
		return err
	}
	ctx := context.Background()
	assert.ErrorIs(t, learn(ctx, func(q *flashlight.Query) { q.Bound = flat{4, 1} }), flashlight.ErrNotSeparable)
	assert.ErrorContains(t, learn(ctx, func(q *flashlight.Query) { q.Plan.Method = flashlight.MethodExact }), "method exact keeps no anchors")
	assert.ErrorContains(t, learn(ctx, func(q *flashlight.Query) { q.K = 0 }), "k is 0")
	for looks := 1; looks <= 5; looks++ { // a search that the time cut short teaches nothing
		err := learn(expireAt(looks, context.DeadlineExceeded), func(q *flashlight.Query) { q.Plan.PerRound = 20 })
		assert.ErrorIs(t, err, context.DeadlineExceeded, "look %d", looks)
	}
}

// TestLearnedSeedFindsMore checks that one round finds more than from the ones seed, for sources
// that nothing was learned from.
func TestLearnedSeedFindsMore(t *testing.T) {
	g := newGraph(t, 33, 4000, 16, 32, 24)
	seeds := flashlight.NewSeeds(g.dim, learn(t, g, upTo(200, 20)))
	require.Equal(t, 200, seeds.Len())
	m := g.memory()
	found := map[flashlight.Seed]int{}
	var e flashlight.Executor
	for source := uint32(7); source < 4000; source += 100 {
		truth := bruteForce(g, g.dec.Bind(nil, g.row(source)), 50, nil)
		for _, seed := range []flashlight.Seed{flashlight.SeedOnes, flashlight.SeedLearned} {
			plan := learnedPlan(200)
			plan.Seed = seed
			q := g.query(source, 50, plan)
			q.Seeds = seeds
			hits, report, err := e.Run(context.Background(), q, m.NewSearch(), m, nil)
			require.NoError(t, err)
			assert.Equal(t, seed, report.Plan.Seed)
			for _, h := range hits {
				if h.Score >= truth[49].Score {
					found[seed]++
				}
			}
		}
	}
	t.Log(found)
	assert.Greater(t, found[flashlight.SeedLearned], found[flashlight.SeedOnes]*5/4)
}

// TestLearnedQuery compares the query vector that a search gets with one computed here in float64.
func TestLearnedQuery(t *testing.T) {
	const dim = 6
	rng := rand.New(rand.NewPCG(34, 1))
	concat, err := decoder.NewConcatMLP(dim, layers(rng, 2*dim, 9, 1)...)
	require.NoError(t, err)
	compared := 0
	for name, dec := range map[string]decoder.Decoder{"hadamard": newGraph(t, 34, 40, dim, 9).dec, "concat": concat} {
		for _, n := range []int{1, 7, 40, 200, 500} {
			g := &graph{dim: dim, rows: normal(rng, 40*dim, 1), dec: dec}
			var prototypes []flashlight.Prototype
			for i := range n {
				prototypes = append(prototypes, flashlight.Prototype{
					ID: uint32(1000 + i), Source: normal(rng, dim, 1), Gradient: normal(rng, dim, 3),
				})
			}
			seeds := flashlight.NewSeeds(dim, prototypes)
			for source := range uint32(8) {
				q := g.query(source, 5, learnedPlan(10))
				q.Seeds, q.Explain = seeds, true
				s := &spy{listSearch: newListSearch(g), bound: q.Bound}
				_, report, err := new(flashlight.Executor).Run(context.Background(), q, s, g.memory(), nil)
				require.NoError(t, err)
				query, leaders := wantLearned(g, q.Bound, g.row(source), prototypes)
				require.Len(t, s.queries[0], 1)
				if leaders == nil { // none is like the source
					require.Equal(t, "ones", report.Trace[0].Aims[0].From)
					continue
				}
				compared++
				assert.InDeltaSlice(t, query, s.queries[0][0], 1e-4, "%s, %d stored, source %d", name, n, source)
				require.Equal(t, "learned", report.Trace[0].Aims[0].From)
				assert.Equal(t, leaders, report.Trace[0].Aims[0].Sources)
				assert.Empty(t, report.Trace[0].Aims[0].Anchors)

				q.Plan.Seed = flashlight.SeedLearnedOnes
				s = &spy{listSearch: newListSearch(g), bound: q.Bound}
				_, report, err = new(flashlight.Executor).Run(context.Background(), q, s, g.memory(), nil)
				require.NoError(t, err)
				require.Len(t, s.queries[0], 2)
				assert.InDeltaSlice(t, query, s.queries[0][0], 1e-4)
				ones := make([]float32, dim)
				q.Bound.Ones(ones)
				assert.Equal(t, ones, s.queries[0][1])
				assert.Equal(t, []flashlight.Aim{{From: "learned", Sources: leaders}, {From: "ones"}}, report.Trace[0].Aims)
			}
		}
	}
	assert.Greater(t, compared, 40)
}

// wantLearned returns the learned seed as documented, and the ids of the sources that it is made
// from, or nil if none is similar to the source.
func wantLearned(g *graph, bound decoder.Bound, source []float32, prototypes []flashlight.Prototype) (query []float64, leaders []uint32) {
	cosine := func(a, b []float32) float64 {
		var ab, aa, bb float64
		for d := range a {
			ab, aa, bb = ab+float64(a[d])*float64(b[d]), aa+float64(a[d])*float64(a[d]), bb+float64(b[d])*float64(b[d])
		}
		return ab / math.Sqrt(aa*bb)
	}
	add := func(v []float64, scale float64) {
		var sum float64
		for _, x := range v {
			sum += x * x
		}
		for d := range query {
			query[d] += scale * v[d] / math.Sqrt(sum)
		}
	}
	sorted := slices.Clone(prototypes)
	slices.SortStableFunc(sorted, func(a, b flashlight.Prototype) int {
		return int(math.Copysign(1, cosine(b.Source, source)-cosine(a.Source, source)))
	})
	if cosine(sorted[0].Source, source) < 0.5 {
		return nil, nil
	}
	n := min(max(len(prototypes)/8, 16), 64, len(prototypes))
	learned, ones, one := make([]float64, g.dim), make([]float64, g.dim), make([]float32, g.dim)
	for _, p := range sorted[:n] {
		leaders = append(leaders, p.ID)
		for d := range learned {
			z := float64(p.Gradient[d])
			if g.dec.Kind() == decoder.HadamardMLP {
				z *= float64(source[d])
			}
			learned[d] += z
		}
	}
	bound.Ones(one)
	for d := range ones {
		ones[d] = float64(one[d])
	}
	query = make([]float64, g.dim)
	add(learned, 1)
	add(ones, 0.1)
	return query, leaders
}

// TestLearnedSeedFallsBack checks that without usable prototypes the answer is that of the ones
// seed, and no error.
func TestLearnedSeedFallsBack(t *testing.T) {
	g := newGraph(t, 35, 600, 4, 8)
	good := learn(t, g, upTo(30, 20))
	seeds := flashlight.NewSeeds(4, good)
	huge := flashlight.NewSeeds(4, []flashlight.Prototype{{Source: []float32{1, 1, 1, 1}, Gradient: []float32{3e38, 3e38, 3e38, 3e38}}})
	dot, err := decoder.NewDot(4)
	require.NoError(t, err)
	concat, err := decoder.NewConcatMLP(4, layers(rand.New(rand.NewPCG(35, 2)), 8, 6, 1)...)
	require.NoError(t, err)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	bind := func(q *flashlight.Query, source ...float32) {
		q.Source, q.Bound = source, g.dec.Bind(nil, source)
	}
	tests := []struct {
		name   string
		change func(q *flashlight.Query)
	}{
		{"no seeds", func(q *flashlight.Query) { q.Seeds = nil }},
		{"seeds without prototypes", func(q *flashlight.Query) { q.Seeds = flashlight.NewSeeds(4, nil) }},
		{"seeds of another dim", func(q *flashlight.Query) {
			rng := rand.New(rand.NewPCG(1, 1))
			q.Seeds = flashlight.NewSeeds(5, []flashlight.Prototype{{Source: normal(rng, 5, 1), Gradient: normal(rng, 5, 1)}})
			require.Equal(t, 1, q.Seeds.Len())
		}},
		{"a source of zeros", func(q *flashlight.Query) { bind(q, 0, 0, 0, 0) }},
		{"a source of zeros, of a ConcatMLP", func(q *flashlight.Query) {
			q.Source = make([]float32, 4)
			q.Bound = concat.Bind(nil, q.Source)
		}},
		{"a source that is not finite", func(q *flashlight.Query) { bind(q, 1, nan, 1, inf) }},
		{"a source like none stored", func(q *flashlight.Query) {
			bind(q, 1, 0, 0, 0)
			q.Seeds = flashlight.NewSeeds(4, []flashlight.Prototype{{Source: []float32{0.49, 1, 0, 0}, Gradient: []float32{1, 1, 1, 1}}})
		}},
		{"no source", func(q *flashlight.Query) { q.Source = nil }},
		{"a source of another dim", func(q *flashlight.Query) { q.Source = q.Source[:3] }},
		{"a query that is not finite", func(q *flashlight.Query) { bind(q, 9, 9, 9, 9); q.Seeds = huge }},
		{"a decoder that is no network", func(q *flashlight.Query) { q.Bound = bowl{[]float32{1, 2, 3, 4}} }},
		{"a linear decoder", func(q *flashlight.Query) { q.Bound = dot.Bind(nil, q.Source) }},
		{"orthogonal gradients", func(q *flashlight.Query) { // the query is zero
			bind(q, 1, 0, 0, 0)
			q.Seeds = flashlight.NewSeeds(4, []flashlight.Prototype{{Source: []float32{1, 0, 0, 0}, Gradient: []float32{0, 1, 1, 1}}})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer := func(seed flashlight.Seed) ([]index.Hit, flashlight.Report) {
				plan := rounds(3, 40, 20, flashlight.AnchorsBoth)
				plan.Seed = seed
				q := g.query(9, 10, plan)
				q.Seeds, q.Explain = seeds, true
				tt.change(q)
				e := flashlight.Executor{Clock: ticking()}
				m := g.memory()
				hits, report, err := e.Run(context.Background(), q, m.NewSearch(), m, nil)
				require.NoError(t, err)
				return hits, report
			}
			want, wantReport := answer(flashlight.SeedOnes)
			for _, seed := range []flashlight.Seed{flashlight.SeedLearned, flashlight.SeedLearnedOnes} {
				hits, report := answer(seed)
				assert.Equal(t, flashlight.SeedOnes, report.Plan.Seed)
				assert.Equal(t, want, hits)
				assert.Equal(t, wantReport, report)
			}
		})
	}
}

// TestFallback checks that Query.Fallback is run if the learned seed is not available.
func TestFallback(t *testing.T) {
	g := newGraph(t, 38, 600, 4, 8)
	plan := learnedPlan(30)
	instead := rounds(4, 40, 20, flashlight.AnchorsBoth)
	ask := func(seeds *flashlight.Seeds, fallback *flashlight.Plan) ([]index.Hit, flashlight.Report) {
		q := g.query(9, 10, plan)
		q.Seeds, q.Fallback = seeds, fallback
		hits, report, err := new(flashlight.Executor).Run(context.Background(), q, newListSearch(g), g.memory(), nil)
		require.NoError(t, err)
		return hits, report
	}
	_, report := ask(flashlight.NewSeeds(4, learn(t, g, upTo(30, 20))), &instead)
	assert.Equal(t, plan, report.Plan, "it can be had")
	hits, report := ask(nil, &instead)
	assert.Equal(t, instead, report.Plan)
	assert.Equal(t, 4, report.Rounds)
	plan = instead
	want, wantReport := ask(nil, nil)
	assert.Equal(t, want, hits)
	assert.Equal(t, wantReport, report)

	for _, bad := range []flashlight.Plan{{Method: flashlight.MethodExact}, learnedPlan(30), {}} {
		q := g.query(9, 10, learnedPlan(30))
		q.Fallback = &bad
		_, _, err := new(flashlight.Executor).Run(context.Background(), q, newListSearch(g), g.memory(), nil)
		assert.ErrorContains(t, err, "fallback")
	}
}

// TestLearnedSeedOfOddSources checks that unusual sources are answered without an error. The seed
// of a source of huge or tiny norm is made from the same stored sources as that of one of ordinary
// norm in the same direction.
func TestLearnedSeedOfOddSources(t *testing.T) {
	g := newGraph(t, 36, 600, 4, 8)
	seeds := flashlight.NewSeeds(4, learn(t, g, upTo(30, 20)))
	ask := func(seeds *flashlight.Seeds, source []float32) []uint32 {
		q := &flashlight.Query{Bound: g.dec.Bind(nil, source), Source: source, K: 5, Plan: learnedPlan(50), Seeds: seeds, Explain: true}
		hits, report, err := new(flashlight.Executor).Run(context.Background(), q, newListSearch(g), g.memory(), nil)
		require.NoError(t, err)
		require.Equal(t, flashlight.SeedLearned, report.Plan.Seed)
		require.Len(t, hits, 5)
		return report.Trace[0].Aims[0].Sources
	}
	want := ask(seeds, g.row(3))
	require.Len(t, want, 16)
	for _, scale := range []float32{1e-30, 1e-3, 1e3, 1e19, 1e30} {
		source := slices.Clone(g.row(3))
		for d := range source {
			source[d] *= scale
		}
		assert.Equal(t, want, ask(seeds, source), "scaled by %g", scale)
	}
	one := flashlight.Prototype{ID: 4, Source: g.row(3), Gradient: []float32{1, -1, 2, 0}}
	assert.Equal(t, []uint32{4}, ask(flashlight.NewSeeds(4, []flashlight.Prototype{one}), g.row(3)))
	assert.Equal(t, []uint32{4, 4, 4}, ask(flashlight.NewSeeds(4, []flashlight.Prototype{one, one, one}), g.row(3)))
}

func TestNewSeedsLeavesOut(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	good := []float32{1, 2, 3}
	seeds := flashlight.NewSeeds(3, []flashlight.Prototype{
		{1, good, []float32{0, 0, 0}}, // every neuron inactive
		{2, good, []float32{1, nan, 0}},
		{3, good, []float32{1, inf, 0}},
		{4, []float32{0, 0, 0}, good},
		{5, []float32{nan, 0, 0}, good},
		{6, good[:2], good},
		{7, good, good[:2]},
		{8, good, nil},
		{9, good, good},
	})
	assert.Equal(t, 1, seeds.Len())
	assert.Zero(t, (*flashlight.Seeds)(nil).Len())

	many := slices.Repeat([]flashlight.Prototype{{9, good, good}}, 600)
	assert.Equal(t, 512, flashlight.NewSeeds(3, many).Len())
	assert.Equal(t, 512, flashlight.MaxPrototypes(256))
	assert.Equal(t, 255, flashlight.MaxPrototypes(1024))
}

// TestSeedsAreShared checks that goroutines which share seeds get the same answers as one alone.
// Under -race it also shows that nothing is written.
func TestSeedsAreShared(t *testing.T) {
	g := newGraph(t, 37, 800, 8, 16)
	seeds := flashlight.NewSeeds(g.dim, learn(t, g, upTo(40, 20)))
	answer := func() (all []index.Hit) {
		var e flashlight.Executor
		m := g.memory()
		for source := range uint32(20) {
			q := g.query(source, 10, learnedPlan(60))
			q.Seeds = seeds
			var err error
			all, _, err = e.Run(context.Background(), q, m.NewSearch(), m, all)
			assert.NoError(t, err)
		}
		return all
	}
	want := answer()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { assert.Equal(t, want, answer()) })
	}
	wg.Wait()
}
