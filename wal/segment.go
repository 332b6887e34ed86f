package wal

import (
	"bufio"
	"fmt"
	"io"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/vfs"
)

const readBuffer = 256 << 10

// segmentReader reads the frames of one segment in order, holding one frame in memory, or none if
// it only verifies.
type segmentReader struct {
	name  string // path, for errors
	size  int64  // read no further
	off   int64  // of the next frame
	next  LSN    // what the next frame must have
	group uint32 // of the frame before
	begun bool   // there was a frame before
	buf   *bufio.Reader
}

// newSegmentReader returns a reader of the frames of f, whose header has been checked, from the
// first one to size.
func newSegmentReader(f vfs.File, name string, first LSN, size int64) *segmentReader {
	section := io.NewSectionReader(f, headerSize, size-headerSize)
	return &segmentReader{name: name, size: size, off: headerSize, next: first, buf: bufio.NewReaderSize(section, int(min(section.Size(), readBuffer)))}
}

// verify checks the next frame's checksum and place without keeping the payload. It returns io.EOF
// after the last frame, a *notWhole if the frame is not whole, and a CorruptError if it is whole
// and wrong.
func (r *segmentReader) verify() error {
	f, crc, err := r.fixed()
	if err != nil {
		return err
	}
	for left := int(f.length); left > 0; {
		b, err := r.buf.Peek(min(left, r.buf.Size()))
		if err != nil {
			return r.readError(err)
		}
		crc = format.CRCUpdate(crc, b)
		left -= len(b)
		if _, err := r.buf.Discard(len(b)); err != nil {
			return r.readError(err)
		}
	}
	return r.accept(f, crc)
}

// read is verify and returns the record, which is the caller's to keep.
func (r *segmentReader) read() (lsn LSN, record []byte, err error) {
	f, crc, err := r.fixed()
	if err != nil {
		return 0, nil, err
	}
	stored := make([]byte, f.length) // at most what is left of the file
	if _, err := io.ReadFull(r.buf, stored); err != nil {
		return 0, nil, r.readError(err)
	}
	off := r.off
	if err := r.accept(f, format.CRCUpdate(crc, stored)); err != nil {
		return 0, nil, err
	}
	record, err = unpack(stored, f.flags)
	if err != nil {
		return 0, nil, format.Corrupt(r.name, sectionFrame, off, "payload of record %d: %w", f.lsn, err)
	}
	return f.lsn, record, nil
}

// fixed reads the fixed part of the next frame, and returns the checksum of its part.
func (r *segmentReader) fixed() (f frame, crc uint32, err error) {
	left := r.size - r.off
	if left == 0 {
		return frame{}, 0, io.EOF
	}
	if left < frameSize {
		return frame{}, 0, incomplete("%d bytes are left, a frame has at least %d", left, frameSize)
	}
	var b [frameSize]byte
	if _, err := io.ReadFull(r.buf, b[:]); err != nil {
		return frame{}, 0, r.readError(err)
	}
	f = parseFrame(b[:])
	if left -= frameSize; int64(f.length) > left {
		return frame{}, 0, incomplete("payload of %d bytes stated, %d are left", f.length, left)
	}
	return f, format.CRC(b[4:]), nil
}

// accept moves past a frame whose bytes were all read, if it is the frame that must come next.
func (r *segmentReader) accept(f frame, crc uint32) error {
	switch {
	case crc != f.crc:
		return incomplete("checksum is %08x, the bytes give %08x", f.crc, crc)
	case f.lsn != r.next:
		return format.Corrupt(r.name, sectionFrame, r.off, "record %d where %d must follow", f.lsn, r.next)
	case f.flags&^flagS2 != 0:
		return format.Corrupt(r.name, sectionFrame, r.off, "%w %#x of record %d", errFlags, f.flags, f.lsn)
	case f.group != 0 && (!r.begun || uint64(f.group) != uint64(r.group)+1):
		return format.Corrupt(r.name, sectionFrame, r.off, "place %d in the group of record %d does not follow", f.group, f.lsn)
	}
	r.off += frameSize + int64(f.length)
	r.next++
	r.group, r.begun = f.group, true
	return nil
}

// readError returns the error for a read that failed although the file was long enough. An I/O
// error is no damage, and nothing may be cut off because of it.
func (r *segmentReader) readError(err error) error {
	return fmt.Errorf("read log segment %s: %w", r.name, err)
}

// corrupt makes a bad frame at the reader's position, where no torn write can be, a CorruptError.
func (r *segmentReader) corrupt(b *notWhole) error {
	return format.Corrupt(r.name, sectionFrame, r.off, "record %d: %w", r.next, b.cause)
}
