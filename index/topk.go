package index

import (
	"math"
	"slices"
)

// TopK keeps the k best of the hits offered to it, as a binary heap with the worst of them at the
// root.
type TopK struct {
	k    int
	heap []Hit // heap[0] ranks last; every parent ranks after its children
}

// NewTopK returns an empty TopK of k hits. It panics when k < 1.
func NewTopK(k int) *TopK {
	t := &TopK{}
	t.Reset(k)
	return t
}

// Reset empties t and sets its size, reusing its memory. It panics when k < 1.
func (t *TopK) Reset(k int) {
	if k < 1 {
		panic("index: TopK needs k >= 1")
	}
	t.k, t.heap = k, t.heap[:0]
}

// Offer adds a hit if it is among the k best so far and reports whether it is. Ids must not repeat.
func (t *TopK) Offer(id uint32, score float32) bool {
	h := Hit{ID: id, Score: score}
	if len(t.heap) < t.k {
		t.heap = append(t.heap, h)
		t.up(len(t.heap) - 1)
		return true
	}
	if !h.Before(t.heap[0]) {
		return false
	}
	t.heap[0] = h
	t.down()
	return true
}

// Len returns how many hits are kept.
func (t *TopK) Len() int { return len(t.heap) }

// Numbers returns how many hits are kept whose score is not a NaN.
func (t *TopK) Numbers() (n int) {
	for _, h := range t.heap {
		if h.Score == h.Score {
			n++
		}
	}
	return n
}

// Worst returns the lowest score kept, a NaN being lowest, and whether all k places are taken: once
// they are, a hit that scores less cannot enter. It returns minus infinity when nothing is kept.
func (t *TopK) Worst() (score float32, full bool) {
	if len(t.heap) == 0 {
		return float32(math.Inf(-1)), false
	}
	return t.heap[0].Score, len(t.heap) == t.k
}

// Sorted appends the kept hits to dst, best first. It leaves t as it is.
func (t *TopK) Sorted(dst []Hit) []Hit {
	n := len(dst)
	dst = append(dst, t.heap...)
	slices.SortFunc(dst[n:], Hit.Compare)
	return dst
}

func (t *TopK) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !t.heap[parent].Before(t.heap[i]) {
			return
		}
		t.heap[i], t.heap[parent] = t.heap[parent], t.heap[i]
		i = parent
	}
}

func (t *TopK) down() {
	for i := 0; ; {
		last := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t.heap); child++ {
			if t.heap[last].Before(t.heap[child]) {
				last = child
			}
		}
		if last == i {
			return
		}
		t.heap[i], t.heap[last] = t.heap[last], t.heap[i]
		i = last
	}
}
