// Package index holds the vocabulary that every searcher of rows shares: what a hit and a candidate
// are, which ids a search may return, how much of an index it may visit and what it cost. The
// searchers themselves are index/ivf (one immutable generation) and internal/delta (rows newer than
// it).
//
// Scores order hits everywhere in the same way: higher score first, ties by lower id. The order is
// total, so every answer is reproducible whatever the order in which candidates were found. A
// decoder may score a row NaN, where its arithmetic overflows: such a hit ranks after all others,
// minus infinity included. Candidates have inner products of finite vectors and never score NaN.
//
// Filter, Probes and Cost are plain values. TopK and Best belong to one goroutine and are made to
// be reused.
package index

import (
	"errors"
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"
)

// Hit is one answer: a node and its score.
type Hit struct {
	ID    uint32
	Score float32
}

// Candidate is a row that a searcher found by inner product with a query, to be scored by a
// decoder.
type Candidate struct {
	ID    uint32
	Ref   uint32 // the searcher's own locator of the row: a position in a generation, or a slot in the delta
	Score float32
}

// before reports whether (id, score) ranks before (otherID, other). Neither score is a NaN.
func before(score float32, id uint32, other float32, otherID uint32) bool {
	return score > other || (score == other && id < otherID)
}

// compare orders two candidates for sorting, best first. Neither score is a NaN.
func compare(score float32, id uint32, other float32, otherID uint32) int {
	switch {
	case before(score, id, other, otherID):
		return -1
	case score == other && id == otherID:
		return 0
	}
	return 1
}

// Before reports whether h ranks before other. A NaN ranks last, and like any score ties by lower
// id.
func (h Hit) Before(other Hit) bool {
	switch {
	case h.Score > other.Score:
		return true
	case h.Score < other.Score:
		return false
	case h.Score == other.Score:
		return h.ID < other.ID
	}
	isNaN, otherIsNaN := h.Score != h.Score, other.Score != other.Score
	if isNaN && otherIsNaN {
		return h.ID < other.ID
	}
	return otherIsNaN
}

// Compare orders hits for sorting, best first: see Before.
func (h Hit) Compare(other Hit) int {
	switch {
	case h.Before(other):
		return -1
	case other.Before(h):
		return 1
	}
	return 0
}

// Filter says which ids a search may return. A nil bitmap is ignored, so the zero Filter keeps
// everything. The bitmaps are only read, and must not change while a search runs.
type Filter struct {
	Allowed  *roaring.Bitmap // when set, only these ids
	Excluded *roaring.Bitmap // not these: the source, known links, hits of earlier rounds
	Masked   *roaring.Bitmap // not these from this segment: a newer segment holds them, or they are deleted
}

// Keep reports whether a search may return id.
func (f *Filter) Keep(id uint32) bool {
	return (f.Allowed == nil || f.Allowed.Contains(id)) &&
		(f.Excluded == nil || !f.Excluded.Contains(id)) &&
		(f.Masked == nil || !f.Masked.Contains(id))
}

// Probes says how much of an index a query may have visited, always counted from the query's
// beginning: a search set only grows, and a search returns as soon as its total reaches the budget.
type Probes struct {
	Lists int     // number of lists; 0 leaves the budget to Share
	Share float64 // share of the rows, in (0, 1]; ignored when Lists > 0
}

// Scale returns the budget times f, which must be positive: never less than one list, never more
// than all rows.
func (p Probes) Scale(f float64) Probes {
	if p.Lists > 0 {
		return Probes{Lists: max(1, int(math.Round(min(float64(p.Lists)*f, math.MaxInt32))))}
	}
	return Probes{Share: min(1, p.Share*f)}
}

// All reports whether the budget is the whole index.
func (p Probes) All() bool { return p.Lists <= 0 && p.Share >= 1 }

// Validate reports what is wrong with the budget.
func (p Probes) Validate() error {
	switch {
	case p.Lists < 0:
		return fmt.Errorf("probes: %d lists: want a positive number", p.Lists)
	case p.Lists > 0:
		return nil
	case p.Share == 0:
		return errors.New("probes: neither lists nor share is set")
	case !(p.Share > 0 && p.Share <= 1):
		return fmt.Errorf("probes: share %v of the rows: want more than 0 and at most 1", p.Share)
	}
	return nil
}

// String returns "all", a share such as "5%", or a number of lists.
func (p Probes) String() string {
	switch {
	case p.All():
		return "all"
	case p.Lists > 0:
		return fmt.Sprintf("%d lists", p.Lists)
	}
	return fmt.Sprintf("%.4g%%", 100*p.Share)
}

// Cost is the work of a query so far.
type Cost struct {
	Lists int // lists visited, each counted once
	Codes int // codes scanned: every code of every visited list, again in every search and for every query vector
	Rows  int // rows held by the visited lists, each counted once
}
