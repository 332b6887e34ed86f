//go:build unix

package tests

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
)

// Whatever a database makes is its owner's alone.
func TestFilesArePrivate(t *testing.T) {
	im := newImage(t, 300, 7)
	dir := filepath.Join(t.TempDir(), "d.flash")
	im.write(t, dir, "", nil)
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	_, err = control.Serve(db, nil)
	require.NoError(t, err)
	c, err := db.Collection("papers")
	require.NoError(t, err)
	_, err = c.Rebuild(context.Background(), &flashdb.RebuildOptions{Force: true})
	require.NoError(t, err)
	seen := map[string]bool{}
	look := func() {
		require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := d.Info()
			require.NoError(t, err)
			want := os.FileMode(0o600)
			if d.IsDir() {
				want = 0o700
			}
			if path != dir { // the caller made it here
				assert.Equal(t, want, info.Mode().Perm(), path)
			}
			seen[strings.TrimRight(filepath.Ext(path), "0123456789")] = true
			return nil
		}))
	}
	look()
	require.NoError(t, db.Close())
	look()
	for _, kind := range []string{".db", ".log", ".ivf", ".pid", ".sock"} {
		assert.True(t, seen[kind], kind)
	}

	fresh := filepath.Join(t.TempDir(), "new.flash")
	db, err = flashdb.Open(fresh, nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	info, err := os.Stat(fresh)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

// A symbolic link inside the directory could lead reads and writes out of it.
func TestSymlinksAreRefused(t *testing.T) {
	ctx := context.Background()
	im := newImage(t, 300, 7)
	for _, name := range []string{"flash.db", im.log, "wal", "owner.pid", "index", "index/papers", "index/papers/gen-000001.ivf"} {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			base := t.TempDir()
			dir, outside := filepath.Join(base, "d.flash"), filepath.Join(base, "outside")
			im.write(t, dir, "", nil)
			require.NoError(t, os.Rename(filepath.Join(dir, name), outside))
			require.NoError(t, os.Symlink(outside, filepath.Join(dir, name)))
			before := readFiles(t, outside)

			db, err := flashdb.Open(dir, nil)
			if strings.HasPrefix(name, "index/") { // derived data: the answers come without it
				require.NoError(t, err)
				defer db.Close()
				c, err := db.Collection("papers")
				require.NoError(t, err)
				res, err := c.Predict(ctx, "node1", 5, nil)
				require.NoError(t, err)
				require.Zero(t, res.Stats.Generation)
				_, err = c.Rebuild(ctx, nil)
				if strings.HasSuffix(name, ".ivf") {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, name+" is a symbolic link")
				}
			} else {
				require.ErrorContains(t, err, "symbolic link")
				require.NotContains(t, err.Error(), "\n")
			}
			require.Equal(t, before, readFiles(t, outside), "nothing outside is written")
		})
	}
}
