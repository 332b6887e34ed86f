package tests

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/dbtest"
)

// TestSnapshotOnAReadOnlyDisk makes a snapshot of each frozen database, and reads it from a file
// system that was made read-only.
func TestSnapshotOnAReadOnlyDisk(t *testing.T) {
	ctx := context.Background()
	disk := smallDisk(t)
	streams, err := filepath.Glob(filepath.Join(frozenDir, "frozen-v*.zst"))
	require.NoError(t, err)
	require.NotEmpty(t, streams)
	dirs := map[string]*dbtest.Contents{}
	for _, name := range streams {
		stream, err := os.ReadFile(name)
		require.NoError(t, err)
		plain := filepath.Join(t.TempDir(), "db")
		_, err = flashdb.Restore(ctx, bytes.NewReader(stream), plain, nil)
		require.NoError(t, err)
		db := openDB(t, plain)
		want, err := dbtest.ContentsOf(ctx, db)
		require.NoError(t, err)
		checkAndClose(t, db)
		dir := filepath.Join(disk, filepath.Base(name)+".snap")
		_, err = flashdb.Restore(ctx, bytes.NewReader(stream), dir, &flashdb.RestoreOptions{Snapshot: true})
		require.NoError(t, err)
		dirs[dir] = want
	}
	remount(t, disk, true)
	defer remount(t, disk, false)
	for dir, want := range dirs {
		var readers []*flashdb.DB
		for range 2 {
			db, err := flashdb.Open(dir, nil)
			require.NoError(t, err)
			readers = append(readers, db)
		}
		for _, db := range readers {
			got, err := dbtest.ContentsOf(ctx, db)
			require.NoError(t, err)
			assert.Equal(t, want, got, dir)
			checkAndClose(t, db)
		}
	}
}
