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
	if !s.Exhausted() && s.reached(probes) {
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
		queries[i].choose(s.ix, n, s.visited)
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

// aimLists is the number of lists that all queries are aimed at before the next: few enough for their centroids to stay
// in the cache from one query to the other.
const aimLists = 512

// aim computes the inner products of each query with the centroids of all lists.
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
		}
	}
}

// aimAt is aim for one query and some lists only. It leaves the products with the others undefined.
func (q *query) aimAt(ix *Index, lists []uint32) {
	q.resize(ix)
	d := ix.header.dim
	for _, list := range lists {
		l := int(list)
		q.products[l] = simd.Dot(q.vector, ix.centroids[l*d:(l+1)*d])
	}
}

// resize makes room for the products with all lists and computes what a unit of spread is along the vector.
func (q *query) resize(ix *Index) {
	q.products = resize(q.products, ix.header.lists)
	q.unit = float32(math.Sqrt(float64(simd.MulDot(q.vector, q.vector, ix.profile))))
}

// priority returns the priority of a list: see the package comment.
func (q *query) priority(ix *Index, l int) float32 {
	p := q.products[l] + ix.breadth[l]*q.unit
	if p != p { // the query overflows: the list comes last, but it comes
		return -math.MaxFloat32
	}
	return p
}

// choose sets turns to the n unvisited lists of highest priority, best first; of equal ones the lower list is first.
func (q *query) choose(ix *Index, n int, visited []bool) {
	q.wanted.Reset(n)
	threshold := q.wanted.Threshold()
	unit, breadth, visited := q.unit, ix.breadth[:len(q.products)], visited[:len(q.products)]
	for l, product := range q.products {
		if product+breadth[l]*unit < threshold || visited[l] {
			continue
		}
		q.wanted.Offer(index.Candidate{ID: uint32(l), Score: q.priority(ix, l)})
		threshold = q.wanted.Threshold()
	}
	q.turns = q.wanted.Sorted(q.turns[:0])
}
