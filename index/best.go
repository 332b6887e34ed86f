package index

import (
	"math"
	"slices"
)

// bestSlack is the room of a Best beyond the n candidates it keeps, as a multiple of n: with more, its threshold rises
// later but it compacts less often. bestFloor is the least room, so that a small n does not compact at every offer.
const (
	bestSlack = 2
	bestFloor = 64
)

// Best keeps the n best of many candidates. It is a buffer of a few times n that is cut back to n by selection when it
// is full, which costs less per candidate than a heap when n is in the hundreds. After the first cut it knows a
// threshold below which a candidate cannot enter, and the caller need not offer it.
type Best struct {
	n     int
	buf   []Candidate
	worst Candidate // the n-th best at the last cut, when cut is true
	cut   bool
	limit int // the buffer is cut when it holds this many
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
	b.n, b.buf, b.cut = n, b.buf[:0], false
	b.limit = n + bestSlack*n + bestFloor
}

// Threshold returns the score that a candidate must reach to enter, or minus infinity when every candidate enters. It
// lags behind the true n-th best score, never ahead of it.
func (b *Best) Threshold() float32 {
	if !b.cut {
		return float32(math.Inf(-1))
	}
	return b.worst.Score
}

// Offer adds a candidate unless n better ones are known.
func (b *Best) Offer(c Candidate) {
	if c.Score != c.Score || (b.cut && !before(c.Score, c.ID, b.worst.Score, b.worst.ID)) {
		return
	}
	b.buf = append(b.buf, c)
	if len(b.buf) >= b.limit {
		b.compact()
	}
}

// compact cuts the buffer back to the n best and raises the threshold to the worst of them.
func (b *Best) compact() {
	selectBest(b.buf, b.n)
	b.buf = b.buf[:b.n]
	b.worst = b.buf[b.n-1]
	for _, c := range b.buf {
		if before(b.worst.Score, b.worst.ID, c.Score, c.ID) {
			b.worst = c
		}
	}
	b.cut = true
}

// Kept returns the n best candidates, in no particular order. The slice is b's own: valid until the next call.
func (b *Best) Kept() []Candidate {
	if len(b.buf) > b.n {
		b.compact()
	}
	return b.buf
}

// Sorted appends the n best candidates to dst, best first.
func (b *Best) Sorted(dst []Candidate) []Candidate {
	n := len(dst)
	dst = append(dst, b.Kept()...)
	SortCandidates(dst[n:])
	return dst
}

// SortCandidates sorts c best first.
func SortCandidates(c []Candidate) {
	slices.SortFunc(c, func(a, b Candidate) int { return compare(a.Score, a.ID, b.Score, b.ID) })
}

// selectBest moves the n best of c to its front (quickselect, median of three; expected linear time). 1 <= n <= len(c).
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
