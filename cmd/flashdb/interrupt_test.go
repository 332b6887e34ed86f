//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSignalEndsAWait interrupts a command that waits for the other end of a pipe: it outlives the
// first SIGTERM, and the second ends it at once. Nothing tells when it waits, and when the first
// signal has had its effect. A signal that comes too soon ends it in good order, so the time before
// each one grows.
func TestSignalEndsAWait(t *testing.T) {
	for pause := 100 * time.Millisecond; pause < graceTime; pause *= 8 {
		state, errOut := terminateTwice(t, pause)
		if status := state.Sys().(syscall.WaitStatus); status.Signaled() {
			require.Equal(t, syscall.SIGTERM, status.Signal(), "killed by SIGTERM, not: %v: %s", state, errOut)
			return
		}
		require.Equal(t, "flashdb: interrupted\n", errOut)
		require.Equal(t, exitFailed, state.ExitCode())
	}
	t.Fatal("the second SIGTERM does not end it")
}

// terminateTwice sends two SIGTERM to a command that waits, and returns how it ended. Where the
// first one ends it in good order there is no second.
func terminateTwice(t *testing.T, pause time.Duration) (state *os.ProcessState, errOut string) {
	t.Helper()
	base := t.TempDir()
	pipe := filepath.Join(base, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	program, err := exec.LookPath("flashdb") // this one: see TestMain
	require.NoError(t, err)

	cmd := exec.Command(program, "restore", pipe, filepath.Join(base, "new.flash"))
	var out bytes.Buffer
	cmd.Stderr = &out
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ends := func(within time.Duration) bool {
		select {
		case <-ended:
			return true
		case <-time.After(within):
			return false
		}
	}
	// There is an end to write to once the command has opened the one to read, or waits to.
	var w *os.File
	for w == nil {
		require.False(t, ends(time.Millisecond), "ended at once: %s", &out)
		w, _ = os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	}
	defer w.Close()
	require.False(t, ends(pause), "it does not wait: %s", &out)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	if ends(pause) {
		require.False(t, cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled(), "the first SIGTERM kills it")
		return cmd.ProcessState, out.String()
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	if !ends(time.Minute) {
		_ = cmd.Process.Kill()
		t.Fatal("SIGTERM does not end it")
	}
	return cmd.ProcessState, out.String()
}

// TestGraceTime leaves a command to itself that does not end by its context.
func TestGraceTime(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	passed := make(chan time.Time, 1)
	after := func(d time.Duration) <-chan time.Time {
		require.Equal(t, graceTime, d)
		return passed
	}
	done := make(chan int, 1)
	var errOut bytes.Buffer
	done <- exitRefused
	require.Equal(t, exitRefused, exitCode(ctx, done, cancel, after, &errOut))
	cancel()
	stopped := false
	stop := func() { stopped = true; done <- exitLocked } // it ends within the time
	require.Equal(t, exitLocked, exitCode(ctx, done, stop, after, &errOut))
	require.True(t, stopped)
	require.Empty(t, errOut.String())
	passed <- time.Time{}
	require.Equal(t, exitFailed, exitCode(ctx, done, cancel, after, &errOut))
	require.Equal(t, "flashdb: interrupted\n", errOut.String())
}
