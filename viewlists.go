package flashdb

import (
	"slices"

	"github.com/flashdb/flashdb/index"
)

// freshRows is how many rows of the delta make one list for calibration.
const freshRows = 64

// viewLists implements calibrate.Lists for the generation and the delta that a view has pinned.
// Rows of the delta are grouped in the order they come. These groups need not be clusters.
type viewLists struct {
	v         *view
	centroids []float32
	fresh     []index.Candidate // rows of the delta, freshRows in each list
}

func newViewLists(v *view) *viewLists {
	l := &viewLists{v: v, centroids: v.pinned.gen.Centroids()}
	l.fresh = v.pinned.delta.Candidates(nil)
	if len(l.fresh) == 0 {
		return l
	}
	markFresh(l.fresh)
	l.centroids = slices.Clone(l.centroids)
	rows := make([]float32, freshRows*v.Dim())
	for list := range slices.Chunk(l.fresh, freshRows) {
		_ = v.Gather(rows, list) // it cannot fail: rows of a delta are in memory
		mean := make([]float32, v.Dim())
		for i, x := range rows[:len(list)*len(mean)] {
			mean[i%len(mean)] += x / float32(len(list))
		}
		l.centroids = append(l.centroids, mean...)
	}
	return l
}

// Centroids implements calibrate.Lists.
func (l *viewLists) Centroids() []float32 { return l.centroids }

// Grouped implements calibrate.Lists. It ignores the lists of the delta, which are not grouped but
// few.
func (l *viewLists) Grouped() bool { return l.v.pinned.gen.Grouped() }

// List implements calibrate.Lists.
func (l *viewLists) List(n int, dst []index.Candidate) []index.Candidate {
	of := l.v.pinned.gen
	lists := of.Info().Lists
	if n >= lists {
		first := (n - lists) * freshRows
		return append(dst, l.fresh[first:min(first+freshRows, len(l.fresh))]...)
	}
	from := len(dst)
	dst = of.List(n, dst)
	if l.v.masked == nil || l.v.masked.IsEmpty() {
		return dst
	}
	kept := dst[:from]
	for _, c := range dst[from:] {
		if !l.v.masked.Contains(c.ID) {
			kept = append(kept, c)
		}
	}
	return kept
}
