package vfs

import (
	"io"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestConformance runs every FS through the same cases.
func TestConformance(t *testing.T) {
	none := func(Op) error { return nil }
	systems := []struct {
		name string
		fs   func() FS
	}{
		{"os", OS},
		{"mem", func() FS { return NewMem() }},
		{"faulty", func() FS { return Faulty(NewMem(), none) }},
	}
	cases := []struct {
		name string
		run  func(t *testing.T, fsys FS, dir string)
	}{
		{"read and write", testReadWrite},
		{"read only", testReadOnly},
		{"truncate", testTruncate},
		{"create empties", testCreateEmpties},
		{"names", testNames},
		{"missing", testMissing},
		{"wrong kind", testWrongKind},
		{"closed", testClosed},
		{"map", testMap},
		{"remove all", testRemoveAll},
		{"named", testNamed},
		{"root", testRoot},
		{"outside", testOutside},
	}
	for _, sys := range systems {
		for _, tt := range cases {
			t.Run(sys.name+"/"+tt.name, func(t *testing.T) {
				fsys, dir := sys.fs(), filepath.Join(t.TempDir(), "a", "b")
				require.NoError(t, fsys.MkdirAll(dir))
				require.NoError(t, fsys.MkdirAll(dir), "again")
				tt.run(t, fsys, dir)
			})
			t.Run(sys.name+" root/"+tt.name, func(t *testing.T) {
				base := t.TempDir()
				whole := sys.fs()
				require.NoError(t, whole.MkdirAll(base))
				fsys, dir := openRoot(t, whole, base), filepath.Join("a", "b")
				require.NoError(t, fsys.MkdirAll(dir))
				require.NoError(t, fsys.MkdirAll(dir), "again")
				tt.run(t, fsys, dir)
			})
		}
	}
}

func openRoot(t *testing.T, fsys FS, dir string) Root {
	t.Helper()
	root, err := fsys.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func put(t *testing.T, fsys FS, name, content string) {
	t.Helper()
	f, err := fsys.Create(name)
	require.NoError(t, err)
	n, err := f.Write([]byte(content))
	require.NoError(t, err)
	require.Equal(t, len(content), n)
	require.NoError(t, f.Close())
}

func get(t *testing.T, fsys FS, name string) string {
	t.Helper()
	f, err := fsys.Open(name)
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return string(b)
}

func testReadWrite(t *testing.T, fsys FS, dir string) {
	name := filepath.Join(dir, "f")
	put(t, fsys, name, "hello")
	f, err := fsys.OpenRW(name)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("p!"), 3)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("end"), 8)
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	assert.Equal(t, int64(11), size)
	require.NoError(t, f.Sync())

	b := make([]byte, 4)
	n, err := f.ReadAt(b, 9)
	assert.Equal(t, 2, n)
	assert.ErrorIs(t, err, io.EOF)
	n, err = f.ReadAt(b, 100)
	assert.Zero(t, n)
	assert.ErrorIs(t, err, io.EOF)
	_, err = f.ReadAt(b, -1)
	assert.Error(t, err)
	_, err = f.WriteAt(b, -1)
	assert.Error(t, err)
	n, err = io.ReadFull(f, b)
	require.NoError(t, err)
	assert.Equal(t, "help", string(b[:n]))
	require.NoError(t, f.Close())
	assert.Equal(t, "help!\x00\x00\x00end", get(t, fsys, name))
}

func testReadOnly(t *testing.T, fsys FS, dir string) {
	name := filepath.Join(dir, "f")
	put(t, fsys, name, "hello")
	f, err := fsys.Open(name)
	require.NoError(t, err)
	_, err = f.Write([]byte("x"))
	assert.Error(t, err)
	_, err = f.WriteAt([]byte("x"), 0)
	assert.Error(t, err)
	assert.Error(t, f.Truncate(0))
	require.NoError(t, f.Close())
	assert.Equal(t, "hello", get(t, fsys, name))
}

func testTruncate(t *testing.T, fsys FS, dir string) {
	name := filepath.Join(dir, "f")
	put(t, fsys, name, "hello")
	f, err := fsys.OpenRW(name)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(2))
	require.NoError(t, f.Truncate(4))
	assert.Error(t, f.Truncate(-1))
	require.NoError(t, f.Close())
	assert.Equal(t, "he\x00\x00", get(t, fsys, name))
}

func testCreateEmpties(t *testing.T, fsys FS, dir string) {
	name := filepath.Join(dir, "f")
	put(t, fsys, name, "hello")
	put(t, fsys, name, "x")
	assert.Equal(t, "x", get(t, fsys, name))
	size, err := fsys.Size(name)
	require.NoError(t, err)
	assert.Equal(t, int64(1), size)
}

func testNames(t *testing.T, fsys FS, dir string) {
	put(t, fsys, filepath.Join(dir, "b"), "b")
	put(t, fsys, filepath.Join(dir, "a"), "a")
	require.NoError(t, fsys.MkdirAll(filepath.Join(dir, "sub")))
	require.NoError(t, fsys.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "c")))
	require.NoError(t, fsys.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "c")), "replaces")
	require.NoError(t, fsys.Rename(filepath.Join(dir, "c"), filepath.Join(dir, "c")), "itself")
	require.NoError(t, fsys.Rename(filepath.Join(dir, "c"), filepath.Join(dir, "sub", "d")))
	put(t, fsys, filepath.Join(dir, "a"), "new")
	require.NoError(t, fsys.SyncDir(dir))

	names, err := fsys.ReadDir(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "sub"}, names)
	assert.Equal(t, "b", get(t, fsys, filepath.Join(dir, "sub", "d")))

	require.NoError(t, fsys.Remove(filepath.Join(dir, "a")))
	assert.Error(t, fsys.Remove(filepath.Join(dir, "sub")), "not empty")
	require.NoError(t, fsys.Remove(filepath.Join(dir, "sub", "d")))
	require.NoError(t, fsys.Remove(filepath.Join(dir, "sub")))
	names, err = fsys.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, names)
}

func testMissing(t *testing.T, fsys FS, dir string) {
	for _, name := range []string{filepath.Join(dir, "none"), filepath.Join(dir, "none", "deeper")} {
		_, err := fsys.Open(name)
		assert.ErrorIs(t, err, fs.ErrNotExist)
		_, err = fsys.OpenRW(name)
		assert.ErrorIs(t, err, fs.ErrNotExist)
		_, err = fsys.Size(name)
		assert.ErrorIs(t, err, fs.ErrNotExist)
		_, err = fsys.Type(name)
		assert.ErrorIs(t, err, fs.ErrNotExist)
		_, err = fsys.Map(name)
		assert.ErrorIs(t, err, fs.ErrNotExist)
		_, err = fsys.ReadDir(name)
		assert.ErrorIs(t, err, fs.ErrNotExist)
		assert.ErrorIs(t, fsys.SyncDir(name), fs.ErrNotExist)
		assert.ErrorIs(t, fsys.Remove(name), fs.ErrNotExist)
		assert.ErrorIs(t, fsys.Rename(name, filepath.Join(dir, "x")), fs.ErrNotExist)
		assert.NoError(t, fsys.RemoveAll(name))
	}
	_, err := fsys.Create(filepath.Join(dir, "none", "deeper"))
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func testWrongKind(t *testing.T, fsys FS, dir string) {
	file := filepath.Join(dir, "f")
	put(t, fsys, file, "x")
	for name, want := range map[string]fs.FileMode{file: 0, dir: fs.ModeDir} {
		kind, err := fsys.Type(name)
		require.NoError(t, err)
		assert.Equal(t, want, kind)
	}
	_, err := fsys.Type(filepath.Join(file, "x"))
	assert.Error(t, err)
	_, err = fsys.Create(dir)
	assert.Error(t, err)
	_, err = fsys.Open(dir)
	assert.Error(t, err)
	_, err = fsys.Map(dir)
	assert.Error(t, err)
	_, err = fsys.Size(dir)
	assert.Error(t, err)
	_, err = fsys.ReadDir(file)
	assert.Error(t, err)
	assert.Error(t, fsys.MkdirAll(file))
	_, err = fsys.Open(filepath.Join(file, "x"))
	assert.Error(t, err)
	assert.Error(t, fsys.Rename(file, filepath.Dir(dir)), "a directory is not replaced")
	assert.Equal(t, "x", get(t, fsys, file))
}

func testClosed(t *testing.T, fsys FS, dir string) {
	f, err := fsys.Create(filepath.Join(dir, "f"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = f.Read(make([]byte, 1))
	assert.ErrorIs(t, err, fs.ErrClosed)
	_, err = f.Write([]byte("x"))
	assert.ErrorIs(t, err, fs.ErrClosed)
	_, err = f.Size()
	assert.ErrorIs(t, err, fs.ErrClosed)
	assert.ErrorIs(t, f.Sync(), fs.ErrClosed)
	assert.ErrorIs(t, f.Truncate(0), fs.ErrClosed)
	assert.ErrorIs(t, f.Close(), fs.ErrClosed)
}

func testMap(t *testing.T, fsys FS, dir string) {
	name := filepath.Join(dir, "f")
	for _, content := range []string{"", "content"} {
		put(t, fsys, name, content)
		m, err := fsys.Map(name)
		require.NoError(t, err)
		assert.NoError(t, m.Advise(WillNeed, 0, 1<<30))
		assert.Equal(t, content, string(m.Bytes()))
		require.NoError(t, m.Close())
		assert.Empty(t, m.Bytes())
		assert.NoError(t, m.Close())
	}
}

func testRemoveAll(t *testing.T, fsys FS, dir string) {
	deep := filepath.Join(dir, "x", "y")
	require.NoError(t, fsys.MkdirAll(deep))
	put(t, fsys, filepath.Join(deep, "f"), "x")
	require.NoError(t, fsys.RemoveAll(filepath.Join(dir, "x")))
	_, err := fsys.ReadDir(deep)
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func testNamed(t *testing.T, fsys FS, dir string) {
	name, other := filepath.Join(dir, "f"), filepath.Join(dir, "g")
	named := func(f File) bool {
		t.Helper()
		yes, err := f.Named()
		require.NoError(t, err)
		return yes
	}
	f, err := fsys.Create(name)
	require.NoError(t, err)
	assert.True(t, named(f))
	require.NoError(t, fsys.Rename(name, other))
	assert.False(t, named(f), "it has another name")
	require.NoError(t, fsys.Rename(other, name))
	assert.True(t, named(f))
	put(t, fsys, other, "other")
	require.NoError(t, fsys.Rename(other, name))
	assert.False(t, named(f), "replaced")
	require.NoError(t, fsys.Remove(name))
	assert.False(t, named(f), "removed")
	require.NoError(t, fsys.RemoveAll(dir))
	assert.False(t, named(f), "removed with its directory")
	require.NoError(t, f.Close())
}

// testRoot moves a directory that is held, and puts another in its place.
func testRoot(t *testing.T, fsys FS, dir string) {
	held, away := filepath.Join(dir, "held"), filepath.Join(dir, "away")
	require.NoError(t, fsys.MkdirAll(held))
	put(t, fsys, filepath.Join(held, "f"), "mine")
	root := openRoot(t, fsys, held)
	assert.Equal(t, fsys.Path(filepath.Join(held, "f")), root.Path("f"))
	_, err := root.Open("none")
	assert.ErrorContains(t, err, root.Path("none"), "errors name the whole path")

	require.NoError(t, fsys.Rename(held, away))
	require.NoError(t, fsys.MkdirAll(held))
	put(t, fsys, filepath.Join(held, "f"), "another's")
	assert.Equal(t, "mine", get(t, root, "f"))
	put(t, root, "g", "new")
	require.NoError(t, root.Rename("g", "h"))
	require.NoError(t, root.MkdirAll("sub"))
	require.NoError(t, root.SyncDir("."))
	names, err := root.ReadDir(".")
	require.NoError(t, err)
	assert.Equal(t, []string{"f", "h", "sub"}, names)
	require.NoError(t, root.Remove("f"))
	require.NoError(t, root.RemoveAll("sub"))
	names, err = fsys.ReadDir(away)
	require.NoError(t, err)
	assert.Equal(t, []string{"h"}, names)
	assert.Equal(t, "another's", get(t, fsys, filepath.Join(held, "f")))

	require.NoError(t, root.Close())
	_, err = root.Open("h")
	assert.ErrorIs(t, err, fs.ErrClosed)

	_, err = fsys.OpenRoot(filepath.Join(dir, "none"))
	assert.ErrorIs(t, err, fs.ErrNotExist)
	_, err = fsys.OpenRoot(filepath.Join(held, "f"))
	assert.Error(t, err, "a file")
}

// testOutside tries every operation on names that lead out of a root.
func testOutside(t *testing.T, fsys FS, dir string) {
	inside, victim := filepath.Join(dir, "inside"), filepath.Join(dir, "victim")
	require.NoError(t, fsys.MkdirAll(filepath.Join(inside, "sub")))
	require.NoError(t, fsys.MkdirAll(victim))
	put(t, fsys, filepath.Join(victim, "f"), "precious")
	root := openRoot(t, fsys, inside)
	put(t, root, "mine", "mine")
	for _, out := range []string{"../victim", "../victim/f", "sub/../../victim", "sub/../../victim/f", fsys.Path(victim), "..", "../victim/new"} {
		open := func(f File, err error) error {
			if err == nil {
				_ = f.Close()
			}
			return err
		}
		for name, err := range map[string]error{
			"create":      open(root.Create(out)),
			"open":        open(root.Open(out)),
			"open-rw":     open(root.OpenRW(out)),
			"rename from": root.Rename(out, "stolen"),
			"rename to":   root.Rename("mine", out),
			"remove":      root.Remove(out),
			"remove all":  root.RemoveAll(out),
			"mkdir":       root.MkdirAll(out),
			"sync":        root.SyncDir(out),
			"read dir":    second(root.ReadDir(out)),
			"size":        second(root.Size(out)),
			"type":        second(root.Type(out)),
			"map":         second(root.Map(out)),
			"root":        second(root.OpenRoot(out)),
		} {
			assert.Error(t, err, "%s %s", name, out)
		}
	}
	names, err := fsys.ReadDir(victim)
	require.NoError(t, err)
	assert.Equal(t, []string{"f"}, names)
	assert.Equal(t, "precious", get(t, fsys, filepath.Join(victim, "f")))
	assert.Equal(t, "mine", get(t, root, "mine"))
}

func second[T any](_ T, err error) error { return err }
