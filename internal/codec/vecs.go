package codec

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// vecsRows streams .fvecs and .bvecs: every row is its width, an int32, and that many float32 or
// uint8, little-endian.
type vecsRows struct {
	in     *blob
	stream io.Closer
	r      *bufio.Reader
	dtype  dtype
	dim    int
	count  int64
	record []byte // one row as stored
	row    int64  // the next row
	err    error
}

func newVecs(in *blob, t dtype) (RowReader, error) {
	stream, err := in.stream()
	if err != nil {
		return nil, in.located(err, 0)
	}
	v := &vecsRows{in: in, stream: stream, r: bufio.NewReaderSize(stream, 64<<10), dtype: t, count: -1}
	if err := v.open(); err != nil {
		return nil, errors.Join(err, stream.Close())
	}
	return v, nil
}

// open learns the width from the first row, and from the size of the file how many there are.
func (v *vecsRows) open() error {
	head, err := v.r.Peek(4)
	if err != nil {
		if len(head) == 0 && errors.Is(err, io.EOF) {
			return v.in.fault(0, "holds no rows")
		}
		return v.broken(len(head), err)
	}
	width := int32(binary.LittleEndian.Uint32(head))
	if width < 1 || width > maxDim {
		return v.in.fault(0, "row 0 has %d values: want 1 to %d", width, maxDim)
	}
	v.dim = int(width)
	record := 4 + int64(v.dim)*v.dtype.size()
	if v.in.size >= 0 {
		v.count = v.in.size / record
		if over := v.in.size % record; over != 0 {
			return v.in.fault(v.in.size-over, "truncated: %d bytes are left for row %d, which takes %d", over, v.count, record)
		}
	}
	v.record = make([]byte, record)
	return nil
}

func (v *vecsRows) Dim() int         { return v.dim }
func (v *vecsRows) Count() int64     { return v.count }
func (v *vecsRows) Position() string { return fmt.Sprintf("row %d", v.row-1) }
func (v *vecsRows) Close() error     { return errors.Join(v.stream.Close(), v.in.close()) }

func (v *vecsRows) Next(dst []float32) (Row, error) {
	if v.err == nil {
		v.err = v.next(dst)
	}
	return Row{}, v.err
}

func (v *vecsRows) next(dst []float32) error {
	n, err := io.ReadFull(v.r, v.record[:4])
	if n == 0 && errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err != nil {
		return v.broken(n, err)
	}
	if width := int32(binary.LittleEndian.Uint32(v.record)); int(width) != v.dim {
		return v.in.fault(v.offset(), "row %d has %d values, row 0 has %d", v.row, width, v.dim)
	}
	if n, err := io.ReadFull(v.r, v.record[4:]); err != nil {
		return v.broken(4+n, err)
	}
	v.dtype.decode(dst[:v.dim], v.record[4:])
	v.row++
	return nil
}

// offset is where the next row begins.
func (v *vecsRows) offset() int64 { return v.row * int64(len(v.record)) }

// broken explains why only n bytes of the next row could be read.
func (v *vecsRows) broken(n int, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return v.in.fault(v.offset()+int64(n), "truncated in row %d", v.row)
	}
	return v.in.fault(v.offset()+int64(n), "read row %d: %w", v.row, err)
}
