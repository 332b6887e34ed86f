package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var (
	errShort  = errors.New("data ends early")
	errVarint = errors.New("varint longer than 64 bits")
)

// Reader is a cursor over bytes from outside. Its error is sticky: after the first failure every
// method returns a zero value and leaves the cursor where the failing read began. A Reader never
// panics on its input and never allocates.
type Reader struct {
	file    string
	section string
	base    int64 // offset of buf[0] in the file
	buf     []byte
	pos     int
	err     error
}

// NewReader returns a cursor over b, which starts at offset base of the named file. File and
// section are what errors will name.
func NewReader(file, section string, base int64, b []byte) *Reader {
	return &Reader{file: file, section: section, base: base, buf: b}
}

// Section changes the part of the format that later errors name.
func (r *Reader) Section(name string) { r.section = name }

// Err returns the first failure, a CorruptError, or nil.
func (r *Reader) Err() error { return r.err }

// Offset returns where in the file the next read begins.
func (r *Reader) Offset() int64 { return r.base + int64(r.pos) }

// Len returns how many bytes are left: zero after a failure.
func (r *Reader) Len() int {
	if r.err != nil {
		return 0
	}
	return len(r.buf) - r.pos
}

// Fail makes the cursor fail at the next byte to be read, unless it has failed already. It is for
// values that were read well and make no sense.
func (r *Reader) Fail(format string, args ...any) {
	if r.err == nil {
		r.err = Corrupt(r.file, r.section, r.Offset(), format, args...)
	}
}

// End fails the cursor if bytes are left, and returns its error.
func (r *Reader) End() error {
	if n := r.Len(); n > 0 {
		r.Fail("%d bytes too many", n)
	}
	return r.err
}

// Bytes returns the next n bytes. They are a part of the input, not a copy; their capacity is
// clipped.
func (r *Reader) Bytes(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > len(r.buf)-r.pos {
		r.Fail("%w: %d bytes wanted, %d left", errShort, n, len(r.buf)-r.pos)
		return nil
	}
	b := r.buf[r.pos : r.pos+n : r.pos+n]
	r.pos += n
	return b
}

// Rest returns all bytes that are left, as Bytes does.
func (r *Reader) Rest() []byte { return r.Bytes(r.Len()) }

// Uint8 reads one byte.
func (r *Reader) Uint8() uint8 {
	b := r.Bytes(1)
	if b == nil {
		return 0
	}
	return b[0]
}

// Uint16 reads two bytes.
func (r *Reader) Uint16() uint16 {
	b := r.Bytes(2)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint16(b)
}

// Uint32 reads four bytes.
func (r *Reader) Uint32() uint32 {
	b := r.Bytes(4)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

// Uint64 reads eight bytes.
func (r *Reader) Uint64() uint64 {
	b := r.Bytes(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// Float32 reads four bytes as an IEEE 754 number. NaN and infinities are returned as they are.
func (r *Reader) Float32() float32 { return math.Float32frombits(r.Uint32()) }

// Float64 reads eight bytes as an IEEE 754 number. NaN and infinities are returned as they are.
func (r *Reader) Float64() float64 { return math.Float64frombits(r.Uint64()) }

// Uvarint reads an unsigned varint of encoding/binary.
func (r *Reader) Uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.buf[r.pos:])
	switch {
	case n == 0:
		r.Fail("%w: unfinished varint", errShort)
		return 0
	case n < 0:
		r.Fail("%w", errVarint)
		return 0
	}
	r.pos += n
	return v
}

// Count reads a varint that says how many elements of at least size bytes each follow, and fails if
// there are not that many bytes left. The result is therefore safe to allocate by. Size must be
// positive.
func (r *Reader) Count(size int) int {
	if size <= 0 {
		panic(fmt.Sprintf("format: Count of elements of %d bytes", size))
	}
	start := r.pos
	n := r.Uvarint()
	if r.err != nil {
		return 0
	}
	if left := len(r.buf) - r.pos; n > uint64(left/size) {
		r.pos = start
		r.Fail("%w: %d elements of at least %d bytes stated, %d bytes left", errShort, n, size, left)
		return 0
	}
	return int(n)
}

// Blob reads a varint length and that many bytes, which are a part of the input.
func (r *Reader) Blob() []byte { return r.Bytes(r.Count(1)) }

// String reads a varint length and that many bytes, which it copies. It does not check that they
// are UTF-8.
func (r *Reader) String() string { return string(r.Blob()) }
