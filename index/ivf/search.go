package ivf

import (
	"context"
	"errors"
	"fmt"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/simd"
)

const (
	// benefit is by how many standard deviations of its error an estimate is raised before rows
	// compete to be kept. Without it, thousands of rows in tight lists, whose estimates are nearly
	// exact, displace the few better ones in wide lists that are underestimated. Of values from 0
	// to 4, 1.5 to 2 gave the highest recall on every graph, and values from 3 on were too high.
	benefit = 1.5
	// leadLists is the number of lists that are scanned first, best first, so that the threshold
	// rises early. The others follow in the order of the file.
	leadLists = 32
	// tail is how many standard deviations above its mean the best row of a list is assumed to be
	// at most. A visited list that cannot reach the threshold within that is skipped, unless all
	// lists are to be visited. On graphs of 64,000 and 750,000 rows with default probes, 4 lost no
	// recall and saved a third of the codes. With 3 the worst source lost 7 of its top 100.
	tail = 4
	// aheadRows is how many candidates ahead their rows are prefetched, which lie scattered in
	// memory: enough to hide the latency, few enough to stay in the first-level cache.
	aheadRows = 8
	// aheadLists is how many lists ahead codes and ids are prefetched, and prefetchBytes how much
	// of either at most.
	aheadLists    = 4
	prefetchBytes = 4096
	// scanCodes is the number of codes scanned at a time, in whole blocks. The threshold is updated
	// after each.
	scanCodes = 2048
)

// Search is the state of one query: the lists it has visited, and their cost. A query may have many
// query vectors, one after the other. A Search belongs to one goroutine at a time. Reset prepares
// it for another query, and after the first queries it does not allocate. The Index must stay
// retained while a Search is used.
type Search struct {
	// Workers bounds the goroutines of one large search. 0 means only that of the caller. The
	// result does not depend on it.
	Workers int

	ix      *Index
	visited bitset   // of lists
	lists   []uint32 // the visited ones, in the order of the file
	cost    index.Cost
	// thorough searches scan every visited list.
	thorough bool
	queries  []queryVector
	denied   denied
	final    *index.Best
	workers  []*worker // the first is the caller's goroutine
	shared   shared
}

// queryVector is the state of one query vector of a Search.
type queryVector struct {
	given       []float32         // as the caller gave it
	vector      []float32         // times a power of two, see scaled
	scaled      []float32         // memory of vector
	unscale     float64           // turns inner products with vector into those with what was given
	products    []float32         // with the centroid of every list
	priorities  []float32         // of every list, while lists are being chosen
	inUnits     []float32         // the vector in units of the rounded centroids
	rounded     []int8            // that in steps, padded with zeros
	step        float32           // see rounded.go
	squares     []float32         // of the vector
	tops        []float32         // priority that the lists of each group are likely to reach
	alongs      []float32         // variance of the centroids of each group along the vector, relative to that in all dimensions
	examined    bitset            // groups whose lists have their products
	lead        bitset            // groups examined first
	reaching    bitset            // of lists
	unit        float32           // standard deviation along the vector of rows whose list has a spread of 1
	wanted      *index.Best       // the lists of highest priority among some
	sampled     []float32         // priorities of some of the lists, from which the n-th of all is guessed
	leading     *index.Best       // groups that are likely to have the best lists
	turns       []index.Candidate // those, best first
	first       []bool            // by list: scanned among the first
	bytes       []byte            // lookup table of 4-bit codes
	floats      []float32         // lookup table of 8-bit codes
	scale, bias float32           // turn the sum of a code into the vector's inner product with what is quantized
	best        *index.Best
	floor       float32 // threshold of best once the first lists are scanned
}

// NewSearch returns a Search that has visited no list.
func (ix *Index) NewSearch() *Search {
	s := &Search{
		ix:      ix,
		visited: newBitset(ix.header.lists),
		denied:  newDenied(ix),
		final:   index.NewBest(1),
	}
	s.workers = []*worker{newWorker(s)}
	return s
}

// Reset forgets the visited lists and the cost.
func (s *Search) Reset() {
	clear(s.visited)
	s.lists = s.lists[:0]
	s.cost = index.Cost{}
}

// Cost returns the work since Reset.
func (s *Search) Cost() index.Cost { return s.cost }

// Exhausted reports whether all lists have been visited.
func (s *Search) Exhausted() bool { return s.cost.Lists == s.ix.header.lists }

// Visited reports whether the search has visited a list since Reset.
func (s *Search) Visited(list int) bool { return s.visited.has(list) }

// Search first visits further lists until the total since Reset reaches the budget. Then it finds
// for each query vector the n rows of highest inner product that match the filter and are in a
// visited list. It sets dst[i], whose memory it reuses, to the candidates of queries[i], best
// first. Which rows are found is approximate. Their scores are exact inner products, or estimates
// if the index holds no rows.
func (s *Search) Search(ctx context.Context, queries [][]float32, n int, probes index.Probes, filter index.Filter, dst [][]index.Candidate) error {
	if err := s.check(queries, n, probes, dst); err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	n = min(n, s.ix.header.rows)
	for len(s.queries) < len(queries) {
		s.queries = append(s.queries, queryVector{best: index.NewBest(1), wanted: index.NewBest(1), leading: index.NewBest(1)})
	}
	active := s.queries[:len(queries)]
	for i := range active {
		active[i].take(s.ix, queries[i])
	}
	s.visitMore(active, probes)
	s.thorough = probes.All()
	s.denied.set(&filter)
	for i := range active {
		active[i].prepare(s.ix, n)
	}
	if err := s.scan(ctx, active); err != nil {
		return err
	}
	for i := range active {
		dst[i] = s.refine(&active[i], n, dst[i][:0])
		active[i].given, active[i].vector = nil, nil // the caller's
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
		if !finite(q) {
			return fmt.Errorf("query %d has a value that is not finite", i)
		}
	}
	return probes.Validate()
}

// prepare computes the lookup table and makes room for the candidates.
func (q *queryVector) prepare(ix *Index, n int) {
	shape := ix.header.shape()
	if shape.Bits == 4 {
		q.bytes = resize(q.bytes, shape.TableLen())
		q.scale, q.bias = ix.quantizer.Table(q.bytes, q.vector)
	} else {
		q.scale, q.bias = 1, 0
		q.floats = resize(q.floats, shape.TableLen())
		ix.quantizer.FloatTable(q.floats, q.vector)
	}
	if ix.hasRows() {
		n = min(ranked(n), ix.header.rows)
	}
	q.best.Reset(n)
}

// ranked returns how many candidates are kept by their codes, to be ranked by their rows, if n are
// asked for: three times as many up to 200, n + n/2 + 300 up to 600, and twice as many beyond.
func ranked(n int) int { return n + max(n, min(2*n, n/2+300)) }

// refine appends the n best candidates of the query to dst, ranked by their rows if the index holds
// them.
func (s *Search) refine(q *queryVector, n int, dst []index.Candidate) []index.Candidate {
	if !s.ix.hasRows() {
		n := len(dst)
		dst = q.best.Sorted(dst)
		for i := range dst[n:] {
			dst[n+i].Score = float32(float64(dst[n+i].Score) * q.unscale)
		}
		return dst
	}
	s.final.Reset(n)
	kept := q.best.Kept()
	for _, c := range kept[:min(aheadRows, len(kept))] {
		simd.Prefetch(s.ix.row(c.Ref))
	}
	for i, c := range kept {
		if i+aheadRows < len(kept) {
			simd.Prefetch(s.ix.row(kept[i+aheadRows].Ref))
		}
		c.Score = simd.SafeDot(q.given, s.ix.row(c.Ref))
		s.final.Offer(c)
	}
	return s.final.Sorted(dst)
}
