package calibrate

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/flashlight"
)

// seenBy makes a candidate for k = 10 of some cost that found the same share of every one of n sources.
func seenBy(n, cost int, recall float64) *candidate {
	c := &candidate{k: 10, plan: flashlight.DefaultPlan(10, 1000), outcomes: make([]outcome, n)}
	for i := range c.outcomes {
		c.outcomes[i] = outcome{recall: recall, rounds: 1, scored: cost, seconds: float64(cost)}
	}
	c.cost = float64(cost)
	return c
}

func TestReviveFindsTheCheapestThatReachesAPromise(t *testing.T) {
	const n = 100
	for _, tt := range []struct {
		name    string
		recalls []float64 // of the plans of cost 10, 20, 30 ...
		want    float64   // cost of the cheapest revived that reaches the promises; 0: none
	}{
		{"from one on", []float64{.5, .6, .7, 1, 1, 1, 1, 1}, 40},
		{"the dearest", []float64{.5, .5, .5, .5, .5, .5, .5, 1}, 80},
		{"one among dearer that fail", []float64{.5, 1, .5, .5, .5, .5, .5, .5}, 20},
		{"none", []float64{.5, .5, .5, .5, .5, .5, .5, .5}, 0},
		{"only one as dear as the scan", []float64{.5, .5, .5, .5, .5, .5, .5, .5, .5, .5, 1}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Unix(0, 0)
			r := &run{
				Input:  Input{Ks: []int{10}, Time: time.Hour, Clock: func() time.Time { return now }, Sources: make([]Source, n)},
				began:  now,
				truths: make([]truth, n),
				work:   work{0, 0, 1, 0},
			}
			for i := range r.truths {
				r.truths[i].seconds = 100
			}
			raced := []*candidate{seenBy(n, 1, .4)}
			explored := raced[:1:1]
			for i, recall := range tt.recalls {
				explored = append(explored, seenBy(n, 10*(i+1), recall))
			}
			all, err := r.revive(context.Background(), explored, raced)
			require.NoError(t, err)
			cheapest := 0.0
			for _, c := range all {
				if r.reaches([]*candidate{c}, 10, .98) && (cheapest == 0 || c.cost < cheapest) {
					cheapest = c.cost
				}
			}
			assert.Equal(t, tt.want, cheapest)
			assert.Contains(t, all, raced[0])

			now = now.Add(time.Hour)
			all, err = r.revive(context.Background(), explored, raced)
			require.NoError(t, err)
			assert.Equal(t, raced, all, "no time is left")
		})
	}
}
