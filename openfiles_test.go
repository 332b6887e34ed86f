package flashdb_test

import (
	"context"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/vfs"
)

// TestOpenFilesKeepTheirNames runs a database on a file system where an open or mapped file can be
// neither removed nor replaced, as on Windows.
func TestOpenFilesKeepTheirNames(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "d.flash")
	mem := vfs.NewWindowsMem()
	open := func() (*flashdb.DB, *flashdb.Collection) {
		db, err := flashdb.OpenOn(mem, dir, &flashdb.Options{CalibrateTime: -1, FlushBytes: 1 << 12})
		require.NoError(t, err)
		c, err := db.Collection("papers")
		if err != nil {
			c, err = db.CreateCollection("papers", flashdb.Schema{Dim: 4})
		}
		require.NoError(t, err)
		return db, c
	}
	generations := func() []string {
		names, err := mem.ReadDir(filepath.Join(dir, "index", "papers"))
		require.NoError(t, err)
		return names
	}
	force := &flashdb.RebuildOptions{Force: true}
	rng := rand.New(rand.NewPCG(1, 1))
	db, c := open()
	fillRandom(t, c, rng, 300)
	for range 3 { // each retires the generation before it, once no query holds that
		_, err := c.Rebuild(ctx, force)
		require.NoError(t, err)
		_, err = c.Search(ctx, make([]float32, 4), 5, nil)
		require.NoError(t, err)
		require.Len(t, generations(), 1)
		require.NoError(t, db.Checkpoint(ctx))
	}

	// A backup holds the generation open while a rebuild retires it.
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := db.Backup(ctx, w, nil)
		w.CloseWithError(err) // nil is the end of the stream
		done <- err
	}()
	_, err := io.ReadFull(r, make([]byte, 1)) // the backup is running
	require.NoError(t, err)
	_, err = c.Rebuild(ctx, force)
	require.NoError(t, err)
	_, err = c.Search(ctx, make([]float32, 4), 5, nil)
	require.NoError(t, err)
	require.Len(t, generations(), 2, "what is open stays")
	_, err = io.Copy(io.Discard, r)
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.NoError(t, db.Close())
	db, c = open()
	require.Len(t, generations(), 1, "the next open removes it")

	fillRandom(t, c, rng, 20)
	_, err = c.Rebuild(ctx, force)
	require.NoError(t, err)
	require.Len(t, generations(), 1)
	findings, err := db.Check(ctx)
	require.NoError(t, err)
	require.Empty(t, findings)
	require.NoError(t, db.DropCollection(ctx, "papers"))
	names, err := mem.ReadDir(filepath.Join(dir, "index"))
	require.NoError(t, err)
	require.Empty(t, names)
	require.NoError(t, db.Close())
}
