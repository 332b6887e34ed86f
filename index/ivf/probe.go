package ivf

import (
	"math"
	"slices"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/simd"
)

// visitMore visits the unvisited lists of highest priority until the total reaches the budget; the queries take turns.
// Afterwards every query is aimed at all visited lists.
func (s *Search) visitMore(queries []query, probes index.Probes) {
	if s.Exhausted() || s.reached(probes) {
		for i := range queries {
			queries[i].aimAt(s.ix, s.lists)
		}
		return
	}
	aim(s.ix, queries)
	if probes.All() {
		for l := range s.visited {
			s.visit(uint32(l))
		}
	}
	for !s.Exhausted() && !s.reached(probes) {
		s.takeTurns(queries, probes)
	}
	slices.Sort(s.lists)
}

// takeTurns visits about as many lists as the budget has left, the queries choosing in turns.
func (s *Search) takeTurns(queries []query, probes index.Probes) {
	n := 1 + s.missing(probes)/len(queries)
	for i := range queries {
		queries[i].choose(n, s.visited)
	}
	for turn := range n {
		for i := range queries {
			if turn >= len(queries[i].turns) || s.reached(probes) {
				return
			}
			s.visit(queries[i].turns[turn].ID)
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
func (s *Search) visit(l uint32) {
	if s.visited[l] {
		return
	}
	s.visited[l] = true
	s.lists = append(s.lists, l)
	s.cost.Lists++
	s.cost.Rows += int(s.ix.begin[l+1] - s.ix.begin[l])
}

// aimLists is the number of lists that all queries are aimed at before the next: few enough for their centroids and
// variances to stay in the cache from one query to the other.
const aimLists = 512

// aim computes the mean and the standard deviation of every list along each query, and from them its priority: see the
// package comment.
func aim(ix *Index, queries []query) {
	for i := range queries {
		queries[i].resize(ix)
	}
	d := ix.header.dim
	for begin := 0; begin < ix.header.lists; begin += aimLists {
		end := min(begin+aimLists, ix.header.lists)
		for i := range queries {
			q := &queries[i]
			simd.DotRows(q.products[begin:end], q.vector, ix.centroids[begin*d:end*d])
			simd.DotRows(q.deviation[begin:end], q.squares, ix.variances[begin*d:end*d])
			rank(q.priority[begin:end], q.products[begin:end], q.deviation[begin:end], ix.reach[begin:end])
		}
	}
}

// aimAt is aim for one query and some lists only. It leaves the numbers of the others undefined.
func (q *query) aimAt(ix *Index, lists []uint32) {
	q.resize(ix)
	d := ix.header.dim
	for _, list := range lists {
		l := int(list)
		q.products[l] = simd.Dot(q.vector, ix.centroids[l*d:(l+1)*d])
		q.deviation[l] = simd.Dot(q.squares, ix.variances[l*d:(l+1)*d])
		rank(q.priority[l:l+1], q.products[l:l+1], q.deviation[l:l+1], ix.reach[l:l+1])
	}
}

// resize makes room for the numbers of all lists and squares the vector.
func (q *query) resize(ix *Index) {
	lists := ix.header.lists
	q.products = resize(q.products, lists)
	q.deviation = resize(q.deviation, lists)
	q.priority = resize(q.priority, lists)
	q.squares = resize(q.squares, len(q.vector))
	simd.Mul(q.squares, q.vector, q.vector)
}

// rank turns the variances in deviation into standard deviations and sets the priority of each list.
func rank(priority, products, deviation, reach []float32) {
	products, deviation, reach = products[:len(priority)], deviation[:len(priority)], reach[:len(priority)]
	for l := range priority {
		deviation[l] = float32(math.Sqrt(float64(deviation[l])))
		p := products[l] + reach[l]*deviation[l]
		if p != p { // the query overflows: the list comes last, but it comes
			p = -math.MaxFloat32
		}
		priority[l] = p
	}
}

// choose sets turns to the n unvisited lists of highest priority, best first; of equal ones the lower list is first.
func (q *query) choose(n int, visited []bool) {
	q.wanted.Reset(n)
	threshold := q.wanted.Threshold()
	for l, priority := range q.priority {
		if priority >= threshold && !visited[l] {
			q.wanted.Offer(index.Candidate{ID: uint32(l), Score: priority})
			threshold = q.wanted.Threshold()
		}
	}
	q.turns = q.wanted.Sorted(q.turns[:0])
}
