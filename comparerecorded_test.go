package flashdb_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// A nightlyShop is a shop of 150 users and items on a circle, where user i is best served by item
// i, and a staged release "night" that serves each user the item on the other side. Its clock
// stands.
type nightlyShop struct {
	t      *testing.T
	dir    string
	clock  *flashdb.FakeClock
	db     *flashdb.DB
	night  *flashdb.Release
	better []flashdb.Node // items of the live release
}

const shopped = 150

var staged = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newNightlyShop(t *testing.T) *nightlyShop {
	t.Helper()
	ctx := context.Background()
	s := &nightlyShop{t: t, dir: filepath.Join(t.TempDir(), "db"), clock: flashdb.NewFakeClock(staged)}
	s.open()
	t.Cleanup(func() {
		findings, err := s.db.Check(ctx)
		assert.NoError(t, err)
		assert.Empty(t, findings)
		assert.NoError(t, s.db.Close())
	})
	for _, name := range []string{"users", "items"} {
		_, err := s.db.CreateCollection(name, flashdb.Schema{Dim: 2})
		require.NoError(t, err)
	}
	var users, worse []flashdb.Node
	for i := range shopped {
		a := 2 * math.Pi * float64(i) / shopped
		x, y := float32(math.Cos(a)), float32(math.Sin(a))
		users, s.better = append(users, node(fmt.Sprint("u", i), x, y)), append(s.better, node(fmt.Sprint("i", i), x, y))
		worse = append(worse, node(fmt.Sprint("i", i), -x, -y))
	}
	require.NoError(t, s.collection("users").Upsert(ctx, users...))
	require.NoError(t, s.items().Upsert(ctx, s.better...))
	require.NoError(t, s.items().PutDecoder(ctx, "buys", dotDecoder(t, 2)))
	require.NoError(t, s.items().SetMeta(ctx, "flashdb.calibrate.sources", "users"))
	require.NoError(t, s.items().Link(ctx, bought(140, 150)...), "before there are releases")
	var err error
	s.night, err = s.db.StageRelease(ctx, "night", "items")
	require.NoError(t, err)
	_, err = s.night.Put(ctx, "items", worse...)
	require.NoError(t, err)
	require.NoError(t, s.night.PutDecoder(ctx, "items", "buys", dotDecoder(t, 2)))
	return s
}

func (s *nightlyShop) open() {
	s.t.Helper()
	opts := &flashdb.Options{}
	s.clock.SetClock(opts)
	var err error
	s.db, err = flashdb.Open(s.dir, opts)
	require.NoError(s.t, err)
}

func (s *nightlyShop) collection(name string) *flashdb.Collection {
	s.t.Helper()
	c, err := s.db.Collection(name)
	require.NoError(s.t, err)
	return c
}

func (s *nightlyShop) items() *flashdb.Collection { return s.collection("items") }

// bought are links of users to the items that serve them best.
func bought(from, to int) (edges []flashdb.Edge) {
	for i := from; i < to; i++ {
		edges = append(edges, flashdb.Edge{SourceCollection: "users", Source: fmt.Sprint("u", i), Target: fmt.Sprint("i", i)})
	}
	return edges
}

// compare requires how many links were recorded, and whether they were ranked.
func (s *nightlyShop) compare(recorded int, ranked bool) flashdb.Comparison {
	s.t.Helper()
	c, err := s.db.CompareRelease(context.Background(), "night", nil)
	require.NoError(s.t, err)
	require.Len(s.t, c.Decoders, 1)
	assert.Equal(s.t, recorded, c.Decoders[0].Recorded)
	assert.Equal(s.t, ranked, c.Decoders[0].Edges != nil)
	assert.Equal(s.t, ranked, len(c.Worse) > 0, "by nothing but the links")
	return c
}

// TestReleaseGateByRecordedLinks: a release is refused by the links that were recorded since its
// data was cut, and by no others.
func TestReleaseGateByRecordedLinks(t *testing.T) {
	ctx := context.Background()
	s := newNightlyShop(t)
	require.NoError(t, s.items().Link(ctx, bought(130, 140)...), "in the second in which it was staged")
	s.compare(0, false)

	s.clock.Advance(time.Hour)
	require.NoError(t, s.items().Link(ctx, bought(0, 50)...))
	require.NoError(t, s.items().Link(ctx, bought(20, 99)...), "in part known before")
	require.NoError(t, s.items().Link(ctx, bought(130, 150)...), "known before")
	require.NoError(t, s.items().Link(ctx, flashdb.Edge{Source: "i1", Target: "i2"}), "of another collection than the sources")
	require.NoError(t, s.items().Link(ctx, flashdb.Edge{SourceCollection: "users", Source: "u1", Target: "i2", Relation: "saw"}), "the decoder knows no relation")
	var b flashdb.Batch
	b.Link("items", bought(99, 120)...)
	_, err := s.night.Apply(ctx, &b)
	require.NoError(t, err)
	linked, err := s.items().Linked(ctx, flashdb.Edge{SourceCollection: "users", Source: "u99"})
	require.NoError(t, err)
	require.Equal(t, []string{"i99"}, linked, "it is known")
	c := s.compare(99, false)
	assert.Equal(t, staged, c.Since)

	require.NoError(t, s.items().Link(ctx, bought(120, 122)...))
	_, err = s.items().Delete(ctx, "i5")
	require.NoError(t, err)
	for range 2 { // and after it was opened again
		e := s.compare(100, true).Decoders[0].Edges
		assert.Equal(t, 100, e.Edges)
		assert.Equal(t, 149, e.Candidates)
		assert.InDelta(t, 1, e.Live.MRR, 1e-6)
		assert.Less(t, e.Staged.MRR, 0.02)
		_, err = s.db.Publish(ctx, "night", nil)
		require.ErrorIs(t, err, flashdb.ErrQuality)
		require.ErrorContains(t, err, "on 100 links recorded since 2026-03-01T12:00:00Z, and the live release")
		require.NoError(t, s.db.Close())
		s.open()
		s.night, err = s.db.Release(ctx, "night")
		require.NoError(t, err)
	}
	_, err = s.items().Unlink(ctx, bought(0, 1)...)
	require.NoError(t, err)
	s.compare(99, false)
	require.NoError(t, s.items().Link(ctx, bought(122, 123)...))

	// Edges that are given are ranked in their place.
	given, err := s.db.CompareRelease(ctx, "night", &flashdb.CompareOptions{Edges: map[string][]flashdb.Edge{"items": bought(10, 20)}})
	require.NoError(t, err)
	assert.Zero(t, given.Decoders[0].Recorded)
	assert.Equal(t, 10, given.Decoders[0].Edges.Edges)

	_, err = s.night.Put(ctx, "items", s.better...)
	require.NoError(t, err)
	_, err = s.db.Publish(ctx, "night", nil)
	require.NoError(t, err, "it ranks the same")
}

// TestReleaseCut: links that were recorded up to the cut are not ranked.
func TestReleaseCut(t *testing.T) {
	ctx := context.Background()
	s := newNightlyShop(t)
	cut := func() time.Time {
		t.Helper()
		all, err := s.db.Releases(ctx)
		require.NoError(t, err)
		assert.True(t, all[0].Cut.Equal(staged), "the first")
		return all[1].Cut
	}
	assert.True(t, cut().Equal(staged))
	for range 3 {
		s.clock.Advance(time.Hour)
		require.NoError(t, s.items().Link(ctx, bought(0, 110)...)) // new the first time alone
	}
	require.NoError(t, s.night.SetCut(ctx, staged.AddDate(0, 0, -1)))
	assert.True(t, cut().Equal(staged.AddDate(0, 0, -1)))
	c := s.compare(110, true)
	assert.Equal(t, staged, c.Since, "the live release was published after the cut")
	require.NoError(t, s.night.SetCut(ctx, staged.Add(time.Hour)))
	c = s.compare(0, false)
	assert.Equal(t, staged.Add(time.Hour), c.Since)

	for _, at := range []time.Time{staged.Add(3*time.Hour + time.Second), time.Unix(-1, 0), {}} {
		err := s.night.SetCut(ctx, at)
		require.ErrorIs(t, err, flashdb.ErrInvalid, "%v", at)
		require.ErrorContains(t, err, "is not between 1970 and now, 2026-03-01T15:00:00Z")
	}
	_, err := s.db.Publish(ctx, "night", nil)
	require.NoError(t, err, "nothing tells that it is worse")
	require.ErrorIs(t, s.night.SetCut(ctx, staged), flashdb.ErrInvalid)
	assert.True(t, cut().Equal(staged.Add(time.Hour)))

	// Back to the first release, which was live last from now on.
	s.clock.Advance(time.Hour)
	_, err = s.db.Rollback(ctx)
	require.NoError(t, err)
	c = s.compare(0, false)
	assert.Equal(t, staged.Add(4*time.Hour), c.Since)
}

// TestRecordedLinksOfEmbeddedNodes: links of which Build has computed an embedding are not ranked.
func TestRecordedLinksOfEmbeddedNodes(t *testing.T) {
	ctx := context.Background()
	s := newNightlyShop(t)
	s.clock.Advance(time.Hour)
	var late []flashdb.Node
	var edges []flashdb.Edge
	for i := range 120 {
		late = append(late, node(fmt.Sprint("late", i), 1, 0))
		edges = append(edges, flashdb.Edge{SourceCollection: "users", Source: fmt.Sprint("u", i), Target: fmt.Sprint("late", i)})
	}
	require.NoError(t, s.items().Upsert(ctx, late...))
	require.NoError(t, s.items().Link(ctx, edges...))
	recorded := func() int {
		t.Helper()
		c, err := s.db.CompareRelease(ctx, "night", nil)
		require.NoError(t, err)
		return c.Decoders[0].Recorded
	}
	require.Zero(t, recorded(), "they have no embedding in the release")
	require.NoError(t, s.night.PutEncoder(ctx, "items", meanPlus(t, false, 0), flashdb.EncoderUse{Decoder: "buys", Neighbours: "users"}))
	built, err := s.night.Build(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, 120, built[0].Embedded)
	require.Zero(t, recorded(), "their embeddings are of these links")
	_, err = s.night.Put(ctx, "items", late[:110]...)
	require.NoError(t, err)
	require.Equal(t, 110, recorded())
}
