package ivf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/simd"
)

const (
	// overFetch is how many times the candidates asked for are kept by their codes, to be ranked by their rows.
	overFetch = 3
	// benefit is how many standard deviations of the error of a code a row is given when it competes for being ranked by
	// its row. Without it, thousands of rows in tight lists, whose estimates are exact, crowd out the few better ones in
	// wide lists that are underestimated. Of 0 to 4, 1.5 to 2 found most on every graph; from 3 on it is too much.
	benefit = 1.5
	// leadLists is the number of lists that are scanned first, best first, so that the threshold rises early. The rest
	// follows in the order of the file.
	leadLists = 32
	// scanCodes is the number of codes scanned in one go, whole blocks; the threshold is renewed after each.
	scanCodes = 2048
)

// Search is the state of one query of a collection: the lists it has visited and what that cost. It may take many query
// vectors, one after the other. It is used by one goroutine at a time and reused by Reset; after the first queries it
// does not allocate. The Index must stay retained while a Search is used.
type Search struct {
	ix      *Index
	visited []bool // by list
	cost    index.Cost
	queries []query
	lead    *index.Best // the lists to scan first
	order   []index.Candidate
	first   []bool // by list: scanned among the first
	final   *index.Best
	pos     []uint32
	sums    []uint16
	scores  []float32
}

// query is what a Search knows of one query vector.
type query struct {
	vector, squares []float32
	products        []float32 // with the centroid of every list
	deviation       []float32 // standard deviation of the rows of every list along the vector
	priority        []float32 // of every list
	queue           queue
	bytes           []byte    // lookup table of 4-bit codes
	floats          []float32 // lookup table of 8-bit codes
	scale, bias     float32   // turn the sum of a code into the vector's inner product with what is quantized
	best            *index.Best
}

// NewSearch returns a Search that has visited nothing.
func (ix *Index) NewSearch() *Search {
	return &Search{
		ix:      ix,
		visited: make([]bool, ix.header.lists),
		first:   make([]bool, ix.header.lists),
		lead:    index.NewBest(leadLists),
		final:   index.NewBest(1),
		pos:     make([]uint32, scanCodes),
		sums:    make([]uint16, scanCodes),
		scores:  make([]float32, scanCodes),
	}
}

// Reset forgets the visited lists and the cost.
func (s *Search) Reset() {
	clear(s.visited)
	s.cost = index.Cost{}
}

// Cost returns the work since Reset.
func (s *Search) Cost() index.Cost { return s.cost }

// Exhausted reports whether all lists have been visited.
func (s *Search) Exhausted() bool { return s.cost.Lists == s.ix.header.lists }

// Search finds for each query the n rows of highest inner product among those that the filter keeps and that lie in a
// visited list. Before, it visits further lists until the total since Reset meets the budget. It sets dst[i], whose
// memory it reuses, to the candidates of queries[i], best first. Their scores are exact inner products, or estimates
// when the index holds no rows.
func (s *Search) Search(ctx context.Context, queries [][]float32, n int, probes index.Probes, filter index.Filter, dst [][]index.Candidate) error {
	if err := s.check(queries, n, probes, dst); err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	n = min(n, s.ix.header.rows)
	for len(s.queries) < len(queries) {
		s.queries = append(s.queries, query{best: index.NewBest(1)})
	}
	active := s.queries[:len(queries)]
	for i := range active {
		active[i].vector = queries[i]
		active[i].aim(s.ix)
	}
	s.grow(active, probes)
	for i := range active {
		q := &active[i]
		q.prepare(s.ix, n)
		if err := s.scan(ctx, q, &filter); err != nil {
			return err
		}
		dst[i] = s.refine(q, n, dst[i][:0])
		q.vector = nil // the caller's
	}
	return nil
}

func (s *Search) check(queries [][]float32, n int, probes index.Probes, dst [][]index.Candidate) error {
	switch {
	case len(queries) == 0:
		return errors.New("no queries")
	case len(queries) != len(dst):
		return fmt.Errorf("%d queries and room for the results of %d", len(queries), len(dst))
	case n < 1:
		return fmt.Errorf("%d candidates wanted: want at least 1", n)
	}
	for i, q := range queries {
		if len(q) != s.ix.header.dim {
			return fmt.Errorf("query %d has dimension %d, the index %d", i, len(q), s.ix.header.dim)
		}
	}
	return probes.Validate()
}

// prepare computes the lookup table and makes room for the candidates.
func (q *query) prepare(ix *Index, n int) {
	shape := ix.header.shape()
	if shape.Bits == 4 {
		q.bytes = resize(q.bytes, shape.TableLen())
		q.scale, q.bias = ix.quantizer.Table(q.bytes, q.vector)
	} else {
		q.scale, q.bias = 1, 0
		q.floats = resize(q.floats, shape.TableLen())
		ix.quantizer.FloatTable(q.floats, q.vector)
	}
	if ix.rows != nil {
		n = min(overFetch*n, ix.header.rows)
	}
	q.best.Reset(n)
}

// scan offers the codes of all visited lists to the query.
func (s *Search) scan(ctx context.Context, q *query, filter *index.Filter) error {
	s.lead.Reset(leadLists)
	for l, seen := range s.visited {
		if seen && q.priority[l] >= s.lead.Threshold() {
			s.lead.Offer(index.Candidate{ID: uint32(l), Score: q.priority[l]})
		}
	}
	s.order = s.lead.Sorted(s.order[:0])
	for _, c := range s.order {
		s.scanList(q, int(c.ID), filter)
		s.first[c.ID] = true
	}
	for l, seen := range s.visited {
		if seen && !s.first[l] {
			s.scanList(q, l, filter)
		}
		if l%256 == 0 && ctx.Err() != nil {
			break
		}
	}
	for _, c := range s.order {
		s.first[c.ID] = false
	}
	return ctx.Err()
}

// scanList offers the codes of one list.
func (s *Search) scanList(q *query, l int, filter *index.Filter) {
	ix := s.ix
	begin, end := int(ix.begin[l]), int(ix.begin[l+1])
	size := ix.header.shape().CodeBytes()
	codes := ix.codes[ix.codeBegin[l]:ix.codeBegin[l+1]]
	// score = base + scale * sum of the code's entries
	base, scale := q.products[l]+ix.spread[l]*q.bias, ix.spread[l]*q.scale
	if ix.rows != nil {
		base += benefit * ix.loss * q.deviation[l]
	}
	for ; begin < end; begin += scanCodes {
		n := min(scanCodes, end-begin)
		part := codes[:min(len(codes), scanCodes*size)]
		codes = codes[len(part):]
		if ix.header.bits == 4 {
			s.scan4(q, part, begin, n, base, scale, filter)
		} else {
			s.scan8(q, part, begin, n, base, scale, filter)
		}
		s.cost.Codes += n
	}
}

// scan4 offers n codes of 4 bits, the first of them at position begin. The kernel sorts out most of them by their sum.
func (s *Search) scan4(q *query, codes []byte, begin, n int, base, scale float32, filter *index.Filter) {
	threshold := q.best.Threshold()
	least, ok := leastSum(threshold, base, scale)
	if !ok {
		return
	}
	found := simd.Scan4(s.pos, s.sums, codes, q.bytes, s.ix.header.shape().CodeBytes(), least)
	ids := s.ix.ids[begin : begin+n]
	for i, p := range s.pos[:found] {
		if int(p) >= n {
			return // padding
		}
		score := base + scale*float32(s.sums[i])
		if score >= threshold && filter.Keep(ids[p]) {
			q.best.Offer(index.Candidate{ID: ids[p], Ref: uint32(begin) + p, Score: score})
			threshold = q.best.Threshold()
		}
	}
}

// leastSum returns the least sum of a code whose score, base + scale*sum, can reach the threshold, and false when none
// can. It errs by one on the low side, as the score is rounded.
func leastSum(threshold, base, scale float32) (least uint16, ok bool) {
	if scale <= 0 {
		return 0, true
	}
	switch sum := math.Floor((float64(threshold)-float64(base))/float64(scale)) - 1; {
	case sum > math.MaxUint16:
		return 0, false
	case sum > 0:
		return uint16(sum), true
	}
	return 0, true
}

// scan8 offers n codes of 8 bits, the first of them at position begin.
func (s *Search) scan8(q *query, codes []byte, begin, n int, base, scale float32, filter *index.Filter) {
	simd.Scan8(s.scores[:n], codes, q.floats, len(codes)/n)
	threshold := q.best.Threshold()
	ids := s.ix.ids[begin : begin+n]
	for i, sum := range s.scores[:n] {
		if score := base + scale*sum; score >= threshold && filter.Keep(ids[i]) {
			q.best.Offer(index.Candidate{ID: ids[i], Ref: uint32(begin + i), Score: score})
			threshold = q.best.Threshold()
		}
	}
}

// refine appends the n best candidates of the query to dst, ranked by their rows if the index holds them.
func (s *Search) refine(q *query, n int, dst []index.Candidate) []index.Candidate {
	if s.ix.rows == nil {
		return q.best.Sorted(dst)
	}
	kept := q.best.Kept()
	// In the order of the file: neighbours share pages.
	slices.SortFunc(kept, func(a, b index.Candidate) int { return cmp.Compare(a.Ref, b.Ref) })
	d := s.ix.header.dim
	s.final.Reset(n)
	for _, c := range kept {
		c.Score = simd.Dot(q.vector, s.ix.rows[int(c.Ref)*d:(int(c.Ref)+1)*d])
		s.final.Offer(c)
	}
	return s.final.Sorted(dst)
}
