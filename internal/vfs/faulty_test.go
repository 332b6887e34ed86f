package vfs

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exercise does every kind of operation once, in a fixed order, and returns the first error.
func exercise(fsys FS) error {
	var f File
	var m Mapping
	steps := []func() error{
		func() error { return fsys.MkdirAll("d") },
		func() (err error) { f, err = fsys.Create("d/f"); return err },
		func() error { _, err := f.Write([]byte("abcdefgh")); return err },
		func() error { _, err := f.WriteAt([]byte("ABCDEFGH"), 8); return err },
		func() error { return f.Truncate(12) },
		func() error { return f.Sync() },
		func() error { _, err := f.Size(); return err },
		func() error { _, err := f.Named(); return err },
		func() error { return f.Close() },
		func() error { return fsys.SyncDir("d") },
		func() (err error) { f, err = fsys.Open("d/f"); return err },
		func() error { _, err := f.Read(make([]byte, 1)); return err },
		func() error { _, err := f.ReadAt(make([]byte, 1), 0); return err },
		func() error { return f.Close() },
		func() (err error) { f, err = fsys.OpenRW("d/f"); return err },
		func() error { return f.Close() },
		func() error { _, err := fsys.Size("d/f"); return err },
		func() error { _, err := fsys.Type("d/f"); return err },
		func() error { _, err := fsys.ReadDir("d"); return err },
		func() (err error) { m, err = fsys.Map("d/f"); return err },
		func() error { return m.Close() },
		func() error { return fsys.Rename("d/f", "d/g") },
		func() error { return fsys.Remove("d/g") },
		func() error { return fsys.RemoveAll("d") },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func TestFaultyFailsTheNthOperation(t *testing.T) {
	var ops []Op
	require.NoError(t, exercise(Faulty(NewMem(), func(op Op) error { ops = append(ops, op); return nil })))
	seen := make(map[Kind]bool)
	for _, op := range ops {
		seen[op.Kind] = true
		assert.NotEmpty(t, op.Path)
	}
	assert.Len(t, seen, len(kindNames), "every kind is exercised")

	boom := errors.New("boom")
	for n := range ops {
		assert.ErrorIs(t, exercise(Faulty(NewMem(), FailNth(int64(n+1), boom, nil))), boom, "operation %d, %s", n+1, ops[n])
	}
	assert.NoError(t, exercise(Faulty(NewMem(), FailNth(int64(len(ops)+1), boom, nil))))
}

func TestFaultyPicksByKindAndPath(t *testing.T) {
	mem, full := NewMem(), errors.New("disk full")
	fsys := Faulty(mem, FailNth(2, full, func(op Op) bool { return op.Kind == OpWrite && op.Path == "b" }))
	put(t, fsys, "a", "first")
	put(t, fsys, "b", "second")
	put(t, fsys, "a", "third")

	f, err := fsys.Create("b")
	require.NoError(t, err)
	n, err := f.Write([]byte("abcdef"))
	assert.ErrorIs(t, err, full)
	assert.Equal(t, 3, n)
	assert.Equal(t, "abc", get(t, mem, "b"), "a failed write writes half")
	_, err = f.Write([]byte("def"))
	assert.NoError(t, err, "it fails once")
	assert.Equal(t, "write b", Op{OpWrite, "b"}.String())
	assert.True(t, OpSyncDir.Changes())
	assert.False(t, OpRead.Changes())
}
