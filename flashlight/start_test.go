package flashlight_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
)

// TestStart checks that the first query vector is the gradient at Query.Start, whatever the seed of
// the plan.
func TestStart(t *testing.T) {
	const dim = 6
	g := newGraph(t, 35, 40, dim, 9)
	q := g.query(0, 5, learnedPlan(10))
	q.Start, q.Explain = append(g.row(3), g.row(7)...), true
	want := make([]float32, dim)
	q.Bound.Gradient(new(decoder.Scratch), want, q.Start, nil)
	s := &spy{listSearch: newListSearch(g), bound: q.Bound}
	_, report, err := new(flashlight.Executor).Run(context.Background(), q, s, g.memory(), nil)
	require.NoError(t, err)
	require.Equal(t, [][]float32{want}, s.queries[0])
	assert.Equal(t, []flashlight.Aim{{From: "start"}}, report.Trace[0].Aims)

	q.Start = q.Start[:dim+1]
	_, _, err = new(flashlight.Executor).Run(context.Background(), q, s, g.memory(), nil)
	require.ErrorContains(t, err, "7 values to start from are no rows of 6 floats")
}
