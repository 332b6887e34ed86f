package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRemoteRunsItsProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	code, out, errOut := runLine("remote", "push", "a", "b", "c")
	assert.Equal(t, exitFailed, code)
	assert.Empty(t, out)
	assert.Contains(t, errOut, "flashdb: flashdb-remote is not installed: run `cd remote && go install ./cmd/flashdb-remote`")
	code, out, _ = runLine("remote")
	assert.Zero(t, code)
	assert.Contains(t, out, "docs/remote.md")

	if runtime.GOOS == "windows" {
		t.Skip("a shell script stands for the program")
	}
	script := "#!/bin/sh\necho \"$@\"\necho 'flashdb-remote: said' >&2\nexit 7\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, remoteProgram), []byte(script), 0o700))
	code, out, errOut = runLine("--json", "remote", "push", "--engine", "x", "-k", "10", "--help")
	assert.Equal(t, 7, code)
	assert.Equal(t, "--json push --engine x -k 10 --help\n", out)
	assert.Equal(t, "flashdb-remote: said\n", errOut)
}
