package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/s2"

	"github.com/flashdb/flashdb/internal/format"
)

// LSN is a log sequence number: the number of a record. The first record of a database is 1.
type LSN uint64

// MaxPayload is how many bytes a record may have.
const MaxPayload = 1 << 30

const (
	magic      = "FLASHWAL"
	version    = 1
	headerSize = 24
	suffix     = ".log"

	frameSize = 24 // without the payload
	flagS2    = 1  // the payload is an S2 block

	maxFirst = math.MaxInt64 // LSN of a segment: no log has the other half, so that counting on never wraps

	minCompress = 64  // bytes; below that S2 has nothing to find
	maxRatio    = 256 // between a record and what is stored of it
)

// Names of the parts of a segment in errors.
const (
	sectionHeader  = "header"
	sectionFrame   = "frame"
	sectionSegment = "segment"
)

func segmentName(first LSN) string { return fmt.Sprintf("%016x%s", uint64(first), suffix) }

// parseSegmentName returns the LSN in a segment's name, and false for the name of anything else.
func parseSegmentName(name string) (first LSN, ok bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	first = LSN(n)
	return first, err == nil && first > 0 && first <= maxFirst && segmentName(first) == name
}

func appendHeader(dst []byte, first LSN) []byte {
	w := format.NewWriter(dst)
	start := w.Len()
	w.Bytes([]byte(magic))
	w.Uint32(version)
	w.Uint64(uint64(first))
	w.CRC(start)
	return w.Data()
}

// notWhole is the error for a header or a frame that is torn or damaged. Which of the two it is
// depends on the bytes around it.
type notWhole struct{ cause error }

func (e *notWhole) Error() string { return e.cause.Error() }

func incomplete(msg string, args ...any) error { return &notWhole{fmt.Errorf(msg, args...)} }

// parseHeader checks a segment's header, which must say that the segment begins with first. Its
// error is a *notWhole unless the checksum is right. The version is checked before anything that a
// later version may have changed.
func parseHeader(file string, b []byte, first LSN) error {
	r := format.NewReader(file, sectionHeader, 0, b)
	m, got, stated, crc := r.Bytes(len(magic)), r.Uint32(), LSN(r.Uint64()), r.Uint32()
	if r.Err() != nil {
		return incomplete("%d bytes, a header has %d", len(b), headerSize)
	}
	if string(m) != magic {
		return incomplete("magic is %q, not %q: not a log segment", m, magic)
	}
	if want := format.CRC(b[:headerSize-4]); crc != want {
		return incomplete("checksum is %08x, the bytes give %08x", crc, want)
	}
	if err := format.CheckVersion(file, got, version); err != nil {
		return err
	}
	if stated != first {
		return format.Corrupt(file, sectionHeader, 12, "first record is %d, the file's name says %d", stated, first)
	}
	return nil
}

// frame is the fixed part of a frame.
type frame struct {
	crc    uint32
	length uint32 // of the stored payload
	lsn    LSN
	flags  uint32
	group  uint32
}

// parseFrame reads the fixed part from the first frameSize bytes of b.
func parseFrame(b []byte) frame {
	return frame{
		crc:    binary.LittleEndian.Uint32(b),
		length: binary.LittleEndian.Uint32(b[4:]),
		lsn:    LSN(binary.LittleEndian.Uint64(b[8:])),
		flags:  binary.LittleEndian.Uint32(b[16:]),
		group:  binary.LittleEndian.Uint32(b[20:]),
	}
}

// appendFrame appends the frame of a record, compressed if that saves an eighth. The payload has at
// most MaxPayload bytes.
func appendFrame(dst []byte, lsn LSN, group uint32, payload []byte) []byte {
	start := len(dst)
	var flags uint32
	if n := len(payload); n >= minCompress && compressible(payload) {
		dst = slices.Grow(dst, frameSize+s2.MaxEncodedLen(n))
		block := s2.Encode(dst[start+frameSize:cap(dst)], payload) // in place: there is room for the worst case
		if len(block) <= n-n/8 && n/maxRatio < len(block) {
			flags = flagS2
			payload = block
		}
	}
	dst = slices.Grow(dst, frameSize+len(payload))[:start+frameSize]
	dst = append(dst, payload...)
	f := dst[start:]
	binary.LittleEndian.PutUint32(f[4:], uint32(len(payload)))
	binary.LittleEndian.PutUint64(f[8:], uint64(lsn))
	binary.LittleEndian.PutUint32(f[16:], flags)
	binary.LittleEndian.PutUint32(f[20:], group)
	binary.LittleEndian.PutUint32(f, format.CRC(f[4:]))
	return dst
}

// sampleBytes is how much of a long payload is compressed to see whether the rest is worth it: that
// of embeddings is not, and costs more time than all else that is done to log it.
const sampleBytes = 16 << 10

// compressible guesses whether compressing a payload saves an eighth, from a piece of its middle.
func compressible(payload []byte) bool {
	if len(payload) < 8*sampleBytes {
		return true
	}
	sample := payload[len(payload)/2:][:sampleBytes]
	return len(s2.Encode(nil, sample)) <= sampleBytes-sampleBytes/8
}

var (
	errRatio   = fmt.Errorf("record unpacks to more than %d times its size", maxRatio)
	errTooLong = fmt.Errorf("record unpacks to more than %d bytes", MaxPayload)
	errFlags   = errors.New("unknown flags")
)

// unpack returns the record that is stored under flags: stored itself if it is not compressed.
func unpack(stored []byte, flags uint32) ([]byte, error) {
	switch flags {
	case 0:
		return stored, nil
	case flagS2:
	default:
		return nil, fmt.Errorf("%w %#x", errFlags, flags)
	}
	n, err := s2.DecodedLen(stored)
	switch {
	case err != nil:
		return nil, err
	case n > MaxPayload:
		return nil, errTooLong
	case n/maxRatio >= len(stored):
		return nil, errRatio
	}
	return s2.Decode(make([]byte, n), stored)
}
