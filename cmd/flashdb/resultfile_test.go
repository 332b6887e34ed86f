package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestResultFileGoesOn ends a run at every point between two pieces: what was
// acknowledged stays, what was not is written again, and nothing twice.
func TestResultFileGoesOn(t *testing.T) {
	plain := func(b []byte) []byte { return b }
	for ext, read := range map[string]func([]byte) []byte{
		"": plain,
		".gz": func(b []byte) []byte {
			z, err := gzip.NewReader(bytes.NewReader(b))
			require.NoError(t, err)
			out, err := io.ReadAll(z)
			require.NoError(t, err)
			return out
		},
		".zst": func(b []byte) []byte {
			z, err := zstd.NewReader(bytes.NewReader(b))
			require.NoError(t, err)
			defer z.Close()
			out, err := io.ReadAll(z)
			require.NoError(t, err)
			return out
		},
	} {
		name := filepath.Join(t.TempDir(), "out"+ext)
		f, err := openResultFile(name, "request", false)
		require.NoError(t, err)
		require.NoError(t, f.append([]byte("one\n"), 1))
		require.NoError(t, f.append([]byte("two\n"), 7))
		_, err = f.part.WriteString("torn") // killed between the piece and its state
		require.NoError(t, err)
		require.NoError(t, f.close())
		assert.NoFileExists(t, name)

		_, err = openResultFile(name, "another request", false)
		require.ErrorContains(t, err, "another request")

		f, err = openResultFile(name, "request", false)
		require.NoError(t, err)
		assert.Equal(t, uint32(7), f.next)
		require.NoError(t, f.append([]byte("three\n"), 9))
		require.NoError(t, f.publish())
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, "one\ntwo\nthree\n", string(read(content)), ext)
		assert.NoFileExists(t, name+".part")
		assert.NoFileExists(t, name+".state")
	}
}

func TestResultFileNoticesAShortPart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out")
	f, err := openResultFile(name, "request", false)
	require.NoError(t, err)
	require.NoError(t, f.append([]byte("one\n"), 1))
	require.NoError(t, f.close())
	require.NoError(t, os.Truncate(name+".part", 2))
	_, err = openResultFile(name, "request", false)
	require.ErrorContains(t, err, "--restart")
	f, err = openResultFile(name, "request", true)
	require.NoError(t, err)
	assert.Zero(t, f.next)
	require.NoError(t, f.close())
}
