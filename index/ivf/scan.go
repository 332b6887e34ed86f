package ivf

import (
	"context"
	"math"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/simd"
)

// scan offers the codes of the visited lists to each query vector. The best lists come first, so
// that the threshold rises early. Of the others, those that cannot reach the threshold are skipped.
// All query vectors scan one of these lists before the next one, while its codes are in the cache.
func (s *Search) scan(ctx context.Context, queries []queryVector) error {
	w := s.workers[0]
	w.codes, w.best = 0, w.best[:0]
	large := s.cost.Rows*len(queries) >= largeScan
	for i := range queries {
		w.best = append(w.best, queries[i].best)
		w.scanFirst(&queries[i], large)
	}
	if large {
		s.scanShared(ctx, queries)
	} else {
		w.scanOthers(ctx, queries)
	}
	for i := range queries {
		q := &queries[i]
		for _, c := range q.turns {
			q.first[c.ID] = false
		}
	}
	for _, w := range s.workers {
		s.cost.Codes += w.codes
		w.codes = 0
	}
	return ctx.Err()
}

// scanFirst scans the best lists of a query, and marks them.
func (w *worker) scanFirst(q *queryVector, large bool) {
	lists := w.s.lists
	q.first = resize(q.first, len(q.products))
	q.wanted.Reset(leadLists)
	if large {
		q.wanted.Reset(max(leadLists, len(lists)/leadShare))
	}
	for _, l := range lists {
		if p := q.priority(w.s.ix, int(l)); p >= q.wanted.Threshold() {
			q.wanted.Offer(index.Candidate{ID: l, Score: p})
		}
	}
	q.turns = q.wanted.Sorted(q.turns[:0])
	for i, c := range q.turns {
		if i+aheadLists < len(q.turns) {
			w.s.ix.prefetch(int(q.turns[i+aheadLists].ID))
		}
		w.scanList(q, q.best, q.best.Threshold(), int(c.ID))
		q.first[c.ID] = true
	}
	q.floor = q.best.Threshold()
}

// scanOthers scans the lists that were not scanned first.
func (w *worker) scanOthers(ctx context.Context, queries []queryVector) {
	lists := w.s.lists
	for i, l := range lists {
		w.prefetch(queries, lists, i+aheadLists)
		for j := range queries {
			if q := &queries[j]; !q.first[l] {
				w.scanList(q, q.best, q.best.Threshold(), int(l))
			}
		}
		if i%256 == 255 && ctx.Err() != nil {
			return
		}
	}
}

// prefetch prefetches the codes and ids of lists[at], if there is one and it will be scanned. If
// all lists are visited, they follow each other in memory and the processor prefetches them.
func (w *worker) prefetch(queries []queryVector, lists []uint32, at int) {
	if at >= len(lists) || w.s.thorough {
		return
	}
	l := int(lists[at])
	for i := range queries {
		if q := &queries[i]; !q.first[l] && q.reaches(w.s.ix, l, w.best[i].Threshold()) {
			w.s.ix.prefetch(l)
			return
		}
	}
}

// prefetch prefetches the first codes and ids of a list. The processor fetches the rest of a long
// one by itself.
func (ix *Index) prefetch(l int) {
	codes, ids := ix.partOf(l).list(l)
	simd.Prefetch(codes[:min(len(codes), prefetchBytes)])
	simd.Prefetch(ids[:min(len(ids), prefetchBytes/4)])
}

// reaches reports whether the list may hold a row that reaches the floor, which it also may where
// the query overflows.
func (q *queryVector) reaches(ix *Index, l int, floor float32) bool {
	return !(q.products[l]+tail*(ix.spread[l]*q.unit) < floor)
}

// scanList offers the codes of one list to best, unless it lies too low to reach the floor.
func (w *worker) scanList(q *queryVector, best *index.Best, floor float32, l int) {
	ix := w.s.ix
	if !w.s.thorough && !q.reaches(ix, l, floor) {
		return
	}
	mean, deviation := q.products[l], ix.spread[l]*q.unit
	// score = base + scale * sum of the code's entries
	base, scale := mean+ix.spread[l]*q.bias, ix.spread[l]*q.scale
	if ix.hasRows() {
		base += benefit * ix.loss * deviation
	}
	p := ix.partOf(l)
	codes, ids := p.list(l)
	r := codeRun{part: p, ref: ix.begin[l]}
	for len(ids) > 0 {
		n := min(scanCodes, len(ids))
		size := min(len(codes), scanCodes*ix.codeBytes)
		r.codes, codes = codes[:size], codes[size:]
		r.ids, ids = ids[:n], ids[n:]
		if ix.header.bits == 4 {
			w.scan4(q, best, &r, base, scale)
		} else {
			w.scan8(q, best, &r, base, scale)
		}
		r.ref += uint32(n)
		w.codes += n
	}
}

// A codeRun is neighbouring rows of a list.
type codeRun struct {
	part  *part
	codes []byte
	ids   []uint32
	ref   uint32 // position of the first
}

// scan4 offers codes of 4 bits. The kernel discards most of them by their sums.
func (w *worker) scan4(q *queryVector, best *index.Best, r *codeRun, base, scale float32) {
	threshold := best.Threshold()
	least, ok := leastSum(threshold, base, scale)
	if !ok {
		return
	}
	found := simd.Scan4(w.pos, w.sums, r.codes, q.bytes, w.s.ix.codeBytes, least)
	ids := r.ids
	sums := w.sums[:found]
	for i, p := range w.pos[:found] {
		if int(p) >= len(ids) {
			return // padding
		}
		score := base + scale*float32(sums[i])
		if score >= threshold && !w.s.denied.has(ids[p]) && !r.part.hides(ids[p]) {
			best.Offer(index.Candidate{ID: ids[p], Ref: r.ref + p, Score: score})
			threshold = best.Threshold()
		}
	}
}

// leastSum returns the least sum of a code whose score, base + scale*sum, can reach the threshold,
// or false if none can. It may be too low by one, because the score is rounded.
func leastSum(threshold, base, scale float32) (least uint16, ok bool) {
	if scale <= 0 {
		return 0, true
	}
	switch sum := (float64(threshold)-float64(base))/float64(scale) - 1; {
	case sum >= math.MaxUint16+1:
		return 0, false
	case sum >= 1:
		return uint16(sum), true
	}
	return 0, true
}

// scan8 offers codes of 8 bits.
func (w *worker) scan8(q *queryVector, best *index.Best, r *codeRun, base, scale float32) {
	ids := r.ids
	simd.Scan8(w.scores[:len(ids)], r.codes, q.floats, w.s.ix.codeBytes)
	threshold := best.Threshold()
	for i, sum := range w.scores[:len(ids)] {
		if score := base + scale*sum; score >= threshold && !w.s.denied.has(ids[i]) && !r.part.hides(ids[i]) {
			best.Offer(index.Candidate{ID: ids[i], Ref: r.ref + uint32(i), Score: score})
			threshold = best.Threshold()
		}
	}
}
