package flashdb

import (
	"cmp"
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/storage"
)

// freshRef is set in the Ref of a candidate from the delta. Without it, a Ref is a position in the
// generation.
const freshRef = 1 << 31

// A view is what one query searches: a pinned generation and a snapshot of the delta, behind the
// interfaces of package flashlight. It belongs to one query at a time and is reused.
//
// Each id is served by one of the two only. The mask of the delta hides ids in the generation that
// the delta holds or that were deleted.
type view struct {
	c      *Collection
	pinned pinned

	search   *ivf.Search // of searchOf, kept while that generation is pinned
	searchOf *ivf.Index

	fromDelta [][]index.Candidate
	refs      []index.Candidate
	masked    *roaring.Bitmap
}

// open begins a query over p. close releases p.
func (v *view) open(p pinned) {
	v.pinned = p
	v.masked = p.delta.Masked()
	if p.gen == nil {
		return
	}
	if v.searchOf != p.gen {
		v.search, v.searchOf = p.gen.NewSearch(), p.gen
		v.search.Workers = v.c.db.opts.Workers
	}
	v.search.Reset()
}

func (v *view) close() { v.pinned.release() }

// Reset implements calibrate.Searcher. It begins another query over the same pinned data.
func (v *view) Reset() {
	if v.pinned.gen != nil {
		v.search.Reset()
	}
}

// Dim implements flashlight.Rows.
func (v *view) Dim() int { return v.c.schema.Dim }

// Search implements flashlight.Searcher. For each query vector it returns the best n of the
// generation and the delta together.
func (v *view) Search(ctx context.Context, queries [][]float32, n int, probes index.Probes, filter index.Filter, dst [][]index.Candidate) error {
	p, dst := &v.pinned, dst[:len(queries)]
	if p.gen == nil {
		p.delta.Search(queries, n, filter, dst)
		for _, d := range dst {
			markFresh(d)
		}
		return nil
	}
	genFilter := filter
	genFilter.Masked = v.masked
	if err := v.search.Search(ctx, queries, n, probes, genFilter, dst); err != nil {
		return err
	}
	if p.delta.Len() == 0 {
		return nil
	}
	v.fromDelta = resize(v.fromDelta, len(queries))
	p.delta.Search(queries, n, filter, v.fromDelta)
	for i := range dst {
		markFresh(v.fromDelta[i])
		dst[i] = mergeCandidates(dst[i], v.fromDelta[i], n)
	}
	return nil
}

// Cost implements flashlight.Searcher.
func (v *view) Cost() index.Cost {
	if v.pinned.gen == nil {
		return index.Cost{}
	}
	return v.search.Cost()
}

// Exhausted implements flashlight.Searcher.
func (v *view) Exhausted() bool { return v.pinned.gen == nil || v.search.Exhausted() }

func markFresh(cands []index.Candidate) {
	for i := range cands {
		cands[i].Ref |= freshRef
	}
}

// resize returns s with length n and every element empty. It reuses memory.
func resize(s [][]index.Candidate, n int) [][]index.Candidate {
	for len(s) < n {
		s = append(s, nil)
	}
	s = s[:n]
	for i := range s {
		s[i] = s[i][:0]
	}
	return s
}

// mergeCandidates returns the best n of a and b, best first. It reuses the memory of a.
func mergeCandidates(a, b []index.Candidate, n int) []index.Candidate {
	a = append(a, b...)
	slices.SortFunc(a, func(x, y index.Candidate) int {
		return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(x.ID, y.ID))
	})
	return a[:min(n, len(a))]
}

// Gather implements flashlight.Rows: dst receives the rows of the candidates in order. Consecutive
// candidates of the delta, or of the generation, are read with one call.
func (v *view) Gather(dst []float32, cands []index.Candidate) error {
	dim := v.Dim()
	for i := 0; i < len(cands); {
		fresh := cands[i].Ref&freshRef != 0
		j := i
		v.refs = v.refs[:0]
		for ; j < len(cands) && (cands[j].Ref&freshRef != 0) == fresh; j++ {
			ref := cands[j]
			ref.Ref &^= freshRef
			v.refs = append(v.refs, ref)
		}
		var err error
		switch rows := dst[i*dim : j*dim]; {
		case fresh:
			v.pinned.delta.Gather(rows, v.refs)
		case v.pinned.gen.Info().HasRows:
			err = v.pinned.gen.Gather(rows, v.refs)
		default:
			err = v.gatherStored(rows, v.refs)
		}
		if err != nil {
			return err
		}
		i = j
	}
	return nil
}

// gatherStored reads rows from bbolt, for a generation that was built without them. The row of a
// node that was deleted since the query began is left zero. Its id has no key any more, so it is
// never returned.
func (v *view) gatherStored(dst []float32, cands []index.Candidate) error {
	dim := v.Dim()
	return v.c.view(func(s *storage.View) error {
		if err := v.still(s); err != nil {
			return err
		}
		for i, cand := range cands {
			row := dst[i*dim : (i+1)*dim]
			if !s.Row(row, v.c.uid, cand.ID) {
				clear(row)
			}
		}
		return nil
	})
}

// still returns an error if another release is live than when the query began.
func (v *view) still(s *storage.View) error {
	if info, ok := s.Collection(v.c.name); ok && info.Stamp != v.pinned.at.stamp {
		return errReplaced
	}
	return nil
}

// Rows implements flashlight.Rows: it passes every live row to fn once, in blocks.
func (v *view) Rows(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	if v.pinned.gen != nil {
		unmasked := func(ids []uint32, rows []float32) error {
			return eachUnmasked(v.masked, v.Dim(), ids, rows, fn)
		}
		var err error
		if v.pinned.gen.Info().HasRows {
			err = v.pinned.gen.Rows(ctx, unmasked)
		} else {
			err = v.c.storedRows(ctx, func(ids []uint32, rows []float32) error {
				return unmasked(slices.Clone(ids), slices.Clone(rows)) // the store reuses its memory
			})
			if err == nil { // rows of another release may be among those read
				err = v.c.view(v.still)
			}
		}
		if err != nil {
			return err
		}
	}
	return v.pinned.delta.Rows(ctx, fn)
}

// eachUnmasked calls fn for each run of rows of a block without masked ids.
func eachUnmasked(masked *roaring.Bitmap, dim int, ids []uint32, rows []float32, fn func([]uint32, []float32) error) error {
	if masked == nil || masked.IsEmpty() {
		return fn(ids, rows)
	}
	for i := 0; i < len(ids); {
		if masked.Contains(ids[i]) {
			i++
			continue
		}
		j := i + 1
		for j < len(ids) && !masked.Contains(ids[j]) {
			j++
		}
		if err := fn(ids[i:j], rows[i*dim:j*dim]); err != nil {
			return err
		}
		i = j
	}
	return nil
}
