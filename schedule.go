package flashdb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A RebuildSchedule says when to rebuild all collections, one after the other, in the process that
// has the database open. Each rebuild is logged to Options.Logger.
type RebuildSchedule struct {
	// Every is the time from one turn to the next, counted from Open. A turn rebuilds every
	// collection. Zero, the default, means never.
	Every time.Duration
	// MinDrift is RebuildOptions.MinDrift: a turn skips collections that moved less.
	MinDrift float64
	// From and To bound the time of day at which a turn may begin, as local time since midnight. A
	// turn that is due at another time waits. If To is before From, the window includes midnight.
	// If both are zero, a turn may begin at any time.
	From, To time.Duration
}

func (s *RebuildSchedule) validate() error {
	var errs []error
	if s.Every < 0 {
		errs = append(errs, fmt.Errorf("%w: Options.Rebuild.Every is %v, want >= 0", ErrInvalid, s.Every))
	}
	if !(s.MinDrift >= 0) {
		errs = append(errs, fmt.Errorf("%w: Options.Rebuild.MinDrift is %v, want >= 0", ErrInvalid, s.MinDrift))
	}
	const day = 24 * time.Hour
	if s.From < 0 || s.From >= day || s.To < 0 || s.To > day || (s.From == s.To && s.From != 0) {
		errs = append(errs, fmt.Errorf("%w: Options.Rebuild's window is from %v to %v, want two different times of a day", ErrInvalid, s.From, s.To))
	}
	return errors.Join(errs...)
}

// next returns when a turn that is due at a moment begins: then, or when the window next opens.
func (s *RebuildSchedule) next(due time.Time) time.Time {
	if s.From == s.To {
		return due
	}
	// The window of the day before may reach over midnight.
	for day := -1; ; day++ {
		from, to := onDay(due, day, s.From), onDay(due, day, s.To)
		if s.To < s.From {
			to = onDay(due, day+1, s.To)
		}
		if due.Before(from) {
			return from
		}
		if due.Before(to) {
			return due
		}
	}
}

// onDay returns a time of day, some days after the day of t. It does not add durations, because a
// day on which clocks change has 23 or 25 hours.
func onDay(t time.Time, days int, clock time.Duration) time.Time {
	year, month, day := t.Date()
	h, m, s := int(clock/time.Hour), int(clock/time.Minute)%60, int(clock/time.Second)%60
	return time.Date(year, month, day+days, h, m, s, 0, t.Location())
}

// A clock tells the time and waits; tests have one of their own.
type clock interface {
	now() time.Time
	// after returns a channel that receives a value when d has passed, and a function that ends the
	// wait.
	after(d time.Duration) (passed <-chan time.Time, stop func())
}

type systemClock struct{}

func (systemClock) now() time.Time { return time.Now() }

func (systemClock) after(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// A scheduler owns the goroutine of a RebuildSchedule.
type scheduler struct{ work sync.WaitGroup }

func (s *scheduler) start(db *DB) {
	if db.opts.Rebuild.Every > 0 {
		s.work.Go(func() { db.runSchedule(db.opts.Rebuild) })
	}
}

// wait waits for the goroutine, which ends when the database is closed.
func (s *scheduler) wait() { s.work.Wait() }

func (db *DB) runSchedule(s RebuildSchedule) {
	due := db.opts.clock.now().Add(s.Every)
	for {
		due = s.next(due)
		passed, stop := db.opts.clock.after(due.Sub(db.opts.clock.now()))
		select {
		case <-passed:
		case <-db.closing.Done():
			stop()
			return
		}
		db.rebuildAll(db.closing, s.MinDrift)
		// Turns that became due during this one are skipped.
		for now := db.opts.clock.now(); !due.After(now); {
			due = due.Add(s.Every)
		}
	}
}

// rebuildAll rebuilds every collection. Rebuild logs a failure, and the next collection is rebuilt
// all the same.
func (db *DB) rebuildAll(ctx context.Context, minDrift float64) {
	names, err := db.Collections(ctx)
	if err != nil {
		db.slog.Warn("scheduled rebuild", "err", err)
	}
	for _, name := range names {
		c, err := db.Collection(name)
		if err != nil || ctx.Err() != nil {
			continue // dropped meanwhile, or closing
		}
		_, _ = c.Rebuild(ctx, &RebuildOptions{MinDrift: minDrift})
	}
}
