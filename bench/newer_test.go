package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNewerCommand: without segments the rows stay in the delta until the last rebuild.
func TestNewerCommand(t *testing.T) {
	var out, log strings.Builder
	args := []string{"newer", "-data", "", "-graph", demoGraph, "-quiet", "100ms", "-for", "300ms", "-report", "1m", "-rate", "2000", "-queries", "2", "-segment-rows", "-1"}
	require.NoError(t, run(t.Context(), args, &out, &log))
	lines := strings.Split(out.String(), "\n")
	require.Len(t, lines, 10, out.String())
	assert.Regexp(t, `^quiet +0 .* 0 +0 +0 +[0-9]+ MB$`, lines[1])
	assert.Regexp(t, `^[0-9]+s +[0-9]+ .* 0 +0 +[0-9]+ +[0-9]+ MB$`, lines[2])
	assert.Regexp(t, `^after +0 .* 0 +0 +[0-9]+ +[0-9]+ MB$`, lines[3])
	assert.Regexp(t, `^opened again in `, lines[4])
	for i, want := range []string{"without segments", "without segments", "rebuilt", "rebuilt"} {
		assert.Regexp(t, `^`+want+`: recall [0-9.]+ / [0-9.]+, p50 [0-9.]+ ms, plan `, lines[5+i])
	}
	require.ErrorContains(t, run(t.Context(), []string{"newer", "-rate", "1"}, &out, &log), "-rate wants at least 100")
}
