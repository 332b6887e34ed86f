package vfs

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOSRefusesSymbolicLinks(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(target, []byte("precious"), 0o600))
	if err := os.Symlink(target, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	fsys := OS()
	opens := map[string]func() error{
		"create":  func() error { _, err := fsys.Create(link); return err },
		"open":    func() error { _, err := fsys.Open(link); return err },
		"open-rw": func() error { _, err := fsys.OpenRW(link); return err },
		"map":     func() error { _, err := fsys.Map(link); return err },
		"size":    func() error { _, err := fsys.Size(link); return err },
	}
	for name, open := range opens {
		assert.ErrorContains(t, open(), "symbolic link", name)
	}

	dangling := filepath.Join(dir, "dangling")
	require.NoError(t, os.Symlink(filepath.Join(dir, "made"), dangling))
	_, err := fsys.Create(dangling)
	assert.ErrorContains(t, err, "symbolic link")
	assert.NoFileExists(t, filepath.Join(dir, "made"))

	require.NoError(t, fsys.Remove(link), "the link itself may go")
	content, err := os.ReadFile(target)
	require.NoError(t, err)
	assert.Equal(t, "precious", string(content))
}

func TestOSFilesAreTheOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	dir := filepath.Join(t.TempDir(), "db")
	require.NoError(t, OS().MkdirAll(dir))
	put(t, OS(), filepath.Join(dir, "f"), "x")
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "f"): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode().Perm(), path)
	}
}
