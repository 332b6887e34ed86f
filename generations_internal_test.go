package flashdb

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/internal/vfs"
)

// fewRows are a few rows to be indexed.
type fewRows struct{}

func (fewRows) Rows(_ context.Context, fn func(ids []uint32, rows []float32) error) error {
	return fn([]uint32{0, 1, 2}, []float32{1, 0, 0, 1, 1, 1})
}

// TestNamesThatLeadOut bypasses the check of names and uses a collection called ../../victim. The
// file system refuses every operation.
func TestNamesThatLeadOut(t *testing.T) {
	base := t.TempDir()
	files := map[string]string{"precious": "precious", "gen-000001.ivf": "old", "gen-000002.ivf.tmp": "tmp"}
	victim := filepath.Join(base, "victim")
	require.NoError(t, os.Mkdir(victim, 0o700))
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(victim, name), []byte(content), 0o600))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(base, "d.flash", "index"), 0o700))
	root, err := vfs.OS().OpenRoot(filepath.Join(base, "d.flash"))
	require.NoError(t, err)
	defer root.Close()
	for _, name := range []string{"../../victim", victim} {
		dir := "index/" + name // joined without filepath.Join, and with it
		for _, dir := range []string{dir, filepath.Join("index", name), name} {
			if within, err := filepath.Rel(".", dir); err == nil && filepath.IsLocal(within) {
				continue // an absolute name joined to another
			}
			_, err := buildGeneration(t.Context(), root, dir, 1, fewRows{}, ivf.BuildOptions{Dim: 2})
			require.Error(t, err, dir)
			removed, left := sweepGenerations(root, dir, 0)
			require.Empty(t, removed)
			require.NotEmpty(t, left, dir)
			require.Error(t, root.RemoveAll(dir), dir)
			_, err = ivf.Open(root, filepath.Join(dir, generationFile(1)))
			require.Error(t, err, dir)
		}
	}
	seen := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(victim), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			b, err := os.ReadFile(filepath.Join(victim, name))
			require.NoError(t, err)
			seen[name] = string(b)
		}
		return err
	}))
	require.Equal(t, files, seen)

	gen, err := buildGeneration(t.Context(), root, filepath.Join("index", "c"), 1, fewRows{}, ivf.BuildOptions{Dim: 2})
	require.NoError(t, err, "inside it works")
	require.NoError(t, gen.Release())
}
