package backup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/flashdb/flashdb/internal/format"
)

// windowBytes is how far back compression looks. Rows of floats hold few repetitions, so that more
// would cost memory and save nothing.
const windowBytes = 1 << 20

// Writer writes a stream: each entry by Entry, and the end by Close.
type Writer struct {
	z      *zstd.Encoder
	header Header
	done   Header // Entries and Bytes so far
	crc    uint32 // of everything written
	buf    []byte // one chunk and its checksum
}

// NewWriter begins a stream that will hold what h says. Close must be called also after an error.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	z, err := zstd.NewWriter(w, zstd.WithWindowSize(windowBytes), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("begin a zstd stream: %w", err)
	}
	bw := &Writer{z: z, header: h, buf: make([]byte, 0, chunkBytes+crcSize)}
	if err := bw.write(appendHeader(bw.buf, h)); err != nil {
		return nil, errors.Join(err, z.Close())
	}
	return bw, nil
}

// Entry adds a file: e.Size bytes of r. It is an error if r has fewer.
func (w *Writer) Entry(e Entry, r io.Reader) error {
	if err := checkName(e.Name); err != nil {
		return fmt.Errorf("add to backup: %w", err)
	}
	if err := w.write(appendEntry(w.buf[:0], e)); err != nil {
		return err
	}
	for left := e.Size; left > 0; {
		chunk := w.buf[:min(left, chunkBytes)]
		if _, err := io.ReadFull(r, chunk); err != nil {
			return fmt.Errorf("read %s at offset %d of %d: %w", e.Name, e.Size-left, e.Size, err)
		}
		left -= uint64(len(chunk))
		if err := w.write(binary.LittleEndian.AppendUint32(chunk, format.CRC(chunk))); err != nil {
			return err
		}
	}
	w.done.Entries++
	w.done.Bytes += e.Size
	return nil
}

func (w *Writer) write(b []byte) error {
	w.crc = format.CRCUpdate(w.crc, b)
	_, err := w.z.Write(b)
	return err
}

// Abandon frees what the Writer holds without ending the stream: no Reader takes it for whole.
func (w *Writer) Abandon() {
	w.z.Reset(io.Discard)
	_ = w.z.Close() // it writes to nowhere
}

// Close ends the stream. It does not close what the stream was written to.
func (w *Writer) Close() error {
	if w.done.Entries != w.header.Entries || w.done.Bytes != w.header.Bytes {
		w.Abandon()
		return fmt.Errorf("end backup: it has %d entries of %d bytes, its header says %d of %d",
			w.done.Entries, w.done.Bytes, w.header.Entries, w.header.Bytes)
	}
	if err := w.write(appendTrailer(w.buf[:0], w.header, w.crc)); err != nil {
		w.Abandon()
		return err
	}
	return w.z.Close()
}
