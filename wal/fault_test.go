package wal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/vfs"
)

var errDisk = errors.New("disk on fire")

// faultRun is a fixed run of a log on a disk that fails at some point.
type faultRun struct {
	acked     []string // acknowledged payloads
	tried     []string // the group that failed, or nil
	published int
	applied   LSN
}

func (r *faultRun) group(l *Log, n int) error {
	var writes []Write
	r.tried = nil
	for i := range n {
		payload := fmt.Sprintf("record %d", len(r.acked)+i+1)
		r.tried = append(r.tried, payload)
		a := record(payload)
		a.Publish = func(LSN) { r.published++ }
		writes = append(writes, a)
	}
	errs := doGroup(l, writes...)
	for _, err := range errs[1:] {
		if !errors.Is(err, errs[0]) {
			return fmt.Errorf("writes of a group end differently: %v", errs)
		}
	}
	if errs[0] == nil {
		r.acked, r.tried = append(r.acked, r.tried...), nil
	}
	return errs[0]
}

func (r *faultRun) drop(l *Log, upTo LSN) error {
	r.applied = upTo
	return l.Drop(upTo)
}

// run does a bit of everything, stopping at the first error but for what must work after it.
func (r *faultRun) run(t *testing.T, fsys vfs.FS) error {
	for range 2 {
		l, err := Open(fsys, dir, &Options{SegmentBytes: 100})
		if err != nil {
			return err
		}
		l.SetNext(r.applied)
		steps := []func() error{
			func() error { return l.Replay(r.applied, func(LSN, []byte) error { return nil }) },
			func() error { return r.group(l, 1) },
			func() error { return r.group(l, 3) },
			func() error { return r.group(l, 1) },
			func() error { return r.drop(l, LSN(len(r.acked)-1)) },
			func() error { return r.group(l, 2) },
			func() error { return r.drop(l, LSN(len(r.acked))) },
			func() error { return r.group(l, 1) },
		}
		for _, step := range steps {
			if err = step(); err != nil {
				break
			}
		}
		if errors.Is(err, ErrFailed) {
			r.refused(t, l, err)
		}
		if err := errors.Join(err, l.Close()); err != nil {
			return err
		}
	}
	return nil
}

// refused checks that a failed log takes nothing more, and still gives what it has.
func (r *faultRun) refused(t *testing.T, l *Log, cause error) {
	t.Helper()
	assert.ErrorIs(t, cause, errDisk)
	_, err := l.Do(context.Background(), Write{Prepare: func(LSN) ([]byte, error) { panic("must not be called") }})
	assert.ErrorIs(t, err, ErrFailed)
	assert.ErrorIs(t, err, errDisk)
	assert.Equal(t, len(r.acked), r.published)
	assert.Equal(t, LSN(len(r.acked)), l.Durable())
	assert.NoError(t, l.Locked(func(durable LSN) error { return nil }))
	assert.Len(t, replayed(t, l, r.applied), len(r.acked)-int(r.applied))
	assert.NoError(t, l.Drop(r.applied), "what is not needed still goes")
}

func TestNthOperationFails(t *testing.T) {
	modes := []struct {
		name   string
		inject func(n int64) func(vfs.Op) error
	}{
		{"once", func(n int64) func(vfs.Op) error { return vfs.FailNth(n, errDisk, nil) }},
		{"from then on, for changes", func(n int64) func(vfs.Op) error {
			var seen int64
			return func(op vfs.Op) error {
				if seen++; seen >= n && op.Kind.Changes() {
					return errDisk
				}
				return nil
			}
		}},
	}
	var ops []vfs.Op
	note := func(op vfs.Op) error { ops = append(ops, op); return nil }
	require.NoError(t, new(faultRun).run(t, vfs.Faulty(newDir(t), note)))
	require.Greater(t, len(ops), 60)
	for !ops[len(ops)-1].Kind.Changes() { // nothing fails any more
		ops = ops[:len(ops)-1]
	}
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			for i, op := range ops {
				n := int64(i + 1)
				mem := newDir(t)
				var r faultRun
				err := r.run(t, vfs.Faulty(mem, mode.inject(n)))
				if op.Kind == vfs.OpClose && err == nil {
					continue // of a file that was only read
				}
				require.ErrorIs(t, err, errDisk, "operation %d, %s", n, op)
				r.survived(t, mem.CrashClone(rand.New(rand.NewPCG(uint64(n), 0))))
				r.survived(t, mem)
			}
		})
	}
}

// survived checks, on a disk that works again, that everything acknowledged is there, that at most
// a first part of the failed group is there, and that the log accepts writes.
func (r *faultRun) survived(t *testing.T, mem *vfs.Mem) {
	t.Helper()
	l, err := Open(mem, dir, nil)
	require.NoError(t, err)
	l.SetNext(r.applied)
	want := append(append([]string{}, r.acked...), r.tried...)[r.applied:]
	got := replayed(t, l, r.applied)
	require.GreaterOrEqual(t, len(got), len(r.acked)-int(r.applied))
	require.LessOrEqual(t, len(got), len(want))
	for i := range got {
		require.Equal(t, fmt.Sprintf("%d:%s", int(r.applied)+i+1, want[i]), got[i])
	}
	mustDo(t, l, "goes on")
	require.NoError(t, l.Close())
	require.NoError(t, Check(mem, dir))
}

// TestFailedSyncLeavesNothing checks that writes which were reported as failed are not there after
// a reopen, if the disk allows the truncation.
func TestFailedSyncLeavesNothing(t *testing.T) {
	mem := newDir(t)
	l, err := Open(mem, dir, nil)
	require.NoError(t, err)
	mustDo(t, l, "kept")
	require.NoError(t, l.Close())
	for _, kind := range []vfs.Kind{vfs.OpWrite, vfs.OpSync} {
		armed := false
		l, err := Open(vfs.Faulty(mem, func(op vfs.Op) error {
			if armed && op.Kind == kind {
				return errDisk
			}
			return nil
		}), dir, nil)
		require.NoError(t, err)
		armed = true
		_, err = l.Do(context.Background(), record("failed"))
		require.ErrorIs(t, err, ErrFailed)
		require.ErrorContains(t, err, "log failed, read-only until reopened: write to log segment "+segmentPath(1)+": disk on fire")
		armed = false
		_, err = l.Do(context.Background(), record("failed"))
		require.ErrorIs(t, err, ErrFailed, "the disk is well again, the log is not")
		require.NoError(t, l.Close())
		again := mustOpen(t, mem, nil)
		assert.Equal(t, []string{"1:kept"}, replayed(t, again, 0))
	}
}

// TestFailureEndsWaitingAppends checks that writes which wait behind a failed group are not
// written.
func TestFailureEndsWaitingAppends(t *testing.T) {
	release, syncing := make(chan struct{}), make(chan struct{})
	syncs := 0
	mem := newDir(t)
	l := mustOpen(t, vfs.Faulty(mem, func(op vfs.Op) error {
		if op.Kind != vfs.OpSync {
			return nil
		}
		if syncs++; syncs != 2 { // 1: the new segment's header
			return nil
		}
		close(syncing)
		<-release
		return errDisk
	}), nil)
	var wg sync.WaitGroup
	do := func() {
		_, err := l.Do(context.Background(), record("lost"))
		assert.ErrorIs(t, err, ErrFailed)
		assert.ErrorIs(t, err, errDisk)
	}
	wg.Go(do)
	await(t, "the sync of the first group", func() bool {
		select {
		case <-syncing:
			return true
		default:
			return false
		}
	})
	for range 8 {
		wg.Go(do)
	}
	awaitQueued(t, l, 8)
	close(release)
	awaitAll(t, "all writes end", &wg)
	assert.Equal(t, 2, syncs)
	assert.Len(t, content(t, mem, segmentPath(1)), headerSize)
}

// TestGroupFailsTogether checks that a write whose Prepare failed fails with its group, because it
// may have failed by what others of the group prepared.
func TestGroupFailsTogether(t *testing.T) {
	armed := false
	l := mustOpen(t, vfs.Faulty(newDir(t), func(op vfs.Op) error {
		if armed && op.Kind == vfs.OpSync {
			return errDisk
		}
		return nil
	}), nil)
	mustDo(t, l, "first")
	armed = true
	noChange := errors.New("no change")
	errs := doGroup(l, record("sets it"), Write{Prepare: func(LSN) ([]byte, error) { return nil, noChange }})
	for _, err := range errs {
		assert.ErrorIs(t, err, ErrFailed)
	}
}
