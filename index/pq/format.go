package pq

import (
	"github.com/flashdb/flashdb/internal/format"
)

// The codebooks are stored as
//
//	dim     uint32
//	bits    uint16
//	subDim  uint16
//	loss    float32, 0 to 1: see Loss
//	points  float32 each: codebook by codebook, point by point, subDim values each
//
// little-endian, without a checksum of their own: they are a section of a file that has one.
const headerBytes = 12

// Marshal appends the codebooks to w.
func (q *Quantizer) Marshal(w *format.Writer) {
	w.Uint32(uint32(q.shape.Dim))
	w.Uint16(uint16(q.shape.Bits))
	w.Uint16(uint16(q.shape.SubDim))
	w.Float32(q.loss)
	w.Bytes(format.Float32Bytes(q.books))
}

// MarshalBytes returns how many bytes Marshal appends for a quantizer of this shape.
func (s Shape) MarshalBytes() int { return headerBytes + 4*s.subs()*s.points()*s.SubDim }

// Unmarshal reads codebooks up to the end of r, copying them.
func Unmarshal(r *format.Reader) (*Quantizer, error) {
	shape := Shape{Dim: int(r.Uint32()), Bits: int(r.Uint16()), SubDim: int(r.Uint16())}
	loss := r.Float32()
	if err := r.Err(); err != nil {
		return nil, err
	}
	if err := shape.Validate(); err != nil {
		r.Fail("codebooks: %w", err)
		return nil, r.Err()
	}
	if !(loss >= 0 && loss <= 1) {
		r.Fail("codebooks: loss %v: want 0 to 1", loss)
		return nil, r.Err()
	}
	if want := shape.MarshalBytes() - headerBytes; r.Len() != want {
		r.Fail("codebooks of %d bytes, want %d", r.Len(), want)
		return nil, r.Err()
	}
	books := make([]float32, r.Len()/4)
	for i := range books {
		books[i] = r.Float32()
	}
	q := newQuantizer(shape, books)
	q.loss = loss
	return q, r.Err()
}
