package ivf

import (
	"context"
	"math"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/simd"
)

// scan offers the codes of the visited lists to each query: those of its best lists first, so that the threshold rises
// early, and of the others as far as they can still reach it. Of these, all queries scan a list before the next, while
// its codes are in the cache.
func (s *Search) scan(ctx context.Context, queries []query) error {
	for i := range queries {
		s.scanFirst(&queries[i])
	}
	for i, l := range s.lists {
		for j := range queries {
			if q := &queries[j]; !q.first[l] {
				s.scanList(q, int(l))
			}
		}
		if i%256 == 255 && ctx.Err() != nil {
			break
		}
	}
	for i := range queries {
		q := &queries[i]
		for _, c := range q.turns {
			q.first[c.ID] = false
		}
	}
	return ctx.Err()
}

// scanFirst scans the best lists of a query, and marks them.
func (s *Search) scanFirst(q *query) {
	q.first = resize(q.first, len(q.products))
	q.wanted.Reset(leadLists)
	for _, l := range s.lists {
		if p := q.priority(s.ix, int(l)); p >= q.wanted.Threshold() {
			q.wanted.Offer(index.Candidate{ID: l, Score: p})
		}
	}
	q.turns = q.wanted.Sorted(q.turns[:0])
	for _, c := range q.turns {
		s.scanList(q, int(c.ID))
		q.first[c.ID] = true
	}
}

// scanList offers the codes of one list, unless it lies too low.
func (s *Search) scanList(q *query, l int) {
	ix := s.ix
	mean, deviation := q.products[l], ix.spread[l]*q.unit
	if !s.thorough && mean+tail*deviation < q.best.Threshold() {
		return
	}
	// score = base + scale * sum of the code's entries
	base, scale := mean+ix.spread[l]*q.bias, ix.spread[l]*q.scale
	if ix.rows != nil {
		base += benefit * ix.loss * deviation
	}
	begin, end := int(ix.begin[l]), int(ix.begin[l+1])
	size := ix.codeBytes
	codes := ix.codes[ix.codeBegin[l]:ix.codeBegin[l+1]]
	for ; begin < end; begin += scanCodes {
		n := min(scanCodes, end-begin)
		part := codes[:min(len(codes), scanCodes*size)]
		codes = codes[len(part):]
		if ix.header.bits == 4 {
			s.scan4(q, part, begin, n, base, scale)
		} else {
			s.scan8(q, part, begin, n, base, scale)
		}
		s.cost.Codes += n
	}
}

// scan4 offers n codes of 4 bits, the first of them at position begin. The kernel sorts out most of them by their sum.
func (s *Search) scan4(q *query, codes []byte, begin, n int, base, scale float32) {
	threshold := q.best.Threshold()
	least, ok := leastSum(threshold, base, scale)
	if !ok {
		return
	}
	found := simd.Scan4(s.pos, s.sums, codes, q.bytes, s.ix.codeBytes, least)
	ids := s.ix.ids[begin : begin+n]
	sums := s.sums[:found]
	for i, p := range s.pos[:found] {
		if int(p) >= n {
			return // padding
		}
		score := base + scale*float32(sums[i])
		if score >= threshold && !s.denied.has(ids[p]) {
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
func (s *Search) scan8(q *query, codes []byte, begin, n int, base, scale float32) {
	simd.Scan8(s.scores[:n], codes, q.floats, s.ix.codeBytes)
	threshold := q.best.Threshold()
	ids := s.ix.ids[begin : begin+n]
	for i, sum := range s.scores[:n] {
		if score := base + scale*sum; score >= threshold && !s.denied.has(ids[i]) {
			q.best.Offer(index.Candidate{ID: ids[i], Ref: uint32(begin + i), Score: score})
			threshold = q.best.Threshold()
		}
	}
}
