package mmap

import (
	"bytes"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMap(t *testing.T) {
	tests := []struct {
		name    string
		content []byte
	}{
		{"empty", nil},
		{"one byte", []byte{42}},
		{"one page", bytes.Repeat([]byte{1, 2, 3, 4}, 1024)},
		{"pages and a bit", bytes.Repeat([]byte("flashdb"), 5000)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			require.NoError(t, os.WriteFile(path, tt.content, 0o600))
			r, err := Map(path)
			require.NoError(t, err)
			for _, a := range []Advice{Random, Sequential, WillNeed} {
				for _, part := range [][2]int64{{0, 1 << 40}, {4097, 5000}, {5000, math.MaxInt64}, {1 << 40, 1}, {-1, 5}, {0, 0}, {0, -1}} {
					assert.NoError(t, r.Advise(a, part[0], part[1]), "%d bytes at %d", part[1], part[0])
				}
			}
			assert.True(t, bytes.Equal(tt.content, r.Bytes()))
			require.NoError(t, r.Close())
			assert.Empty(t, r.Bytes())
			assert.NoError(t, r.Close(), "a second Close does nothing")
			assert.NoError(t, r.Advise(Random, 0, 1), "nor does advice after Close")
		})
	}
}

func TestMapOutlivesItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("still here"), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	r, err := File(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_ = os.Remove(path) // Windows refuses; the mapping stays good either way

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { assert.Equal(t, "still here", string(r.Bytes())) })
	}
	wg.Wait()
	require.NoError(t, r.Close())
}

func TestMapRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := Map(filepath.Join(dir, "none"))
	assert.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Map(dir)
	assert.Error(t, err)
}
