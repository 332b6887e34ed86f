package index

import "math"

// bestSlack is the room of a Best beyond the n candidates it keeps, as a multiple of n: with more,
// its threshold rises later but it is cut less often. bestFloor is the least room, so that a small
// n does not cut at every offer.
const (
	bestSlack = 1
	bestFloor = 64
)

// Best keeps the n best of many candidates. It is a buffer of a few times n that is cut back to n
// by selection when it is full, which costs less per candidate than a heap when n is in the
// hundreds. After the first cut it knows a threshold below which a candidate cannot enter, and the
// caller need not offer it.
type Best struct {
	n     int
	buf   []Candidate
	tied  []Candidate // scratch
	floor float32     // score of the n-th best at the last cut, minus infinity before the first
	last  uint32      // id of that one
	limit int         // the buffer is cut when it holds this many
}

// NewBest returns an empty Best of n candidates. It panics when n < 1.
func NewBest(n int) *Best {
	b := &Best{}
	b.Reset(n)
	return b
}

// Reset empties b and sets its size, reusing its memory. It panics when n < 1.
func (b *Best) Reset(n int) {
	if n < 1 {
		panic("index: Best needs n >= 1")
	}
	b.n, b.buf = n, b.buf[:0]
	b.floor, b.last = float32(math.Inf(-1)), math.MaxUint32
	b.limit = n + bestSlack*n + bestFloor
}

// Threshold returns the score that a candidate must reach to enter, or minus infinity when every
// candidate enters. It lags behind the true n-th best score, never ahead of it.
func (b *Best) Threshold() float32 { return b.floor }

// Raise makes the threshold at least t: the caller knows n candidates elsewhere that reach it.
func (b *Best) Raise(t float32) {
	if t > b.floor {
		b.floor, b.last = t, math.MaxUint32
	}
}

// Size returns n.
func (b *Best) Size() int { return b.n }

// Offer adds a candidate unless n better ones are known.
func (b *Best) Offer(c Candidate) {
	if c.Score >= b.floor { // never a NaN
		b.add(c)
	}
}

func (b *Best) add(c Candidate) {
	if c.Score == b.floor && c.ID > b.last {
		return
	}
	b.buf = append(b.buf, c)
	if len(b.buf) >= b.limit {
		b.cut()
	}
}

// Kept returns the n best candidates, in no particular order. The slice is b's own: valid until the
// next call.
func (b *Best) Kept() []Candidate {
	if len(b.buf) > b.n {
		b.cut()
	}
	return b.buf
}

// Sorted appends the n best candidates to dst, best first.
func (b *Best) Sorted(dst []Candidate) []Candidate {
	n := len(dst)
	dst = append(dst, b.Kept()...)
	b.tied = sortCandidates(dst[n:], b.tied)
	return dst
}

// cutBins is the number of bins that cut sorts scores into, and binned the least number of
// candidates worth it.
const (
	cutBins = 512
	binned  = 128
)

// cut cuts the buffer, which holds more than n, back to the n best and raises the threshold to the
// worst of them.
//
// Scores are counted in bins of equal width; those in bins above the one that holds the n-th best
// stay, and only in that bin is there anything to compare. Comparing all, as quickselect does,
// costs five times as much: the outcome of a comparison is a coin toss to the processor.
func (b *Best) cut() {
	split := 0 // candidates known to be among the best
	rest := b.buf
	if len(b.buf) >= binned {
		split, rest = b.partition()
	}
	chosen := rest[:b.n-split]
	selectBest(rest, len(chosen))
	worst := chosen[0]
	for _, c := range chosen {
		if before(worst.Score, worst.ID, c.Score, c.ID) {
			worst = c
		}
	}
	b.floor, b.last = worst.Score, worst.ID
	copy(b.buf[split:b.n], chosen)
	b.buf = b.buf[:b.n]
}

// partition moves candidates that are surely among the n best to the front of the buffer and
// returns how many, less than n. The others of the n best are among rest, which lies outside the
// part of the buffer that was moved to.
func (b *Best) partition() (split int, rest []Candidate) {
	low, high := b.buf[0].Score, b.buf[0].Score
	for i := range b.buf {
		s := b.buf[i].Score
		if s < low {
			low = s
		}
		if s > high {
			high = s
		}
	}
	scale := (cutBins - 1) / (high - low)
	if !(scale > 0 && scale <= math.MaxFloat32) || high-low > math.MaxFloat32 { // all equal, or an infinity
		return 0, b.buf
	}
	var count [cutBins]uint32
	for i := range b.buf {
		count[uint32((b.buf[i].Score-low)*scale)%cutBins]++
	}
	bin, above := uint32(cutBins-1), 0
	for ; above+int(count[bin]) < b.n; bin-- {
		above += int(count[bin])
	}
	b.tied = b.tied[:0]
	for _, c := range b.buf {
		at := uint32((c.Score - low) * scale)
		if at == bin {
			b.tied = append(b.tied, c)
		}
		b.buf[split] = c // kept by the next line, or overwritten
		split += int((bin - at) >> 31)
	}
	return split, b.tied
}

// selectBest moves the n best of c to its front (quickselect, median of three; expected linear
// time). 1 <= n <= len(c).
func selectBest(c []Candidate, n int) {
	lo, hi := 0, len(c)-1
	for lo < hi {
		p := median(c[lo], c[lo+(hi-lo)/2], c[hi])
		i, j := lo, hi
		for i <= j {
			for before(c[i].Score, c[i].ID, p.Score, p.ID) {
				i++
			}
			for before(p.Score, p.ID, c[j].Score, c[j].ID) {
				j--
			}
			if i <= j {
				c[i], c[j] = c[j], c[i]
				i++
				j--
			}
		}
		switch { // c[lo..j] rank no later than p, c[i..hi] no earlier, anything between equals it
		case n-1 <= j:
			hi = j
		case n-1 >= i:
			lo = i
		default:
			return
		}
	}
}

// median returns the middle one of three candidates in rank order.
func median(a, b, c Candidate) Candidate {
	if before(b.Score, b.ID, a.Score, a.ID) {
		a, b = b, a
	}
	if before(c.Score, c.ID, b.Score, b.ID) {
		b = c
		if before(b.Score, b.ID, a.Score, a.ID) {
			b = a
		}
	}
	return b
}
