package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/storage"
)

// The releases of a life are over two collections. Every embedding of a release has the number of
// the release as its value, in both of them, so that a release that is live in part shows.
var releasedCollections = []string{"released", "released2"}

const releasedNodes = 30

func releasedRows(value float32) (nodes []flashdb.Node) {
	for i := range releasedNodes {
		nodes = append(nodes, flashdb.Node{Key: fmt.Sprint("n", i), Embedding: []float32{value, value}})
	}
	return nodes
}

// createReleased makes the collections, with the value 1.
func createReleased(ctx context.Context, db *flashdb.DB) error {
	var b flashdb.Batch
	for _, name := range releasedCollections {
		b.CreateCollection(name, flashdb.Schema{Dim: 2})
		b.Upsert(name, releasedRows(1)...)
	}
	return db.Apply(ctx, &b)
}

// beginReleases makes the database have releases before its first link, so that the times of all
// links are kept.
func beginReleases(ctx context.Context, db *flashdb.DB) error {
	all, err := db.Releases(ctx)
	if err != nil {
		return err
	}
	if all[0].Created.IsZero() {
		if _, err := db.StageRelease(ctx, "begin", "c"); err != nil {
			return err
		}
	}
	r, err := db.Release(ctx, "begin")
	if errors.Is(err, flashdb.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.Drop(ctx)
}

// verifyRecorded requires that the links whose times are kept, of those that are there, are all
// links. The database is closed.
func (s *saga) verifyRecorded(all map[string]*model) {
	t := s.t
	t.Helper()
	store, err := storage.Open(filepath.Join(s.life.Dir, "flash.db"), &storage.Options{ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	require.NoError(t, store.View(func(v *storage.View) error {
		names := map[uint32]string{}
		for _, info := range v.Collections() {
			names[info.UID] = info.Name
		}
		for name, m := range all {
			to, ok := v.Collection(name)
			require.True(t, ok)
			got := map[flashdb.Edge]int{}
			for _, l := range v.RecentLinks(to.UID, 0) {
				e := flashdb.Edge{Relation: l.Relation}
				if l.UID != to.UID {
					e.SourceCollection = names[l.UID]
				}
				e.Source, _ = v.Key(l.UID, l.Source)
				e.Target, _ = v.Key(to.UID, l.Target)
				got[e]++
			}
			want := map[flashdb.Edge]int{}
			for _, e := range m.edges() {
				want[e] = 1
			}
			require.Equal(t, want, got, "links to %q whose times are kept", name)
		}
		return nil
	}))
}

// anyRelease does one thing with releases, and says which value is then live:
//
//	value try N     it may become N
//	value is N      it is N, acknowledged
func anyRelease(ctx context.Context, db *flashdb.DB, rng *rand.Rand) error {
	if _, err := db.Collection(releasedCollections[0]); errors.Is(err, flashdb.ErrNotFound) {
		return createReleased(ctx, db)
	}
	all, err := db.Releases(ctx)
	if err != nil {
		return err
	}
	var staged *flashdb.ReleaseInfo
	last := 1
	for i, r := range all {
		last = max(last, valueOf(r.Name))
		if r.State == flashdb.ReleaseStaged {
			staged = &all[i]
		}
	}
	switch n := rng.IntN(10); {
	case staged == nil && n < 2:
		for _, r := range all {
			if r.State == flashdb.ReleaseFormer {
				say("value try %d", valueOf(r.Name))
			}
		}
		name, err := db.Rollback(ctx) // what is live becomes a staged one
		if err == nil {
			say("value is %d", valueOf(name))
		}
		return nil // there may be none to go back to
	case staged == nil:
		return stageRelease(ctx, db, fmt.Sprint("r", last+1), float32(last+1), n < 5)
	case n < 2:
		r, err := db.Release(ctx, staged.Name)
		if err != nil {
			return err
		}
		return r.Drop(ctx)
	}
	if !full(staged) {
		return nil // a crash came while it was filled: it is dropped some time
	}
	say("value try %d", valueOf(staged.Name))
	if err := publishRelease(ctx, db, staged.Name); err != nil {
		return err
	}
	say("value is %d", valueOf(staged.Name))
	return nil
}

func full(r *flashdb.ReleaseInfo) bool {
	for _, c := range r.Collections {
		if c.Rows != releasedNodes {
			return false
		}
	}
	return true
}

// valueOf returns the value of the embeddings of a release.
func valueOf(name string) (n int) {
	if _, err := fmt.Sscanf(name, "r%d", &n); err != nil {
		return 1 // the first
	}
	return n
}

// stageRelease fills a release by several batches, and builds its indexes or not.
func stageRelease(ctx context.Context, db *flashdb.DB, name string, value float32, build bool) error {
	r, err := db.StageRelease(ctx, name, releasedCollections...)
	if err != nil {
		return err
	}
	rows := releasedRows(value)
	for _, of := range releasedCollections {
		for i := 0; i < len(rows); i += 10 {
			if _, err := r.Put(ctx, of, rows[i:i+10]...); err != nil {
				return err
			}
		}
	}
	if build {
		_, err = r.Build(ctx, &flashdb.RebuildOptions{Force: true, Lists: 2})
	}
	return err
}

// release stages a release, publishes it, goes back, publishes it again and drops the first.
func (r *trial) release() error {
	ctx := context.Background()
	steps := []func() error{
		func() error { return createReleased(ctx, r.db) },
		func() error { return stageRelease(ctx, r.db, "r2", 2, true) },
		func() error { return publishRelease(ctx, r.db, "r2") },
		func() error { _, err := r.db.Rollback(ctx); return err },
		func() error { return publishRelease(ctx, r.db, "r2") },
		func() error {
			first, err := r.db.Release(ctx, "1")
			if err != nil {
				return err
			}
			return first.Drop(ctx)
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func publishRelease(ctx context.Context, db *flashdb.DB, name string) error {
	_, err := db.Publish(ctx, name, &flashdb.PublishOptions{Force: true})
	return err
}

// wholeRelease requires that what is live is whole in both collections, and returns its value: -1
// without the collections.
func wholeRelease(ctx context.Context, t *testing.T, db *flashdb.DB) int {
	t.Helper()
	live := -1
	for _, name := range releasedCollections {
		c, err := db.Collection(name)
		if errors.Is(err, flashdb.ErrNotFound) {
			require.Equal(t, -1, live, "both collections are made at once")
			return live
		}
		require.NoError(t, err)
		for i := range releasedNodes {
			n, err := c.Get(ctx, fmt.Sprint("n", i))
			require.NoError(t, err)
			require.Len(t, n.Embedding, 2, "node %q of %q", n.Key, name)
			value := int(n.Embedding[0])
			if live < 0 {
				live = value
			}
			require.Equal(t, live, value, "node %q of %q", n.Key, name)
		}
		res, err := c.Search(ctx, []float32{1, 0}, releasedNodes, nil)
		require.NoError(t, err)
		require.Len(t, res.Hits, releasedNodes)
		require.Equal(t, float32(live), res.Hits[0].Score)
	}
	return live
}

// verifyReleases requires that what is live is whole, and what was acknowledged or tried last.
func (s *saga) verifyReleases(ctx context.Context, t *testing.T, db *flashdb.DB) {
	t.Helper()
	live := wholeRelease(ctx, t, db)
	if live < 0 {
		return
	}
	if s.value == 0 {
		s.value = 1
	}
	require.Contains(t, []int{s.value, s.tryValue}, live)
	s.value, s.tryValue = live, live
}
