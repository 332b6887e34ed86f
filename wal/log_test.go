package wal

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/vfs"
)

func TestRecordsComeBack(t *testing.T) {
	fsys := newDir(t)
	l := mustOpen(t, fsys, nil)
	assert.Equal(t, LSN(0), l.Durable())
	assert.Empty(t, replayed(t, l, 0))
	for i := range 5 {
		assert.Equal(t, LSN(i+1), mustDo(t, l, fmt.Sprint("r", i+1)))
	}
	assert.Equal(t, LSN(5), l.Durable())
	want := []string{"1:r1", "2:r2", "3:r3", "4:r4", "5:r5"}
	assert.Equal(t, want, replayed(t, l, 0))
	require.NoError(t, l.Close())

	l = mustOpen(t, fsys, nil)
	assert.Equal(t, LSN(5), l.Durable())
	assert.Equal(t, want, replayed(t, l, 0))
	assert.Equal(t, want[3:], replayed(t, l, 3))
	assert.Empty(t, replayed(t, l, 5))
	assert.Empty(t, replayed(t, l, 9))
	assert.Equal(t, LSN(6), mustDo(t, l, "r6"))
}

func TestReplayStopsAtAnError(t *testing.T) {
	l := mustOpen(t, newDir(t), nil)
	mustDo(t, l, "a")
	mustDo(t, l, "b")
	stop, calls := errors.New("stop"), 0
	err := l.Replay(0, func(LSN, []byte) error { calls++; return stop })
	assert.ErrorIs(t, err, stop)
	assert.Equal(t, 1, calls)
}

func TestReplayedPayloadsAreTheCallers(t *testing.T) {
	l := mustOpen(t, newDir(t), nil)
	mustDo(t, l, "first")
	mustDo(t, l, "other")
	var kept [][]byte
	require.NoError(t, l.Replay(0, func(_ LSN, payload []byte) error { kept = append(kept, payload); return nil }))
	assert.Equal(t, "first", string(kept[0]))
}

// blockFirstSync returns an FS that holds the first sync of a segment's frames until release is
// closed, and counts syncs.
func blockFirstSync(base vfs.FS, release <-chan struct{}, syncs *atomic.Int64) vfs.FS {
	return vfs.Faulty(base, func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && syncs.Add(1) == 1 {
			<-release
		}
		return nil
	})
}

func TestConcurrentAppendsShareASync(t *testing.T) {
	const writers = 64
	fsys := newDir(t)
	mustOpen(t, fsys, nil).Close()
	var syncs atomic.Int64
	release := make(chan struct{})
	l := mustOpen(t, blockFirstSync(fsys, release, &syncs), nil)

	var prepares, active atomic.Int32 // callbacks done and running
	var published []LSN               // guarded by the log: no two callbacks run together
	alone := func() func() {
		assert.Equal(t, int32(1), active.Add(1))
		return func() { active.Add(-1) }
	}
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			var prepared, public LSN
			lsn, err := l.Do(context.Background(), Write{
				Prepare: func(lsn LSN) ([]byte, error) {
					defer alone()()
					prepares.Add(1)
					prepared = lsn
					assert.Less(t, l.Durable(), lsn)
					return []byte("x"), nil
				},
				Publish: func(lsn LSN) {
					defer alone()()
					public = lsn
					published = append(published, lsn)
					assert.GreaterOrEqual(t, l.Durable(), lsn)
				},
			})
			assert.NoError(t, err)
			assert.Equal(t, lsn, prepared)
			assert.Equal(t, lsn, public)
		})
	}
	// The first group has made its new segment and waits for that one's sync; all others come to
	// wait behind it.
	await(t, "the others wait behind the first group", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.queue)+int(prepares.Load()) >= writers
	})
	close(release)
	awaitAll(t, "all writes end", &wg)
	assert.Equal(t, LSN(writers), l.Durable())
	assert.LessOrEqual(t, syncs.Load(), int64(3), "the new segment's header, the first group, the others")
	for i, lsn := range published {
		assert.Equal(t, LSN(i+1), lsn)
	}
	assert.Len(t, replayed(t, l, 0), writers)
}

func TestAppendsWaitingForASyncAreOneGroup(t *testing.T) {
	const waiting = 63
	var syncs atomic.Int64
	release := make(chan struct{})
	l := mustOpen(t, blockFirstSync(newDir(t), release, &syncs), nil)
	var wg sync.WaitGroup
	do := func() {
		_, err := l.Do(context.Background(), record("x"))
		assert.NoError(t, err)
	}
	wg.Go(do)
	await(t, "the first sync", func() bool { return syncs.Load() > 0 })
	for range waiting {
		wg.Go(do)
	}
	awaitQueued(t, l, waiting)
	close(release)
	awaitAll(t, "all writes end", &wg)
	assert.Equal(t, int64(3), syncs.Load(), "the new segment's header, the first write, all others")
}

func TestAGroupIsBounded(t *testing.T) {
	var syncs int
	l := mustOpen(t, vfs.Faulty(newDir(t), func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			syncs++
		}
		return nil
	}), nil)
	mustDo(t, l, "make the segment")
	syncs = 0
	third := noise(groupBytes/3 + 1)
	var writes []Write
	for range 7 {
		writes = append(writes, Write{Prepare: func(LSN) ([]byte, error) { return third, nil }})
	}
	for _, err := range doGroup(l, writes...) {
		require.NoError(t, err)
	}
	assert.Equal(t, 3, syncs, "groups of 3, 3 and 1 writes")
	require.NoError(t, doGroup(l, Write{Prepare: func(LSN) ([]byte, error) { return noise(3 * groupBytes), nil }})[0])
	assert.Nil(t, l.frames, "the buffer of a large record is given back")
	assert.Equal(t, LSN(9), l.Durable())
}

func TestPrepareFailsItsOwnActOnly(t *testing.T) {
	l := mustOpen(t, newDir(t), nil)
	refused := errors.New("refused")
	var published []LSN
	publish := func(lsn LSN) { published = append(published, lsn) }
	good := func(s string) Write { a := record(s); a.Publish = publish; return a }
	bad := Write{Prepare: func(LSN) ([]byte, error) { return []byte("ignored"), refused }, Publish: publish}
	errs := doGroup(l, bad, good("a"), bad, good("b"), bad)
	assert.Equal(t, []error{refused, nil, refused, nil, refused}, errs)
	assert.Equal(t, []string{"1:a", "2:b"}, replayed(t, l, 0))
	assert.Equal(t, []LSN{1, 2}, published)

	errs = doGroup(l, bad, bad)
	assert.Equal(t, []error{refused, refused}, errs)
	_, err := l.Do(context.Background(), bad)
	assert.Equal(t, refused, err)
	assert.Equal(t, LSN(3), mustDo(t, l, "c"), "a failed write uses no number")
}

func TestRecordTooLarge(t *testing.T) {
	l := mustOpen(t, newDir(t), nil)
	large := make([]byte, MaxPayload+1) // never touched
	_, err := l.Do(context.Background(), Write{Prepare: func(LSN) ([]byte, error) { return large, nil }})
	assert.ErrorIs(t, err, ErrTooLarge)
	assert.Equal(t, LSN(1), mustDo(t, l, "x"))
}

func TestPanicInPrepare(t *testing.T) {
	l := mustOpen(t, newDir(t), nil)
	bad := Write{Prepare: func(LSN) ([]byte, error) { panic("ouch") }}
	assert.PanicsWithValue(t, "ouch", func() { _, _ = l.Do(context.Background(), bad) })
	assert.Equal(t, LSN(1), mustDo(t, l, "goes on"))
	assert.Equal(t, []error{nil, nil, nil}, doGroup(l, record("a"), bad, record("b")), "its panic is its own")
	assert.Equal(t, []string{"1:goes on", "2:a", "3:b"}, replayed(t, l, 0))
}

func TestPanicInAnotherAppendsPrepare(t *testing.T) {
	var syncs atomic.Int64
	release := make(chan struct{})
	l := mustOpen(t, blockFirstSync(newDir(t), release, &syncs), nil)
	var wg sync.WaitGroup
	wg.Go(func() { mustDo(t, l, "first") })
	await(t, "the first sync", func() bool { return syncs.Load() > 0 })
	wg.Go(func() { mustDo(t, l, "leads, or follows") })
	wg.Go(func() {
		bad := Write{Prepare: func(LSN) ([]byte, error) { panic("ouch") }}
		assert.PanicsWithValue(t, "ouch", func() { _, _ = l.Do(context.Background(), bad) })
	})
	awaitQueued(t, l, 2)
	close(release)
	awaitAll(t, "all writes end", &wg)
	assert.Equal(t, LSN(2), l.Durable())
}

func TestPanicInPublishEndsTheLog(t *testing.T) {
	l := mustOpen(t, newDir(t), nil)
	var published []LSN
	good := record("a")
	good.Publish = func(lsn LSN) { published = append(published, lsn) }
	bad := record("b")
	bad.Publish = func(LSN) { panic("ouch") }
	assert.Equal(t, []error{nil, nil, nil}, doGroup(l, good, bad, good), "all three are durable")
	assert.Equal(t, []LSN{1, 3}, published)
	_, err := l.Do(context.Background(), good)
	assert.ErrorIs(t, err, ErrFailed)
	assert.Len(t, replayed(t, l, 0), 3)
	require.NoError(t, l.Drop(3), "no new segment is begun, and that is no error")
	assert.Len(t, replayed(t, l, 0), 3)
}

func TestPublishPanicsInItsOwnDo(t *testing.T) {
	l := mustOpen(t, newDir(t), nil)
	bad := record("b")
	bad.Publish = func(LSN) { panic("ouch") }
	assert.PanicsWithValue(t, "ouch", func() { _, _ = l.Do(context.Background(), bad) })
	assert.Equal(t, LSN(1), l.Durable())
}

// TestCallbackEndsItsGoroutine is what happens when a test calls FailNow in a callback: the log
// fails, and does not hang.
func TestCallbackEndsItsGoroutine(t *testing.T) {
	tests := []struct {
		name    string
		write   Write
		durable LSN
	}{
		{"Prepare", Write{Prepare: func(LSN) ([]byte, error) { runtime.Goexit(); return nil, nil }}, 0},
		{"Publish", Write{Prepare: record("x").Prepare, Publish: func(LSN) { runtime.Goexit() }}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := mustOpen(t, newDir(t), nil)
			var wg sync.WaitGroup
			wg.Go(func() {
				_, _ = l.Do(context.Background(), tt.write)
				assert.Fail(t, "the goroutine is gone")
			})
			awaitAll(t, "all writes end", &wg)
			_, err := l.Do(context.Background(), record("x"))
			assert.ErrorIs(t, err, ErrFailed)
			assert.ErrorIs(t, err, errExited)
			assert.Equal(t, tt.durable, l.Durable())
			assert.NoError(t, l.Locked(func(LSN) error { return nil }), "the lead is free")
		})
	}
}

func TestContextEndsTheWait(t *testing.T) {
	var syncs atomic.Int64
	release := make(chan struct{})
	l := mustOpen(t, blockFirstSync(newDir(t), release, &syncs), nil)

	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := l.Do(gone, Write{Prepare: func(LSN) ([]byte, error) { panic("must not be called") }})
	assert.ErrorIs(t, err, context.Canceled)

	taken, cancelTaken := context.WithCancel(context.Background())
	waiting, cancelWaiting := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		lsn, err := l.Do(taken, record("taken"))
		assert.NoError(t, err, "its turn had come")
		assert.Equal(t, LSN(1), lsn)
	})
	await(t, "the first sync", func() bool { return syncs.Load() > 0 })
	wg.Go(func() {
		_, err := l.Do(waiting, Write{Prepare: func(LSN) ([]byte, error) { panic("must not be called") }})
		assert.ErrorIs(t, err, context.Canceled)
	})
	awaitQueued(t, l, 1)
	cancelTaken()
	cancelWaiting()
	awaitQueued(t, l, 0)
	close(release)
	awaitAll(t, "all writes end", &wg)
	assert.Equal(t, []string{"1:taken"}, replayed(t, l, 0))
}

func TestLeaderGivesUpItsOwnActOnly(t *testing.T) {
	l := mustOpen(t, newDir(t), nil)
	gone, cancel := context.WithCancel(context.Background())
	w := &waiter{write: record("withdrawn"), done: make(chan struct{})}
	require.NoError(t, l.enqueue(w))
	cancel()
	l.lead <- struct{}{}
	l.leadUntil(gone, w)
	assert.ErrorIs(t, w.err, context.Canceled)
	assert.Equal(t, LSN(1), mustDo(t, l, "x"))
}

func TestClose(t *testing.T) {
	var syncs atomic.Int64
	release := make(chan struct{})
	l := mustOpen(t, blockFirstSync(newDir(t), release, &syncs), nil)
	var wg sync.WaitGroup
	wg.Go(func() { mustDo(t, l, "under way") })
	await(t, "the first sync", func() bool { return syncs.Load() > 0 })
	var closed sync.WaitGroup
	closed.Go(func() { assert.NoError(t, l.Close()) })
	await(t, "Close has begun", func() bool { return l.refusal() != nil })
	_, err := l.Do(context.Background(), record("late"))
	assert.ErrorIs(t, err, ErrClosed)
	close(release)
	awaitAll(t, "all writes end", &wg)
	awaitAll(t, "Close returns", &closed)
	assert.NoError(t, l.Close())
	assert.ErrorIs(t, l.Replay(0, nil), ErrClosed)
	assert.ErrorIs(t, l.Drop(1), ErrClosed)
	assert.ErrorIs(t, l.Locked(nil), ErrClosed)
	l.SetNext(9)
	assert.Equal(t, LSN(1), l.Durable())
}

func TestCloseEndsWaitingAppends(t *testing.T) {
	l := mustOpen(t, newDir(t), nil)
	w := &waiter{write: record("x"), done: make(chan struct{})}
	require.NoError(t, l.enqueue(w))
	require.NoError(t, l.Close())
	await(t, "the write ends", w.over)
	assert.ErrorIs(t, w.err, ErrClosed)
}

func TestLockedExcludesAppends(t *testing.T) {
	l := mustOpen(t, newDir(t), nil)
	mustDo(t, l, "first")
	var inside atomic.Bool
	var wg sync.WaitGroup
	err := l.Locked(func(durable LSN) error {
		assert.Equal(t, LSN(1), durable)
		inside.Store(true)
		wg.Go(func() {
			a := record("second")
			a.Prepare = func(LSN) ([]byte, error) { assert.False(t, inside.Load()); return nil, nil }
			_, err := l.Do(context.Background(), a)
			assert.NoError(t, err)
		})
		awaitQueued(t, l, 1)
		inside.Store(false)
		return errors.New("passed on")
	})
	assert.EqualError(t, err, "passed on")
	awaitAll(t, "all writes end", &wg)
	assert.PanicsWithValue(t, "ouch", func() { _ = l.Locked(func(LSN) error { panic("ouch") }) })
	assert.Equal(t, LSN(3), mustDo(t, l, "third"))
}

func TestOpenRefusesNegativeOptions(t *testing.T) {
	_, err := Open(newDir(t), dir, &Options{SegmentBytes: -1})
	assert.ErrorContains(t, err, "SegmentBytes is -1")
}
