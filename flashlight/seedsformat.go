package flashlight

import (
	"math"

	"github.com/flashdb/flashdb/internal/format"
)

// Seeds as bytes, little-endian. They are part of a blob that has a version and a checksum:
//
//	dim, prototypes (uint32 each), id of each source (uint32), sources of length 1 and gradients
//	(row-major, prototypes x dim, float32)
//
// For nil, and for seeds without prototypes, both dim and the number of prototypes are 0, and
// nothing follows.
const seedHeaderBytes = 8

// unitTolerance is how far from 1 the squared length of a stored source may be. It is many times
// the rounding error.
const unitTolerance = 1e-3

// prototypeBytes is the encoded size of one prototype.
func prototypeBytes(dim int) int { return 4 + 2*4*dim }

// Encode appends the seeds, at most 2 MiB.
func (s *Seeds) Encode(w *format.Writer) {
	if s.Len() == 0 {
		w.Uint32(0)
		w.Uint32(0)
		return
	}
	w.Uint32(uint32(s.dim))
	w.Uint32(uint32(s.Len()))
	w.Bytes(format.Uint32Bytes(s.ids))
	w.Bytes(format.Float32Bytes(s.units))
	w.Bytes(format.Float32Bytes(s.gradients))
}

// DecodeSeeds reads what Encode wrote for a decoder of this dim. Bytes that Encode cannot have
// written make r fail. Then, or without prototypes, the result is nil. The bytes are copied.
func DecodeSeeds(r *format.Reader, dim int) *Seeds {
	stored, n := r.Uint32(), r.Uint32()
	switch {
	case r.Err() != nil || (stored == 0 && n == 0):
		return nil
	case int64(stored) != int64(dim):
		r.Fail("seeds of dim %d for a decoder of dim %d", stored, dim)
		return nil
	case n == 0 || int64(n) > int64(MaxPrototypes(dim)):
		r.Fail("%d seed prototypes of dim %d: want 1 to %d", n, dim, MaxPrototypes(dim))
		return nil
	}
	count := int(n)
	ids, units, gradients := r.Bytes(4*count), r.Bytes(4*count*dim), r.Bytes(4*count*dim)
	if r.Err() != nil {
		return nil
	}
	s := &Seeds{
		dim:       dim,
		ids:       append([]uint32(nil), format.Uint32s(ids)...),
		units:     append([]float32(nil), format.Float32s(units)...),
		gradients: append([]float32(nil), format.Float32s(gradients)...),
	}
	for i := range count {
		unit := s.units[i*dim : (i+1)*dim]
		if !usable(unit) || !usable(s.gradients[i*dim:(i+1)*dim]) {
			r.Fail("seed prototype %d: source or gradient is zero or not finite", i)
			return nil
		}
		if square := squaredLength(unit); math.Abs(square-1) > unitTolerance {
			r.Fail("seed prototype %d: source of length %.3g, want 1", i, math.Sqrt(square))
			return nil
		}
	}
	return s
}
