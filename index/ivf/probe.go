package ivf

import (
	"math"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/simd"
)

// visitMore visits the unvisited lists of highest priority until the total reaches the budget. The
// query vectors take turns. Afterwards every one has its products with the centroids of all visited
// lists.
func (s *Search) visitMore(queries []queryVector, probes index.Probes) {
	if !s.Exhausted() && s.reached(probes) {
		for i := range queries {
			queries[i].resize(s.ix)
			queries[i].computeProducts(s.ix, s.lists)
		}
		return
	}
	byGroup, part := s.wantsFew(probes), s.wantsPart(probes)
	switch {
	case byGroup:
		for i := range queries {
			queries[i].rateGroups(s.ix)
		}
	case part:
		rateRounded(s.ix, queries)
	default:
		rateAll(s.ix, queries)
	}
	if probes.All() {
		for l := range s.ix.header.lists {
			s.visit(l)
		}
	}
	for !s.Exhausted() && !s.reached(probes) {
		s.takeTurns(queries, probes, byGroup)
	}
	s.lists = s.visited.appendTo(s.lists[:0])
	for i := range queries {
		if byGroup {
			queries[i].computeMissingProducts(s.ix, s.lists)
		} else if part {
			queries[i].computeProducts(s.ix, s.lists)
		}
	}
}

// takeTurns visits about as many lists as the budget has left. The query vectors choose in turns.
func (s *Search) takeTurns(queries []queryVector, probes index.Probes, byGroup bool) {
	n := 1 + s.missing(probes)/len(queries)
	for i := range queries {
		if byGroup {
			queries[i].chooseByGroup(s.ix, n, s.visited)
		} else {
			queries[i].choose(n, s.visited)
		}
	}
	for turn := range n {
		for i := range queries {
			if turn >= len(queries[i].turns) || s.reached(probes) {
				return
			}
			s.visit(int(queries[i].turns[turn].ID))
		}
	}
}

// missing estimates how many more lists the budget allows, at least one.
func (s *Search) missing(probes index.Probes) int {
	left := float64(probes.Lists - s.cost.Lists)
	if probes.Lists == 0 {
		h := &s.ix.header
		rows := probes.Share*float64(h.rows) - float64(s.cost.Rows)
		left = 1.1 * rows * float64(h.lists) / float64(h.rows)
	}
	return 1 + int(min(max(0, left), float64(s.ix.header.lists-s.cost.Lists)))
}

// reached reports whether the visited lists meet the budget.
func (s *Search) reached(probes index.Probes) bool {
	if probes.Lists > 0 {
		return s.cost.Lists >= probes.Lists
	}
	return float64(s.cost.Rows) >= probes.Share*float64(s.ix.header.rows)
}

// visit adds a list to the search set.
func (s *Search) visit(l int) {
	if s.visited.has(l) {
		return
	}
	s.visited.add(l)
	s.cost.Lists++
	s.cost.Rows += int(s.ix.begin[l+1] - s.ix.begin[l])
}

// ratedLists is the number of lists that all query vectors rate before the next lists: few enough
// for their centroids to stay in the cache.
const ratedLists = 512

// rateAll computes the inner products of each query with the centroids of all lists, and their
// priorities.
func rateAll(ix *Index, queries []queryVector) {
	for i := range queries {
		queries[i].resize(ix)
	}
	for begin := 0; begin < ix.header.lists; begin += ratedLists {
		end := min(begin+ratedLists, ix.header.lists)
		for i := range queries {
			queries[i].rateLists(ix, begin, end)
		}
	}
}

// rateLists is rateAll for one query and the lists from begin to end.
func (q *queryVector) rateLists(ix *Index, begin, end int) {
	d := ix.header.dim
	products, priorities := q.products[begin:end], q.priorities[begin:end]
	simd.DotRows(products, q.vector, ix.centroids[begin*d:end*d])
	copy(priorities, products)
	simd.Axpy(priorities, q.unit, ix.breadth[begin:end])
}

// computeProducts computes the products with the centroids of the given lists only.
func (q *queryVector) computeProducts(ix *Index, lists []uint32) {
	for i, l := range lists {
		if i+aheadRows < len(lists) {
			simd.Prefetch(ix.centroid(lists[i+aheadRows]))
		}
		q.products[l] = simd.Dot(q.vector, ix.centroid(l))
	}
}

// resize makes room for the products with all lists. It also computes the deviation of a row along
// the vector in a list of spread 1.
func (q *queryVector) resize(ix *Index) {
	q.products = resize(q.products, ix.header.lists)
	q.priorities = resize(q.priorities, ix.header.lists)
	q.unit = float32(math.Sqrt(float64(simd.MulDot(q.vector, q.vector, ix.profile))))
}

// priority returns the priority of a list: see the package comment.
func (q *queryVector) priority(ix *Index, l int) float32 {
	return ordered(q.products[l] + ix.breadth[l]*q.unit)
}

// ordered returns a priority, or the lowest one for a NaN. So a list for which the query overflows
// comes last but is not lost.
func ordered(priority float32) float32 {
	if priority != priority {
		return -math.MaxFloat32
	}
	return priority
}

// choose sets turns to the n unvisited lists of highest priority, best first. Of equal ones the
// lower list is first.
func (q *queryVector) choose(n int, visited bitset) {
	q.wanted.Reset(n)
	q.wanted.Raise(q.guess(n, visited))
	q.offerUnvisited(visited)
	if len(q.wanted.Kept()) < n { // the guess was too high, or there are no more
		q.wanted.Reset(n)
		q.offerUnvisited(visited)
	}
	q.turns = q.wanted.Sorted(q.turns[:0])
}

// offerUnvisited offers wanted the unvisited lists that reach its threshold.
func (q *queryVector) offerUnvisited(visited bitset) {
	q.reaching = resize(q.reaching, len(visited))
	simd.AtLeast(q.reaching, q.priorities, q.wanted.Threshold())
	for i, word := range visited {
		q.reaching[i] &^= word
	}
	q.reaching.each(func(l int) {
		q.wanted.Offer(index.Candidate{ID: uint32(l), Score: ordered(q.priorities[l])})
	})
}

// guess returns a priority that a few more than n unvisited lists are likely to reach, estimated
// from a sample of them, or minus infinity. It is the first threshold. Without it, the first n
// lists would all have to be kept.
func (q *queryVector) guess(n int, visited bitset) float32 {
	const stride = 32
	m := (n + n/4 + 8*stride) / stride // how many of the sample are to reach it
	if len(q.priorities) < 4*m*stride {
		return float32(math.Inf(-1))
	}
	q.sampled = q.sampled[:0]
	for l := 0; l < len(q.priorities); l += stride {
		if !visited.has(l) {
			q.sampled = append(q.sampled, ordered(q.priorities[l]))
		}
	}
	if len(q.sampled) <= m {
		return float32(math.Inf(-1))
	}
	return nthLargest(q.sampled, m)
}

// nthLargest returns the n-th largest value, counted from 1, and reorders the values (quickselect,
// Hoare 1961). No value may be NaN.
func nthLargest(values []float32, n int) float32 {
	for {
		pivot := values[len(values)/2]
		i, j := 0, len(values)-1
		for i <= j {
			for values[i] > pivot {
				i++
			}
			for values[j] < pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i, j = i+1, j-1
			}
		}
		switch { // values[:j+1] >= pivot, values[i:] <= pivot, and what is between is the pivot
		case n <= j+1:
			values = values[:j+1]
		case n > i:
			values, n = values[i:], n-i
		default:
			return pivot
		}
	}
}
