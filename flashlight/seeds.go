package flashlight

import (
	"math"

	"github.com/flashdb/flashdb/internal/simd"
)

// The constants of the learned seed. docs/measurements.md has the measurements.
const (
	// maxPrototypes is the number of stored sources beyond which more gain next to nothing.
	maxPrototypes = 512
	// maxSeedBytes bounds the size of Seeds, in memory and stored.
	maxSeedBytes = 2 << 20
	// A seed is made from one in nearestShare of the stored sources, at least fewestNearest and at
	// most mostNearest. Fewer are more similar to the source, but their mean lacks what they share
	// with the others.
	nearestShare               = 8
	fewestNearest, mostNearest = 16, maxPrototypes / nearestShare
	// onesShare is the length of the ones seed in the query vector. The part from stored gradients
	// has length 1.
	onesShare = 0.1
	// leastAlike is the least cosine with the most similar stored source. Below it the ones seed is
	// better than a learned one.
	leastAlike = 0.5
)

// Prototype is the result of a thorough search for one source: see Executor.Learn.
type Prototype struct {
	ID       uint32    // of the source's node, for the trace
	Source   []float32 // its row
	Gradient []float32 // mean gradient with respect to z at its best rows (decoder.Separable)
}

// Seeds are what first query vectors are made from: gradients learned from thorough searches for
// sampled sources. The gradient at the end of a good search varies little and smoothly from source
// to source. So the mean over the sources most similar to a new one leads to its best rows. Seeds
// belong to one decoder. They are immutable and safe for concurrent use. A nil Seeds has no
// prototypes.
type Seeds struct {
	dim       int
	ids       []uint32
	units     []float32 // row-major, len(ids) x dim: sources of length 1
	gradients []float32 // row-major, len(ids) x dim
}

// MaxPrototypes returns how many prototypes of width dim Seeds hold at most.
func MaxPrototypes(dim int) int {
	return min(maxPrototypes, (maxSeedBytes-seedHeaderBytes)/prototypeBytes(dim))
}

// NewSeeds returns seeds with the prototypes, in their order. It leaves out those whose source or
// gradient is all zeros, has another length or is not finite, and those beyond MaxPrototypes. A
// gradient is all zeros if every neuron is inactive at the best rows. The slices are copied.
func NewSeeds(dim int, prototypes []Prototype) *Seeds {
	s := &Seeds{dim: dim}
	for i := range prototypes {
		p := &prototypes[i]
		if len(s.ids) == MaxPrototypes(dim) {
			break
		}
		if len(p.Source) != dim || len(p.Gradient) != dim || !usable(p.Source) || !usable(p.Gradient) {
			continue
		}
		s.ids = append(s.ids, p.ID)
		s.units = append(s.units, p.Source...)
		scaleTo1(s.units[len(s.units)-dim:])
		s.gradients = append(s.gradients, p.Gradient...)
	}
	return s
}

// Len returns the number of prototypes.
func (s *Seeds) Len() int {
	if s == nil {
		return 0
	}
	return len(s.ids)
}

// Dim returns the width of a source and of a gradient, or 0 for nil.
func (s *Seeds) Dim() int {
	if s == nil {
		return 0
	}
	return s.dim
}

// near is a stored source and its cosine with another.
type near struct {
	at     int // of Seeds.ids
	cosine float32
}

// nearest appends to dst, which is empty, the stored sources of highest cosine with unit, which is
// a source of length 1. The best come first, and ties in the order of storage. scores is scratch of
// Len floats.
func (s *Seeds) nearest(dst []near, scores, unit []float32) []near {
	simd.DotRows(scores, unit, s.units)
	most := min(max(len(s.ids)/nearestShare, fewestNearest), mostNearest)
	for i, c := range scores {
		if len(dst) == most {
			if !(c > dst[len(dst)-1].cosine) {
				continue
			}
			dst = dst[:len(dst)-1]
		}
		at := len(dst)
		dst = append(dst, near{})
		for ; at > 0 && c > dst[at-1].cosine; at-- {
			dst[at] = dst[at-1]
		}
		dst[at] = near{i, c}
	}
	return dst
}

// meanOf sets dst to the mean gradient of some prototypes.
func (s *Seeds) meanOf(dst []float32, of []near) {
	clear(dst)
	for _, n := range of {
		simd.Axpy(dst, 1/float32(len(of)), s.gradients[n.at*s.dim:(n.at+1)*s.dim])
	}
}

// usable reports whether v is finite and not all zeros.
func usable(v []float32) bool {
	square := squaredLength(v)
	return square > 0 && square-square == 0
}

// squaredLength cannot overflow if v is finite: each square is below 2^256.
func squaredLength(v []float32) (sum float64) {
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return sum
}

// scaleTo1 divides v by its length. v must be usable.
func scaleTo1(v []float32) {
	inverse := 1 / math.Sqrt(squaredLength(v))
	for i, x := range v {
		v[i] = float32(float64(x) * inverse)
	}
}
