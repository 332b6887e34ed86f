package tests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/attempts"
	"github.com/flashdb/flashdb/internal/vfs"
)

// within fails the test, with the stacks of all goroutines, if fn does not return in time.
func within(t *testing.T, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	for range 60 { // nothing here takes a second; a process that is stopped for a minute misses only one
		select {
		case <-done:
			return
		case <-time.After(time.Second):
		}
	}
	debug.SetTraceback("all")
	panic(fmt.Sprintf("%s: %s hangs", t.Name(), what)) // t.FailNow would wait for what hangs
}

// storeCalls are the ways into flash.db.
func storeCalls(db *flashdb.DB, c *flashdb.Collection) map[string]func() error {
	ctx := context.Background()
	return map[string]func() error{
		"get":     func() error { _, err := c.Get(ctx, "node700"); return err },
		"predict": func() error { _, err := c.Predict(ctx, "node700", 5, nil); return err },
		"upsert": func() error {
			return c.Upsert(ctx, flashdb.Node{Key: "new", Embedding: make([]float32, c.Schema().Dim)})
		},
		"link":        func() error { return c.Link(ctx, flashdb.Edge{Source: "node700", Target: "node701"}) },
		"checkpoint":  func() error { return db.Checkpoint(ctx) },
		"rebuild":     func() error { _, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true}); return err },
		"backup":      func() error { _, err := db.Backup(ctx, io.Discard, nil); return err },
		"compact":     func() error { _, err := db.Compact(ctx, nil); return err },
		"keys":        func() error { _, err := c.RowKeys(ctx, 0, 100); return err },
		"stats":       func() error { _, err := db.Stats(ctx); return err },
		"collections": func() error { _, err := db.Collections(ctx); return err },
		"check": func() error {
			findings, err := db.Check(ctx)
			if len(findings) > 0 {
				return errors.Join(err, flashdb.ErrCorrupt)
			}
			return err
		},
		"close": func() error { return nil },
	}
}

// TestStoreCutAnywhere cuts flash.db under a running process. Every call then returns, with an
// error where the file was needed, and so does Close; what was acknowledged and is in the log is
// there once flash.db is put back from a copy.
func TestStoreCutAnywhere(t *testing.T) {
	im := newImage(t, 1500, 7)
	n := len(im.files["flash.db"])
	for _, size := range some([]int{0, 100, 8192, 24 << 10, n / 2, n - 1}) {
		for name := range storeCalls(nil, nil) {
			t.Run(fmt.Sprintf("%d/%s", size, name), func(t *testing.T) {
				attempts.Count(t, 1, "files cut")
				dir := filepath.Join(t.TempDir(), "d.flash")
				im.write(t, dir, "", nil)
				db, err := openOn(vfs.Unsynced(vfs.OS()), dir, &flashdb.Options{Workers: 2, CalibrateTime: -1})
				require.NoError(t, err)
				c, err := db.Collection("papers")
				require.NoError(t, err)
				_, err = c.Predict(context.Background(), "node1", 5, nil)
				require.NoError(t, err)
				path := filepath.Join(dir, "flash.db")
				whole, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, os.Truncate(path, int64(size)))

				calls, failed := storeCalls(db, c), false
				try := func(what string) {
					within(t, what, func() {
						err := calls[what]()
						t.Logf("%s: %.150v", what, err)
						if err != nil {
							failed = true
							assert.ErrorIs(t, err, flashdb.ErrCorrupt, what)
						}
					})
				}
				try(name)
				for what := range calls {
					try(what)
				}
				if failed {
					assert.ErrorIs(t, calls["upsert"](), flashdb.ErrCorrupt, "the file has lost something, and that is known")
				}
				within(t, "close", func() { err = db.Close() })
				if err != nil {
					assert.ErrorIs(t, err, flashdb.ErrCorrupt)
					failed = true
				}
				if failed { // put back from a copy
					require.NoError(t, os.WriteFile(path, whole, 0o600))
				}
				db, err = openOn(vfs.Unsynced(vfs.OS()), dir, nil)
				require.NoError(t, err, "no lock is left behind")
				c, err = db.Collection("papers")
				require.NoError(t, err)
				origin, _, err := c.Meta(context.Background(), "origin")
				require.NoError(t, err)
				assert.Equal(t, "another", origin)
				for _, key := range []string{"node1500", "node1502", "node1503"} {
					_, err = c.Get(context.Background(), key)
					assert.NoError(t, err, key)
				}
				findings, err := db.Check(context.Background())
				require.NoError(t, err)
				assert.Empty(t, findings)
				require.NoError(t, db.Close())
			})
		}
	}
}

// TestStoreCutUnderLoad cuts flash.db while readers and writers are inside bbolt, and locks of
// bbolt's are held by chance.
func TestStoreCutUnderLoad(t *testing.T) {
	im := newImage(t, 300, 7)
	for round := range 30 {
		dir := filepath.Join(t.TempDir(), "d.flash")
		im.write(t, dir, "", nil)
		db, err := openOn(vfs.Unsynced(vfs.OS()), dir, &flashdb.Options{FlushBytes: 1 << 10, CalibrateTime: -1})
		require.NoError(t, err)
		c, err := db.Collection("papers")
		require.NoError(t, err)
		var load sync.WaitGroup
		var begun sync.WaitGroup
		var reading atomic.Int32 // the writer goes on until the readers have ended: it may never meet the damage
		reading.Store(7)
		for worker := range 8 {
			begun.Add(1)
			load.Go(func() {
				if worker > 0 {
					defer reading.Add(-1)
				}
				for i := 0; i <= 20 || worker > 0 || reading.Load() > 0; i++ {
					var err error
					if worker == 0 {
						err = c.Upsert(context.Background(), flashdb.Node{Key: fmt.Sprint(i), Embedding: make([]float32, c.Schema().Dim)})
					} else {
						_, err = c.Get(context.Background(), fmt.Sprintf("node%d", 6+i%290))
					}
					if i == 20 {
						begun.Done()
					}
					if err != nil {
						assert.ErrorIs(t, err, flashdb.ErrCorrupt)
						return
					}
				}
			})
		}
		within(t, "calls", func() {
			begun.Wait()
			require.NoError(t, os.Truncate(filepath.Join(dir, "flash.db"), int64(round%3)*8<<10))
			load.Wait()
		})
		within(t, "close", func() { _ = db.Close() })
	}
}

// TestLogChangedUnderProcess changes the active segment of the log of an open database. The next
// write is refused, reads go on, and Close brings everything acknowledged into flash.db, which
// needs no log.
func TestLogChangedUnderProcess(t *testing.T) {
	im := newImage(t, 300, 7)
	ctx := context.Background()
	changes := map[string]func(path string) error{
		"emptied":               func(path string) error { return os.Truncate(path, 0) },
		"cut in the last write": func(path string) error { return os.Truncate(path, int64(im.writes[len(im.writes)-1]-1)) },
		"cut between writes":    func(path string) error { return os.Truncate(path, int64(im.writes[2])) },
		"removed":               os.Remove,
		"directory removed":     func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			attempts.Count(t, 1, "logs changed")
			dir := filepath.Join(t.TempDir(), "d.flash")
			im.write(t, dir, "", nil)
			db, err := flashdb.Open(dir, nil)
			require.NoError(t, err)
			c, err := db.Collection("papers")
			require.NoError(t, err)
			node := flashdb.Node{Key: "late", Embedding: make([]float32, c.Schema().Dim)}
			require.NoError(t, c.Upsert(ctx, node))
			require.NoError(t, change(filepath.Join(dir, filepath.FromSlash(im.log))))

			node.Key = "refused"
			err = c.Upsert(ctx, node)
			require.ErrorIs(t, err, flashdb.ErrReadOnly)
			require.ErrorIs(t, err, flashdb.ErrCorrupt)
			require.ErrorContains(t, err, "under this process")
			_, err = c.Get(ctx, "late")
			require.NoError(t, err)
			require.NoError(t, db.Close())

			db, err = flashdb.Open(dir, nil)
			require.NoError(t, err)
			c, err = db.Collection("papers")
			require.NoError(t, err)
			_, err = c.Get(ctx, "late")
			require.NoError(t, err)
			_, err = c.Get(ctx, "refused")
			require.ErrorIs(t, err, flashdb.ErrNotFound)
			require.NoError(t, c.Upsert(ctx, node))
			findings, err := db.Check(ctx)
			require.NoError(t, err)
			require.Empty(t, findings)
			require.NoError(t, db.Close())
		})
	}
}

// TestGenerationCutAnywhere cuts the served generation at many lengths: queries are answered
// without it.
func TestGenerationCutAnywhere(t *testing.T) {
	ctx := context.Background()
	im := newImage(t, 1500, 7)
	const generation = "index/papers/gen-000001.ivf"
	n := len(im.files[generation])
	for _, size := range some([]int{0, 1, 100, 4096, 4097, 8192, 8193, n / 2, n - 4096, n - 1}) {
		for _, what := range []string{"predict", "search", "check", "rebuild", "backup", "stats", "close"} {
			t.Run(fmt.Sprintf("%d/%s", size, what), func(t *testing.T) {
				attempts.Count(t, 1, "files cut")
				db, c, dir, _ := served(t, &im)
				calls := storeCalls(db, c)
				calls["search"] = func() error { _, err := c.Search(ctx, make([]float32, c.Schema().Dim), 5, nil); return err }
				calls["check"] = func() error { _, err := db.Check(ctx); return err }
				require.NoError(t, os.Truncate(filepath.Join(dir, generation), int64(size)))
				for _, call := range []string{what, "predict", "upsert", "checkpoint"} {
					within(t, call, func() { assert.NoError(t, calls[call](), call) })
				}
				within(t, "close", func() { assert.NoError(t, db.Close()) })
			})
		}
	}
}
