package flashlight

import (
	"math"

	"github.com/flashdb/flashdb/internal/simd"
)

// The constants of the learned seed: docs/measurements.md has what they were measured against.
const (
	// maxPrototypes is the number of stored sources from which on more gain next to nothing.
	maxPrototypes = 512
	// maxSeedBytes bounds what Seeds hold and are stored in, whatever the dimension.
	maxSeedBytes = 2 << 20
	// nearestShare is the inverse of the share of the stored sources whose gradients are taken,
	// within fewestNearest and mostNearest. Few of many resemble the source most, and yet miss what
	// they have in common with the others.
	nearestShare               = 8
	fewestNearest, mostNearest = 16, maxPrototypes / nearestShare
	// onesShare is the length of the ones seed in the query, beside 1 of the stored gradients.
	onesShare = 0.1
	// leastAlike is the cosine with the most alike stored source below which none resembles the
	// source, and what they taught says less about it than the ones seed.
	leastAlike = 0.5
)

// Prototype is what a thorough search for one source taught: see Executor.Learn.
type Prototype struct {
	ID       uint32    // of the source's node, for the trace
	Source   []float32 // its row
	Gradient []float32 // mean gradient with respect to z at its best rows (decoder.Separable)
}

// Seeds are first queries learned from thorough searches for sampled sources: the gradient at the
// end of a good search varies little and smoothly from source to source, so that the mean of those
// for the sources most like a new one leads to the best rows of that one. They belong to one
// decoder. Immutable and safe for concurrent use; a nil Seeds is one without prototypes.
type Seeds struct {
	dim       int
	ids       []uint32
	units     []float32 // row-major, len(ids) x dim: sources of length 1
	gradients []float32 // row-major, len(ids) x dim
}

// MaxPrototypes returns how many prototypes of dim floats Seeds hold at most.
func MaxPrototypes(dim int) int {
	return min(maxPrototypes, (maxSeedBytes-seedHeaderBytes)/prototypeBytes(dim))
}

// NewSeeds returns the seeds that the prototypes teach, in their order. It leaves out those that
// teach nothing (a source or a gradient of zeros, as where every neuron is inactive at the best
// rows, of another length, or with a value that is not finite) and those beyond MaxPrototypes. What
// it is given is copied.
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

// Dim returns the number of values of a source and of a gradient, 0 of nil.
func (s *Seeds) Dim() int {
	if s == nil {
		return 0
	}
	return s.dim
}

// near is a stored source and how much it resembles another.
type near struct {
	at     int // of Seeds.ids
	cosine float32
}

// nearest appends to dst, which is empty, the stored sources of highest cosine with unit, a source
// of length 1: best first, ties in the order they are stored in. Scores is scratch of Len floats.
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

// squaredLength cannot overflow where v is finite: a square is below 2^256.
func squaredLength(v []float32) (sum float64) {
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return sum
}

// scaleTo1 divides v, which is usable, by its length.
func scaleTo1(v []float32) {
	inverse := 1 / math.Sqrt(squaredLength(v))
	for i, x := range v {
		v[i] = float32(float64(x) * inverse)
	}
}
