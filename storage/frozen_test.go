package storage_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/storage"
)

// TestFrozenFile opens a file of each format version as the programs of its time wrote it. That
// must work for ever: a new version gets a file of its own beside these, which are never rewritten.
func TestFrozenFile(t *testing.T) {
	for _, version := range []uint32{1, 2, 3} {
		t.Run(fmt.Sprint(version), func(t *testing.T) { testFrozen(t, frozenFile(t, version, sample)) })
	}
}

// frozenFile returns the path of a copy of the frozen file of a version, which is made from what
// fill stores if it is not there yet.
func frozenFile(t *testing.T, version uint32, fill func(*testing.T, *storage.Store)) string {
	t.Helper()
	frozen := filepath.Join("testdata", fmt.Sprintf("v%d.db", version))
	b, err := os.ReadFile(frozen)
	if os.IsNotExist(err) && *update {
		b = freeze(t, fill)
		err = os.WriteFile(frozen, b, 0o644)
	}
	require.NoError(t, err)
	path := newPath(t)
	require.NoError(t, os.WriteFile(path, b, 0o600))
	assert.Equal(t, version, formatOf(t, path))
	return path
}

func testFrozen(t *testing.T, path string) {
	s := open(t, path)
	assertClean(t, s)

	assert.Equal(t, uint64(1), s.Applied())
	require.NoError(t, s.View(func(v *storage.View) error {
		assert.Equal(t, []storage.Info{
			{UID: 1, Name: "papers", Schema: storage.Schema{Dim: 2}, Count: 2, NextID: 3, Generation: 4, BuildLSN: 1, Rows: 2},
		}, v.Collections())
		n, ok := v.Node(1, 0)
		assert.True(t, ok)
		assert.Equal(t, storage.Node{Key: "a", Tags: []string{"x", "y"}, Payload: []byte("pay")}, n)
		row := make([]float32, 2)
		assert.True(t, v.Row(row, 1, 1))
		assert.Equal(t, []float32{3, 4}, row)
		id, ok := v.ID(1, "b")
		assert.True(t, ok)
		assert.Equal(t, uint32(1), id)
		assert.Equal(t, []uint32{1, 2}, v.Links(1, 0, 1).ToArray())
		assert.Equal(t, []uint32{2}, v.Tombs(1).ToArray())
		assert.Equal(t, map[string]uint64{"x": 2, "y": 1}, v.Tags(1))
		blob, ok := v.Decoder(1, "cites")
		assert.True(t, ok)
		assert.Equal(t, []byte{1, 2, 3}, blob)
		value, ok := v.Meta(1, "origin")
		assert.True(t, ok)
		assert.Equal(t, "test", value)
		return nil
	}))
	assert.NoError(t, s.Dirty(1, func(uint32, uint64) error { t.Error("nothing is dirty"); return nil }))
	commit(t, s, 2, storage.PutNode{UID: 1, ID: 3, Key: "d", Row: []float32{7, 8}})
	flush(t, s)
	require.NoError(t, s.PublishGeneration(1, 5, 2))
}

// freeze returns the bytes of a small file, without the room that it has to grow.
func freeze(t *testing.T, sample func(*testing.T, *storage.Store)) []byte {
	t.Helper()
	path := newPath(t)
	s, err := storage.Open(path, &storage.Options{PageSize: 1024})
	require.NoError(t, err)
	sample(t, s)
	flush(t, s)
	require.NoError(t, s.PublishGeneration(1, 4, 1))
	require.NoError(t, s.Close())
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	for len(b) >= 1024 && allZero(b[len(b)-1024:]) {
		b = b[:len(b)-1024]
	}
	return b
}

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
