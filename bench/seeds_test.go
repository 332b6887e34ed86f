package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSeedsCommand learns from some sources of the demo's graph. Of 64 the learned seed takes the
// nearest 16, as one of the variants does, which are computed apart from it.
func TestSeedsCommand(t *testing.T) {
	var out, log strings.Builder
	args := []string{"seeds", "-data", "", "-stored", "64", "-from", "2", "-sources", "20", "-variants", "-markdown"}
	require.NoError(t, run(t.Context(), args, &out, &log))
	rows := map[string]string{}
	for line := range strings.Lines(out.String()) {
		name, cells, _ := strings.Cut(strings.Trim(line, "| \n"), " | ")
		rows[name] = cells
	}
	require.Len(t, rows, 2+3+6, out.String())
	assert.Equal(t, rows["0.1 ones + nearest 16"], rows["learned from 64"], out.String())
	assert.NotEqual(t, rows["mean of all"], rows["learned from 64"], out.String())

	require.ErrorContains(t, run(t.Context(), []string{"seeds", "-data", "", "-stored", "64,x"}, &out, &log), `-stored: "x" is no number`)
	require.ErrorContains(t, run(t.Context(), []string{"seeds", "-data", "", "-from", "1000"}, &out, &log), "the oracle has 200 sources")
}
