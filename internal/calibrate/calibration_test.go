package calibrate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/calibrate"
)

func point(bound, seconds float64, share float64) calibrate.Point {
	plan := flashlight.DefaultPlan(10, 1000)
	plan.Probes = index.Probes{Share: share}
	return calibrate.Point{Plan: plan, Mean: bound + .005, P5: bound - .1, Worst: bound - .2, Bound: bound, RowsScored: 100, CodesScanned: 1000, Seconds: seconds}
}

func sample() calibrate.Calibration {
	return calibrate.Calibration{
		Generation: 3, BuildLSN: 70000, Decoder: 0x0123456789abcdef, SourcesFrom: "genes",
		Rows: 1000, Sources: 50, ExactSeconds: .1,
		Frontiers: []calibrate.Frontier{
			{K: 10, Points: []calibrate.Point{point(.9, .001, .1), point(.97, .002, .2), point(.99, .004, 1)}},
			{K: 100, Points: []calibrate.Point{point(.8, .003, .3)}},
		},
	}
}

func TestChoose(t *testing.T) {
	c := sample()
	f, ok := c.For(10)
	require.True(t, ok)
	for _, tt := range []struct {
		name    string
		recall  float64
		seconds float64
		ok      bool
	}{
		{"the cheapest will do", .5, .001, true},
		{"exactly", .97, .002, true},
		{"the next better", .971, .004, true},
		{"out of reach: the best, and no", .995, .004, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, ok := f.Choose(tt.recall)
			assert.Equal(t, tt.ok, ok)
			assert.Equal(t, tt.seconds, p.Seconds)
		})
	}
	_, ok = calibrate.Frontier{K: 10}.Choose(.5)
	assert.False(t, ok, "a frontier of no plans")
}

func TestForOtherK(t *testing.T) {
	c := sample()
	for _, tt := range []struct{ k, want int }{{1, 10}, {10, 10}, {11, 100}, {100, 100}, {1000, 100}} {
		f, ok := c.For(tt.k)
		require.True(t, ok)
		assert.Equal(t, tt.want, f.K, "k %d", tt.k)
	}
	_, ok := (&calibrate.Calibration{}).For(10)
	assert.False(t, ok)

	f, _ := c.For(100)
	p, _ := f.Choose(.8)
	assert.Equal(t, p, f.Scaled(p, 50), "measured as it is")
	wide := f.Scaled(p, 400)
	assert.Equal(t, 4*p.Plan.PerRound, wide.Plan.PerRound)
	assert.InDelta(t, .6, wide.Plan.Probes.Share, 1e-9)
	assert.InDelta(t, .012, wide.Seconds, 1e-9)
	require.NoError(t, wide.Plan.Validate())
}

// TestChooseSparesPoorSources checks that a plan with a low recall for one source is replaced by
// one without, unless that is much costlier.
func TestChooseSparesPoorSources(t *testing.T) {
	point := func(seconds, bound, worst float64) calibrate.Point {
		return calibrate.Point{Seconds: seconds, Bound: bound, Worst: worst, P5: 1}
	}
	f := calibrate.Frontier{K: 100, Points: []calibrate.Point{
		point(1, .95, .9), point(2, .985, .5), point(2.7, .97, .96), point(2.8, .986, .8), point(2.9, .982, .95), point(9, .999, .99),
	}}
	for recall, want := range map[float64]float64{
		.95: 1,   // reached, and the worst source misses no more than five times .05
		.98: 2.9, // the plans before fail a source
		.99: 9,   // nothing cheaper reaches it
		1:   9,   // nothing does
	} {
		p, ok := f.Choose(recall)
		assert.Equal(t, recall < 1, ok)
		assert.Equal(t, want, p.Seconds, "%v", recall)
	}
	f.Points[4].Seconds = 3.1
	p, ok := f.Choose(.98)
	assert.True(t, ok)
	assert.Equal(t, 2.8, p.Seconds, "the price would be too high; this one serves it better than the cheapest")
	f.Points[3].Seconds = 3.05
	p, ok = f.Choose(.98)
	assert.True(t, ok)
	assert.Equal(t, 2., p.Seconds, "the price of each would be too high")

	// The same holds for a plan with a low recall for one relation.
	f = calibrate.Frontier{K: 100, Points: []calibrate.Point{point(1, .99, 1), point(1.2, .985, 1), point(1.4, .99, 1)}}
	for i, mean := range []float64{.95, .95, .97} {
		f.Points[i].Relation, f.Points[i].RelationMean = "rare", mean
	}
	for recall, want := range map[float64]float64{.975: 1, .98: 1.4} {
		p, ok := f.Choose(recall)
		assert.True(t, ok)
		assert.Equal(t, want, p.Seconds, "%v", recall)
	}
}
