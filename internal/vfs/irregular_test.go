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

// late shows a regular file to who looks before the open, and lets another thing be opened: what
// comes between the two calls.
type late struct{ calls }

func (l late) Lstat(string) (os.FileInfo, error) { return l.calls.Lstat("f") }

// TestNothingIrregularIsOpened: a named pipe would make the open wait for its other end, so that
// this test would not end.
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

// slipped shows what was there before to who looks first: a link has come since. Later looks show
// it.
type slipped struct {
	calls
	looks  *int
	before string // its name now, of a file or of nothing
}

func (s slipped) Lstat(name string) (os.FileInfo, error) {
	if *s.looks++; *s.looks == 1 {
		return s.calls.Lstat(s.before)
	}
	return s.calls.Lstat(name)
}

// TestNoLinkThatComesLateIsFollowed: os.Root follows a link that stays within it.
func TestNoLinkThatComesLateIsFollowed(t *testing.T) {
	base := t.TempDir()
	d := openDir(t, base)
	put(t, d, "f", "mine")
	put(t, d, "other", "precious")
	require.NoError(t, os.Symlink("other", filepath.Join(base, "link")))
	require.NoError(t, os.Symlink("new", filepath.Join(base, "dangling")))
	for _, name := range []string{"link", "dangling"} {
		for _, before := range []string{"f", "none"} {
			late := func() osFS { return osFS{calls: slipped{d.calls, new(int), before}, dir: base} }
			_, err := late().Create(name)
			assert.ErrorContains(t, err, "symbolic link", name)
			_, err = late().Open(name)
			assert.Error(t, err, name)
			_, err = late().OpenRW(name)
			assert.Error(t, err, name)
			_, err = late().Map(name)
			assert.Error(t, err, name)
		}
	}
	assert.Equal(t, "precious", get(t, d, "other"))
	assert.NoFileExists(t, filepath.Join(base, "new"))
}

// TestReplacedFileIsOpenedAgain: what a rename brought between the open and the look at the name is
// opened then.
func TestReplacedFileIsOpenedAgain(t *testing.T) {
	base := t.TempDir()
	d := openDir(t, base)
	put(t, d, "f", "new")
	put(t, d, "old", "old")
	looks := 0
	fsys := osFS{calls: renamed{d.calls, &looks}, dir: base}
	assert.Equal(t, "new", get(t, fsys, "f"))
	put(t, fsys, "f", "newer")
	assert.Equal(t, "newer", get(t, d, "f"))
	assert.Equal(t, "old", get(t, d, "old"))
}

// renamed opens the old file, the first time.
type renamed struct {
	calls
	opens *int
}

func (r renamed) OpenFile(name string, flag int, perm os.FileMode) (*os.File, error) {
	if *r.opens++; *r.opens == 1 {
		name = "old"
	}
	return r.calls.OpenFile(name, flag, perm)
}
