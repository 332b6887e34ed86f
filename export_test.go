package flashdb

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/internal/calibrate"
	"github.com/flashdb/flashdb/internal/vfs"
	"github.com/flashdb/flashdb/storage"
)

// OpenOn is Open with the log and the index on another file system, and without syncs of the bbolt
// file. It is for tests whose process is not killed.
func OpenOn(fsys vfs.FS, dir string, opts *Options) (*DB, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.disk = disk{system: fsys, noSync: true}
	return Open(dir, &o)
}

// OnlyPlan makes a plan the only one of the decoder's calibration, with perfect recall and no cost.
func OnlyPlan(ctx context.Context, c *Collection, decoder string, plan flashlight.Plan) error {
	t, err := c.trained(decoder)
	if err != nil {
		return err
	}
	stored, err := c.plansOf(t)
	if err != nil {
		return err
	}
	of := stored[0]
	of.Frontiers = []calibrate.Frontier{{K: 100, Points: []calibrate.Point{{Plan: plan, Mean: 1, P5: 1, Worst: 1, Bound: 1}}}}
	return c.storePlans(ctx, t, of)
}

// A FakeClock stands still until Advance.
type FakeClock struct {
	mu      sync.Mutex
	at      time.Time
	waiting []waiter
	Waits   chan time.Duration // receives the length of each wait when it begins
}

type waiter struct {
	until  time.Time
	passed chan time.Time
}

// NewFakeClock returns a clock that stands at a moment.
func NewFakeClock(at time.Time) *FakeClock {
	return &FakeClock{at: at, Waits: make(chan time.Duration, 16)}
}

// SetClock makes a database that is opened with o use the clock.
func (c *FakeClock) SetClock(o *Options) { o.clock = c }

func (c *FakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *FakeClock) after(d time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := waiter{c.at.Add(d), make(chan time.Time, 1)}
	c.waiting = append(c.waiting, w)
	c.Waits <- d
	return w.passed, func() {}
}

// Advance moves the clock on, and ends the waits that are over then.
func (c *FakeClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	c.waiting = slices.DeleteFunc(c.waiting, func(w waiter) bool {
		if w.until.After(c.at) {
			return false
		}
		w.passed <- c.at
		return true
	})
}

// Next exports RebuildSchedule.next.
func Next(s RebuildSchedule, due time.Time) time.Time { return s.next(due) }

// Pin pins what a query that begins now searches, until release.
func Pin(c *Collection) (release func(), err error) {
	p, err := c.pin(context.Background())
	return p.release, err
}

// LinkCount returns the number of links of a collection, as Stats does, but without a flush.
func LinkCount(c *Collection) (n uint64, err error) {
	err = c.db.store.View(func(v *storage.View) error {
		n = v.LinkCount(c.uid)
		return nil
	})
	return n, err
}
