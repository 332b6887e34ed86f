package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCopiesCommand writes the demo's graph one and a half times over and reads it as any other.
func TestCopiesCommand(t *testing.T) {
	var out, log strings.Builder
	folder := filepath.Join(t.TempDir(), "larger")
	args := []string{"copies", "-data", "", "-graph", demoGraph, "-rows", "50000", "-out", folder}
	require.NoError(t, run(t.Context(), args, &out, &log))
	assert.Equal(t, folder+": 0 sources and 50000 candidates\n", out.String())

	was, err := openDataset("", demoGraph)
	require.NoError(t, err)
	var rows [][]float32
	require.NoError(t, was.rows(t.Context(), 0, was.info.Nodes, func(_ int64, v []float32) error {
		rows = append(rows, append([]float32(nil), v...))
		return nil
	}))
	spread, err := was.spread(t.Context())
	require.NoError(t, err)
	larger, err := openDataset(filepath.Dir(folder), filepath.Base(folder))
	require.NoError(t, err)
	require.Equal(t, int64(50_000), larger.info.Nodes)
	n, noise, within := 0, 0.0, 0.0
	require.NoError(t, larger.rows(t.Context(), 0, larger.info.Nodes, func(row int64, v []float32) error {
		n++
		if row < was.info.Nodes {
			require.Equal(t, rows[row], v, "the first copy is exact")
			return nil
		}
		for i, x := range rows[row-was.info.Nodes] {
			d := float64(v[i]-x) / spread[i]
			noise += d * d
			within++
		}
		return nil
	}))
	assert.Equal(t, 50_000, n)
	assert.InDelta(t, .01, noise/within, .0005, "a tenth of the spread, squared")

	assert.ErrorContains(t, run(t.Context(), []string{"copies", "-data", "", "-graph", demoGraph}, &out, &log), "-out wants a folder")
}

// TestCopiesCommandKeepsWhatIsThere: a folder that exists is refused as it is, that of the graph
// itself, too.
func TestCopiesCommandKeepsWhatIsThere(t *testing.T) {
	was, err := openDataset("", demoGraph)
	require.NoError(t, err)
	data := t.TempDir()
	require.NoError(t, writeCopies(t.Context(), was, copiesFlags{out: filepath.Join(data, "small"), rows: 10}))
	want, err := os.ReadFile(filepath.Join(data, "small", "embeddings.npy"))
	require.NoError(t, err)

	err = run(t.Context(), []string{"copies", "-data", data, "-graph", "small", "-rows", "100", "-out", filepath.Join(data, "small")},
		&strings.Builder{}, &strings.Builder{})
	assert.ErrorIs(t, err, os.ErrExist)
	got, err := os.ReadFile(filepath.Join(data, "small", "embeddings.npy"))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got), "the rows are as they were")
}

// TestCopiesCommandStopped: what was written so far is removed. It would be in the way of the next
// attempt.
func TestCopiesCommandStopped(t *testing.T) {
	was, err := openDataset("", demoGraph)
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "parent", "copies")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorIs(t, writeCopies(ctx, was, copiesFlags{out: out, rows: 10}), context.Canceled)
	assert.NoFileExists(t, filepath.Join(out, "embeddings.npy"))
	require.NoError(t, writeCopies(t.Context(), was, copiesFlags{out: out, rows: 10}))
}
