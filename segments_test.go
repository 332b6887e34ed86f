package flashdb_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/index"
)

// segmented is a database whose collection has an index and newer rows.
type segmented struct {
	*flashdb.DB
	t    *testing.T
	dir  string
	opts flashdb.Options
	c    *flashdb.Collection
	rng  *rand.Rand
	next int // number of the next key
}

// newSegmented returns a collection of n rows with an index.
func newSegmented(t *testing.T, n, segmentRows int) *segmented {
	s := &segmented{
		t: t, dir: filepath.Join(t.TempDir(), "test.flash"), rng: rand.New(rand.NewPCG(31, 1)),
		opts: flashdb.Options{SegmentRows: segmentRows, CalibrateTime: -1},
	}
	s.open()
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	s.put(n)
	_, err := s.c.Rebuild(t.Context(), &flashdb.RebuildOptions{Force: true, Lists: 20})
	require.NoError(t, err)
	return s
}

func (s *segmented) open() {
	s.t.Helper()
	db, err := flashdb.Open(s.dir, &s.opts)
	require.NoError(s.t, err)
	s.DB = db
	s.c, err = db.OpenCollection("c", flashdb.Schema{Dim: smallDim})
	require.NoError(s.t, err)
}

func (s *segmented) reopen() {
	s.t.Helper()
	require.NoError(s.t, s.Close())
	s.open()
}

// put adds n nodes, replaces a third as many, and deletes some.
func (s *segmented) put(n int) {
	s.t.Helper()
	var nodes []flashdb.Node
	for i := range n {
		key := fmt.Sprint("n", s.next)
		if s.next > n && i%4 == 3 {
			key = fmt.Sprint("n", s.rng.IntN(s.next))
		} else {
			s.next++
		}
		nodes = append(nodes, flashdb.Node{Key: key, Embedding: randomVector(s.rng, smallDim)})
	}
	require.NoError(s.t, s.c.Upsert(s.t.Context(), nodes...))
	_, err := s.c.Delete(s.t.Context(), fmt.Sprint("n", s.rng.IntN(s.next)), fmt.Sprint("n", s.rng.IntN(s.next)))
	require.NoError(s.t, err)
}

// index puts the newer rows into a segment.
func (s *segmented) index() flashdb.RebuildResult {
	s.t.Helper()
	res, err := s.c.Rebuild(s.t.Context(), &flashdb.RebuildOptions{NewerOnly: true})
	require.NoError(s.t, err)
	return res
}

func (s *segmented) stats() flashdb.CollectionStats {
	s.t.Helper()
	all, err := s.Stats(s.t.Context())
	require.NoError(s.t, err)
	return all.Collections[0]
}

// requireExact compares answers from the whole index with exact ones, and checks the database.
func (s *segmented) requireExact() {
	s.t.Helper()
	for range 10 {
		q := randomVector(s.rng, smallDim)
		exact, err := s.c.Search(s.t.Context(), q, 10, &flashdb.SearchOptions{Exact: true})
		require.NoError(s.t, err)
		found, err := s.c.Search(s.t.Context(), q, 10, &flashdb.SearchOptions{Probes: index.Probes{Share: 1}})
		require.NoError(s.t, err)
		require.Equal(s.t, exact.Hits, found.Hits)
	}
	findings, err := s.Check(s.t.Context())
	require.NoError(s.t, err)
	require.Empty(s.t, findings)
}

func (s *segmented) files() []string {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, "index", "c"))
	require.NoError(s.t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestSegments: newer rows move into segments, which are merged by size, survive a reopen, and end
// with the next rebuild.
func TestSegments(t *testing.T) {
	s := newSegmented(t, 2000, -1)
	assert.Equal(t, "no rows are newer than the index", s.index().Reason)
	s.put(300)
	s.requireExact()
	newer := s.stats().DeltaRows
	res := s.index()
	assert.True(t, res.Built)
	assert.EqualValues(t, 1, res.Generation)
	at := s.stats()
	assert.Zero(t, at.DeltaRows)
	assert.Equal(t, 1, at.Segments)
	assert.EqualValues(t, newer, at.SegmentRows)
	assert.EqualValues(t, newer, res.Rows)
	assert.EqualValues(t, 1, at.Generation)
	assert.Greater(t, at.Drift.Moved, .1)
	assert.Positive(t, at.Drift.Dead)
	s.requireExact()
	require.Equal(t, []string{"gen-000001.ivf", "gen-000002.ivf"}, s.files())

	s.put(20)
	s.index()
	require.Equal(t, []string{"gen-000001.ivf", "gen-000002.ivf", "gen-000003.ivf"}, s.files())
	s.put(30)
	s.index() // merged with the 20
	require.Equal(t, []string{"gen-000001.ivf", "gen-000002.ivf", "gen-000004.ivf"}, s.files())
	s.requireExact()
	s.put(40) // stay in the delta
	s.requireExact()
	before := s.stats()
	s.reopen()
	after := s.stats()
	assert.Equal(t, before.Segments, after.Segments)
	assert.Equal(t, before.DeltaRows, after.DeltaRows)
	s.requireExact()

	s.put(900)
	assert.Equal(t, 1, func() int { s.index(); return s.stats().Segments }(), "all are merged with so many newer rows")
	require.Equal(t, []string{"gen-000001.ivf", "gen-000005.ivf"}, s.files())
	s.requireExact()
	again, err := s.c.Rebuild(t.Context(), &flashdb.RebuildOptions{Lists: 20, CalibrateTime: -1})
	require.NoError(t, err)
	assert.True(t, again.Built, "rows in segments are a change")
	assert.Zero(t, s.stats().Segments)
	require.Equal(t, []string{"gen-000006.ivf"}, s.files())
	s.requireExact()
}

// TestSegmentsInTheBackground: newer rows are indexed while a program writes and reads, also rows
// that an earlier process wrote.
func TestSegmentsInTheBackground(t *testing.T) {
	s := newSegmented(t, 1000, 200)
	settled := func() bool {
		at := s.stats()
		return at.Segments > 0 && at.DeltaRows < 200
	}
	for range 10 {
		s.put(77)
		_, err := s.c.Search(t.Context(), randomVector(s.rng, smallDim), 5, nil)
		require.NoError(t, err)
	}
	require.Eventually(t, settled, time.Minute, 10*time.Millisecond)
	s.requireExact()

	s.opts.SegmentRows = -1
	s.reopen()
	_, err := s.c.Rebuild(t.Context(), &flashdb.RebuildOptions{Force: true, Lists: 20})
	require.NoError(t, err)
	s.put(300)
	s.opts.SegmentRows = 200
	s.reopen()
	require.Zero(t, s.stats().Segments)
	s.requireExact() // the first query finds that there are enough
	require.Eventually(t, settled, time.Minute, 10*time.Millisecond)
	s.requireExact()
}

// TestSegmentOfRepeatedUpserts: nodes that were written twice do not put a segment off.
func TestSegmentOfRepeatedUpserts(t *testing.T) {
	s := newSegmented(t, 1000, 200)
	var nodes []flashdb.Node
	for i := range 150 {
		nodes = append(nodes, flashdb.Node{Key: fmt.Sprint("twice", i), Embedding: randomVector(s.rng, smallDim)})
	}
	require.NoError(t, s.c.Upsert(t.Context(), nodes...))
	require.NoError(t, s.c.Upsert(t.Context(), nodes[:50]...))
	require.Eventually(t, func() bool { return s.stats().Segments == 1 && s.stats().DeltaRows == 0 }, time.Minute, 10*time.Millisecond)
	s.requireExact()
}

// TestSegmentOfAPublishedRelease: rows that were put into a release after its index was built are
// in the delta until it is published, and then in a segment.
func TestSegmentOfAPublishedRelease(t *testing.T) {
	s := newSegmented(t, 1000, 200)
	s.requireExact() // it is open
	ctx := t.Context()
	r, err := s.StageRelease(ctx, "next", "c")
	require.NoError(t, err)
	put := func(n int) {
		var nodes []flashdb.Node
		for i := range n {
			nodes = append(nodes, flashdb.Node{Key: fmt.Sprint("n", i), Embedding: randomVector(s.rng, smallDim)})
		}
		_, err := r.Put(ctx, "c", nodes...)
		require.NoError(t, err)
	}
	put(900)
	_, err = r.Build(ctx, &flashdb.RebuildOptions{Force: true, Lists: 20})
	require.NoError(t, err)
	put(300)
	require.Zero(t, s.stats().Segments)
	_, err = s.Publish(ctx, "next", &flashdb.PublishOptions{Force: true})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.stats().Segments == 1 && s.stats().DeltaRows == 0 }, time.Minute, 10*time.Millisecond)
	s.requireExact()
}

// TestSegmentsKeepABudget: with a small budget for memory fewer newer rows become a segment.
func TestSegmentsKeepABudget(t *testing.T) {
	s := newSegmented(t, 1000, 0)
	s.opts.MemoryBytes = 300 * 4 * 4 * smallDim
	s.reopen()
	s.put(200)
	s.requireExact()
	s.put(200)
	require.Eventually(t, func() bool { return s.stats().Segments > 0 }, time.Minute, 10*time.Millisecond)
	s.requireExact()
}

// TestSegmentsAreMergedInTheBackground: small segments are merged while a program writes, reads and
// rebuilds.
func TestSegmentsAreMergedInTheBackground(t *testing.T) {
	s := newSegmented(t, 1000, 20)
	for i := range 60 {
		s.put(25)
		_, err := s.c.Search(t.Context(), randomVector(s.rng, smallDim), 5, nil)
		require.NoError(t, err)
		switch i {
		case 20:
			_, err = s.c.Rebuild(t.Context(), &flashdb.RebuildOptions{Force: true, Lists: 20})
		case 40:
			_, err = s.Compact(t.Context(), nil)
		}
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		s.put(21) // asks for a merge again, where one was cancelled
		at := s.stats()
		return at.Segments > 0 && at.Segments <= 6 && at.SegmentRows > 200
	}, time.Minute, 20*time.Millisecond)
	s.requireExact()
	s.opts.SegmentRows = -1 // or a further segment may be half written when its files are listed
	s.reopen()
	s.requireExact()
	require.Len(t, s.files(), 1+s.stats().Segments, "no other file is left")
}

// TestQueriesPinSegments: the files of merged segments stay for a query that has begun.
func TestQueriesPinSegments(t *testing.T) {
	s := newSegmented(t, 500, -1)
	s.put(50)
	s.index()
	release, err := flashdb.Pin(s.c)
	require.NoError(t, err)
	s.put(50)
	s.index()
	require.Equal(t, []string{"gen-000001.ivf", "gen-000002.ivf", "gen-000003.ivf"}, s.files())
	release()
	require.Equal(t, []string{"gen-000001.ivf", "gen-000003.ivf"}, s.files())
	s.requireExact()
}

// TestSegmentWithoutQueries: a program that only writes gets segments too, and merges them.
func TestSegmentWithoutQueries(t *testing.T) {
	s := newSegmented(t, 500, -1)
	s.reopen()
	for range 2 {
		s.put(50)
		s.index()
	}
	require.Equal(t, []string{"gen-000001.ivf", "gen-000003.ivf"}, s.files())
	s.requireExact()
}

// TestDamagedSegment: a segment that is damaged or missing makes queries scan, and a rebuild
// repairs the index.
func TestDamagedSegment(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string){
		"missing": func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"cut":     func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 500)) },
		"another": func(t *testing.T, path string) {
			other, err := os.ReadFile(filepath.Join(filepath.Dir(path), "gen-000001.ivf"))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, other, 0o600))
		},
		"flipped": func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			b[len(b)/2] ^= 1
			require.NoError(t, os.WriteFile(path, b, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSegmented(t, 500, -1)
			s.put(50)
			s.index()
			require.NoError(t, s.Close())
			damage(t, filepath.Join(s.dir, "index", "c", "gen-000002.ivf"))
			s.open()
			findings, err := s.Check(t.Context())
			require.NoError(t, err)
			require.Len(t, findings, 1)
			require.Contains(t, findings[0], "gen-000002.ivf")
			q := randomVector(s.rng, smallDim)
			exact, err := s.c.Search(t.Context(), q, 10, &flashdb.SearchOptions{Exact: true})
			require.NoError(t, err)
			require.Len(t, exact.Hits, 10)
			require.True(t, s.stats().IndexDamaged)
			_, err = s.c.Rebuild(t.Context(), &flashdb.RebuildOptions{NewerOnly: true})
			require.NoError(t, err, "nothing is newer")
			_, err = s.c.Rebuild(t.Context(), nil)
			require.NoError(t, err)
			s.requireExact()
			again, err := s.c.Search(t.Context(), q, 10, &flashdb.SearchOptions{Exact: true})
			require.NoError(t, err)
			require.Equal(t, exact.Hits, again.Hits)
		})
	}
}

// TestSegmentsOfReleases: the segments of the live release are kept for a roll back.
func TestSegmentsOfReleases(t *testing.T) {
	s := newSegmented(t, 500, -1)
	s.put(50)
	s.index()
	r, err := s.StageRelease(t.Context(), "next", "c")
	require.NoError(t, err)
	var nodes []flashdb.Node
	for i := range s.next {
		nodes = append(nodes, flashdb.Node{Key: fmt.Sprint("n", i), Embedding: randomVector(s.rng, smallDim)})
	}
	_, err = r.Put(t.Context(), "c", nodes...)
	require.NoError(t, err)
	_, err = r.Build(t.Context(), &flashdb.RebuildOptions{Force: true, Lists: 20})
	require.NoError(t, err)
	s.put(40) // in the live release only
	s.index()
	before := s.stats().Segments
	for range 2 {
		_, err = s.Publish(t.Context(), "next", &flashdb.PublishOptions{Force: true})
		require.NoError(t, err)
		s.requireExact()
		s.put(30)
		s.index()
		require.Positive(t, s.stats().Segments)
		s.requireExact()
		s.reopen()
		s.requireExact()
		name, err := s.Rollback(t.Context())
		require.NoError(t, err)
		require.Equal(t, "1", name)
		require.Equal(t, before, s.stats().Segments)
		s.requireExact()
	}
	r, err = s.Release(t.Context(), "next")
	require.NoError(t, err)
	require.NoError(t, r.Drop(t.Context()))
	require.Len(t, s.files(), 1+before, "the segments of a dropped release are removed")
}

// TestSegmentsAreBackedUp: a backup has the segments, and one without the index restores to a
// database without one.
func TestSegmentsAreBackedUp(t *testing.T) {
	for _, without := range []bool{false, true} {
		s := newSegmented(t, 500, -1)
		s.put(50)
		s.index()
		var stream bytes.Buffer
		_, err := s.Backup(t.Context(), &stream, &flashdb.BackupOptions{WithoutIndex: without})
		require.NoError(t, err)
		require.NoError(t, s.Close())
		s.dir = filepath.Join(t.TempDir(), "restored")
		_, err = flashdb.Restore(t.Context(), &stream, s.dir, nil)
		require.NoError(t, err)
		s.open()
		s.requireExact()
		at := s.stats()
		require.Equal(t, without, at.Generation == 0)
		require.Equal(t, without, at.Segments == 0)
	}
}

// TestSegmentsReadOnly: a database that is opened read-only serves the segments, and builds none.
func TestSegmentsReadOnly(t *testing.T) {
	s := newSegmented(t, 500, -1)
	s.put(50)
	s.index()
	s.put(30)
	s.opts.ReadOnly, s.opts.SegmentRows = true, 10
	require.NoError(t, s.Close())
	db, err := flashdb.Open(s.dir, &s.opts)
	require.NoError(t, err)
	s.DB = db
	s.c, err = db.Collection("c")
	require.NoError(t, err)
	s.requireExact()
	require.Equal(t, 1, s.stats().Segments)
	_, err = s.c.Rebuild(t.Context(), &flashdb.RebuildOptions{NewerOnly: true})
	require.ErrorIs(t, err, flashdb.ErrReadOnly)
}
