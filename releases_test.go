package flashdb_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// A version is what one release of the shop has. The three numbers are primes of its own: the score
// of an item is their product, so that no mixture of two releases has the score of either.
type version struct{ user, weight, item float32 }

var (
	versionOne = version{2, 3, 5}
	versionTwo = version{7, 11, 13}
)

func (v version) score() float32 { return v.user * v.weight * v.item }

func (v version) decoder(t testing.TB) decoder.Decoder {
	d, err := decoder.NewDistMult([]float32{v.weight, v.weight})
	require.NoError(t, err)
	return d
}

func (v version) users(n int) []flashdb.Node { return numbered("user", n, v.user) }
func (v version) items(n int) []flashdb.Node { return numbered("item", n, v.item) }

func numbered(prefix string, n int, x float32) (nodes []flashdb.Node) {
	for i := range n {
		nodes = append(nodes, node(fmt.Sprint(prefix, i), x, 0))
	}
	return nodes
}

// releasedShop is a shop of 20 users and some items with versionOne live, and versionTwo staged as
// "two". With an index, both have one.
func releasedShop(t *testing.T, items int, indexed, omitRows bool) (d *testDB, r *flashdb.Release) {
	t.Helper()
	ctx := context.Background()
	d, users, shop := emptyShop(t)
	require.NoError(t, users.Upsert(ctx, versionOne.users(20)...))
	require.NoError(t, shop.Upsert(ctx, versionOne.items(items)...))
	require.NoError(t, shop.PutDecoder(ctx, "buys", versionOne.decoder(t)))
	opts := &flashdb.RebuildOptions{Force: true, OmitRows: omitRows}
	if indexed {
		_, err := shop.Rebuild(ctx, opts)
		require.NoError(t, err)
	}
	r, err := d.StageRelease(ctx, "two", "users", "items")
	require.NoError(t, err)
	_, err = r.Put(ctx, "users", versionTwo.users(20)...)
	require.NoError(t, err)
	_, err = r.Put(ctx, "items", versionTwo.items(items)...)
	require.NoError(t, err)
	require.NoError(t, r.PutDecoder(ctx, "items", "buys", versionTwo.decoder(t)))
	if indexed {
		_, err = r.Build(ctx, opts)
		require.NoError(t, err)
	}
	return d, r
}

// answered asks for ten items, and returns the score that all of them have.
func answered(t *testing.T, c *flashdb.Collection, user string) float32 {
	t.Helper()
	score, err := oneScore(c, user, nil)
	require.NoError(t, err)
	return score
}

func oneScore(c *flashdb.Collection, user string, plan *flashlight.Plan) (float32, error) {
	res, err := c.Predict(context.Background(), user, 10, &flashdb.PredictOptions{SourceCollection: "users", Plan: plan})
	if err != nil {
		return 0, err
	}
	if len(res.Hits) == 0 {
		return 0, errors.New("no hits")
	}
	for _, h := range res.Hits {
		if h.Score != res.Hits[0].Score {
			return 0, fmt.Errorf("scores %v and %v in one answer", res.Hits[0].Score, h.Score)
		}
	}
	return res.Hits[0].Score, nil
}

func TestRelease(t *testing.T) {
	for _, indexed := range []bool{false, true} {
		t.Run(fmt.Sprint("indexed=", indexed), func(t *testing.T) { testRelease(t, indexed) })
	}
}

func testRelease(t *testing.T, indexed bool) {
	ctx := context.Background()
	d, r := releasedShop(t, 100, indexed, false)
	items := func() *flashdb.Collection {
		c, err := d.Collection("items")
		require.NoError(t, err)
		return c
	}
	require.Equal(t, versionOne.score(), answered(t, items(), "user1"))
	staged, err := r.Collection("items")
	require.NoError(t, err)
	require.Equal(t, versionTwo.score(), answered(t, staged, "user1"), "it can be asked before it is published")
	require.ErrorIs(t, staged.Upsert(ctx, node("x", 1, 1)), flashdb.ErrInvalid)

	require.NoError(t, items().Link(ctx, flashdb.Edge{SourceCollection: "users", Source: "user1", Target: "item1"}))
	for range 3 {
		_, err = d.Publish(ctx, "two", &flashdb.PublishOptions{Force: true})
		require.NoError(t, err)
		for range 2 {
			require.Equal(t, versionTwo.score(), answered(t, items(), "user1"))
			require.Equal(t, versionOne.score(), answered(t, collectionIn(t, d, "1", "items"), "user1"))
			d.reopen()
		}
		name, err := d.Rollback(ctx)
		require.NoError(t, err)
		require.Equal(t, "1", name)
		for range 2 {
			require.Equal(t, versionOne.score(), answered(t, items(), "user1"))
			d.reopen()
		}
	}
	_, err = d.Rollback(ctx)
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	r, err = d.Release(ctx, "two")
	require.NoError(t, err)
	require.NoError(t, r.Drop(ctx))
	all, err := d.Releases(ctx)
	require.NoError(t, err)
	require.Len(t, all, 1)
	files, err := filepath.Glob(filepath.Join(d.dir, "index", "items", "*"))
	require.NoError(t, err)
	if indexed {
		require.Len(t, files, 1, "the index of a dropped release is removed")
	}
	_, err = d.Release(ctx, "two")
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	linked, err := items().Linked(ctx, flashdb.Edge{SourceCollection: "users", Source: "user1"})
	require.NoError(t, err)
	require.Equal(t, []string{"item1"}, linked, "links are of the node")
}

// collectionIn returns a collection as a release has it.
func collectionIn(t *testing.T, d *testDB, release, name string) *flashdb.Collection {
	t.Helper()
	r, err := d.Release(context.Background(), release)
	require.NoError(t, err)
	c, err := r.Collection(name)
	require.NoError(t, err)
	return c
}

// TestReleaseWithoutMixtures publishes and rolls back beside queries. Each answer is of one
// release, and none fails.
func TestReleaseWithoutMixtures(t *testing.T) {
	for _, kind := range []string{"scan", "index", "index without rows"} {
		t.Run(kind, func(t *testing.T) {
			ctx := context.Background()
			d, _ := releasedShop(t, 300, kind != "scan", kind == "index without rows")
			c, err := d.Collection("items")
			require.NoError(t, err)
			plans := []*flashlight.Plan{nil}
			if kind != "scan" {
				plans = append(plans, &flashlight.Plan{PerRound: 50, Probes: index.Probes{Share: 1}})
			}
			var over atomic.Bool
			var asked, mixed [2]atomic.Int64
			var failed atomic.Pointer[error]
			var asking sync.WaitGroup
			for w := range 3 {
				asking.Go(func() {
					for i := 0; !over.Load(); i++ {
						user := fmt.Sprint("user", (i+w)%20)
						score, err := oneScore(c, user, plans[i%len(plans)])
						if w == 2 {
							var hits []flashdb.Hit
							if hits, err = c.Score(ctx, user, []string{"item1"}, &flashdb.ScoreOptions{SourceCollection: "users"}); err == nil {
								score = hits[0].Score
							}
						}
						switch {
						case err != nil:
							failed.CompareAndSwap(nil, &err)
						case score == versionOne.score():
							asked[0].Add(1)
						case score == versionTwo.score():
							asked[1].Add(1)
						default:
							mixed[0].Add(1)
						}
					}
				})
			}
			for range 40 {
				_, err := d.Publish(ctx, "two", &flashdb.PublishOptions{Force: true})
				require.NoError(t, err)
				waitFor(t, &asked[1])
				_, err = d.Rollback(ctx)
				require.NoError(t, err)
				waitFor(t, &asked[0])
			}
			over.Store(true)
			asking.Wait()
			if err := failed.Load(); err != nil {
				require.NoError(t, *err)
			}
			require.Zero(t, mixed[0].Load(), "answers of neither release")
			t.Logf("%d answers of one release, %d of the other, none of both", asked[0].Load(), asked[1].Load())
		})
	}
}

// waitFor waits until a counter has moved.
func waitFor(t *testing.T, n *atomic.Int64) {
	t.Helper()
	for before := n.Load(); n.Load() == before; {
		runtime.Gosched()
	}
}

// TestReleaseOfLaterNodes: a node that came after the data was cut has no embedding in the release,
// and one that is only in the release has none in the live one.
func TestReleaseOfLaterNodes(t *testing.T) {
	ctx := context.Background()
	for _, indexed := range []bool{false, true} {
		d, r := releasedShop(t, 100, indexed, false)
		c, err := d.Collection("items")
		require.NoError(t, err)
		require.NoError(t, c.Upsert(ctx, node("late", 5, 0, "tag")))
		require.NoError(t, c.Link(ctx, flashdb.Edge{Source: "late", Target: "item1"}))
		added, err := r.Put(ctx, "items", flashdb.Node{Key: "early", Embedding: []float32{13, 0}, Tags: []string{"tag"}, Payload: []byte("p")}, node("item3", 13, 0))
		require.NoError(t, err)
		require.Equal(t, 1, added)
		answered(t, collectionIn(t, d, "two", "items"), "user1") // it is open when the node is deleted
		deleted, err := c.Delete(ctx, "item5")
		require.NoError(t, err)
		require.Equal(t, 1, deleted)

		has := func(of *flashdb.Collection, want ...string) {
			t.Helper()
			res, err := of.Predict(ctx, "user1", 200, &flashdb.PredictOptions{SourceCollection: "users", Filter: "tag"})
			require.NoError(t, err)
			var keys []string
			for _, h := range res.Hits {
				keys = append(keys, h.Key)
			}
			require.Equal(t, want, keys)
			all, err := of.Predict(ctx, "user1", 200, &flashdb.PredictOptions{SourceCollection: "users", Exact: true})
			require.NoError(t, err)
			require.Len(t, all.Hits, 100)
			require.NotContains(t, all.Stats.Short, "deleted since", "its row is not scored")
		}
		has(c, "late")
		has(collectionIn(t, d, "two", "items"), "early")
		for i := range 2 {
			n, err := c.Get(ctx, "early")
			require.NoError(t, err)
			require.Equal(t, flashdb.Node{Key: "early", Tags: []string{"tag"}, Payload: []byte("p")}, n)
			_, err = c.Predict(ctx, "early", 5, nil)
			require.ErrorIs(t, err, flashdb.ErrNotFound)
			require.ErrorContains(t, err, "the release has none")
			if i == 0 {
				d.reopen()
				c, err = d.Collection("items")
				require.NoError(t, err)
			}
		}
		_, err = d.Publish(ctx, "two", &flashdb.PublishOptions{Force: true})
		require.NoError(t, err)
		has(c, "early")
		all, err := d.Releases(ctx)
		require.NoError(t, err)
		require.Equal(t, uint64(1), all[1].Collections[1].WithoutRow, "%+v", all)
		linked, err := c.Linked(ctx, flashdb.Edge{Source: "late"})
		require.NoError(t, err)
		require.Equal(t, []string{"item1"}, linked)
		require.NoError(t, c.Upsert(ctx, node("late", 13, 0, "tag")))
		res, err := c.Predict(ctx, "late", 3, nil)
		require.NoError(t, err)
		require.NotEmpty(t, res.Hits)
		if indexed {
			_, err = c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
			require.NoError(t, err)
		}
		stats, err := d.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, stats.Collections[1].WithoutRow)
		require.Equal(t, "two", stats.Release)
	}
}

// TestReleaseGate: a release that ranks worse, lacks a decoder or an index is refused and stays.
func TestReleaseGate(t *testing.T) {
	ctx := context.Background()
	d, users, items := emptyShop(t)
	var us, is, worse []flashdb.Node
	var edges []flashdb.Edge
	for i := range 40 {
		a := 2 * math.Pi * float64(i) / 40
		x, y := float32(math.Cos(a)), float32(math.Sin(a))
		us, is = append(us, node(fmt.Sprint("u", i), x, y)), append(is, node(fmt.Sprint("i", i), x, y))
		worse = append(worse, node(fmt.Sprint("i", i), -x, -y))
		edges = append(edges, flashdb.Edge{SourceCollection: "users", Source: fmt.Sprint("u", i), Target: fmt.Sprint("i", i)})
	}
	require.NoError(t, users.Upsert(ctx, us...))
	require.NoError(t, items.Upsert(ctx, is...))
	require.NoError(t, items.PutDecoder(ctx, "buys", dotDecoder(t, 2)))
	require.NoError(t, items.SetMeta(ctx, "flashdb.calibrate.sources", "users"))
	r, err := d.StageRelease(ctx, "worse", "items")
	require.NoError(t, err)
	publish := func() (flashdb.PublishResult, error) {
		return d.Publish(ctx, "worse", &flashdb.PublishOptions{Compare: flashdb.CompareOptions{Edges: map[string][]flashdb.Edge{"items": edges}}})
	}
	refused := func(want string) flashdb.Comparison {
		t.Helper()
		res, err := publish()
		require.ErrorIs(t, err, flashdb.ErrQuality)
		require.ErrorContains(t, err, want)
		return *res.Comparison
	}
	refused("has no embeddings in it")
	_, err = r.Put(ctx, "items", worse...)
	require.NoError(t, err)
	refused("has no decoder \"buys\" in it")
	require.NoError(t, r.PutDecoder(ctx, "items", "buys", dotDecoder(t, 2)))
	c := refused("has MRR").Decoders[0]
	assert.Equal(t, 40, c.Sources)
	assert.Equal(t, "users", c.SourceCollection)
	assert.Zero(t, c.Agreement, "the best have become the worst")
	require.Len(t, c.Changed, 10)
	assert.Equal(t, flashdb.EdgeRanks{MRR: 1, Hits1: 1, Hits10: 1, Hits50: 1}, rounded(c.Edges.Live))
	assert.InDelta(t, 1.0/40, c.Edges.Staged.MRR, 1e-6)
	assert.Less(t, c.Edges.Difference+c.Edges.Margin, 0.0)
	_, err = r.Put(ctx, "items", is...)
	require.NoError(t, err)
	res, err := publish()
	require.NoError(t, err)
	assert.InDelta(t, 1, res.Comparison.Decoders[0].Agreement, 1e-9)
	assert.Equal(t, "1", res.Former)

	_, err = d.Rollback(ctx)
	require.NoError(t, err)
	_, err = d.Rollback(ctx)
	require.Error(t, err)
	m := d.Metrics()
	assert.Equal(t, []uint64{1, 3, 1}, []uint64{m.Publishes, m.PublishErrors, m.Rollbacks})
}

func rounded(r flashdb.EdgeRanks) flashdb.EdgeRanks {
	round := func(x float64) float64 { return math.Round(x*1e9) / 1e9 }
	return flashdb.EdgeRanks{MRR: round(r.MRR), Hits1: round(r.Hits1), Hits10: round(r.Hits10), Hits50: round(r.Hits50)}
}

func TestReleaseRefusesCalls(t *testing.T) {
	ctx := context.Background()
	d, r := releasedShop(t, 5, false, false)
	for _, c := range []struct {
		err, is error
	}{
		{second(d.StageRelease(ctx, "two", "users")), flashdb.ErrExists},
		{second(d.StageRelease(ctx, "1", "users")), flashdb.ErrExists},
		{second(d.StageRelease(ctx, "a/b", "users")), flashdb.ErrInvalid},
		{second(d.StageRelease(ctx, "three")), flashdb.ErrInvalid},
		{second(d.StageRelease(ctx, "three", "no")), flashdb.ErrNotFound},
		{second(r.Put(ctx, "no", node("a", 1, 1))), flashdb.ErrNotFound},
		{second(r.Put(ctx, "users", flashdb.Node{Key: "a", Embedding: []float32{1}})), flashdb.ErrDim},
		{r.PutDecoder(ctx, "items", "buys", dotDecoder(t, 3)), flashdb.ErrDim},
		{second(d.Publish(ctx, "1", nil)), flashdb.ErrInvalid},
		{second(d.Publish(ctx, "no", nil)), flashdb.ErrNotFound},
		{second(d.CompareRelease(ctx, "two", &flashdb.CompareOptions{K: -1})), flashdb.ErrInvalid},
		{second(d.Rollback(ctx)), flashdb.ErrNotFound},
		{second(r.Build(ctx, &flashdb.RebuildOptions{NewerOnly: true})), flashdb.ErrInvalid},
	} {
		assert.ErrorIs(t, c.err, c.is)
	}
	_, err := d.Publish(ctx, "two", &flashdb.PublishOptions{Force: true})
	require.NoError(t, err)
	former, err := d.Release(ctx, "1")
	require.NoError(t, err)
	assert.ErrorIs(t, second(former.Put(ctx, "users", node("new", 1, 1))), flashdb.ErrInvalid)
	users, err := d.Collection("users")
	require.NoError(t, err)
	_, err = users.Get(ctx, "new")
	assert.ErrorIs(t, err, flashdb.ErrNotFound, "what is refused adds no node")
	_, err = former.Apply(ctx, nil)
	assert.ErrorIs(t, err, flashdb.ErrInvalid)
	_, err = d.Rollback(ctx)
	require.NoError(t, err)
	live, err := d.Release(ctx, "1")
	require.NoError(t, err)
	assert.ErrorIs(t, live.Drop(ctx), flashdb.ErrInvalid)
	assert.ErrorIs(t, second(live.Put(ctx, "users", node("a", 1, 1))), flashdb.ErrInvalid)
	items, err := live.Collection("items")
	require.NoError(t, err)
	require.Equal(t, versionOne.score(), answered(t, items, "user1"), "the live release has the live handle")
}

func second[T any](_ T, err error) error { return err }
