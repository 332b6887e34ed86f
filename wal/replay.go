package wal

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/vfs"
)

// Replay calls fn for every durable record after the given one, in order, and stops at fn's first
// error. It holds one record in memory. fn may keep the payload. If records right after the given
// one are missing, it returns a CorruptError. No write runs meanwhile.
func (l *Log) Replay(after LSN, fn func(lsn LSN, payload []byte) error) error {
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if len(l.segments) > 0 && l.segments[0] > after+1 {
		return fmt.Errorf("replay log: %w", missing(l.fs.Path(l.path(l.segments[0])), after+1, l.segments[0]))
	}
	for i, first := range l.segments {
		last := i == len(l.segments)-1
		if !last && l.segments[i+1] <= after+1 {
			continue
		}
		size := int64(-1)
		if last {
			size = l.size // there may be more of a group that failed
		}
		if err := l.replaySegment(first, size, after, fn); err != nil {
			return fmt.Errorf("replay log: %w", err)
		}
	}
	return nil
}

func (l *Log) replaySegment(first LSN, size int64, after LSN, fn func(lsn LSN, payload []byte) error) error {
	return readSegment(l.fs, l.path(first), first, size, func(lsn LSN, payload []byte) error {
		if lsn <= after {
			return nil
		}
		return fn(lsn, payload)
	})
}

// readSegment calls fn for every record in the first size bytes of a segment; a negative size means
// all of it. A segment that is not whole is a CorruptError.
func readSegment(fsys vfs.FS, name string, first LSN, size int64, fn func(lsn LSN, payload []byte) error) error {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	name = fsys.Path(name)
	actual, err := f.Size()
	if err != nil {
		return err
	}
	switch {
	case size < 0:
		size = actual
	case size > actual:
		return format.Corrupt(name, sectionSegment, actual, "ends here and had %d bytes", size)
	}
	broken := (*notWhole)(nil)
	if err := readHeader(f, name, first, size); errors.As(err, &broken) {
		return format.Corrupt(name, sectionHeader, 0, "%w", broken.cause)
	} else if err != nil {
		return err
	}
	r := newSegmentReader(f, name, first, size)
	for {
		off := r.off
		lsn, payload, err := r.read()
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &broken):
			return r.corrupt(broken)
		case err != nil:
			return err
		}
		if err := fn(lsn, payload); err != nil {
			return inRecord(err, lsn, name, off)
		}
	}
}

// inRecord adds to an error which record it is about, and to an error about damaged content where
// the record is.
func inRecord(err error, lsn LSN, name string, off int64) error {
	if corrupt, ok := err.(*format.CorruptError); ok && corrupt.File == "" {
		return format.Corrupt(name, corrupt.Section, off, "record %d: %w", lsn, corrupt.Cause)
	}
	return fmt.Errorf("record %d: %w", lsn, err)
}

// Check reads all of the log in dir, unpacks every record, and returns the first damage. A torn
// write at the end is no damage: the next Open cuts it off. Check changes nothing. If the log is
// open, no write may run meanwhile: see [Log.Locked].
func Check(fsys vfs.FS, dir string) error {
	segments, err := listSegments(fsys, dir)
	if err != nil {
		return fmt.Errorf("check log: %w", err)
	}
	for i, first := range segments {
		name := filepath.Join(dir, segmentName(first))
		end, err := verifySegment(fsys, name, first, i == len(segments)-1)
		if err == nil && end.off > 0 {
			err = readSegment(fsys, name, first, end.off, func(LSN, []byte) error { return nil })
		}
		if err == nil && i+1 < len(segments) && segments[i+1] != end.next {
			err = missing(fsys.Path(filepath.Join(dir, segmentName(segments[i+1]))), end.next, segments[i+1])
		}
		if err != nil {
			return fmt.Errorf("check log: %w", err)
		}
	}
	return nil
}
