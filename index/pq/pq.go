// Package pq is a product quantizer: it writes a row as a few bits per sub-vector, and estimates
// the inner product of a query with the row from these bits and one lookup table per query (Jégou,
// Douze, Schmid, "Product quantization for nearest neighbor search", PAMI 2011, section III).
//
// A row of d dimensions is cut into sub-vectors of SubDim dimensions, the last one padded with
// zeros. Each has its own codebook of 2^Bits points; the code of a row is, for every sub-vector,
// the number of the nearest point.
//
//	bits  points  a row's code (CodeBytes)                             lists are stored
//	4     16      one byte per pair of sub-vectors: 2j low, 2j+1 high  in blocks of 32 codes, transposed (Pack)
//	8     256     one byte per sub-vector                              one code after the other
//
// A Quantizer is immutable and safe for concurrent use.
package pq

import (
	"fmt"
	"slices"

	"github.com/flashdb/flashdb/internal/simd"
)

const (
	// BlockCodes is the number of codes in a block of 4-bit codes.
	BlockCodes = 32
	// MaxDim is the largest dimension of a row.
	MaxDim = maxSubs * maxSubs
	// maxSubs is the largest number of sub-vectors. With entries of a byte in the lookup table, the
	// sum over 256 of them still fits 16 bits.
	maxSubs = 256
)

// Shape says how rows are cut and coded. Zero Bits and SubDim are set by WithDefaults.
type Shape struct {
	Dim    int // dimensions of a row
	Bits   int // bits per sub-vector: 4 (default) or 8
	SubDim int // dimensions of a sub-vector; default 2 for 4 bits and 4 for 8, more when dim makes it too many
}

// WithDefaults returns s with its zero fields filled in. The default is two bits per dimension for
// up to 512 dimensions; wider rows have wider sub-vectors, because no more than 256 of them can be
// summed up.
func (s Shape) WithDefaults() Shape {
	if s.Bits == 0 {
		s.Bits = 4
	}
	if s.SubDim == 0 {
		s.SubDim = s.Bits / 2
		for s.SubDim > 0 && s.Dim <= MaxDim && s.subs() > maxSubs {
			s.SubDim *= 2
		}
	}
	return s
}

// Validate reports what is wrong with a shape without zero fields.
func (s Shape) Validate() error {
	switch {
	case s.Dim < 1 || s.Dim > MaxDim:
		return fmt.Errorf("dimension %d: want 1 to %d", s.Dim, MaxDim)
	case s.Bits != 4 && s.Bits != 8:
		return fmt.Errorf("%d bits a sub-vector: want 4 or 8", s.Bits)
	case s.SubDim < 1 || s.SubDim > maxSubs:
		return fmt.Errorf("sub-vectors of %d dimensions: want 1 to %d", s.SubDim, maxSubs)
	case s.subs() > maxSubs:
		return fmt.Errorf("%d sub-vectors of %d dimensions: want at most %d, make them wider", s.subs(), s.SubDim, maxSubs)
	}
	return nil
}

// CodeBytes returns the bytes of one code.
func (s Shape) CodeBytes() int {
	if s.Bits == 4 {
		return (s.subs() + 1) / 2
	}
	return s.subs()
}

// ListBytes returns the bytes of a list of n codes as it is stored.
func (s Shape) ListBytes(n int) int {
	if s.Bits == 4 {
		n = (n + BlockCodes - 1) / BlockCodes * BlockCodes
	}
	return n * s.CodeBytes()
}

// TableLen returns the length of a query's lookup table.
func (s Shape) TableLen() int {
	if s.Bits == 4 {
		return 2 * s.CodeBytes() * s.points() // a table for the missing half of the last pair, too
	}
	return s.subs() * s.points()
}

func (s Shape) subs() int   { return (s.Dim + s.SubDim - 1) / s.SubDim }
func (s Shape) points() int { return 1 << s.Bits }

// Quantizer holds the codebooks.
type Quantizer struct {
	shape Shape
	books []float32 // the codebooks one after the other: subs x points x SubDim
	half  []float32 // |p|^2/2 of every point p: subs x points
	loss  float32
}

// Equal reports whether two quantizers give the same codes.
func (q *Quantizer) Equal(other *Quantizer) bool {
	return q == other || q.shape == other.shape && slices.Equal(q.books, other.books)
}

func newQuantizer(shape Shape, books []float32) *Quantizer {
	q := &Quantizer{shape: shape, books: books, half: make([]float32, len(books)/shape.SubDim)}
	for i := range q.half {
		p := books[i*shape.SubDim : (i+1)*shape.SubDim]
		q.half[i] = simd.Dot(p, p) / 2
	}
	return q
}

// Shape returns the shape that the quantizer was trained for.
func (q *Quantizer) Shape() Shape { return q.shape }

// Loss returns what coding loses: the squared error of codes as a share of the squared length of
// rows, on rows of the training.
func (q *Quantizer) Loss() float32 { return q.loss }

// book returns the codebook of sub-vector s and half the squared norms of its points.
func (q *Quantizer) book(s int) (points, half []float32) {
	k := q.shape.points()
	return q.books[s*k*q.shape.SubDim : (s+1)*k*q.shape.SubDim], q.half[s*k : (s+1)*k]
}

// sub returns sub-vector s of v, which is shorter than SubDim where v ends.
func (q *Quantizer) sub(v []float32, s int) []float32 {
	return v[s*q.shape.SubDim : min(len(v), (s+1)*q.shape.SubDim)]
}
