package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLatencyCommand(t *testing.T) {
	var out, log bytes.Buffer
	dir := filepath.Join(t.TempDir(), "db")
	require.NoError(t, run(t.Context(), []string{"graph", "-data", "", "-dir", dir, "-only", "^recall .90", "-rotations", "1", "-exact", "1", "-sources", "5"}, &out, &log))
	out.Reset()
	require.NoError(t, run(t.Context(), []string{"latency", "-dir", dir, "-n", "20", "-recall", ".9"}, &out, &log))
	require.Regexp(t, `^20 queries: p50 [0-9.]+ ms, p99 [0-9.]+ ms, mean [0-9.]+ ms, [0-9.]+ major faults each\nplan `, out.String())
	require.Error(t, run(t.Context(), []string{"latency"}, &out, &log))
}
