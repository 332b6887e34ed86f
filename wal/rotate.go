package wal

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/flashdb/flashdb/internal/failpoint"
)

// rotate makes a new active segment, which begins with the next record. Everything in the old one
// is durable. When it returns nil the new segment has its header and its name on disk; a crash
// before leaves a torn segment or none.
func (l *Log) rotate() error {
	if l.active != nil {
		err := l.active.Close()
		l.active = nil
		if err != nil {
			return fmt.Errorf("close log segment %s: %w", l.fs.Path(l.path(l.segments[len(l.segments)-1])), err)
		}
	}
	if l.restart {
		if err := l.removeFirst(len(l.segments)); err != nil {
			return err
		}
		l.restart = false
	}
	name := l.path(l.next)
	f, err := l.fs.Create(name)
	if err != nil {
		return fmt.Errorf("create log segment: %w", err)
	}
	_, err = f.WriteAt(appendHeader(nil, l.next), 0)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		failpoint.WALRotate.Reach()
		err = l.fs.SyncDir(l.dir)
	}
	if err != nil {
		return fmt.Errorf("create log segment %s: %w", l.fs.Path(name), errors.Join(err, f.Close()))
	}
	l.segments = append(l.segments, l.next)
	l.active, l.size = f, headerSize
	return nil
}

// removeFirst removes the n oldest segments. The directory is synced after each, so that no crash
// leaves an older one without a younger: a hole would look like a lost segment.
func (l *Log) removeFirst(n int) error {
	for range n {
		failpoint.WALDrop.Reach()
		if err := l.fs.Remove(l.path(l.segments[0])); err != nil && !errors.Is(err, fs.ErrNotExist) { // somebody else removed it
			return fmt.Errorf("remove log segment: %w", err)
		}
		failpoint.WALDropped.Reach()
		l.segments = l.segments[1:]
		if err := l.fs.SyncDir(l.dir); err != nil {
			return fmt.Errorf("remove log segment: %w", err)
		}
	}
	return nil
}

// Drop removes the segments that have no record after upTo, because the caller now has these
// records elsewhere. If these are all segments, it first begins a new one, whose name records the
// next LSN. A failed log begins no segment, and drops what it can.
func (l *Log) Drop(upTo LSN) error {
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.check(); err != nil {
		err = fmt.Errorf("%w: %w", ErrFailed, err)
		l.fail(err)
		return err
	}
	if l.active != nil && l.size > headerSize && l.next-1 <= upTo && l.refusal() == nil {
		if err := l.rotate(); err != nil {
			err = fmt.Errorf("%w: %w", ErrFailed, err)
			l.fail(err)
			return err
		}
	}
	n := 0
	for n+1 < len(l.segments) && l.segments[n+1]-1 <= upTo {
		n++
	}
	return l.removeFirst(n)
}
