package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGraphCommand measures a few sources of the demo's graph from end to end, and makes the report
// of it.
func TestGraphCommand(t *testing.T) {
	dir := t.TempDir()
	database := filepath.Join(dir, "go-stdlib.flash")
	args := []string{"graph", "-data", "", "-dir", database, "-sources", "5", "-rotations", "1", "-exact", "2", "-json"}
	var out, log strings.Builder
	require.NoError(t, run(t.Context(), args, &out, &log))

	file := filepath.Join(dir, "results.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o600))
	var r resultSet
	require.NoError(t, r.readFile(file))
	require.Len(t, r.machines, 1)
	require.Len(t, r.builds, 1)
	assert.EqualValues(t, 33_445, r.builds[0].Rows)
	require.Len(t, r.results, 1+len(namedSettings()))
	assert.Equal(t, exactSetting, r.results[0].Setting)
	assert.Equal(t, 1.0, r.results[0].RecallWorst, "the exact scan finds what the oracle lists")
	for _, res := range r.results {
		assert.Positive(t, res.QPS1, res.Setting)
		assert.LessOrEqual(t, res.P50, res.P99, res.Setting)
	}

	doc := filepath.Join(dir, "doc.md")
	require.NoError(t, os.WriteFile(doc, []byte(markBegin+"results go-stdlib"+markClose+"\n"+markEnd+"\n"), 0o600))
	require.NoError(t, run(t.Context(), []string{"report", "-in", file, "-doc", doc, "-img", dir}, &out, &log))
	text, err := os.ReadFile(doc)
	require.NoError(t, err)
	assert.Contains(t, string(text), "| default plan |")
	assert.FileExists(t, filepath.Join(dir, "recall-go-stdlib.svg"))

	t.Run("reuses its database", func(t *testing.T) {
		log.Reset()
		require.NoError(t, run(t.Context(), append(args, "-only", "default plan"), &out, &log))
		assert.NotContains(t, log.String(), "importing")
	})
	t.Run("refuses the database of other rows", func(t *testing.T) {
		d, err := openDataset("", demoGraph)
		require.NoError(t, err)
		_, _, _, err = openPart(t.Context(), d, part{candidates: 100}, database, &log)
		require.ErrorContains(t, err, "use another -dir")
	})
	t.Run("names what is missing", func(t *testing.T) {
		require.ErrorContains(t, run(t.Context(), []string{"graph", "-data", "", "-graph", "debian"}, &out, &log), "-data or FLASHDB_DATA")
		require.ErrorContains(t, run(t.Context(), []string{"graph", "-data", dir, "-graph", "debian"}, &out, &log), "embeddings.npy")
	})
}
