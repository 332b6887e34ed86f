package ivf

import (
	"math"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/simd"
)

// grow visits the unvisited lists of highest priority until the total reaches the budget; the queries take turns.
func (s *Search) grow(queries []query, probes index.Probes) {
	if s.Exhausted() || s.reached(probes) {
		return
	}
	if probes.All() {
		for l := range s.visited {
			s.visit(uint32(l))
		}
		return
	}
	for i := range queries {
		queries[i].queue.fill(queries[i].priority, s.visited)
	}
	for turn := 0; ; turn++ {
		q := &queries[turn%len(queries)]
		l, ok := q.queue.pop(s.visited)
		if !ok {
			return // one queue is empty when no list is unvisited
		}
		s.visit(l)
		if s.reached(probes) {
			return
		}
	}
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
	s.cost.Lists++
	s.cost.Rows += int(s.ix.begin[l+1] - s.ix.begin[l])
}

// aim computes the mean and the standard deviation of every list along the query, and from them its priority: see the
// package comment.
func (q *query) aim(ix *Index) {
	lists := ix.header.lists
	q.products = resize(q.products, lists)
	q.deviation = resize(q.deviation, lists)
	q.priority = resize(q.priority, lists)
	q.squares = resize(q.squares, len(q.vector))
	simd.Mul(q.squares, q.vector, q.vector)
	simd.DotRows(q.products, q.vector, ix.centroids)
	simd.DotRows(q.deviation, q.squares, ix.variances)
	for l, variance := range q.deviation {
		q.deviation[l] = float32(math.Sqrt(float64(variance)))
		q.priority[l] = q.products[l] + ix.reach[l]*q.deviation[l]
	}
}

// queue is a binary heap of lists, the one of highest priority at its root. Of equal ones the lower list is first.
type queue []ranked

type ranked struct {
	priority float32
	list     uint32
}

// fill makes the queue hold the unvisited lists.
func (h *queue) fill(priority []float32, visited []bool) {
	*h = (*h)[:0]
	for l, seen := range visited {
		if !seen {
			*h = append(*h, ranked{priority[l], uint32(l)})
		}
	}
	for i := len(*h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// pop removes and returns the best list that is still unvisited.
func (h *queue) pop(visited []bool) (list uint32, ok bool) {
	for len(*h) > 0 {
		list = (*h)[0].list
		last := len(*h) - 1
		(*h)[0] = (*h)[last]
		*h = (*h)[:last]
		h.down(0)
		if !visited[list] {
			return list, true
		}
	}
	return 0, false
}

func (h queue) down(i int) {
	for {
		best := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].ahead(h[best]) {
				best = child
			}
		}
		if best == i {
			return
		}
		h[i], h[best] = h[best], h[i]
		i = best
	}
}

func (r ranked) ahead(other ranked) bool {
	return r.priority > other.priority || (r.priority == other.priority && r.list < other.list)
}
