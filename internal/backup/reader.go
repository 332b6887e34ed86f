package backup

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/flashdb/flashdb/internal/format"
)

const (
	// maxWindow is how much history a stream may ask its reader to keep. Writer asks for less; the
	// rest is for streams that somebody packed anew.
	maxWindow = 8 << 20

	// A stream may unpack to so many bytes, and to so many times what was read of it. Real
	// databases stay far below; it takes a stream made to fill a disk to exceed it.
	freeBytes = 64 << 20
	maxRatio  = 1000
)

var errShort = errors.New("the stream ends early")

// Options shape a Reader. The zero value, or nil, means the defaults.
type Options struct {
	// File is the stream's name in errors.
	File string
	// MaxBytes bounds what the stream may unpack to. Default 64 MiB and 1000 times what was read of
	// it.
	MaxBytes uint64
}

// limit returns how many bytes a stream may unpack to after so many packed bytes were read.
func (o *Options) limit(packed uint64) uint64 {
	if o.MaxBytes != 0 {
		return o.MaxBytes
	}
	return freeBytes + maxRatio*packed
}

// Reader reads a stream: Next leads from entry to entry, Read reads the bytes of the one it is at.
// Damage is a [format.CorruptError] whose offset counts unpacked bytes. No byte is handed out
// before its checksum has been verified, but the stream as a whole is good only once Next has
// returned io.EOF.
type Reader struct {
	file   string
	opts   Options
	in     *countedReader
	z      *zstd.Decoder
	header Header
	done   Header // Entries and Bytes so far
	crc    uint32 // of everything read
	off    int64  // bytes unpacked
	left   uint64 // of the current entry, not yet read from the stream
	chunk  []byte // verified, not yet handed out
	buf    []byte
	err    error // sticky
}

// NewReader begins to read a stream. Close must be called.
func NewReader(r io.Reader, opt *Options) (*Reader, error) {
	var o Options
	if opt != nil {
		o = *opt
	}
	in := &countedReader{r: r}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, fmt.Errorf("begin to read a zstd stream: %w", err)
	}
	br := &Reader{file: o.File, opts: o, in: in, z: z, buf: make([]byte, 0, headerSize)}
	if err := br.readHeader(); err != nil {
		br.Close()
		return nil, err
	}
	return br, nil
}

func (r *Reader) readHeader() error {
	b, err := r.fill(sectionHeader, r.buf[:headerSize])
	if err == nil {
		r.header, err = parseHeader(r.file, b)
	}
	return err
}

// Header returns what the stream says about itself.
func (r *Reader) Header() Header { return r.header }

// Packed returns how many bytes of the compressed stream were read.
func (r *Reader) Packed() uint64 { return r.in.n }

// Close frees what the Reader holds.
func (r *Reader) Close() { r.z.Close() }

// Next goes to the next entry; what was not read of the one before is verified and skipped. It
// returns io.EOF after the last entry, once the end of the stream has been verified.
func (r *Reader) Next() (Entry, error) {
	if r.err == nil {
		_, r.err = io.Copy(io.Discard, onlyReader{r})
	}
	var e Entry
	if r.err == nil {
		e, r.err = r.next()
	}
	return e, r.err
}

func (r *Reader) next() (e Entry, err error) {
	start, before := r.off, r.crc
	b, err := r.fill(sectionEntry, r.fixed(entrySize))
	if err != nil {
		return e, err
	}
	p := format.NewReader(r.file, sectionEntry, start, b)
	e.Kind = Kind(p.Uint8())
	zero, nameLen := p.Uint8(), int(p.Uint16())
	if e.Kind == kindEnd {
		return e, r.end(start, before, b)
	}
	e.Size = p.Uint64()
	if zero != 0 || e.Kind > Generation || nameLen == 0 || nameLen > maxName {
		return e, format.Corrupt(r.file, sectionEntry, start, "kind %d, reserved byte %d, name of %d bytes", e.Kind, zero, nameLen)
	}
	crc := format.CRC(b)
	if b, err = r.fill(sectionEntry, r.fixed(nameLen+crcSize)); err != nil {
		return e, err
	}
	e.Name = string(b[:nameLen])
	stored := format.NewReader(r.file, sectionEntry, r.off-crcSize, b[nameLen:]).Uint32()
	if sum := format.CRCUpdate(crc, b[:nameLen]); sum != stored {
		return e, format.Corrupt(r.file, sectionEntry, r.off-crcSize, "checksum is %08x, stored is %08x", sum, stored)
	}
	if err := checkName(e.Name); err != nil {
		return e, format.Corrupt(r.file, sectionEntry, start, "%w", err)
	}
	if r.done.Entries == r.header.Entries || e.Size > r.header.Bytes-r.done.Bytes {
		return e, format.Corrupt(r.file, sectionEntry, start, "%q of %d bytes is more than the header announced", e.Name, e.Size)
	}
	r.done.Entries++
	r.done.Bytes += e.Size
	r.left, r.chunk = e.Size, nil
	return e, nil
}

// end verifies the trailer, of which b was read, and that nothing follows it. It returns io.EOF if
// all is well.
func (r *Reader) end(start int64, before uint32, b []byte) error {
	var trailer [trailerSize]byte
	n := copy(trailer[:], b)
	if _, err := r.fill(sectionTrailer, trailer[n:]); err != nil {
		return err
	}
	p := format.NewReader(r.file, sectionTrailer, start, trailer[:])
	zero, got := p.Uint32(), Header{Entries: p.Uint32(), Bytes: p.Uint64(), LSN: r.header.LSN}
	crc := format.CRCUpdate(before, trailer[:trailerSize-crcSize])
	if stored := p.Uint32(); crc != stored {
		return format.Corrupt(r.file, sectionTrailer, start, "checksum is %08x, stored is %08x", crc, stored)
	}
	if done := r.done; zero != 0 || got != r.header || done.Entries != got.Entries || done.Bytes != got.Bytes {
		return format.Corrupt(r.file, sectionTrailer, start, "it counts %d entries of %d bytes, the header %d of %d, and there were %d of %d",
			got.Entries, got.Bytes, r.header.Entries, r.header.Bytes, done.Entries, done.Bytes)
	}
	var one [1]byte
	switch n, err := io.ReadFull(r.z, one[:]); {
	case n > 0:
		return format.Corrupt(r.file, sectionTrailer, r.off, "bytes follow the end")
	case err != io.EOF:
		return r.failure(sectionTrailer, err)
	}
	return io.EOF
}

// Read reads the current entry.
func (r *Reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if len(r.chunk) == 0 {
		if r.left == 0 {
			return 0, io.EOF
		}
		if r.err = r.readChunk(); r.err != nil {
			return 0, r.err
		}
	}
	n := copy(p, r.chunk)
	r.chunk = r.chunk[n:]
	return n, nil
}

func (r *Reader) readChunk() error {
	start, n := r.off, int(min(r.left, chunkBytes))
	b, err := r.fill(sectionChunk, r.fixed(n+crcSize))
	if err != nil {
		return err
	}
	stored := format.NewReader(r.file, sectionChunk, start+int64(n), b[n:]).Uint32()
	if sum := format.CRC(b[:n]); sum != stored {
		return format.Corrupt(r.file, sectionChunk, start, "checksum of %d bytes is %08x, stored is %08x", n, sum, stored)
	}
	r.left -= uint64(n)
	r.chunk = b[:n]
	return nil
}

// fixed returns scratch of n bytes. It grows to a chunk at most.
func (r *Reader) fixed(n int) []byte {
	if cap(r.buf) < n {
		r.buf = make([]byte, n)
	}
	return r.buf[:n]
}

// fill reads all of b from the stream and returns it.
func (r *Reader) fill(section string, b []byte) ([]byte, error) {
	n, err := io.ReadFull(r.z, b)
	r.crc = format.CRCUpdate(r.crc, b[:n])
	r.off += int64(n)
	if err != nil {
		return nil, r.failure(section, err)
	}
	if limit := r.opts.limit(r.in.n); uint64(r.off) > limit {
		return nil, format.Corrupt(r.file, sectionFrame, r.off, "it unpacks to more than %d bytes from %d: allow as many as you expect, if that is right", limit, r.in.n)
	}
	return b, nil
}

// failure tells a source that could not be read from one that held the wrong bytes.
func (r *Reader) failure(section string, err error) error {
	switch {
	case r.in.err != nil:
		return fmt.Errorf("read %s: %w", named(r.file), r.in.err)
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return format.Corrupt(r.file, section, r.off, "%w", errShort)
	case errors.Is(err, zstd.ErrMagicMismatch) && r.off == 0:
		return format.Corrupt(r.file, sectionFrame, 0, "not a flashdb backup: it is not zstd-compressed")
	}
	return format.Corrupt(r.file, sectionFrame, r.off, "%w", err)
}

// onlyReader hides from io.Copy that it could be more.
type onlyReader struct{ io.Reader }

// countedReader counts bytes and remembers why its source failed.
type countedReader struct {
	r   io.Reader
	n   uint64
	err error // other than io.EOF
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += uint64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}
