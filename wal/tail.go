package wal

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/vfs"
)

// scanBudget bounds, in multiples of the tail's length, how many bytes are checksummed in the
// search for whole frames. Real tails need about one; only bytes made to look like many overlapping
// frames need more.
const scanBudget = 8

// judgeTail decides about the bad frame at which r stopped in the last segment f. It returns nil if
// a torn write explains it, and otherwise a CorruptError. A frame's length cannot be trusted once
// its checksum fails, so whole frames are looked for at every byte.
func judgeTail(f vfs.File, r *segmentReader, b *notWhole) error {
	s := tailScan{file: f, name: r.name, size: r.size, bad: r.next, budget: scanBudget*(r.size-r.off) + readBuffer}
	s.newest = r.next + LSN((r.size-r.off)/frameSize)
	lsn, off, err := s.laterGroup(r.off + 1)
	switch {
	case err != nil:
		return err
	case s.budget < 0:
		return format.Corrupt(r.name, sectionFrame, r.off, "record %d: %w; too much after it looks like records for a torn write", r.next, b.cause)
	case lsn != 0:
		return format.Corrupt(r.name, sectionFrame, r.off, "record %d: %w; record %d at offset %d was written later and is whole, so this is no torn write",
			r.next, b.cause, lsn, off)
	}
	return nil
}

// tailScan looks for whole frames in bytes that are not aligned to frames.
type tailScan struct {
	file   vfs.File
	name   string
	size   int64
	bad    LSN   // the record whose frame is bad
	newest LSN   // more records than up to this one do not fit in the tail
	budget int64 // bytes that may still be checksummed; negative when spent
}

// laterGroup returns the first whole frame at or after off that was written after the bad one had
// been synced: one whose group began after it. It returns 0 if there is none, or when the budget is
// spent.
func (s *tailScan) laterGroup(off int64) (LSN, int64, error) {
	window := make([]byte, min(readBuffer, max(s.size-off, 0)))
	for s.size-off >= frameSize {
		b := window[:min(int64(len(window)), s.size-off)]
		if _, err := s.file.ReadAt(b, off); err != nil && err != io.EOF {
			return 0, 0, fmt.Errorf("read log segment %s: %w", s.name, err)
		}
		n := len(b) - frameSize + 1 // frames that may begin in this window
		for i := range n {
			f := parseFrame(b[i:])
			if !s.plausible(f, off+int64(i)) {
				continue
			}
			whole, err := s.whole(f, off+int64(i))
			if err != nil || s.budget < 0 {
				return 0, 0, err
			}
			if whole {
				return f.lsn, off + int64(i), nil
			}
		}
		off += int64(n)
	}
	return 0, 0, nil
}

// plausible reports whether f at off could be a frame of a later group than that of the bad frame.
func (s *tailScan) plausible(f frame, off int64) bool {
	return f.lsn > s.bad && f.lsn <= s.newest && f.flags&^flagS2 == 0 &&
		uint64(f.group) < uint64(f.lsn-s.bad) && int64(f.length) <= s.size-off-frameSize
}

// whole reports whether the checksum of f at off is right.
func (s *tailScan) whole(f frame, off int64) (bool, error) {
	if s.budget -= frameSize + int64(f.length); s.budget < 0 {
		return false, nil
	}
	section := io.NewSectionReader(s.file, off+4, frameSize-4+int64(f.length))
	var crc uint32
	buf := make([]byte, min(section.Size(), readBuffer))
	for {
		n, err := section.Read(buf)
		crc = format.CRCUpdate(crc, buf[:n])
		if err == io.EOF {
			return crc == f.crc, nil
		}
		if err != nil {
			return false, fmt.Errorf("read log segment %s: %w", s.name, err)
		}
	}
}

// tornHeader reports whether the last segment, whose header is not whole, may be what a crash
// leaves of a new segment. Such a segment was never synced, so it has no frame.
func tornHeader(f vfs.File, size int64) (bool, error) {
	if size <= headerSize {
		return true, nil
	}
	buf := make([]byte, min(size, readBuffer))
	for off := int64(0); off < size; {
		b := buf[:min(int64(len(buf)), size-off)]
		if _, err := f.ReadAt(b, off); err != nil && err != io.EOF {
			return false, err
		}
		if !zero(b) {
			return false, nil
		}
		off += int64(len(b))
	}
	return true, nil
}

func zero(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
	}
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
