package wal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/vfs"
)

const dir = "db/wal"

// newDir returns a file system with the directory that a log's own is in.
func newDir(t testing.TB) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	require.NoError(t, m.MkdirAll("db"))
	require.NoError(t, m.SyncDir("."))
	return m
}

// mustOpen opens the log in dir; when the test ends it is closed and checked.
func mustOpen(t testing.TB, fsys vfs.FS, opt *Options) *Log {
	t.Helper()
	l, err := Open(fsys, dir, opt)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			return // it may be in use for ever
		}
		if err := l.Close(); err == nil {
			require.NoError(t, Check(fsys, dir))
		}
	})
	return l
}

func record(payload string) Write {
	return Write{Prepare: func(LSN) ([]byte, error) { return []byte(payload), nil }}
}

func mustDo(t testing.TB, l *Log, payload string) LSN {
	t.Helper()
	lsn, err := l.Do(context.Background(), record(payload))
	require.NoError(t, err)
	return lsn
}

// doGroup brings writes into the log as one group, on this goroutine alone, and returns the error
// of each.
func doGroup(l *Log, writes ...Write) []error {
	errs := make([]error, len(writes))
	waiters := make([]*waiter, len(writes))
	for i, a := range writes {
		waiters[i] = &waiter{write: a, done: make(chan struct{})}
		if errs[i] = l.enqueue(waiters[i]); errs[i] != nil {
			close(waiters[i].done)
		}
	}
	l.lead <- struct{}{}
	l.leadUntil(context.Background(), waiters[len(waiters)-1])
	for i, w := range waiters {
		if errs[i] == nil {
			errs[i] = w.err
		}
	}
	return errs
}

// replayed returns the records after the given one, as "LSN:payload".
func replayed(t testing.TB, l *Log, after LSN) []string {
	t.Helper()
	list := []string{}
	require.NoError(t, l.Replay(after, func(lsn LSN, payload []byte) error {
		list = append(list, fmt.Sprintf("%d:%s", lsn, payload))
		return nil
	}))
	return list
}

func write(t testing.TB, fsys vfs.FS, name string, content []byte) {
	t.Helper()
	require.NoError(t, fsys.MkdirAll(filepath.Dir(name)))
	f, err := fsys.Create(name)
	require.NoError(t, err)
	_, err = f.WriteAt(content, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func content(t testing.TB, fsys vfs.FS, name string) []byte {
	t.Helper()
	m, err := fsys.Map(name)
	require.NoError(t, err)
	return m.Bytes()
}

// snapshot returns the content of every file of the log.
func snapshot(t testing.TB, fsys vfs.FS) map[string]string {
	t.Helper()
	names, err := fsys.ReadDir(dir)
	require.NoError(t, err)
	files := make(map[string]string)
	for _, name := range names {
		files[name] = string(content(t, fsys, filepath.Join(dir, name)))
	}
	return files
}

// noise returns n bytes that do not compress.
func noise(n int) []byte {
	rng := rand.New(rand.NewPCG(1, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func segmentPath(first LSN) string { return filepath.Join(dir, segmentName(first)) }

func segmentNames(t testing.TB, fsys vfs.FS) []LSN {
	t.Helper()
	list, err := listSegments(fsys, dir)
	require.NoError(t, err)
	return list
}

// requireCorrupt checks that err says where the damage is.
func requireCorrupt(t testing.TB, err error, file string, offset int64) {
	t.Helper()
	var c *format.CorruptError
	require.ErrorAs(t, err, &c)
	require.Equal(t, file, c.File)
	require.Equal(t, offset, c.Offset, "%v", err)
	require.True(t, errors.Is(err, format.ErrCorrupt))
}

// patience bounds how long a test waits. Nothing here takes a second, but for a disk or a machine
// that others keep busy. So only a log that hangs exceeds it.
const patience = time.Minute

// await returns when it is done, and fails the test if that does not happen.
func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); runtime.Gosched() {
		if time.Now().After(deadline) {
			require.FailNow(t, "what the test waits for did not happen", "%s, within %v", what, patience)
		}
	}
}

// awaitAll waits for goroutines, and fails the test if they do not end.
func awaitAll(t testing.TB, what string, all *sync.WaitGroup) {
	t.Helper()
	var ended atomic.Bool
	go func() {
		all.Wait()
		ended.Store(true)
	}()
	await(t, what, ended.Load)
}

// awaitQueued waits until n writes wait in the queue.
func awaitQueued(t testing.TB, l *Log, n int) {
	t.Helper()
	await(t, fmt.Sprintf("%d writes wait in the queue", n), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.queue) == n
	})
}
