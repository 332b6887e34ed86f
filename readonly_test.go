package flashdb_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/dbtest"
)

// killed returns a directory as a kill would leave it: with writes in the log that were never
// flushed, an owner file, the copy of a killed backup, and torn bytes.
func killed(t *testing.T) (dir string, want *dbtest.Contents) {
	t.Helper()
	d := &testDB{t: t, dir: filepath.Join(t.TempDir(), "live")}
	var err error
	d.DB, err = flashdb.Open(d.dir, &flashdb.Options{FlushBytes: 1 << 40})
	require.NoError(t, err)
	fill(t, d)
	c, err := d.Collection("papers")
	require.NoError(t, err)
	ctx := context.Background()
	require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: "p1", Embedding: make([]float32, 8), Tags: []string{"moved"}}))
	require.NoError(t, c.SetTags(ctx, "p2", []string{"moved"}))
	require.NoError(t, c.SetPayload(ctx, "p1", []byte("after its row")))
	dir = filepath.Join(t.TempDir(), "killed")
	require.NoError(t, os.CopyFS(dir, os.DirFS(d.dir)))
	want = contentsOf(t, d.DB)
	d.checkAndClose()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "backup-00000000.tmp"), nil, 0o600))
	segments, err := filepath.Glob(filepath.Join(dir, "wal", "*.log"))
	require.NoError(t, err)
	f, err := os.OpenFile(segments[len(segments)-1], os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.Write([]byte("torn"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return dir, want
}

// snapshotOf returns the bytes of every file in a directory.
func snapshotOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	}))
	return files
}

func TestReadOnlyReadersShareADirectoryAndLeaveItAlone(t *testing.T) {
	ctx := context.Background()
	dir, want := killed(t)
	before := snapshotOf(t, dir)
	var readers []*flashdb.DB
	for range 2 {
		db, err := flashdb.Open(dir, &flashdb.Options{ReadOnly: true, FlushBytes: 1})
		require.NoError(t, err)
		assert.Equal(t, want, contentsOf(t, db))
		findings, err := db.Check(ctx)
		require.NoError(t, err)
		assert.Empty(t, findings)
		readers = append(readers, db)
	}
	db := readers[0]
	s, err := db.Stats(ctx)
	require.NoError(t, err)
	assert.Equal(t, uint64(1), s.Collections[0].Generation)
	assert.Equal(t, uint64(2), s.Collections[0].DeltaRows, "new, and p1 as it is now")
	c, err := db.Collection("papers")
	require.NoError(t, err)
	byIndex, err := c.Predict(ctx, "p1", 20, &flashdb.PredictOptions{Plan: &flashlight.Plan{PerRound: 400, Probes: index.Probes{Share: 1}}})
	require.NoError(t, err)
	assert.Equal(t, want.Exact, byIndex.Hits)

	_, err = flashdb.Open(dir, nil)
	require.ErrorIs(t, err, flashdb.ErrLocked)
	for name, change := range map[string]func() error{
		"create":  func() error { _, err := db.CreateCollection("x", flashdb.Schema{Dim: 1}); return err },
		"drop":    func() error { return db.DropCollection(ctx, "papers") },
		"upsert":  func() error { return c.Upsert(ctx, flashdb.Node{Key: "x", Embedding: make([]float32, 8)}) },
		"delete":  func() error { _, err := c.Delete(ctx, "p1"); return err },
		"link":    func() error { return c.Link(ctx, flashdb.Edge{Source: "p1", Target: "p2"}) },
		"unlink":  func() error { _, err := c.Unlink(ctx, flashdb.Edge{Source: "p1", Target: "p2"}); return err },
		"decoder": func() error { return c.PutDecoder(ctx, "x", dotDecoder(t, 8)) },
		"meta":    func() error { return c.SetMeta(ctx, "x", "y") },
		"tags":    func() error { return c.SetTags(ctx, "p1", nil) },
		"payload": func() error { return c.SetPayload(ctx, "p1", nil) },
		"batch": func() error {
			var b flashdb.Batch
			b.SetMeta("papers", "x", "y")
			return db.Apply(ctx, &b)
		},
		"rebuild": func() error { _, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true}); return err },
		"compact": func() error { _, err := db.Compact(ctx, nil); return err },
		"backup":  func() error { _, err := db.Backup(ctx, io.Discard, nil); return err },
	} {
		assert.ErrorIs(t, change(), flashdb.ErrReadOnly, name)
	}
	assert.Equal(t, uint64(11), db.Metrics().WriteErrors, "all but rebuild, compact and backup")
	require.NoError(t, db.Checkpoint(ctx))
	for _, db := range readers {
		require.NoError(t, db.Close())
		require.ErrorIs(t, db.Close(), flashdb.ErrClosed)
	}
	assert.Equal(t, before, snapshotOf(t, dir), "nothing was written")

	d := &testDB{t: t, dir: dir}
	d.open() // now a writer may
	_, err = flashdb.Open(dir, &flashdb.Options{ReadOnly: true})
	require.ErrorIs(t, err, flashdb.ErrLocked)
	assert.Equal(t, want, contentsOf(t, d.DB))
	d.checkAndClose()
}

func TestReadOnlyWantsADatabase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	_, err := flashdb.Open(dir, &flashdb.Options{ReadOnly: true})
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	require.NoDirExists(t, dir)
}

// TestReadOnlyBackup backs up a database that was opened read-only. Backup fails while the log
// holds more than the bbolt file.
func TestReadOnlyBackup(t *testing.T) {
	ctx := context.Background()
	dir, want := killed(t)
	before := snapshotOf(t, dir)
	db, err := flashdb.Open(dir, &flashdb.Options{ReadOnly: true})
	require.NoError(t, err)
	_, err = db.Backup(ctx, io.Discard, nil)
	require.ErrorIs(t, err, flashdb.ErrReadOnly)
	require.ErrorContains(t, err, "the log holds changes that flash.db lacks")
	require.NoError(t, db.Close())
	assert.Equal(t, before, snapshotOf(t, dir))

	db, err = flashdb.Open(dir, nil) // which flushes the log
	require.NoError(t, err)
	require.NoError(t, db.Close())
	before = snapshotOf(t, dir)
	db, err = flashdb.Open(dir, &flashdb.Options{ReadOnly: true})
	require.NoError(t, err)
	stream := backUp(t, db, nil)
	require.NoError(t, db.Close())
	assert.Equal(t, before, snapshotOf(t, dir))

	copied := filepath.Join(t.TempDir(), "copied")
	_, err = flashdb.Restore(ctx, bytes.NewReader(stream), copied, nil)
	require.NoError(t, err)
	db, err = flashdb.Open(copied, nil)
	require.NoError(t, err)
	assert.Equal(t, want, contentsOf(t, db))
	require.NoError(t, db.Close())
}
