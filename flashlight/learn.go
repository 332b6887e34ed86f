package flashlight

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flashdb/flashdb/decoder"
)

// ErrNotSeparable says that a decoder has no gradient to learn from: it is linear, and needs no
// seed, or not a network.
var ErrNotSeparable = errors.New("the decoder has no gradient with respect to z")

// learnRows is the number of best rows whose gradients a prototype is the mean of. With 20 or fewer
// it misses what lies around them, with 100 the best lose their weight.
const learnRows = 50

// LearnPlan returns the plan of the search that a prototype is learned from, for rows of which so
// many lie in the index. Twice the probes, both seeds and every row's score gained nothing on four
// graphs; fewer rounds lost on the hardest.
func LearnPlan(rows int) Plan {
	plan := DefaultPlan(100, rows)
	plan.Anchors, plan.Rounds, plan.PerRound = learnRows, 6, 200
	return plan
}

// Learn answers q as Run does, at least as thoroughly as LearnPlan if the prototype is to be of
// use, and returns what the answer teaches: the mean gradient with respect to z at its best
// q.Plan.Anchors rows. A search that a deadline cuts short is an error here. The id is that of the
// source's node. The prototype holds copies.
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
