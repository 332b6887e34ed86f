package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSnapshotKilled kills snapshot after longer and longer times, until it is done before. What it
// leaves is no snapshot, or a whole one, and the database goes on.
func TestSnapshotKilled(t *testing.T) {
	t.Chdir(t.TempDir())
	var rows strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&rows, "{\"key\": \"n%d\", \"embedding\": [%d, %d, %d]}\n", i, i%7, i%11, i%13)
	}
	require.NoError(t, os.WriteFile("rows.jsonl", []byte(rows.String()), 0o600))
	for _, line := range []string{"create db c --dim 3", "import db c rows.jsonl", "rebuild db --force"} {
		code, _, errOut := runLine(strings.Fields(line)...)
		require.Zero(t, code, errOut)
	}
	program, err := exec.LookPath("flashdb") // this one: see TestMain
	require.NoError(t, err)
	killed := 0
	for pause := 4 * time.Millisecond; ; pause += pause / 3 {
		dir := fmt.Sprintf("snap-%d", killed)
		cmd := exec.Command(program, "snapshot", "db", dir)
		require.NoError(t, cmd.Start())
		timer := time.AfterFunc(pause, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if _, there := os.Stat(dir); there == nil {
			code, out, errOut := runLine("check", dir)
			require.Zero(t, code, "%s%s", out, errOut)
		}
		require.FileExists(t, filepath.Join("db", "flash.db"))
		code, out, errOut := runLine("check", "db")
		require.Zero(t, code, "%s%s", out, errOut)
		if err == nil {
			require.DirExists(t, dir)
			break
		}
		killed++
	}
	t.Logf("killed %d times", killed)
	require.Positive(t, killed)
}
