package flashdb

import (
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/internal/calibrate"
)

// TestPlansUnderFilters checks which plan a filtered query gets from measurements without a filter.
func TestPlansUnderFilters(t *testing.T) {
	const nodes = 1_000_000
	plan := flashlight.DefaultPlan(10, nodes)
	at := func(bound, seconds float64) calibrate.Point {
		return calibrate.Point{Plan: plan, Mean: bound + .005, Bound: bound, Seconds: seconds, RowsScored: 500, CodesScanned: seconds * 2.5e7}
	}
	dot, err := decoder.NewDot(2)
	require.NoError(t, err)
	kept := func(n uint64) *roaring.Bitmap {
		b := roaring.New()
		b.AddRange(0, n)
		return b
	}
	many := []calibrate.Point{at(.95, .001), at(.985, .002), at(.995, .004)}
	few := many[:2]
	// A plan of all lists shows that a code takes 2 ns: most of the others' time is not for codes.
	all := append(slices.Clone(many), calibrate.Point{Plan: plan, Mean: 1, Bound: .999, Seconds: .0058, RowsScored: 500, CodesScanned: nodes})
	for _, tt := range []struct {
		name    string
		allowed *roaring.Bitmap
		recall  float64
		sources int
		points  []calibrate.Point
		want    string
	}{
		{"no filter", nil, 0, 200, many, "calibrated for recall 0.98: 10 rounds"},
		{"half: a plan that misses half as much", kept(500_000), 0, 200, many, "measured 1, at least .995"},
		{"a hundredth: its rows are scanned in no more time", kept(10_000), 0, 200, many, "exact: as fast as any plan for recall 0.98"},
		{"the same, and a code costs less than a row", kept(10_000), 0, 200, all, "measured 1, at least .995"},
		{"a three-hundredth: its rows cost less than all codes", kept(3300), 0, 200, all, "exact: as fast as any plan for recall 0.98"},
		{"found, but not shown", nil, 0, 200, []calibrate.Point{at(.976, .001)}, "best measured, though no bound reaches it, for recall 0.98: 10 rounds"},
		{"found, but not shown, and asked for", nil, .98, 200, []calibrate.Point{at(.976, .001)}, "exact: no plan reached recall 0.98 on 200 sources"},
		{"half, out of reach", kept(500_000), .98, 200, few, "exact: no plan reached recall 0.99 on 200 sources"},
		{"half, and so few sources that nothing could have reached it", kept(500_000), 0, 20, few, "default, as 20 sources are too few to measure recall 0.99: 10 rounds"},
		{"the same, but asked for", kept(500_000), .98, 20, few, "exact: no plan reached recall 0.99 on 20 sources"},
		{"a hundredth, and too few sources", kept(10_000), 0, 20, few, "exact: as fast as any plan for recall 0.98"},
		{"no plan was cheaper than the scan", kept(500_000), 0, 200, nil, "exact: no plan reached recall 0.99 on 200 sources"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := query{nodes: nodes, bound: dot.Bind(nil, []float32{1, 2}), allowed: tt.allowed, measured: &calibrate.Calibration{
				Rows: nodes, Sources: tt.sources, ExactSeconds: 1, Frontiers: []calibrate.Frontier{{K: 10, Points: tt.points}},
			}}
			got := q.calibrated(PredictOptions{Recall: tt.recall}, 10)
			assert.Contains(t, got.describe, tt.want)
			assert.Equal(t, got.plan.Method == flashlight.MethodExact && q.narrow(), got.subset)
		})
	}
}
