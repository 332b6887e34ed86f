//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSignalEndsAWait interrupts a command that waits for the other end of a
// pipe.
func TestSignalEndsAWait(t *testing.T) {
	base := t.TempDir()
	pipe := filepath.Join(base, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	program, err := exec.LookPath("flashdb") // this one: see TestMain
	require.NoError(t, err)

	cmd := exec.Command(program, "restore", pipe, filepath.Join(base, "new.flash"))
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// There is an end to write to once the command has opened the one to read, or waits to.
	var w *os.File
	for w == nil {
		select {
		case err := <-ended:
			t.Fatalf("ended at once: %v %s", err, &errOut)
		default:
		}
		w, err = os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		runtime.Gosched()
	}
	defer w.Close()
	deadline := time.After(time.Minute)
	for {
		require.NoError(t, ignoreDone(cmd.Process.Signal(syscall.SIGTERM))) // the second one ends it at once
		select {
		case err := <-ended:
			require.Error(t, err)
			return
		case <-deadline:
			_ = cmd.Process.Kill()
			t.Fatal("SIGTERM does not end it")
		default:
			runtime.Gosched()
		}
	}
}

func ignoreDone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
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
