package wal

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/flashdb/flashdb/internal/vfs"
)

var (
	// ErrFailed matches what Do returns once a write or a sync has failed. It is not known what the
	// disk holds of that group, so the log accepts no more writes. Opening it again finds out.
	ErrFailed = errors.New("log failed, read-only until reopened")

	// ErrReadOnly is returned by Do of a log opened with Options.ReadOnly.
	ErrReadOnly = errors.New("log is open read-only")

	// ErrClosed is returned by calls on a closed Log.
	ErrClosed = errors.New("log is closed")

	// ErrTooLarge matches what Do returns for a record of more than MaxPayload bytes.
	ErrTooLarge = errors.New("record too large")
)

// Log is an open log. Its methods are safe for concurrent use.
type Log struct {
	fs           vfs.FS
	dir          string
	segmentBytes int64
	readOnly     bool
	held         func() error // nil: always
	torn         *Torn

	// lead has room for one element. The goroutine that has put it in is the leader: only the
	// leader writes to the files and runs callbacks. It is a channel and not a mutex, because a
	// write must be able to stop waiting.
	lead chan struct{}

	// The leader's own.
	segments []LSN    // first LSNs of the files, ascending; the last is active
	active   vfs.File // nil until the first segment is made
	size     int64    // of active
	next     LSN      // of the next record
	restart  bool     // SetNext has skipped LSNs: the segments are removed before the next record is written
	frames   []byte   // scratch

	durable atomic.Uint64

	mu     sync.Mutex // guards the following
	queue  []*waiter  // writes that no leader has taken, in order
	closed bool
	failed error // matches ErrFailed
}

// Durable returns the LSN of the newest durable record, or 0.
func (l *Log) Durable() LSN { return LSN(l.durable.Load()) }

// Locked runs fn while no Prepare and no Publish runs and no write is between the two. So exactly
// the durable records are published then. It works on a failed log as well.
func (l *Log) Locked(fn func(durable LSN) error) error {
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return fn(l.Durable())
}

// lock makes the caller the leader until it calls unlock, and fails on a closed log.
func (l *Log) lock() (unlock func(), err error) {
	l.lead <- struct{}{}
	if err := l.refusal(); errors.Is(err, ErrClosed) {
		<-l.lead
		return nil, err
	}
	return func() { <-l.lead }, nil
}

// refusal returns why the log takes no writes, or nil.
func (l *Log) refusal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	return l.failed
}

// SetNext makes the LSN of the next record greater than after, which is the last LSN that the
// caller's own store holds. If the log ends before that, all its records are in that store, and
// they are removed when the next record is written.
func (l *Log) SetNext(after LSN) {
	unlock, err := l.lock()
	if err != nil {
		return
	}
	defer unlock()
	if after < l.next {
		return
	}
	l.next = after + 1
	l.restart = len(l.segments) > 0
	l.durable.Store(uint64(after))
}

// Close waits for the group being written and closes the log. Writes that no leader has taken get
// ErrClosed. Further calls do nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	l.lead <- struct{}{}
	defer func() { <-l.lead }()
	l.drain(ErrClosed)
	if l.active == nil {
		return nil
	}
	err := l.active.Close()
	l.active = nil
	return err
}

// enqueue adds w to the queue, if the log takes writes.
func (l *Log) enqueue(w *waiter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	if l.failed != nil {
		return l.failed
	}
	l.queue = append(l.queue, w)
	return nil
}

// take removes the first write from the queue, or returns nil.
func (l *Log) take() *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	w := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	return w
}

// withdraw removes w from the queue, if no leader has taken it.
func (l *Log) withdraw(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, w)
	if i < 0 {
		return false
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	return true
}

// drain ends all writes in the queue with err.
func (l *Log) drain(err error) {
	for w := l.take(); w != nil; w = l.take() {
		w.end(err)
	}
}

// Write is one change to be logged.
type Write struct {
	// Prepare returns the record. lsn is the number that the record will have. It sees the effects
	// of all earlier Prepare calls. If it fails, only its own write fails, and the next write gets
	// the number.
	Prepare func(lsn LSN) (payload []byte, err error)
	// Publish is called when the record is durable, in the order of the records. It may be nil.
	Publish func(lsn LSN)
}

// Do logs one write and returns the number of its record once that is durable and published. No two
// callbacks of a log run at the same time, but they may run on the goroutine of another write.
//
// If writing the file or a sync fails, all writes of the group get an error that matches ErrFailed,
// also those whose Prepare failed. Their Publish is not called, and it is not known whether their
// records are there after the next Open. ctx ends only the wait for other groups: a write that a
// leader has taken is completed. A panic in a callback is raised in the Do it belongs to. A Publish
// that panics may have left its work half done, so the log accepts no more writes after that.
func (l *Log) Do(ctx context.Context, a Write) (LSN, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	w := &waiter{write: a, done: make(chan struct{})}
	if err := l.enqueue(w); err != nil {
		return 0, err
	}
	select {
	case <-w.done:
	case l.lead <- struct{}{}:
		l.leadUntil(ctx, w)
	case <-ctx.Done():
		if l.withdraw(w) {
			return 0, ctx.Err()
		}
		<-w.done
	}
	if w.panicked != nil {
		panic(w.panicked)
	}
	if w.err != nil {
		return 0, w.err
	}
	return w.lsn, nil
}
