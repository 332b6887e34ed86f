package format

import (
	"encoding/binary"
	"math"
)

// Writer appends what a Reader reads. The zero value is ready.
type Writer struct {
	buf []byte
}

// NewWriter returns a Writer that appends to buf, which it owns from then on.
func NewWriter(buf []byte) *Writer { return &Writer{buf: buf} }

// Data returns everything written. It stays valid until the next write.
func (w *Writer) Data() []byte { return w.buf }

// Len returns how many bytes Data has.
func (w *Writer) Len() int { return len(w.buf) }

// Bytes appends b without a length.
func (w *Writer) Bytes(b []byte) { w.buf = append(w.buf, b...) }

// Uint8 appends one byte.
func (w *Writer) Uint8(v uint8) { w.buf = append(w.buf, v) }

// Uint16 appends two bytes.
func (w *Writer) Uint16(v uint16) { w.buf = binary.LittleEndian.AppendUint16(w.buf, v) }

// Uint32 appends four bytes.
func (w *Writer) Uint32(v uint32) { w.buf = binary.LittleEndian.AppendUint32(w.buf, v) }

// Uint64 appends eight bytes.
func (w *Writer) Uint64(v uint64) { w.buf = binary.LittleEndian.AppendUint64(w.buf, v) }

// Float32 appends the four bytes of an IEEE 754 number.
func (w *Writer) Float32(v float32) { w.Uint32(math.Float32bits(v)) }

// Float64 appends the eight bytes of an IEEE 754 number.
func (w *Writer) Float64(v float64) { w.Uint64(math.Float64bits(v)) }

// Uvarint appends an unsigned varint.
func (w *Writer) Uvarint(v uint64) { w.buf = binary.AppendUvarint(w.buf, v) }

// Blob appends the length of b as a varint, then b.
func (w *Writer) Blob(b []byte) {
	w.Uvarint(uint64(len(b)))
	w.buf = append(w.buf, b...)
}

// String appends the length of s as a varint, then s.
func (w *Writer) String(s string) {
	w.Uvarint(uint64(len(s)))
	w.buf = append(w.buf, s...)
}

// CRC appends the CRC32C of everything from offset from of Data to its end.
func (w *Writer) CRC(from int) { w.Uint32(CRC(w.buf[from:])) }
