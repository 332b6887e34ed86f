package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/flashdb/flashdb/internal/failpoint"
	"github.com/flashdb/flashdb/internal/format"
)

// groupBytes bounds the frames of one group. Further writes are left to the next group. It bounds
// the memory for frames and how long the first write waits. A single record may be larger.
const groupBytes = 4 << 20

var (
	errExited   = errors.New("a callback ended its goroutine")
	errPanicked = errors.New("a Publish panicked")
)

// waiter is a write that waits for its result. The leader that has taken it sets its fields. done
// is closed when it is over.
type waiter struct {
	write    Write
	lsn      LSN // once Prepare has succeeded
	err      error
	panicked any // what a callback panicked with
	done     chan struct{}
}

func (w *waiter) end(err error) {
	w.err = err
	close(w.done)
}

func (w *waiter) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// prepare calls Prepare and returns the record. It keeps the error, or what Prepare panicked with,
// in w.
func (w *waiter) prepare(lsn LSN) (payload []byte, ok bool) {
	defer func() { w.panicked = recover() }() // also nil if the goroutine exits, but then nobody reads the result
	payload, w.err = w.write.Prepare(lsn)
	if w.err == nil && len(payload) > MaxPayload {
		w.err = fmt.Errorf("%w: %d bytes, at most %d: divide the batch", ErrTooLarge, len(payload), MaxPayload)
	}
	if w.err != nil {
		return nil, false
	}
	w.lsn = lsn
	return payload, true
}

func (w *waiter) publish() {
	if w.write.Publish == nil {
		return
	}
	defer func() { w.panicked = recover() }()
	w.write.Publish(w.lsn)
}

// leadUntil writes group after group until w is over, as the leader, and then lets another write
// lead.
func (l *Log) leadUntil(ctx context.Context, w *waiter) {
	defer func() { <-l.lead }()
	for !w.over() {
		if err := ctx.Err(); err != nil && l.withdraw(w) {
			w.end(err)
			return
		}
		l.writeGroup()
	}
}

// writeGroup takes writes from the queue and commits them together:
//
//  1. Every Prepare is called in order, and for each that succeeds a frame is appended to the
//     buffer.
//  2. One write and one sync make all frames durable.
//  3. Every Publish is called in order.
//  4. Only then the writes end, also those that failed in step 1. They may have failed because of
//     what others of the group prepared, and a caller must not learn of that before it is durable.
//
// It returns normally or by the end of the goroutine, when a callback calls runtime.Goexit.
func (l *Log) writeGroup() {
	var taken []*waiter
	err := fmt.Errorf("%w: %w", ErrFailed, errExited) // unless this function gets to the end
	defer func() {
		if err != nil {
			l.fail(err)
		}
		for _, w := range taken {
			if err != nil {
				w.end(err)
			} else {
				w.end(w.err)
			}
		}
	}()

	l.frames = l.frames[:0]
	count := 0
	for len(l.frames) < groupBytes {
		w := l.take()
		if w == nil {
			break
		}
		taken = append(taken, w)
		if payload, ok := w.prepare(l.next + LSN(count)); ok {
			l.frames = appendFrame(l.frames, w.lsn, uint32(count), payload)
			count++
		}
	}
	if count == 0 {
		err = nil
		return
	}
	if cause := l.write(count); cause != nil {
		err = fmt.Errorf("%w: %w", ErrFailed, cause)
		return
	}
	for _, w := range taken {
		if w.lsn != 0 {
			w.publish()
		}
	}
	err = nil
	l.settle(taken)
}

// settle makes the log fail if a Publish of the durable group panicked. It also frees a large
// buffer.
func (l *Log) settle(group []*waiter) {
	for _, w := range group {
		if w.lsn != 0 && w.panicked != nil {
			l.fail(fmt.Errorf("%w: %w", ErrFailed, errPanicked))
			break
		}
	}
	if cap(l.frames) > 2*groupBytes {
		l.frames = nil
	}
}

// write appends the frames of count records to the active segment, or to a new one, and syncs it.
// It checks the segment before and after: see intact.
func (l *Log) write(count int) error {
	if err := l.check(); err != nil {
		return err
	}
	if err := l.intact(l.size); err != nil {
		return err
	}
	if err := l.named(); err != nil {
		return err
	}
	if l.active == nil || l.restart || l.size >= l.segmentBytes && l.size > headerSize {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	failpoint.WALAppend.Reach()
	_, err := l.active.WriteAt(l.frames, l.size)
	if err == nil {
		failpoint.WALSync.Reach()
		err = l.active.Sync()
	}
	if err != nil {
		// Without the truncation, writes that were reported as failed would be there after a
		// reopen. That is allowed, but surprising. If the truncation fails too, it is ignored: the
		// log has failed either way.
		_ = l.active.Truncate(l.size)
		return fmt.Errorf("write to log segment %s: %w", l.fs.Path(l.path(l.segments[len(l.segments)-1])), err)
	}
	if err := l.intact(l.size + int64(len(l.frames))); err != nil {
		return err
	}
	failpoint.WALDurable.Reach()
	l.size += int64(len(l.frames))
	l.next += LSN(count)
	l.durable.Store(uint64(l.next - 1))
	return nil
}

// check makes sure that the directory is still the caller's.
func (l *Log) check() error {
	if l.held == nil {
		return nil
	}
	return l.held()
}

// named returns an error if the name of the active segment no longer leads to it. Records written
// to a replaced file would be lost.
func (l *Log) named() error {
	if l.active == nil {
		return nil
	}
	named, err := l.active.Named()
	if err == nil && !named {
		err = errors.New("it was moved, removed or replaced")
	}
	if err != nil {
		return fmt.Errorf("log segment %s: %w", l.fs.Path(l.path(l.segments[len(l.segments)-1])), err)
	}
	return nil
}

// intact returns an error if the active segment does not end where this log ended it, or has lost
// its name. Then another program has truncated, written or removed it. A record after the hole
// would be acknowledged, but Open would not find it. One system call, for the length by name,
// detects all of this.
func (l *Log) intact(want int64) error {
	if l.active == nil {
		return nil
	}
	name := l.path(l.segments[len(l.segments)-1])
	size, err := l.fs.Size(name)
	shown := l.fs.Path(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return format.Corrupt(shown, sectionSegment, 0, "it was moved, removed or replaced under this process: %w", err)
	case err != nil:
		return fmt.Errorf("log segment %s: %w", shown, err)
	case size != want:
		return format.Corrupt(shown, sectionSegment, min(size, want), "it has %d bytes, want %d: it was changed under this process", size, want)
	}
	return nil
}

// fail makes the log refuse all writes from now on. It keeps the first reason.
func (l *Log) fail(err error) {
	l.mu.Lock()
	if l.failed == nil {
		l.failed = err
	}
	l.mu.Unlock()
	l.drain(err)
}
