package flashlight

import (
	"slices"

	"github.com/flashdb/flashdb/index"
)

// anchors keeps the best few of the rows offered to it. They are the points at which the decoder is
// linearised.
type anchors struct {
	limit int
	dim   int
	hits  []index.Hit // in no particular order
	rows  []float32   // row-major, len(hits) x dim, hits[i] in row i
	worst int         // the hit to be replaced next, once limit are held
	fresh []bool      // hits[i] was offered after the last call of age
}

// reset empties a and sets its size, reusing its memory.
func (a *anchors) reset(limit, dim int) {
	a.limit, a.dim = limit, dim
	a.hits, a.rows, a.fresh = a.hits[:0], a.rows[:0], a.fresh[:0]
}

// offer keeps a copy of the row if it is among the best so far. A row whose score is NaN is
// ignored, because its gradient is of no use.
func (a *anchors) offer(h index.Hit, row []float32) {
	if h.Score != h.Score { // NaN
		return
	}
	if len(a.hits) < a.limit {
		a.hits = append(a.hits, h)
		a.rows = append(a.rows, row...)
		a.fresh = append(a.fresh, true)
	} else {
		if !h.Before(a.hits[a.worst]) {
			return
		}
		a.hits[a.worst] = h
		copy(a.rows[a.worst*a.dim:], row)
		a.fresh[a.worst] = true
	}
	if len(a.hits) == a.limit {
		a.worst = 0
		for i := range a.hits {
			if a.hits[a.worst].Before(a.hits[i]) {
				a.worst = i
			}
		}
	}
}

// age marks all rows as not fresh.
func (a *anchors) age() { clear(a.fresh) }

// allFresh reports whether every row held was offered after the last call of age.
func (a *anchors) allFresh() bool { return !slices.Contains(a.fresh, false) }

// best returns the row of the best hit. There must be one.
func (a *anchors) best() []float32 {
	best := 0
	for i := range a.hits {
		if a.hits[i].Before(a.hits[best]) {
			best = i
		}
	}
	return a.rows[best*a.dim : (best+1)*a.dim]
}

// ids returns the ids held, best first.
func (a *anchors) ids() []uint32 {
	hits := slices.SortedFunc(slices.Values(a.hits), index.Hit.Compare)
	ids := make([]uint32, len(hits))
	for i, h := range hits {
		ids[i] = h.ID
	}
	return ids
}
