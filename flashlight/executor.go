package flashlight

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/index"
)

// maxQueries is the number of query vectors a round may have: one for each pair of components of a
// mixture of 4 by 4. Other seeds have one or two, and so do the rounds after the first.
const maxQueries = 16

// Executor runs queries, one at a time. The zero value is ready; reuse it, as its memory grows to
// what the largest query needs and then a Run allocates only what it returns and what
// Query.Excluded takes.
type Executor struct {
	Clock func() time.Time // for Round.Elapsed; nil: time.Now

	// The query being run.
	q        *Query
	s        Searcher
	r        Rows
	dim      int
	plan     Plan // of q, or its fallback
	report   Report
	excluded *roaring.Bitmap
	narrow   int     // ids the filter allows, when so few that all are scored at once; else -1
	widen    float64 // factor on the plan's probes, doubled when a filter starves a round
	seenAll  bool    // the last search found fewer rows than asked for in all there are

	// Scratch.
	top     index.TopK
	anchors [2]anchors                    // best rows of the round, best rows of all rounds: see fromRound, fromAll
	vectors [maxQueries][]float32         // query vectors
	queries [][]float32                   // those in use
	origins [maxQueries]string            // where they came from
	active  []bool                        // neurons at the best anchor of the last round, for the trace
	found   [maxQueries][]index.Candidate // by each query
	chosen  []index.Candidate             // the rows of this round
	pending []uint32                      // ids that become excluded before the next search: one round needs no bitmap
	rows    []float32                     // one block of them, row-major
	scores  []float32
	late    []float32 // scores of the tail of this round
	decoder decoder.Scratch

	leaders    []near    // stored sources that led to the seed, nearest first
	seedScores []float32 // cosines of all of them

	own roaring.Bitmap // for excluded, when the query brings none
}

// Where anchors come from, as indexes of Executor.anchors.
const (
	fromRound = iota
	fromAll
)

// Run answers q from the rows that s searches and r holds, and appends the hits, best first, to
// dst.
//
// Hits are fewer than q.K only when the filters allow no more rows (StopExhausted), or for the
// reason in Report.Stop. To that end Run searches on when the plan's rounds brought fewer: in
// everything, for what is missing. A filter that allows no more ids than the plan would score is
// answered in one such search, exactly; another filter that leaves a round short doubles the probes
// until the round is full.
//
// When the deadline of ctx passes after the first round, the answer so far is returned without an
// error. A cancelled ctx is an error, and so is a deadline that leaves no time for one round.
func (e *Executor) Run(ctx context.Context, q *Query, s Searcher, r Rows, dst []index.Hit) ([]index.Hit, Report, error) {
	if q.Plan.Method == MethodExact {
		return Exact(ctx, q, r, 0, dst)
	}
	if err := q.validate(r.Dim()); err != nil {
		return dst, Report{}, fmt.Errorf("flashlight: %w", err)
	}
	e.begin(q, s, r)
	defer e.end()
	stop, err := e.rounds(ctx)
	if err == nil {
		stop, err = e.fill(ctx, stop)
	}
	if err != nil {
		if !errors.Is(err, context.DeadlineExceeded) || e.report.Rounds == 0 {
			return dst, Report{}, fmt.Errorf("flashlight: round %d: %w", e.report.Rounds+1, err)
		}
		stop = StopDeadline
	}
	e.report.Stop, e.report.Cost = stop, s.Cost()
	hits, cut := applyMinScore(e.top.Sorted(dst), len(dst), q.MinScore)
	if cut {
		e.report.Stop = StopMinScore
	}
	return hits, e.report, nil
}

// begin sets the query up.
func (e *Executor) begin(q *Query, s Searcher, r Rows) {
	e.q, e.s, e.r, e.dim = q, s, r, r.Dim()
	e.active, e.widen, e.seenAll = nil, 1, false
	e.top.Reset(q.K)
	e.pending = e.pending[:0]
	e.seed()
	e.report = Report{Plan: e.plan}
	for i := range e.anchors {
		e.anchors[i].reset(e.plan.Anchors, e.dim)
	}
	if e.excluded = q.Excluded; e.excluded == nil {
		e.own.Clear()
		e.excluded = &e.own
	}
	e.narrow = -1
	if q.Allowed != nil && e.plan.Method == MethodFlashlight {
		if n := q.Allowed.GetCardinality(); n <= uint64(e.plan.Rounds)*uint64(e.plan.PerRound) {
			e.narrow = int(n)
		}
	}
}

// end lets go of what belongs to the caller.
func (e *Executor) end() {
	e.q, e.s, e.r, e.excluded, e.report.Trace = nil, nil, nil, nil, nil
}

// rounds runs the rounds of the plan and returns why they ended.
func (e *Executor) rounds(ctx context.Context) (Stop, error) {
	plan := &e.plan
	switch {
	case e.narrow == 0:
		e.seenAll = true
		return StopExhausted, nil
	case e.narrow > 0: // one more than there are, to see that there are no more
		_, err := e.round(ctx, e.narrow+1, index.Probes{Share: 1})
		return StopExhausted, err
	case e.q.Bound.Linear(): // one round, with the rows of all: what it misses no later round would find
		_, err := e.round(ctx, max(e.q.K, plan.Rounds*plan.PerRound), plan.Probes)
		return StopLinear, err
	}
	idle := 0
	for t := 1; ; t++ {
		entered, err := e.round(ctx, plan.PerRound, plan.probes(t))
		if err != nil {
			return "", err
		}
		switch {
		case entered > 0:
			idle = 0
		case len(e.chosen) > 0: // a round that found nothing to score says nothing about the top-k
			idle++
		}
		switch {
		case e.seenAll:
			return StopExhausted, nil
		case idle >= plan.Patience:
			return StopConverged, nil
		case plan.Tail > 0 && e.tail() <= plan.Tail:
			return StopTail, nil
		case e.budget() == 0:
			return StopBudget, nil
		case t == plan.Rounds:
			return StopRounds, nil
		}
		e.chooseQueries()
	}
}

// tail returns the share of the top-k that the tail of the last round holds, or 1 while hits are
// missing.
func (e *Executor) tail() float64 {
	worst, full := e.top.Worst()
	if !full || worst != worst { // NaN
		return 1
	}
	n := 0
	for _, score := range e.late {
		if score >= worst {
			n++
		}
	}
	return float64(n) / float64(e.q.K)
}

// fill searches everything for the hits that are missing, if any, after the rounds ended for the
// reason stop. A row whose score is a NaN is a hit only where there is no other.
func (e *Executor) fill(ctx context.Context, stop Stop) (Stop, error) {
	missing := e.q.K - e.top.Numbers()
	for n := missing; missing > 0; n *= 2 { // more each time: a NaN does not reduce what is missing
		switch {
		case e.seenAll:
			return StopExhausted, nil
		case e.budget() == 0:
			return StopBudget, nil
		}
		if _, err := e.round(ctx, n, index.Probes{Share: 1}); err != nil {
			return "", err
		}
		if e.q.Explain {
			e.report.Trace[len(e.report.Trace)-1].Widening = true
		}
		missing = e.q.K - e.top.Numbers()
	}
	return stop, nil
}

// budget returns how many more rows may be scored.
func (e *Executor) budget() int {
	if e.plan.MaxScored == 0 {
		return math.MaxInt
	}
	return e.plan.MaxScored - e.report.RowsScored
}
