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

// maxQueries is the number of query vectors that a round may have. A mixture of logits with 4 by 4
// components needs one for each pair in its first round. Other seeds and later rounds have one or
// two.
const maxQueries = 16

// Executor runs queries, one at a time. The zero value is ready to use. An Executor should be
// reused: once its memory has grown to what the largest query needs, a Run allocates only its
// result and what is added to Query.Excluded.
type Executor struct {
	Clock func() time.Time // for Round.Elapsed; nil means time.Now

	// The query being run.
	q        *Query
	s        Searcher
	r        Rows
	dim      int
	plan     Plan // of q, or its fallback
	report   Report
	excluded *roaring.Bitmap
	narrow   int     // number of ids that the filter allows, if so few that one round scores all; else -1
	widen    float64 // factor on the plan's probes, doubled when a filter leaves a round short
	seenAll  bool    // the last search covered all rows and still found fewer than asked for

	// Scratch.
	top     index.TopK
	anchors [2]anchors                    // best rows of the round, best rows of all rounds: see fromRound, fromAll
	vectors [maxQueries][]float32         // query vectors
	queries [][]float32                   // those in use
	origins [maxQueries]string            // where they came from
	active  []bool                        // neurons at the best anchor of the last round, for the trace
	found   [maxQueries][]index.Candidate // candidates of each query vector
	chosen  []index.Candidate             // the rows of this round
	pending []uint32                      // ids that are excluded before the next search; a query of one round never needs them in a bitmap
	rows    []float32                     // one block of them, row-major
	scores  []float32
	late    []float32 // scores of the tail of this round
	decoder decoder.Scratch

	leaders    []near    // stored sources that the seed was made from, nearest first
	seedScores []float32 // cosines of all stored sources

	own roaring.Bitmap // used as excluded if the query has none
}

// Where anchors come from, as indexes of Executor.anchors.
const (
	fromRound = iota
	fromAll
)

// Run answers q from the rows that s searches and r holds, and appends the hits, best first, to
// dst.
//
// There are fewer than q.K hits only if the filters allow no more rows (StopExhausted), or for the
// reason in Report.Stop. If the rounds of the plan find fewer, Run searches all rows for the
// missing ones. If a filter allows no more ids than the plan would score, one search of all rows
// finds and scores them all, so the answer is exact. If another filter leaves a round short, the
// probes are doubled until the round is full.
//
// If the deadline of ctx passes after the first round, Run returns the answer so far without an
// error. A cancelled ctx is an error, and so is a deadline that passes during the first round.
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

// end drops the references to what belongs to the caller.
func (e *Executor) end() {
	e.q, e.s, e.r, e.excluded, e.report.Trace = nil, nil, nil, nil, nil
}

// rounds runs the rounds of the plan, and returns why they ended.
func (e *Executor) rounds(ctx context.Context) (Stop, error) {
	plan := &e.plan
	switch {
	case e.narrow == 0:
		e.seenAll = true
		return StopExhausted, nil
	case e.narrow > 0: // one more than there are, so that the search shows that there are no more
		_, err := e.round(ctx, e.narrow+1, index.Probes{Share: 1})
		return StopExhausted, err
	case e.q.Bound.Linear(): // one round with the rows of all: later rounds would have the same query vector
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

// fill searches all rows for missing hits, after the rounds ended for the reason stop. A row whose
// score is NaN is a hit only if there are not enough others.
func (e *Executor) fill(ctx context.Context, stop Stop) (Stop, error) {
	missing := e.q.K - e.top.Numbers()
	for n := missing; missing > 0; n *= 2 { // twice as many each time: a NaN does not count as a hit
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
