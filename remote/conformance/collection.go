package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/internal/dbtest"
	"github.com/flashdb/flashdb/remote"
)

// runCollection runs the tests of collections over an engine.
func runCollection(t *testing.T, open func(t *testing.T) remote.Engine) {
	for name, test := range map[string]func(t *testing.T, p *pair){
		"Exact":       testExact,
		"Queries":     testQueries,
		"Options":     testOptions,
		"Attributes":  testAttributes,
		"Writes":      testWrites,
		"Calibration": testCalibration,
		"Swap":        testSwap,
		"Trouble":     testTrouble,
		"Resume":      testResume,
		"Users":       testUsers,
	} {
		t.Run("Collection/"+name, func(t *testing.T) { test(t, newPair(t, open)) })
	}
}

const (
	pairRows = 1500
	pairDim  = 16
)

// A pair is an embedded database and a remote one with the same rows.
type pair struct {
	name     string // of the collection
	connect  func(t *testing.T) remote.Engine
	engine   *Faulty
	embedded *flashdb.DB
	local    *flashdb.Collection
	dir      string
	db       *remote.DB
	remote   *remote.Collection
}

// newPair makes a collection of random rows with links and tags, and pushes it.
func newPair(t *testing.T, connect func(t *testing.T) remote.Engine) *pair {
	t.Helper()
	ctx := context.Background()
	p := &pair{name: fmt.Sprintf("conformance-%08x", rand.Uint32()), connect: connect, dir: t.TempDir()}
	p.embedded, p.local = embedded(t, p.name, 1)
	var edges []flashdb.Edge
	for i := range 200 {
		edges = append(edges, flashdb.Edge{Source: fmt.Sprint("n", i%20), Target: fmt.Sprint("n", 7*i)})
	}
	require.NoError(t, p.local.Link(ctx, edges...))
	p.open(t)
	t.Cleanup(func() {
		assert.NoError(t, p.db.Drop(ctx, p.name))
		assert.NoError(t, p.db.Close())
	})
	res, err := p.db.Push(ctx, p.embedded, []string{p.name}, &remote.PushOptions{Links: true, BatchBytes: 20_000})
	require.NoError(t, err)
	assert.Equal(t, pairRows, res.Rows)
	assert.Equal(t, 1000, res.Verified)
	p.remote, err = p.db.Collection(ctx, p.name)
	require.NoError(t, err)
	return p
}

// open opens the remote database over an engine of its own, as Close closes both.
func (p *pair) open(t *testing.T) {
	t.Helper()
	p.engine = &Faulty{Engine: p.connect(t)}
	var err error
	p.db, err = remote.Open(context.Background(), p.dir, p.engine, &remote.Options{Attempts: 3})
	require.NoError(t, err)
}

// embedded makes an embedded database with a collection of random rows and a decoder.
func embedded(t *testing.T, name string, seed uint64) (*flashdb.DB, *flashdb.Collection) {
	t.Helper()
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(seed, 0))
	db, err := flashdb.Open(t.TempDir(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	c, err := db.CreateCollection(name, flashdb.Schema{Dim: pairDim})
	require.NoError(t, err)
	fill(t, c, rng, pairRows)
	d, err := dbtest.RandomMLP(rng, pairDim, 24)
	require.NoError(t, err)
	require.NoError(t, c.PutDecoder(ctx, "mlp", d))
	return db, c
}

// fill stores nodes n0, n1 and so on. The last ten have equal embeddings.
func fill(t *testing.T, c *flashdb.Collection, rng *rand.Rand, n int) {
	t.Helper()
	var nodes []flashdb.Node
	for i := range n {
		node := flashdb.Node{Key: fmt.Sprint("n", i), Embedding: dbtest.RandomVector(rng, pairDim), Tags: []string{fmt.Sprint("mod", i%3)}}
		if i >= n-10 {
			node.Embedding = nodes[n-11].Embedding
		}
		if i%4 != 0 {
			node.Attributes = flashdb.Attributes{
				"price": float64(i-700) / 8, "brand": fmt.Sprintf("b %c", 'A'+i%5), "sold": i%2 == 0,
				"released": time.Date(2025, 1, 1, i, 0, 0, 0, time.UTC),
			}
		}
		if i%5 == 0 {
			node.Payload = fmt.Appendf(nil, "payload of %d", i)
		}
		nodes = append(nodes, node)
	}
	require.NoError(t, c.Upsert(context.Background(), nodes...))
}

// assertSame requires two answers of equal scores, in the same order up to equal scores.
func assertSame(t *testing.T, want, got []flashdb.Hit, msg string) {
	t.Helper()
	require.Len(t, got, len(want), msg)
	for i := range want {
		assert.InDelta(t, want[i].Score, got[i].Score, 1e-5, "%s: hit %d", msg, i)
		assert.InDelta(t, want[i].Probability, got[i].Probability, 1e-5, "%s: hit %d", msg, i)
	}
	// Those above the last score are the same nodes.
	above := func(hits []flashdb.Hit) (keys []string) {
		for _, h := range hits {
			if h.Score > want[len(want)-1].Score+1e-5 {
				keys = append(keys, h.Key)
			}
		}
		slices.Sort(keys)
		return keys
	}
	if len(want) > 0 {
		assert.Equal(t, above(want), above(got), msg)
	}
}

// testExact compares exact answers with those of the embedded database.
func testExact(t *testing.T, p *pair) {
	ctx := context.Background()
	lowest := float32(0.5)
	for name, o := range map[string]flashdb.PredictOptions{
		"plain":    {},
		"linked":   {IncludeLinked: true},
		"excluded": {Exclude: []string{"n1", "n2", "unknown"}},
		"filter":   {Filter: "mod1 and not mod2"},
		"none":     {Filter: "mod1 and mod2"},
		"score":    {MinScore: &lowest},
		"node":     {WithNode: true, Filter: "mod0"},
	} {
		o.Exact = true
		for _, key := range []string{"n0", "n19", "n700"} {
			for _, k := range []int{1, 25, pairRows + 10} {
				want, err := p.local.Predict(ctx, key, k, &o)
				require.NoError(t, err)
				got, err := p.remote.Predict(ctx, key, k, &o)
				require.NoError(t, err)
				assertSame(t, want.Hits, got.Hits, fmt.Sprint(name, " ", key, " ", k))
				assert.Equal(t, key, got.Source)
				assert.Equal(t, len(got.Hits) < k, got.Stats.Short != "", "%s: %s", name, got.Stats.Short)
				if o.WithNode {
					for _, h := range got.Hits {
						n, err := p.local.Get(ctx, h.Key)
						require.NoError(t, err)
						assert.ElementsMatch(t, n.Tags, h.Tags)
						assert.Equal(t, string(n.Payload), string(h.Payload))
					}
				}
			}
		}
	}
	vector := dbtest.RandomVector(rand.New(rand.NewPCG(3, 3)), pairDim)
	want, err := p.local.PredictVector(ctx, vector, 30, &flashdb.PredictOptions{Exact: true})
	require.NoError(t, err)
	got, err := p.remote.PredictVector(ctx, vector, 30, &flashdb.PredictOptions{Exact: true})
	require.NoError(t, err)
	assertSame(t, want.Hits, got.Hits, "vector")
}

// testQueries runs approximate queries: every score is exact, and recall at a budget is high.
func testQueries(t *testing.T, p *pair) {
	ctx := context.Background()
	e, err := p.remote.Eval(ctx, &remote.EvalOptions{Sources: 30, K: 20, Predict: flashdb.PredictOptions{
		Plan: &flashlight.Plan{Rounds: 4, PerRound: 100},
	}})
	require.NoError(t, err)
	assert.Greater(t, e.Mean, .9, "four rounds of 100 of 1,500 rows")
	assert.LessOrEqual(t, e.Rounds, 4.)
	for _, o := range []flashdb.PredictOptions{{}, {Filter: "mod1"}, {IncludeLinked: true}, {Explain: true}, {WithNode: true}} {
		res, err := p.remote.Predict(ctx, "n3", 40, &o)
		require.NoError(t, err)
		require.Len(t, res.Hits, 40)
		var keys []string
		for i, h := range res.Hits {
			keys = append(keys, h.Key)
			assert.NotEqual(t, "n3", h.Key)
			assert.True(t, i == 0 || res.Hits[i-1].Score >= h.Score, "best first")
		}
		slices.Sort(keys)
		assert.Len(t, slices.Compact(slices.Clone(keys)), 40, "none twice")
		linked, err := p.local.Linked(ctx, flashdb.Edge{Source: "n3"})
		require.NoError(t, err)
		require.NotEmpty(t, linked)
		if !o.IncludeLinked {
			for _, key := range linked {
				assert.NotContains(t, keys, key)
			}
		}
		scored, err := p.local.Score(ctx, "n3", keys, nil)
		require.NoError(t, err)
		for _, h := range res.Hits {
			at := slices.IndexFunc(scored, func(s flashdb.Hit) bool { return s.Key == h.Key })
			assert.InDelta(t, scored[at].Score, h.Score, 1e-5)
		}
		again, err := p.remote.Score(ctx, "n3", keys, nil)
		require.NoError(t, err)
		assertSame(t, scored, again, "score")
		assert.Equal(t, o.Explain, len(res.Stats.Trace) > 0)
	}
	n := 0
	for res, err := range p.remote.PredictBatch(ctx, []string{"n1", "n2", "unknown", "n3", "n4", "n5", "n6"}, 5, nil) {
		if res.Source == "unknown" {
			assert.ErrorIs(t, err, flashdb.ErrNotFound)
		} else {
			require.NoError(t, err)
			assert.Len(t, res.Hits, 5)
		}
		n++
	}
	assert.Equal(t, 7, n)
}

// testOptions gives arguments that are wrong.
func testOptions(t *testing.T, p *pair) {
	ctx := context.Background()
	for says, o := range map[string]flashdb.PredictOptions{
		`decoder "none"`:     {Decoder: "none"},
		"filter":             {Filter: "((("},
		"did you mean price": {Filter: "prise < 20"},
		"is a number":        {Filter: `price < "A"`},
		"Diversity":          {Diversity: .3},
		"was not pushed":     {SourceCollection: "users"},
		"recall":             {Recall: 2},
		"use Eval":           {Verify: true},
		"relation":           {Relation: "likes"},
		"leave exact and re": {Exact: true, Plan: &flashlight.Plan{}},
	} {
		_, err := p.remote.Predict(ctx, "n1", 5, &o)
		assert.ErrorContains(t, err, says)
	}
	_, err := p.remote.Predict(ctx, "n1", 0, nil)
	require.ErrorIs(t, err, flashdb.ErrInvalid)
	_, err = p.remote.Predict(ctx, "", 5, nil)
	require.ErrorIs(t, err, flashdb.ErrInvalid)
	_, err = p.remote.Predict(ctx, "unknown", 5, nil)
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	_, err = p.remote.PredictVector(ctx, make([]float32, 3), 5, nil)
	require.ErrorIs(t, err, flashdb.ErrDim)
	_, err = p.remote.Score(ctx, "n1", []string{"n2", "unknown"}, nil)
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	_, err = p.db.Collection(ctx, "conformance-none")
	require.ErrorIs(t, err, flashdb.ErrNotFound)
}

// testWrites writes to the live version.
func testWrites(t *testing.T, p *pair) {
	ctx := context.Background()
	best, err := p.remote.Predict(ctx, "n1", 1, &flashdb.PredictOptions{Exact: true})
	require.NoError(t, err)
	n, err := p.remote.Get(ctx, best.Hits[0].Key)
	require.NoError(t, err)
	require.NoError(t, p.remote.Upsert(ctx, flashdb.Node{Key: "copy", Embedding: n.Embedding, Tags: []string{"new"}}))
	deleted, err := p.remote.Delete(ctx, best.Hits[0].Key, "unknown")
	require.NoError(t, err)
	assert.Equal(t, 1, deleted)
	require.NoError(t, p.remote.Refresh(ctx))
	for _, exact := range []bool{true, false} {
		res, err := p.remote.Predict(ctx, "n1", 1, &flashdb.PredictOptions{Exact: exact})
		require.NoError(t, err)
		assert.Equal(t, "copy", res.Hits[0].Key)
	}
	count, err := p.remote.Len(ctx)
	require.NoError(t, err)
	assert.Equal(t, pairRows, count)
	long := dbtest.RandomVector(rand.New(rand.NewPCG(5, 5)), pairDim)
	for i := range long {
		long[i] *= 100
	}
	require.NoError(t, p.remote.Upsert(ctx, flashdb.Node{Key: "long", Embedding: long}), "longer than all that were pushed")
	require.ErrorIs(t, p.remote.Upsert(ctx, flashdb.Node{Key: "x", Embedding: long[1:]}), flashdb.ErrDim)

	require.NoError(t, p.remote.Link(ctx, flashdb.Edge{Source: "n1", Target: "copy"}))
	res, err := p.remote.Predict(ctx, "n1", 5, nil)
	require.NoError(t, err)
	for _, h := range res.Hits {
		assert.NotEqual(t, "copy", h.Key, "it is linked by now")
	}
	unlinked, err := p.remote.Unlink(ctx, flashdb.Edge{Source: "n1", Target: "copy"})
	require.NoError(t, err)
	assert.Equal(t, 1, unlinked)
}

// testCalibration calibrates, and asks for recalls.
func testCalibration(t *testing.T, p *pair) {
	ctx := context.Background()
	of, err := p.remote.Calibrate(ctx, &remote.CalibrateOptions{Sources: 40, Training: 40})
	require.NoError(t, err)
	assert.Equal(t, 40, of.Sources)
	assert.Positive(t, of.Seeds)
	require.Len(t, of.Frontiers, 2)
	for range 2 {
		assert.Len(t, p.remote.Calibrations(), 1)
		res, err := p.remote.Predict(ctx, "n5", 10, &flashdb.PredictOptions{Recall: .9, Explain: true})
		require.NoError(t, err)
		assert.Contains(t, res.Stats.Plan, "calibrated for recall")
		e, err := p.remote.Eval(ctx, &remote.EvalOptions{Sources: 60, K: 10, RandomSeed: 5, Predict: flashdb.PredictOptions{Recall: .9}})
		require.NoError(t, err)
		assert.Greater(t, e.Mean, .88)

		require.NoError(t, p.db.Close()) // it is stored
		p.open(t)
		p.remote, err = p.db.Collection(ctx, p.name)
		require.NoError(t, err)
	}
}

// testSwap replaces the model while queries run: no answer mixes the two, and none fails.
func testSwap(t *testing.T, p *pair) {
	ctx := context.Background()
	other, local := embedded(t, p.name, 2)
	exact := &flashdb.PredictOptions{Exact: true, IncludeLinked: true}
	scores := map[string][2]float32{} // of each node against n0, under either model
	for i, c := range []*flashdb.Collection{p.local, local} {
		res, err := c.Predict(ctx, "n0", pairRows, exact)
		require.NoError(t, err)
		for _, h := range res.Hits {
			both := scores[h.Key]
			both[i] = h.Score
			scores[h.Key] = both
		}
	}
	done := make(chan struct{})
	var running sync.WaitGroup
	var counts [2]int
	running.Go(func() {
		for last := false; !last; {
			select {
			case <-done:
				last = true
			default:
			}
			res, err := p.remote.Predict(ctx, "n0", 20, &flashdb.PredictOptions{IncludeLinked: true})
			if !assert.NoError(t, err) {
				return
			}
			var of [2]int
			for _, h := range res.Hits {
				for i, s := range scores[h.Key] {
					if diff := s - h.Score; diff < 1e-5 && diff > -1e-5 {
						of[i]++
					}
				}
			}
			assert.True(t, of[0] == 20 || of[1] == 20, "a mixture: %v", of)
			for i := range of {
				if of[i] == 20 {
					counts[i]++
				}
			}
		}
	})
	_, err := p.db.Push(ctx, other, []string{p.name}, nil)
	close(done)
	running.Wait()
	require.NoError(t, err)
	assert.Positive(t, counts[0])
	assert.Positive(t, counts[1])
	names, err := p.engine.Versions(ctx, p.name)
	require.NoError(t, err)
	assert.Len(t, names, 1, "the former one is dropped")
}

// testUsers predicts items for users, which were pushed together.
func testUsers(t *testing.T, p *pair) {
	ctx := context.Background()
	users := p.name + "-u"
	c, err := p.embedded.CreateCollection(users, flashdb.Schema{Dim: pairDim})
	require.NoError(t, err)
	fill(t, c, rand.New(rand.NewPCG(9, 9)), 50)
	require.NoError(t, p.local.Link(ctx, flashdb.Edge{SourceCollection: users, Source: "n1", Target: "n100"}))
	_, err = p.db.Push(ctx, p.embedded, []string{p.name, users}, &remote.PushOptions{Links: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.db.Drop(ctx, users)) })
	o := &flashdb.PredictOptions{SourceCollection: users, Exact: true}
	want, err := p.local.Predict(ctx, "n1", pairRows, o)
	require.NoError(t, err)
	got, err := p.remote.Predict(ctx, "n1", pairRows, o)
	require.NoError(t, err)
	assert.Len(t, want.Hits, pairRows-1, "all but the one that is linked")
	assertSame(t, want.Hits, got.Hits, "for a user")
	_, err = p.remote.Calibrate(ctx, &remote.CalibrateOptions{SourceCollection: users, Sources: 20, Training: 20})
	require.NoError(t, err)
	// Of 20 sources an approximate engine may show no plan for the default recall.
	res, err := p.remote.Predict(ctx, "n1", 10, &flashdb.PredictOptions{SourceCollection: users, Recall: .5})
	require.NoError(t, err)
	assert.Contains(t, res.Stats.Plan, "calibrated for recall 0.5")
	res, err = p.remote.Predict(ctx, "n1", 10, nil)
	require.NoError(t, err)
	assert.NotContains(t, res.Stats.Plan, "calibrated for recall", "the sources were users")
}
