package flashlight_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// run answers q from a graph by a fresh executor and list search.
func run(t require.TestingT, g *graph, q *flashlight.Query) ([]index.Hit, flashlight.Report) {
	hits, report, err := new(flashlight.Executor).Run(context.Background(), q, newListSearch(g), g.memory(), nil)
	require.NoError(t, err)
	return hits, report
}

// exact is the answer of the exact scan under the same query.
func exact(t require.TestingT, g *graph, q *flashlight.Query) []index.Hit {
	hits, _, err := flashlight.Exact(context.Background(), q, g.memory(), 2, nil)
	require.NoError(t, err)
	return hits
}

// TestWholeGraphEqualsExact checks that a plan which visits and scores everything gives the exact
// answer, bit for bit, under random filters, exclusions, minimum scores, seeds and anchors. Known
// links are left out as exclusions too.
func TestWholeGraphEqualsExact(t *testing.T) {
	graphs := []*graph{
		newGraph(t, 3, 700, 6, 12, 8), // more than one block of rows
		newGraph(t, 4, 60, 3, 5),
		newGraph(t, 5, 1, 2, 3),
	}
	var e flashlight.Executor // shared: leftovers of one query must not show in the next
	rapid.Check(t, func(t *rapid.T) {
		g := rapid.SampledFrom(graphs).Draw(t, "graph")
		n := uint32(g.n())
		plan := wholeGraph(g.n())
		plan.Seed = rapid.SampledFrom([]flashlight.Seed{"ones", "source", "both"}).Draw(t, "seed")
		plan.AnchorsFrom = rapid.SampledFrom([]flashlight.AnchorsFrom{"round", "all", "both", "round+ones"}).Draw(t, "anchors from")
		plan.Anchors = rapid.IntRange(1, 30).Draw(t, "anchors")
		q := g.query(rapid.Uint32Range(0, n-1).Draw(t, "source"), rapid.IntRange(1, 900).Draw(t, "k"), plan)
		subset := func(label string) *roaring.Bitmap {
			if rapid.Bool().Draw(t, label) {
				return nil
			}
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, label+" of"), 0))
			share := rng.Float64()
			b := roaring.New()
			for id := range n {
				if rng.Float64() < share {
					b.Add(id)
				}
			}
			return b
		}
		q.Allowed, q.Excluded = subset("allowed"), subset("excluded")
		if rapid.Bool().Draw(t, "min score") {
			all := exact(t, g, g.query(0, g.n(), plan))
			q.MinScore = &all[rapid.IntRange(0, len(all)-1).Draw(t, "least")].Score
		}
		want := exact(t, g, q)
		hits, report, err := e.Run(context.Background(), q, newListSearch(g), g.memory(), nil)
		require.NoError(t, err)
		require.Equal(t, len(want), len(hits))
		for i := range want {
			require.Equal(t, want[i].ID, hits[i].ID)
			require.Equal(t, math.Float32bits(want[i].Score), math.Float32bits(hits[i].Score))
		}
		if report.Stop != flashlight.StopMinScore {
			require.Equal(t, flashlight.StopExhausted, report.Stop)
		}
	})
}

// TestNeverShort checks that under any plan an answer has min(k, matches) hits, which all match and
// have the decoder's scores.
func TestNeverShort(t *testing.T) {
	g := newGraph(t, 6, 400, 5, 8)
	rapid.Check(t, func(t *rapid.T) {
		plan := flashlight.DefaultPlan(1, g.n())
		plan.Rounds = rapid.IntRange(1, 4).Draw(t, "rounds")
		plan.PerRound = rapid.IntRange(1, 20).Draw(t, "per round")
		plan.Probes = index.Probes{Lists: rapid.IntRange(1, 10).Draw(t, "lists")}
		q := g.query(0, rapid.IntRange(1, 100).Draw(t, "k"), plan)
		q.Allowed = roaring.New()
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "allowed"), 0))
		for range rapid.IntRange(0, 150).Draw(t, "matches") {
			q.Allowed.Add(uint32(rng.IntN(g.n())))
		}
		q.Excluded = roaring.BitmapOf(0, 1, 2, 3)
		filter := index.Filter{Allowed: q.Allowed, Excluded: q.Excluded.Clone()}

		hits, report := run(t, g, q)
		matches := bruteForce(g, q.Bound, g.n(), filter.Keep)
		require.Len(t, hits, min(q.K, len(matches)))
		for i, h := range hits {
			require.Contains(t, matches, h)
			require.True(t, i == 0 || hits[i-1].Score >= h.Score)
		}
		if len(hits) < q.K {
			require.Equal(t, flashlight.StopExhausted, report.Stop)
		}
	})
}

func TestNarrowFilterIsExact(t *testing.T) {
	g := newGraph(t, 7, 1000, 6, 8)
	plan := flashlight.DefaultPlan(10, g.n())
	plan.Rounds, plan.PerRound, plan.Probes = 3, 10, index.Probes{Lists: 3}
	tests := []struct {
		name    string
		allowed []uint32
		rounds  int
	}{
		{"no id", nil, 0},
		{"one id", []uint32{500}, 1},
		{"ids that no row has", []uint32{5000, 6000}, 1},
		{"as many as the plan scores", func() (ids []uint32) {
			for id := uint32(0); id < 30; id++ {
				ids = append(ids, 33*id)
			}
			return ids
		}(), 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := g.query(1, 10, plan)
			q.Allowed = roaring.BitmapOf(tt.allowed...)
			want := exact(t, g, q)
			hits, report := run(t, g, q)
			assert.Equal(t, ids(want), ids(hits))
			assert.Equal(t, flashlight.StopExhausted, report.Stop)
			assert.Equal(t, tt.rounds, report.Rounds)
		})
	}
}

func TestSearchSetGrows(t *testing.T) {
	g := newGraph(t, 15, 500, 4, 8)
	all := index.Probes{Share: 1}
	tests := []struct {
		name   string
		rounds int
		growth int
		probes index.Probes
		asked  []index.Probes
	}{
		{"one round", 1, 0, index.Probes{Lists: 12}, []index.Probes{{Lists: 12}}},
		{"two", 2, 0, index.Probes{Lists: 12}, []index.Probes{{Lists: 6}, {Lists: 12}}},
		{"three", 3, 0, index.Probes{Share: 0.75}, []index.Probes{{Share: 0.25}, {Share: 0.5}, {Share: 0.75}}},
		{"five", 5, 0, index.Probes{Lists: 12}, []index.Probes{{Lists: 4}, {Lists: 8}, {Lists: 12}, {Lists: 12}, {Lists: 12}}},
		{"at once", 3, 1, index.Probes{Lists: 12}, []index.Probes{{Lists: 12}, {Lists: 12}, {Lists: 12}}},
		{"over two of three", 3, 2, index.Probes{Lists: 12}, []index.Probes{{Lists: 6}, {Lists: 12}, {Lists: 12}}},
		{"over more rounds than there are", 2, 4, index.Probes{Lists: 12}, []index.Probes{{Lists: 6}, {Lists: 12}}},
		{"all from the start", 3, 3, all, []index.Probes{all, all, all}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan := flashlight.DefaultPlan(1, g.n())
			plan.Rounds, plan.PerRound, plan.Patience, plan.Probes, plan.Growth = tt.rounds, 5, 9, tt.probes, tt.growth
			s := newListSearch(g)
			_, _, err := new(flashlight.Executor).Run(context.Background(), g.query(1, 3, plan), s, g.memory(), nil)
			require.NoError(t, err)
			assert.Equal(t, tt.asked, s.asked)
		})
	}
}

func TestStarvedRoundsDoubleTheProbes(t *testing.T) {
	g := newGraph(t, 8, 1000, 6, 8)
	plan := flashlight.DefaultPlan(5, g.n())
	plan.Rounds, plan.PerRound, plan.Probes = 2, 20, index.Probes{Lists: 8}
	tests := []struct {
		name   string
		filter bool
		asked  []index.Probes
	}{
		{"no filter: the plan's probes", false, []index.Probes{{Lists: 4}, {Lists: 8}}},
		{"one in eight", true, []index.Probes{{Lists: 4}, {Lists: 8}, {Lists: 16}, {Lists: 32}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := g.query(1, 5, plan)
			if tt.filter {
				q.Allowed = roaring.New()
				for id := uint32(0); id < 1000; id += 8 {
					q.Allowed.Add(id)
				}
			}
			s := newListSearch(g)
			_, report, err := new(flashlight.Executor).Run(context.Background(), q, s, g.memory(), nil)
			require.NoError(t, err)
			assert.Equal(t, tt.asked, s.asked)
			assert.Equal(t, 2, report.Rounds)
			assert.Equal(t, 40, report.RowsScored)
		})
	}
}

func TestStops(t *testing.T) {
	g := newGraph(t, 9, 500, 4, 8)
	dot, err := decoder.NewDot(4)
	require.NoError(t, err)
	least, nan := float32(1e3), float32(math.NaN())
	plan := func(rounds, perRound, lists int) flashlight.Plan {
		p := flashlight.DefaultPlan(1, 100_000)
		p.Rounds, p.PerRound, p.Patience, p.Probes = rounds, perRound, 1, index.Probes{Lists: lists}
		return p
	}
	type want struct {
		stop         flashlight.Stop
		rounds, hits int
		scored       int
	}
	tests := []struct {
		name   string
		change func(q *flashlight.Query)
		want   want
	}{
		{"rounds", func(q *flashlight.Query) { q.Plan = plan(3, 5, 6) }, want{"rounds", 3, 10, 15}},
		{"tail", func(q *flashlight.Query) {
			q.Plan = plan(9, 50, 50)
			q.Plan.Tail = .999
		}, want{"tail", 1, 10, 50}},
		{"converged", func(q *flashlight.Query) { q.Plan = plan(9, 50, 50) }, want{"converged", 2, 10, 100}},
		{"more patience", func(q *flashlight.Query) { q.Plan = plan(9, 50, 50); q.Plan.Patience = 2 }, want{"converged", 3, 10, 150}},
		{"budget in a round", func(q *flashlight.Query) { q.Plan = plan(9, 10, 50); q.Plan.MaxScored, q.Plan.Patience = 25, 9 }, want{"budget", 3, 10, 25}},
		{"budget below k", func(q *flashlight.Query) { q.Plan = plan(9, 10, 50); q.Plan.MaxScored = 4 }, want{"budget", 1, 4, 4}},
		{"budget while widening", func(q *flashlight.Query) { q.Plan = plan(1, 2, 1); q.Plan.MaxScored = 7 }, want{"budget", 2, 7, 7}},
		{"exhausted", func(q *flashlight.Query) { q.Plan = plan(2, 300, 50); q.Plan.Patience = 9 }, want{"exhausted", 2, 10, 500}},
		{"exhausted, k beyond the rows", func(q *flashlight.Query) { q.Plan = plan(1, 5, 1); q.K = 501 }, want{"exhausted", 2, 500, 500}},
		{"rounds, then widened to k", func(q *flashlight.Query) { q.Plan = plan(2, 3, 2) }, want{"rounds", 3, 10, 10}},
		{"linear, the rows of all rounds in one", func(q *flashlight.Query) { q.Bound = dot.Bind(nil, g.row(1)); q.Plan = plan(4, 5, 10) }, want{"linear", 1, 10, 20}},
		{"linear, as many as there are in the probes", func(q *flashlight.Query) { q.Bound = dot.Bind(nil, g.row(1)); q.Plan = plan(4, 30, 10) }, want{"linear", 1, 10, 100}},
		{"linear, everything", func(q *flashlight.Query) { q.Bound = dot.Bind(nil, g.row(1)); q.K = 900 }, want{"exhausted", 2, 500, 500}},
		{"exact", func(q *flashlight.Query) { q.Plan = flashlight.Plan{Method: flashlight.MethodExact} }, want{"exact", 0, 10, 500}},
		{"paper", func(q *flashlight.Query) { q.Plan = flashlight.PaperPlan() }, want{"exhausted", 3, 10, 500}},
		{"min score", func(q *flashlight.Query) { q.Plan = plan(3, 5, 6); q.MinScore = &least }, want{"min-score", 3, 0, 15}},
		{"scores that are not numbers", func(q *flashlight.Query) { q.Bound = flat{4, nan}; q.Plan = plan(4, 5, 4); q.Plan.Patience = 9 }, want{"exhausted", 10, 10, 500}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := g.query(1, 10, plan(3, 5, 6))
			tt.change(q)
			hits, report := run(t, g, q)
			assert.Equal(t, tt.want, want{report.Stop, report.Rounds, len(hits), report.RowsScored})
			assert.Equal(t, q.Plan, report.Plan)
			assert.Nil(t, report.Trace)
		})
	}
}

func TestContexts(t *testing.T) {
	g := newGraph(t, 10, 500, 4, 8)
	plan := flashlight.DefaultPlan(10, g.n())
	plan.Rounds, plan.PerRound, plan.Patience, plan.Probes = 4, 20, 9, index.Probes{Lists: 8}
	// The context is checked three times in a round: by the executor before the search and before
	// the scoring, and by listSearch.
	tests := []struct {
		name   string
		ctx    context.Context
		stop   flashlight.Stop
		rounds int
		scored int
		err    string
	}{
		{"deadline before the first round", expireAt(1, context.DeadlineExceeded), "", 0, 0, "flashlight: round 1: context deadline exceeded"},
		{"deadline in the first search", expireAt(2, context.DeadlineExceeded), "", 0, 0, "flashlight: round 1: context deadline exceeded"},
		{"deadline after the first round", expireAt(4, context.DeadlineExceeded), "deadline", 1, 20, ""},
		{"deadline in the second search", expireAt(5, context.DeadlineExceeded), "deadline", 1, 20, ""},
		{"deadline before scoring the third round", expireAt(9, context.DeadlineExceeded), "deadline", 2, 40, ""},
		{"deadline after all rounds", expireAt(13, context.DeadlineExceeded), "rounds", 4, 80, ""},
		{"canceled after the first round", expireAt(4, context.Canceled), "", 0, 0, "flashlight: round 2: context canceled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			earlier := []index.Hit{{ID: 77}}
			hits, report, err := new(flashlight.Executor).Run(tt.ctx, g.query(1, 10, plan), newListSearch(g), g.memory(), earlier)
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				assert.Equal(t, earlier, hits)
				return
			}
			require.NoError(t, err)
			assert.Len(t, hits, 11)
			assert.Equal(t, tt.stop, report.Stop)
			assert.Equal(t, tt.rounds, report.Rounds)
			assert.Equal(t, tt.scored, report.RowsScored)
		})
	}
}

func TestRunErrors(t *testing.T) {
	g := newGraph(t, 11, 50, 4, 8)
	broken := errors.New("disk on fire")
	_, _, err := new(flashlight.Executor).Run(context.Background(), g.query(1, 1, flashlight.PaperPlan()), newListSearch(g),
		brokenRows{g.memory(), broken}, nil)
	require.ErrorIs(t, err, broken)
	require.EqualError(t, err, "flashlight: round 1: disk on fire")

	_, _, err = new(flashlight.Executor).Run(context.Background(), &flashlight.Query{}, newListSearch(g), g.memory(), nil)
	require.EqualError(t, err, "flashlight: query: no bound decoder\nquery: k is 0: want at least 1\n"+
		`plan: method "": use flashlight, paper or exact`)

	q := g.query(1, 1, flashlight.DefaultPlan(1, 50))
	q.Plan.Seed, q.Source = flashlight.SeedBoth, q.Source[:3]
	_, _, err = new(flashlight.Executor).Run(context.Background(), q, newListSearch(g), g.memory(), nil)
	require.EqualError(t, err, "flashlight: query: seed both needs the source's row of 4 floats, not 3")
}

// TestTies checks that of rows of equal score the lower id comes first, also at the k-th place.
func TestTies(t *testing.T) {
	g := newGraph(t, 12, 300, 4, 8)
	q := g.query(1, 10, wholeGraph(300))
	q.Bound = flat{4, 1}
	hits, _ := run(t, g, q)
	assert.Equal(t, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, ids(hits))
}

// TestAims compares the query vectors that a search gets with gradients computed here.
func TestAims(t *testing.T) {
	g := newGraph(t, 13, 400, 5, 8)
	bound := g.dec.Bind(nil, g.row(3))
	gradient := func(hits []index.Hit, n int) []float32 {
		slices.SortFunc(hits, func(a, b index.Hit) int {
			if a.Score != b.Score {
				return int(math.Copysign(1, float64(b.Score-a.Score)))
			}
			return int(a.ID) - int(b.ID)
		})
		sum := make([]float32, g.dim)
		one := make([]float32, g.dim)
		for _, h := range hits[:n] {
			bound.Gradient(new(decoder.Scratch), one, g.row(h.ID), nil)
			for d := range sum {
				sum[d] += one[d] / float32(n)
			}
		}
		return sum
	}
	for _, from := range []flashlight.AnchorsFrom{"round", "all", "both", "round+ones"} {
		t.Run(string(from), func(t *testing.T) {
			plan := flashlight.DefaultPlan(10, g.n())
			plan.Rounds, plan.PerRound, plan.Patience, plan.Anchors, plan.AnchorsFrom = 4, 30, 9, 7, from
			plan.Seed, plan.Probes = flashlight.SeedBoth, index.Probes{Share: 1}
			s := &spy{listSearch: newListSearch(g), bound: bound}
			q := g.query(3, 10, plan)
			_, _, err := new(flashlight.Executor).Run(context.Background(), q, s, g.memory(), nil)
			require.NoError(t, err)
			require.Len(t, s.queries, 4)
			ones := make([]float32, g.dim)
			bound.Ones(ones)
			assert.Equal(t, [][]float32{ones, g.row(3)}, s.queries[0])
			var all []index.Hit
			for round, queries := range s.queries[1:] {
				all = append(all, s.rounds[round]...)
				ofRound, ofAll := gradient(s.rounds[round], 7), gradient(slices.Clone(all), 7)
				want := map[flashlight.AnchorsFrom][][]float32{"round": {ofRound}, "all": {ofAll}, "both": {ofRound, ofAll}, "round+ones": {ofRound, ones}}[from]
				if round == 0 && from == "both" {
					want = want[:1] // the best of the first round are the best of all
				}
				require.Len(t, queries, len(want))
				for i := range want {
					assert.InDeltaSlice(t, want[i], queries[i], 1e-4)
				}
			}
		})
	}
}

// spy keeps the query vectors of every round, and the rows that it scored, which the next search
// gets as excluded.
type spy struct {
	*listSearch
	bound   decoder.Bound
	queries [][][]float32
	rounds  [][]index.Hit
	known   *roaring.Bitmap
}

func (s *spy) Search(ctx context.Context, queries [][]float32, n int, probes index.Probes, filter index.Filter,
	dst [][]index.Candidate,
) error {
	var copied [][]float32
	for _, q := range queries {
		copied = append(copied, slices.Clone(q))
	}
	s.queries = append(s.queries, copied)
	if s.known != nil {
		var round []index.Hit
		for _, id := range roaring.AndNot(filter.Excluded, s.known).ToArray() {
			var score [1]float32
			s.bound.Score(new(decoder.Scratch), score[:], s.g.row(id))
			round = append(round, index.Hit{ID: id, Score: score[0]})
		}
		s.rounds = append(s.rounds, round)
	}
	s.known = filter.Excluded.Clone()
	return s.listSearch.Search(ctx, queries, n, probes, filter, dst)
}

// canned is a Searcher that returns prepared candidates for any query vectors.
type canned struct{ lists [2][]uint32 }

func (c canned) Search(_ context.Context, queries [][]float32, n int, _ index.Probes, f index.Filter, dst [][]index.Candidate) error {
	for q := range queries {
		dst[q] = dst[q][:0]
		for _, id := range c.lists[q] {
			if len(dst[q]) < n && f.Keep(id) {
				dst[q] = append(dst[q], index.Candidate{ID: id, Ref: id})
			}
		}
	}
	return nil
}
func (canned) Cost() index.Cost { return index.Cost{} }
func (canned) Exhausted() bool  { return false }

func TestMergeAlternates(t *testing.T) {
	tests := []struct {
		name     string
		ones     []uint32
		source   []uint32
		perRound int
		want     []uint32
	}{
		{"disjoint", []uint32{1, 2, 3}, []uint32{11, 12, 13}, 4, []uint32{1, 2, 11, 12}},
		{"odd", []uint32{1, 2, 3}, []uint32{11, 12, 13}, 5, []uint32{1, 2, 3, 11, 12}},
		{"equal lists fill the round", []uint32{1, 2, 3, 4}, []uint32{1, 2, 3, 4}, 4, []uint32{1, 2, 3, 4}},
		{"each side brings its half in spite of overlap", []uint32{1, 2, 3, 4}, []uint32{1, 2, 13, 14}, 4, []uint32{1, 2, 3, 13}},
		{"a short list is made up for", []uint32{1}, []uint32{11, 12, 13, 14}, 4, []uint32{1, 11, 12, 13}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := flashlight.NewMemory(1, nil, make([]float32, 20))
			plan := flashlight.DefaultPlan(1, 20)
			plan.Seed, plan.Rounds, plan.PerRound = flashlight.SeedBoth, 1, tt.perRound
			q := &flashlight.Query{Bound: flat{1, 0}, Source: []float32{1}, K: tt.perRound, Plan: plan, Excluded: roaring.New()}
			hits, _, err := new(flashlight.Executor).Run(context.Background(), q, canned{[2][]uint32{tt.ones, tt.source}}, m, nil)
			require.NoError(t, err)
			var ids []uint32
			for _, h := range hits {
				ids = append(ids, h.ID)
			}
			slices.Sort(ids)
			assert.Equal(t, tt.want, ids)
		})
	}
}
