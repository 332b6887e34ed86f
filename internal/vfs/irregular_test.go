//go:build unix

package vfs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// late shows a regular file to who looks before the open, and lets another thing
// be opened: what comes between the two calls.
type late struct{ calls }

func (l late) Lstat(string) (os.FileInfo, error) { return l.calls.Lstat("f") }

// TestNothingIrregularIsOpened: a named pipe would make the open wait for its
// other end, so that this test would not end.
func TestNothingIrregularIsOpened(t *testing.T) {
	base := t.TempDir()
	put(t, OS(), filepath.Join(base, "f"), "x")
	require.NoError(t, syscall.Mkfifo(filepath.Join(base, "pipe"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(base, "dir"), 0o700))
	d := openDir(t, base)
	tooLate := osFS{calls: late{d.osFS.calls}, dir: base}
	for _, name := range []string{"pipe", "dir"} {
		for _, fsys := range []osFS{d.osFS, tooLate} {
			_, err := fsys.Open(name)
			assert.ErrorIs(t, err, ErrNotRegular, name)
			_, err = fsys.Map(name)
			assert.ErrorIs(t, err, ErrNotRegular, name)
			_, err = fsys.OpenRW(name)
			assert.Error(t, err, name)
			_, err = fsys.Create(name)
			assert.Error(t, err, name)
		}
		_, err := OS().Open(filepath.Join(base, name))
		assert.ErrorIs(t, err, ErrNotRegular, name)
		_, err = d.Size(name)
		assert.ErrorIs(t, err, ErrNotRegular, name)
	}
	_, err := d.ReadDir("pipe")
	assert.Error(t, err)
	assert.Error(t, d.SyncDir("pipe"))
}
