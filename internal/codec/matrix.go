package codec

import (
	"errors"
	"fmt"
	"io"
)

// matrixRows streams the rows of a stored matrix. A row-major one is read strictly forward, which
// compressed files and archive entries allow; one in column-major order, or with gaps between its
// rows, needs random access.
type matrixRows struct {
	in   *blob
	view *view
	at   io.ReaderAt
	done func() error // ends the pass over the blob

	dim, count int
	block      []byte // rows first to first+held, row-major, as stored
	first      int
	held       int
	row        int // the next row
	err        error
}

func newMatrixRows(in *blob, v *view) (RowReader, error) {
	m := &matrixRows{in: in, view: v, count: v.shape[0], dim: v.shape[1]}
	if m.dim < 1 || m.dim > maxDim {
		return nil, v.fault("shape %v: rows must have 1 to %d values", v.shape, maxDim)
	}
	if !v.contiguous() {
		if v.strides[0] != 1 && v.strides[1] != 1 {
			return nil, v.fault("strides %v: neither rows nor columns are contiguous; save it with .contiguous()", v.strides)
		}
		if v.span() < int64(v.elements()) {
			return nil, v.fault("strides %v: rows overlap; save it with .contiguous()", v.strides)
		}
		if err := v.blob.hold(); err != nil {
			return nil, err
		}
		if err := v.fits(); err != nil {
			return nil, err
		}
	}
	if v.blob.at == nil { // the size that is declared is told before it is waited for
		if err := in.mem.passes(v.end); err != nil {
			return nil, v.fault("shape %v: %w", v.shape, err)
		}
	}
	var err error
	if m.at, m.done, err = v.blob.pass(); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *matrixRows) Dim() int         { return m.dim }
func (m *matrixRows) Count() int64     { return int64(m.count) }
func (m *matrixRows) Position() string { return fmt.Sprintf("row %d", m.row-1) }

func (m *matrixRows) Close() error { return errors.Join(m.done(), m.in.close()) }

func (m *matrixRows) Next(dst []float32) (Row, error) {
	if m.err == nil && m.row == m.first+m.held {
		m.err = m.fill()
	}
	if m.err != nil {
		return Row{}, m.err
	}
	width := m.dim * int(m.view.dtype.size())
	m.view.dtype.decode(dst[:m.dim], m.block[(m.row-m.first)*width:])
	m.row++
	return Row{}, nil
}

// fill reads the next block; after the last row it is io.EOF, once the blob has ended as it should.
func (m *matrixRows) fill() error {
	if m.row == m.count {
		return m.finish()
	}
	budget := blockBytes
	if !m.view.contiguous() && m.view.strides[1] != 1 {
		budget = columnBlockBytes
	}
	size := int(m.view.dtype.size())
	rows := min(max(budget/(m.dim*size), 1), m.count-m.row)
	if need := rows * m.dim * size; len(m.block) < need {
		m.block = make([]byte, need)
	}
	m.first, m.held = m.row, 0
	if err := m.gather(rows, size); err != nil {
		return err
	}
	m.held = rows
	return nil
}

// gather reads rows of the matrix into block. In column-major order the elements of a column that
// belong to the block are one run.
func (m *matrixRows) gather(rows, size int) error {
	what := fmt.Sprintf("rows %d to %d", m.row, m.row+rows-1)
	stride := m.view.strides
	start := m.view.offset + int64(m.row)*int64(stride[0])*int64(size)
	width := m.dim * size
	switch {
	case m.view.contiguous():
		start = m.view.offset + int64(m.row)*int64(width)
		return m.view.blob.readFull(m.at, m.block[:rows*width], start, what)
	case stride[1] == 1:
		for i := range rows {
			at := start + int64(i)*int64(stride[0])*int64(size)
			if err := m.view.blob.readFull(m.at, m.block[i*width:(i+1)*width], at, what); err != nil {
				return err
			}
		}
		return nil
	}
	column := make([]byte, rows*size)
	for j := range m.dim {
		at := start + int64(j)*int64(stride[1])*int64(size)
		if err := m.view.blob.readFull(m.at, column, at, what); err != nil {
			return err
		}
		for i := range rows {
			copy(m.block[i*width+j*size:], column[i*size:(i+1)*size])
		}
	}
	return nil
}

// finish reads a stream to its end, so that its checksum is verified and bytes after the data are
// noticed; with random access both are done already.
func (m *matrixRows) finish() error {
	stream, isStream := m.at.(*forward)
	if !isStream {
		return io.EOF
	}
	b, end := m.view.blob, m.view.end
	var beyond [1]byte
	n, err := stream.ReadAt(beyond[:], end)
	switch {
	case n > 0:
		return b.fault(end, "bytes follow the data")
	case err != nil && !errors.Is(err, io.EOF):
		return b.fault(stream.pos, "%w", err)
	case stream.pos < end:
		return b.fault(stream.pos, "truncated: the data should end at byte %d", end)
	}
	return io.EOF
}
