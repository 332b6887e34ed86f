package flashdb

import (
	"sync"
	"sync/atomic"
)

// over is added to life.calls when no further call may begin.
const over = 1 << 62

// A life counts the running calls, so that Close can wait for them. An RWMutex would not do: its
// readers wait while a writer waits. A callback may make another call during a Close, and that call
// must fail rather than wait for ever.
type life struct {
	calls atomic.Int64
	idle  chan struct{} // closed when no call may begin and the last one has ended
	last  sync.Once
}

func newLife() *life { return &life{idle: make(chan struct{})} }

// enter begins a call and returns true, or returns false after end.
func (l *life) enter() bool {
	if l.calls.Add(1)&over == 0 {
		return true
	}
	l.leave()
	return false
}

func (l *life) leave() {
	if l.calls.Add(-1) == over {
		l.last.Do(func() { close(l.idle) })
	}
}

// end lets no further call begin, and waits for the running ones. It is called once.
func (l *life) end() {
	if l.calls.Add(over) == over {
		l.last.Do(func() { close(l.idle) })
	}
	<-l.idle
}
