package vfs

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func openDir(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := OpenDir(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestDirNoticesThatItWasMoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename a directory that is open")
	}
	base := t.TempDir()
	path, away := filepath.Join(base, "d"), filepath.Join(base, "away")
	require.NoError(t, os.Mkdir(path, 0o700))
	d := openDir(t, path)
	put(t, d, "f", "x")
	info, err := d.Lstat("f")
	require.NoError(t, err)
	require.NoError(t, d.Check())
	require.NoError(t, d.CheckFile("f", info))
	put(t, d, "g", "y")
	assert.ErrorIs(t, d.CheckFile("g", info), ErrMoved)
	assert.ErrorIs(t, d.CheckFile("none", info), ErrMoved)

	require.NoError(t, os.Rename(path, away))
	assert.ErrorIs(t, d.Check(), ErrMoved)
	assert.ErrorContains(t, d.Check(), "nothing at "+path)
	require.NoError(t, os.Mkdir(path, 0o700))
	assert.ErrorIs(t, d.Check(), ErrMoved)
	assert.ErrorContains(t, d.Check(), "another one is at "+path)
	assert.ErrorIs(t, d.CheckFile("f", info), ErrMoved)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	assert.ErrorIs(t, d.Check(), ErrMoved)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink(away, path))
	assert.NoError(t, d.Check(), "the path of a database may be a link")
	assert.True(t, d.Same(openDir(t, away)))
	assert.False(t, d.Same(openDir(t, base)))
}

// TestDirFollowsNoLinks: neither out of it nor within it.
func TestDirFollowsNoLinks(t *testing.T) {
	base := t.TempDir()
	inside, outside := filepath.Join(base, "inside"), filepath.Join(base, "outside")
	for _, dir := range []string{filepath.Join(inside, "real"), outside} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("precious"), 0o600))
	}
	for link, to := range map[string]string{"out": outside, "in": "real", "up": "..", "file": filepath.Join(outside, "f"), "infile": "real/f"} {
		if err := os.Symlink(to, filepath.Join(inside, link)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	d := openDir(t, inside)
	for _, name := range []string{"out/f", "in/f", "up/outside/f", "file", "infile", "out/new", "in/new"} {
		_, err := d.Create(name)
		assert.ErrorContains(t, err, "symbolic link", name)
		_, err = d.Open(name)
		assert.ErrorContains(t, err, "symbolic link", name)
		_, err = d.OpenRW(name)
		assert.ErrorContains(t, err, "symbolic link", name)
		_, err = d.Map(name)
		assert.ErrorContains(t, err, "symbolic link", name)
		_, err = d.Size(name)
		assert.ErrorContains(t, err, "symbolic link", name)
	}
	put(t, d, "mine", "mine")
	for _, name := range []string{"out/f", "in/f", "up/outside/f"} {
		assert.Error(t, d.Remove(name), name)
		assert.Error(t, d.RemoveAll(name), name)
		assert.Error(t, d.Rename(name, "stolen"), name)
		assert.Error(t, d.Rename("mine", name), name)
		assert.Error(t, d.MkdirAll(name+"/d"), name)
	}
	for _, name := range []string{"out", "in", "up"} {
		_, err := d.ReadDir(name)
		assert.ErrorContains(t, err, "symbolic link", name)
		_, err = d.OpenRoot(name)
		assert.ErrorContains(t, err, "symbolic link", name)
		assert.ErrorContains(t, d.SyncDir(name), "symbolic link", name)
		assert.ErrorContains(t, d.MkdirAll(name), "symbolic link", name)
	}
	for _, name := range []string{"out", "in", "file", "infile", "up"} {
		assert.NoError(t, d.RemoveAll(name), "the link itself may go")
	}
	for _, dir := range []string{filepath.Join(inside, "real"), outside} {
		names, err := OS().ReadDir(dir)
		require.NoError(t, err)
		assert.Equal(t, []string{"f"}, names)
		assert.Equal(t, "precious", get(t, OS(), filepath.Join(dir, "f")))
	}
}

// TestHardLinksAreTheFile: nothing tells a hard link from the file, and a write through one is seen
// through the other.
func TestHardLinksAreTheFile(t *testing.T) {
	base := t.TempDir()
	put(t, OS(), filepath.Join(base, "f"), "before")
	if err := os.Link(filepath.Join(base, "f"), filepath.Join(base, "g")); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	d := openDir(t, base)
	put(t, d, "g", "after")
	assert.Equal(t, "after", get(t, d, "f"))
}

// TestMakeDirIsDurable: no crash takes away a directory that MakeDir made, nor its parents.
func TestMakeDirIsDurable(t *testing.T) {
	for _, dir := range []string{"/a", "/a/b/c/d", "rel/x"} {
		m := NewMem()
		require.NoError(t, MakeDir(m, dir))
		for seed := range uint64(50) {
			c := m.CrashClone(rand.New(rand.NewPCG(seed, 1)))
			_, err := c.ReadDir(dir)
			require.NoError(t, err, "%s, seed %d", dir, seed)
		}
	}
	base := t.TempDir()
	require.NoError(t, MakeDir(OS(), filepath.Join(base, "a", "b", "c")))
	require.DirExists(t, filepath.Join(base, "a", "b", "c"))
}

func TestFoldingMem(t *testing.T) {
	m := NewFoldingMem()
	require.NoError(t, m.MkdirAll("Dir"))
	put(t, m, "dir/File", "one")
	put(t, m, "DIR/file", "two")
	assert.Equal(t, "two", get(t, m, "dir/FILE"))
	names, err := m.ReadDir("dir")
	require.NoError(t, err)
	assert.Equal(t, []string{"File"}, names, "a file keeps the name it was made with")
	require.NoError(t, m.RemoveAll("dIR"))
	names, err = m.ReadDir("/")
	require.NoError(t, err)
	assert.Empty(t, names)
}

func TestWindowsMemKeepsNamesOfOpenFiles(t *testing.T) {
	m := NewWindowsMem()
	require.NoError(t, m.MkdirAll("d"))
	put(t, m, "d/f", "one")
	put(t, m, "d/g", "two")
	refused := func() {
		t.Helper()
		for _, err := range []error{m.Remove("d/f"), m.RemoveAll("d"), m.Rename("d/f", "d/h"), m.Rename("d/g", "d/f")} {
			require.ErrorIs(t, err, errInUse)
		}
	}
	f, err := m.Open("d/f")
	require.NoError(t, err)
	mapped, err := m.Map("D/F")
	require.NoError(t, err)
	refused()
	require.NoError(t, f.Close())
	refused()
	require.NoError(t, mapped.Close())
	require.NoError(t, mapped.Close(), "a second Close does nothing")
	require.NoError(t, m.Rename("d/g", "d/f"))
	assert.Equal(t, "two", get(t, m, "d/f"))
	require.NoError(t, m.RemoveAll("d"))
}
