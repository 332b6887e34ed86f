package tests

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// startedModel makes a database with a collection and a few acknowledged writes.
func startedModel(t *testing.T, dir string, opts *flashdb.Options) (*flashdb.DB, *flashdb.Collection, *model, *rand.Rand) {
	t.Helper()
	db, err := flashdb.Open(dir, opts)
	require.NoError(t, err)
	c, err := db.CreateCollection("c", flashdb.Schema{Dim: modelDim})
	require.NoError(t, err)
	m, rng := newModel(), rand.New(rand.NewPCG(22, 0))
	for i := range 10 {
		a := batch(rng, fmt.Sprint("begin", i))
		require.NoError(t, a.do(context.Background(), c))
		a.on(m)
	}
	return db, c, m, rng
}

// reopened opens the database again, and compares it with the model; refused is a write that was
// not acknowledged and may be there all the same.
func reopened(t *testing.T, dir string, m *model, refused write) {
	t.Helper()
	ctx := context.Background()
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	c, err := db.Collection("c")
	require.NoError(t, err)
	if m.diff(ctx, c, "") != nil {
		refused.on(m)
	}
	require.NoError(t, m.diff(ctx, c, ""))
	more := batch(rand.New(rand.NewPCG(23, 0)), "more")
	require.NoError(t, more.do(ctx, c))
	more.on(m)
	require.NoError(t, m.diff(ctx, c, ""))
	findings, err := db.Check(ctx)
	require.NoError(t, err)
	require.Empty(t, findings)
	require.NoError(t, db.Close())
}

// TestInodesExhausted leaves no room for another file: what needs one is refused with the reason,
// reads go on, and nothing acknowledged is lost.
func TestInodesExhausted(t *testing.T) {
	root := fewInodes(t)
	ctx := context.Background()
	dir := filepath.Join(root, "test.flash")
	db, c, m, rng := startedModel(t, dir, &flashdb.Options{FlushBytes: 1 << 12})
	for i := 0; ; i++ {
		if err := os.WriteFile(filepath.Join(root, fmt.Sprint("file", i)), nil, 0o600); err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			break
		}
	}
	_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
	require.ErrorIs(t, err, syscall.ENOSPC)
	_, err = db.Backup(ctx, io.Discard, nil)
	require.ErrorIs(t, err, syscall.ENOSPC)
	refused, err := fillUp(c, m, rng)
	require.ErrorIs(t, err, flashdb.ErrReadOnly)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, m.diff(ctx, c, ""), "reads go on")
	_ = db.Close() // a new segment of the log finds no room
	if db, err := flashdb.Open(dir, &flashdb.Options{ReadOnly: true}); err == nil {
		require.NoError(t, db.Close())
	} else {
		require.NoError(t, err, "reading needs no file")
	}
	old, err := filepath.Glob(filepath.Join(root, "file*"))
	require.NoError(t, err)
	for _, name := range old {
		require.NoError(t, os.Remove(name))
	}
	reopened(t, dir, m, refused)
}

// TestDiskTurnsReadOnly makes the file system read-only under an open database, as a failing disk
// does: writes are refused with the reason, reads go on, and what was acknowledged is there when
// the disk is well again.
func TestDiskTurnsReadOnly(t *testing.T) {
	ctx := context.Background()
	for _, flushBytes := range []int64{1 << 12, 1 << 40} { // what notices first is the bbolt file, or the log
		t.Run(fmt.Sprint(flushBytes), func(t *testing.T) {
			root, fail, repair := failingDisk(t)
			dir := filepath.Join(root, "test.flash")
			db, c, m, rng := startedModel(t, dir, &flashdb.Options{FlushBytes: flushBytes})
			// A sync that runs while ext4 fails may succeed and yet lose what it synced
			// (docs/format.md), so none runs.
			require.NoError(t, db.Checkpoint(ctx))
			fail()
			refused, err := fillUp(c, m, rng)
			require.ErrorIs(t, err, flashdb.ErrReadOnly)
			require.NotContains(t, err.Error(), "\n")
			require.ErrorContains(t, err, "until it is reopened")
			require.NoError(t, m.diff(ctx, c, ""), "reads go on")
			_, err = c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
			require.Error(t, err)
			require.NoError(t, m.diff(ctx, c, ""), "reads go on")
			_ = db.Close()

			_, err = flashdb.Open(dir, nil)
			require.ErrorIs(t, err, syscall.EROFS)
			readOnlyModel(t, dir, m, refused)
			repair()
			reopened(t, dir, m, refused)
		})
	}
}

// readOnlyModel opens the database read-only and compares it with the model.
func readOnlyModel(t *testing.T, dir string, m *model, refused write) {
	t.Helper()
	db, err := flashdb.Open(dir, &flashdb.Options{ReadOnly: true})
	require.NoError(t, err)
	c, err := db.Collection("c")
	require.NoError(t, err)
	if m.diff(context.Background(), c, "") != nil {
		refused.on(m)
	}
	require.NoError(t, m.diff(context.Background(), c, ""))
	require.NoError(t, db.Close())
}

// TestReadOnlyFileSystem opens a database on a file system that was mounted read-only: for reading
// it works, for writing the error is the system's.
func TestReadOnlyFileSystem(t *testing.T) {
	root := smallDisk(t)
	dir := filepath.Join(root, "test.flash")
	db, c, m, rng := startedModel(t, dir, nil)
	last := batch(rng, "last")
	require.NoError(t, last.do(context.Background(), c))
	last.on(m)
	require.NoError(t, db.Close())
	remount(t, root, true)
	readOnlyModel(t, dir, m, last)
	_, err := flashdb.Open(dir, nil)
	require.ErrorIs(t, err, syscall.EROFS)
	var path *fs.PathError
	require.ErrorAs(t, err, &path)
	remount(t, root, false)
	reopened(t, dir, m, last)
}
