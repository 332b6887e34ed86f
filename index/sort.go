package index

import (
	"math"
	"slices"
)

// radixLeast is the least number of candidates that are sorted by the digits of their scores and
// not by comparisons, whose outcomes a processor cannot foretell.
const radixLeast = 48

// sortCandidates sorts c best first. None of the scores is a NaN. It returns scratch, grown if need
// be.
func sortCandidates(c, scratch []Candidate) []Candidate {
	if len(c) < radixLeast {
		slices.SortFunc(c, func(a, b Candidate) int { return compare(a.Score, a.ID, b.Score, b.ID) })
		return scratch
	}
	scratch = slices.Grow(scratch[:0], len(c))[:len(c)]
	sortByScore(c, scratch)
	for from := 0; from < len(c); { // ties
		to := from + 1
		for to < len(c) && c[to].Score == c[from].Score {
			to++
		}
		if to-from > 1 {
			slices.SortFunc(c[from:to], func(a, b Candidate) int { return compare(a.Score, a.ID, b.Score, b.ID) })
		}
		from = to
	}
	return scratch
}

// sortByScore sorts c by descending score, a byte of the key at a time, the last first; bytes that
// are the same everywhere are passed over. scratch is as long as c.
func sortByScore(c, scratch []Candidate) {
	const digits = 4
	var count [digits][256]uint32
	for i := range c {
		key := descending(c[i].Score)
		for d := range digits {
			count[d][uint8(key>>(8*d))]++
		}
	}
	from, to := c, scratch
	for d := range digits {
		starts := &count[d]
		if starts[uint8(descending(c[0].Score)>>(8*d))] == uint32(len(c)) {
			continue
		}
		sum := uint32(0)
		for i, n := range starts {
			starts[i] = sum
			sum += n
		}
		for i := range from {
			at := &starts[uint8(descending(from[i].Score)>>(8*d))]
			to[*at] = from[i]
			*at++
		}
		from, to = to, from
	}
	copy(c, from) // a no-op after an even number of passes
}

// descending returns a key that is the smaller, the higher the score, and the same for both zeros.
func descending(score float32) uint32 {
	bits := math.Float32bits(score + 0)
	sign := uint32(int32(bits) >> 31) // all ones below zero
	return ^(bits ^ (sign | 1<<31))
}
