package flashlight

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flashdb/flashdb/decoder"
)

// ErrNotSeparable says that seeds cannot be learned for a decoder. Either it is linear and needs no
// seed, or it is not a network.
var ErrNotSeparable = errors.New("the decoder has no gradient with respect to z")

// learnRows is the number of best rows over which a prototype averages the gradient. The mean over
// 20 or fewer misses their neighbourhood. In a mean over 100 the best weigh too little.
const learnRows = 50

// LearnPlan returns the plan of the search that a prototype is learned from, for an index of so
// many rows. On four graphs, twice the probes, both seeds, or scoring every row gained nothing.
// Fewer rounds had a lower recall on the hardest.
func LearnPlan(rows int) Plan {
	plan := DefaultPlan(100, rows)
	plan.Anchors, plan.Rounds, plan.PerRound = learnRows, 6, 200
	return plan
}

// Learn runs q as Run does, and returns a prototype: the mean gradient with respect to z at the
// best q.Plan.Anchors rows of the answer. q.Plan should be at least as thorough as LearnPlan. If a
// deadline ends the search, that is an error. id is that of the source's node. The prototype holds
// copies.
func (e *Executor) Learn(ctx context.Context, id uint32, q *Query, s Searcher, r Rows) (Prototype, error) {
	p := Prototype{ID: id}
	bound, ok := q.Bound.(decoder.Separable)
	if !ok {
		return p, fmt.Errorf("flashlight: learn: %w", ErrNotSeparable)
	}
	if q.Plan.Method == MethodExact {
		return p, errors.New("flashlight: learn: method exact keeps no anchors: use a plan of rounds")
	}
	_, report, err := e.Run(ctx, q, s, r, nil)
	if err == nil && report.Stop == StopDeadline {
		err = context.DeadlineExceeded
	}
	if err != nil {
		return p, fmt.Errorf("flashlight: learn: %w", err)
	}
	p.Source = slices.Clone(q.Source)
	p.Gradient = make([]float32, r.Dim())
	bound.GradientZ(&e.decoder, p.Gradient, e.anchors[fromAll].rows, nil)
	return p, nil
}
