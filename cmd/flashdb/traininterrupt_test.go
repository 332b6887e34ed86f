//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

func trainChild(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := exec.LookPath("flashdb") // this one: see TestMain
	require.NoError(t, err)
	return exec.Command(program, append([]string{"train"}, args...)...)
}

// An interrupted training stores the best model so far.
func TestTrainInterrupted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	cmd := trainChild(t, dir, "c", groupedEdges(t, 4000), "--epochs", "1000", "--patience", "-1", "--progress", "json")
	errOut, err := cmd.StderrPipe()
	require.NoError(t, err)
	var out bytes.Buffer
	cmd.Stdout = &out
	require.NoError(t, cmd.Start())
	rest, interrupted := "", false
	for lines := bufio.NewScanner(errOut); lines.Scan(); {
		if !interrupted && strings.Contains(lines.Text(), ", best ") { // an epoch has been validated
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
			interrupted = true
		}
		rest += lines.Text() + "\n"
	}
	require.NoError(t, cmd.Wait(), rest)
	require.Contains(t, rest, "interrupted: the best model so far is stored")
	require.Contains(t, out.String(), "cancelled")
	code, hits, errText := runLine("predict", dir, "c", "n1", "-k", "1")
	require.Zero(t, code, errText)
	require.Contains(t, hits, "1     n")
}

// However a training is killed, the database is what it was, or holds the whole model.
func TestTrainKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("what is checked is what a killed process left behind")
	}
	edges := groupedEdges(t, 400)
	base := t.TempDir()
	started := time.Now()
	require.NoError(t, trainChild(t, filepath.Join(base, "whole"), "c", edges, "--epochs", "1").Run())
	whole := time.Since(started)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 8 {
		dir := filepath.Join(base, fmt.Sprint(i))
		cmd := trainChild(t, dir, "c", edges, "--epochs", "1")
		require.NoError(t, cmd.Start())
		time.Sleep(time.Duration(rng.Int64N(int64(whole))))
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed, or had ended before
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && !status.Signaled() {
			require.Zero(t, status.ExitStatus())
		}
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			continue
		}
		db, err := flashdb.Open(dir, &flashdb.Options{MustExist: true, ReadOnly: true})
		require.NoError(t, err)
		findings, err := db.Check(t.Context())
		require.NoError(t, err)
		require.Empty(t, findings)
		c, err := db.Collection("c")
		require.NoError(t, err)
		names, err := c.Decoders(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{trainedDecoder}, names)
		_, err = c.Predict(t.Context(), "n1", 5, nil)
		require.NoError(t, err)
		require.NoError(t, db.Close())
	}
}
