package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// TestCalibrationNamesTheLowestRelation: where the decoder has relations, and only there.
func TestCalibrationNamesTheLowestRelation(t *testing.T) {
	of := flashdb.Calibration{Decoder: "kg", Exact: time.Second, Frontiers: []flashdb.Frontier{{K: 10, Plans: []flashdb.PlanPoint{
		{Mean: .99, Bound: .98, Time: time.Millisecond}, {Mean: 1, Bound: .99, Time: 2 * time.Millisecond},
	}}}}
	printed := func(json bool) string {
		t.Helper()
		var out bytes.Buffer
		require.NoError(t, (&app{out: &out, json: json}).printCalibration(of))
		return out.String()
	}
	assert.NotContains(t, printed(false), "relation")
	assert.NotContains(t, printed(true), "relation")
	plans := of.Frontiers[0].Plans
	plans[0].Relation, plans[0].RelationMean = "is part of", .9333
	plans[1].Relation = "treats"
	text := printed(false)
	assert.Regexp(t, `bound +lowest relation +scored`, text)
	assert.Regexp(t, `0\.9800 +0\.93 is part of +0`, text)
	assert.Regexp(t, `0\.9900 +0\.00 treats +0`, text)
	assert.Contains(t, printed(true), `"lowest_relation":{"relation":"is part of","recall_mean":0.9333}`)
	assert.Contains(t, printed(true), `"lowest_relation":{"relation":"treats","recall_mean":0}`)
}
