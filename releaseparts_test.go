package flashdb_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// TestReleaseBackup: a backup holds the live release, and with a flag all.
func TestReleaseBackup(t *testing.T) {
	ctx := context.Background()
	for _, published := range []bool{false, true} {
		for _, opts := range []flashdb.BackupOptions{{}, {AllReleases: true}, {AllReleases: true, WithoutIndex: true}, {WithoutIndex: true}} {
			d, _ := releasedShop(t, 100, true, false)
			want, releases := versionOne.score(), 1
			if published {
				want = versionTwo.score()
				_, err := d.Publish(ctx, "two", &flashdb.PublishOptions{Force: true})
				require.NoError(t, err)
			}
			if opts.AllReleases {
				releases = 2
			}
			var stream bytes.Buffer
			_, err := d.Backup(ctx, &stream, &opts)
			require.NoError(t, err)
			dir := filepath.Join(t.TempDir(), "restored")
			_, err = flashdb.Restore(ctx, &stream, dir, nil)
			require.NoError(t, err)
			restored := &testDB{t: t, dir: dir}
			restored.open()
			all, err := restored.Releases(ctx)
			require.NoError(t, err)
			require.Len(t, all, releases, "%+v", all)
			c, err := restored.Collection("items")
			require.NoError(t, err)
			require.Equal(t, want, answered(t, c, "user1"))
			if published && opts.AllReleases {
				_, err := restored.Rollback(ctx)
				require.NoError(t, err)
				require.Equal(t, versionOne.score(), answered(t, c, "user1"))
			}
			restored.checkAndClose()
		}
	}
}

// TestReleaseCheck: damage in a release that is not live is found and named.
func TestReleaseCheck(t *testing.T) {
	ctx := context.Background()
	d, r := releasedShop(t, 100, true, false)
	findings, err := d.Check(ctx)
	require.NoError(t, err)
	require.Empty(t, findings)
	all, err := d.Releases(ctx)
	require.NoError(t, err)
	file := filepath.Join(d.dir, "index", "items", fmt.Sprintf("gen-%06d.ivf", all[1].Collections[1].Generation))
	require.NoError(t, os.Truncate(file, 100))
	findings, err = d.Check(ctx)
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.Contains(t, findings[0], `release "two": collection "items": index: `)
	require.NoError(t, r.Drop(ctx))
}

// TestReleaseEmbedsLaterNodes: a node that came after the data was cut is embedded by the encoder
// of the release, from its links in whatever direction they are stored.
func TestReleaseEmbedsLaterNodes(t *testing.T) {
	ctx := context.Background()
	for name, use := range map[string]flashdb.EncoderUse{
		"both ways": {Decoder: "buys"},
		"one way":   {Decoder: "buys", OneWay: true},
		"directed":  {Decoder: "buys", Directed: true, OneWay: true},
		"between":   {Decoder: "buys", Neighbours: "users"},
	} {
		t.Run(name, func(t *testing.T) {
			d, r := releasedShop(t, 20, false, false)
			c, err := d.Collection("items")
			require.NoError(t, err)
			require.NoError(t, c.Upsert(ctx, node("late", 5, 0), node("alone", 5, 0)))
			edge := flashdb.Edge{Source: "item1", Target: "late"}
			switch name {
			case "both ways":
				require.NoError(t, c.Link(ctx, flashdb.Edge{Source: "late", Target: "item1"}))
			case "between":
				edge = flashdb.Edge{SourceCollection: "users", Source: "user1", Target: "late"}
			}
			require.NoError(t, c.Link(ctx, edge))
			built, err := r.Build(ctx, nil)
			require.NoError(t, err)
			require.Zero(t, built[1].Embedded, "it has no encoder")
			require.NoError(t, r.PutEncoder(ctx, "items", meanPlus(t, false, 0), use))
			built, err = r.Build(ctx, nil)
			require.NoError(t, err)
			require.Equal(t, "items", built[1].Collection)
			require.Equal(t, 1, built[1].Embedded)
			n, err := collectionIn(t, d, "two", "items").Get(ctx, "late")
			require.NoError(t, err)
			require.Equal(t, len(n.Embedding), 2)
			n, err = collectionIn(t, d, "two", "items").Get(ctx, "alone")
			require.NoError(t, err)
			require.Nil(t, n.Embedding)
			n, err = c.Get(ctx, "late")
			require.NoError(t, err)
			require.Equal(t, []float32{5, 0}, n.Embedding, "the live release is as before")
		})
	}
}

// TestReleaseBesideWrites stages, fills, builds, publishes, goes back and drops beside writers,
// readers, rebuilds and compactions of the same collections. Nothing is damaged, and each writer
// finds its own nodes.
func TestReleaseBesideWrites(t *testing.T) {
	ctx := context.Background()
	d, r := releasedShop(t, 60, true, false)
	require.NoError(t, r.Drop(ctx))
	items, err := d.Collection("items")
	require.NoError(t, err)
	var over atomic.Bool
	var beside sync.WaitGroup
	var failed atomic.Pointer[error]
	fail := func(err error) {
		if err != nil {
			failed.CompareAndSwap(nil, &err)
		}
	}
	for w := range 2 {
		beside.Go(func() {
			for i := 0; !over.Load(); i++ {
				key := fmt.Sprintf("w%d-%d", w, i%30)
				fail(items.Upsert(ctx, node(key, float32(i%7)+1, 0, "mine")))
				fail(items.Link(ctx, flashdb.Edge{Source: key, Target: "item1"}))
				if i%3 == 0 {
					_, err := items.Delete(ctx, key)
					fail(err)
				}
			}
		})
	}
	beside.Go(func() {
		for !over.Load() {
			_, err := items.Predict(ctx, "user1", 5, &flashdb.PredictOptions{SourceCollection: "users"})
			fail(err)
			_, err = d.Stats(ctx)
			fail(err)
		}
	})
	beside.Go(func() {
		for !over.Load() {
			_, err := items.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 2})
			fail(err)
			_, err = d.Compact(ctx, nil)
			fail(err)
		}
	})
	for i := range 8 {
		r, err := d.StageRelease(ctx, fmt.Sprint("n", i), "users", "items")
		require.NoError(t, err)
		_, err = r.Put(ctx, "users", versionTwo.users(20)...)
		require.NoError(t, err)
		_, err = r.Put(ctx, "items", append(versionTwo.items(40), node(fmt.Sprint("only", i), 1, 1), node("w0-1", 1, 1))...)
		require.NoError(t, err)
		require.NoError(t, r.PutDecoder(ctx, "items", "buys", versionTwo.decoder(t)))
		_, err = r.Build(ctx, &flashdb.RebuildOptions{Force: true, Lists: 2})
		require.NoError(t, err)
		_, err = d.Publish(ctx, r.Name(), &flashdb.PublishOptions{Force: true})
		require.NoError(t, err)
		if i%2 == 0 {
			_, err = d.Rollback(ctx)
			require.NoError(t, err)
			require.NoError(t, r.Drop(ctx))
		}
		findings, err := d.Check(ctx)
		require.NoError(t, err)
		require.Empty(t, findings)
	}
	over.Store(true)
	beside.Wait()
	if err := failed.Load(); err != nil {
		require.NoError(t, *err)
	}
	d.reopen()
	all, err := d.Releases(ctx)
	require.NoError(t, err)
	require.Len(t, all, 2, "the live one and the former one")
}
