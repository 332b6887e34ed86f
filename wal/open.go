package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/vfs"
)

// Options are the options of Open. Nil or zero values mean the defaults.
type Options struct {
	// SegmentBytes is the size at which a segment is full: no further group is written to it.
	// Default 64 MiB.
	SegmentBytes int64
	// ReadOnly opens the log without changing anything in its directory. A torn write at the end is
	// ignored and stays. A missing directory is an empty log. Writes are refused.
	ReadOnly bool
	// Held, if set, is called before each group is written and before a segment is made or removed.
	// If it returns an error, because the caller no longer owns the directory, nothing is changed
	// and the log has failed.
	Held func() error
}

func (o *Options) withDefaults() Options {
	var v Options
	if o != nil {
		v = *o
	}
	if v.SegmentBytes == 0 {
		v.SegmentBytes = 64 << 20
	}
	return v
}

// Torn describes a torn write that Open cut off. No record in it was acknowledged.
type Torn struct {
	File   string
	Offset int64 // where the file was cut; 0 if the whole file was removed
	Bytes  int64 // how many were cut off
	Cause  error // what was found at Offset
}

// Open opens the log in dir and reads all of it. It creates dir if there is none. A torn write at
// the end is cut off (see [Log.Torn]). Any other damage is a [format.CorruptError], and nothing is
// changed. The caller must make sure that no other Log has the directory open, unless all are
// read-only.
func Open(fsys vfs.FS, dir string, opt *Options) (*Log, error) {
	o := opt.withDefaults()
	if o.SegmentBytes < 0 {
		return nil, fmt.Errorf("open log %s: SegmentBytes is %d, must not be negative", dir, o.SegmentBytes)
	}
	l := &Log{fs: fsys, dir: dir, segmentBytes: o.SegmentBytes, readOnly: o.ReadOnly, held: o.Held, lead: make(chan struct{}, 1), next: 1}
	if err := l.open(); err != nil {
		if l.active != nil {
			l.active.Close() // nothing was written through it
		}
		return nil, fmt.Errorf("open log: %w", err)
	}
	l.durable.Store(uint64(l.next - 1))
	return l, nil
}

func (l *Log) open() error {
	if !l.readOnly {
		if err := l.fs.MkdirAll(l.dir); err != nil {
			return err
		}
		if err := l.fs.SyncDir(filepath.Dir(l.dir)); err != nil {
			return err
		}
	}
	segments, err := listSegments(l.fs, l.dir)
	if l.readOnly {
		l.failed = ErrReadOnly
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	for i, first := range segments {
		last := i == len(segments)-1
		if i > 0 && first != l.next {
			return missing(l.fs.Path(l.path(first)), l.next, first)
		}
		end, err := verifySegment(l.fs, l.path(first), first, last)
		if err != nil {
			return err
		}
		l.next = end.next
		switch {
		case last && l.readOnly:
			return l.view(segments, end)
		case last:
			return l.resume(segments, end)
		}
	}
	return nil
}

// listSegments returns the first LSNs of the segments in dir, ascending. It ignores files of other
// names.
func listSegments(fsys vfs.FS, dir string) ([]LSN, error) {
	names, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var segments []LSN
	for _, name := range names { // sorted, and so are fixed-width numbers
		if first, ok := parseSegmentName(name); ok {
			segments = append(segments, first)
		}
	}
	return segments, nil
}

func missing(file string, from, to LSN) error {
	if to < from {
		return format.Corrupt(file, sectionSegment, 0, "begins with record %d, which the segment before has too", to)
	}
	return format.Corrupt(file, sectionSegment, 0, "begins with record %d: records %d to %d are missing before it", to, from, to-1)
}

// segmentEnd is where the whole frames of a segment end.
type segmentEnd struct {
	next LSN   // record to come
	off  int64 // in the file; 0 if not even the header is whole
	torn *Torn // what is behind, or nil
}

// verifySegment reads a segment without changing it. Only in the last one a torn write is no error.
func verifySegment(fsys vfs.FS, name string, first LSN, last bool) (end segmentEnd, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return segmentEnd{}, err
	}
	defer f.Close()
	name = fsys.Path(name)
	size, err := f.Size()
	if err != nil {
		return segmentEnd{}, err
	}
	err = readHeader(f, name, first, size)
	if broken := (*notWhole)(nil); errors.As(err, &broken) {
		if torn, err := tornHeader(f, size); err != nil {
			return segmentEnd{}, fmt.Errorf("read log segment %s: %w", name, err)
		} else if last && torn {
			return segmentEnd{next: first, torn: &Torn{File: name, Bytes: size, Cause: broken.cause}}, nil
		}
		return segmentEnd{}, format.Corrupt(name, sectionHeader, 0, "%w", broken.cause)
	}
	if err != nil {
		return segmentEnd{}, err
	}
	r := newSegmentReader(f, name, first, size)
	for err == nil {
		err = r.verify()
	}
	end = segmentEnd{next: r.next, off: r.off}
	if err == io.EOF {
		return end, nil
	}
	broken := (*notWhole)(nil)
	if !errors.As(err, &broken) {
		return segmentEnd{}, err
	}
	if !last {
		return segmentEnd{}, r.corrupt(broken)
	}
	end.torn = &Torn{File: name, Offset: r.off, Bytes: size - r.off, Cause: broken.cause}
	return end, judgeTail(f, r, broken)
}

// readHeader reads and checks the header of a segment of the given size.
func readHeader(f vfs.File, name string, first LSN, size int64) error {
	b := make([]byte, min(size, headerSize))
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return fmt.Errorf("read log segment %s: %w", name, err)
	}
	return parseHeader(name, b, first)
}

// view makes segments those to be replayed, without what is torn.
func (l *Log) view(segments []LSN, end segmentEnd) (err error) {
	l.torn, l.segments, l.size = end.torn, segments, end.off
	if end.off == 0 { // nothing of the last one counts
		l.segments = segments[:len(segments)-1]
		if n := len(l.segments); n > 0 {
			l.size, err = l.fs.Size(l.path(l.segments[n-1]))
		}
	}
	return err
}

// resume makes the last segment the active one, after it cut off a torn write. It syncs even if
// there is nothing to cut off, because records that a killed process wrote but did not sync count
// as durable from now on.
func (l *Log) resume(segments []LSN, end segmentEnd) error {
	l.torn = end.torn
	name := l.path(segments[len(segments)-1])
	if end.off == 0 {
		if err := l.fs.Remove(name); err != nil {
			return err
		}
		segments = segments[:len(segments)-1]
		if len(segments) == 0 {
			return nil // should a crash bring the file back, the next Open removes it again
		}
		name = l.path(segments[len(segments)-1])
	}
	var err error
	if l.active, err = l.fs.OpenRW(name); err != nil {
		return err
	}
	if l.size, err = l.active.Size(); err != nil {
		return err
	}
	if end.torn != nil && end.off > 0 {
		if err := l.active.Truncate(end.off); err != nil {
			return fmt.Errorf("cut off a torn write: %w", err)
		}
		l.size = end.off
	}
	if err := l.active.Sync(); err != nil {
		return err
	}
	l.segments = segments
	return l.fs.SyncDir(l.dir)
}

// Torn returns the torn write that Open cut off, or nil if the log ended cleanly.
func (l *Log) Torn() *Torn { return l.torn }

func (l *Log) path(first LSN) string { return filepath.Join(l.dir, segmentName(first)) }
