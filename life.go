package flashdb

import (
	"sync"
	"sync/atomic"
)

// over is set in life.calls from the moment that no further call begins.
const over = 1 << 62

// A life counts the calls that are under way, so that Close waits for them. It is not an RWMutex,
// because readers of that wait for a waiting writer: a callback may make another call, which must
// fail and not wait for ever.
type life struct {
	calls atomic.Int64
	idle  chan struct{} // closed when it is over and the last call is left
	last  sync.Once
}

func newLife() *life { return &life{idle: make(chan struct{})} }

// enter begins a call, unless it is over.
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

// end lets no further call begin, and waits for those under way. It is called once.
func (l *life) end() {
	if l.calls.Add(over) == over {
		l.last.Do(func() { close(l.idle) })
	}
	<-l.idle
}
