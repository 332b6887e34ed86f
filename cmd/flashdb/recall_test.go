package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb"
)

func hit(key string, score float32) flashdb.Hit { return flashdb.Hit{Key: key, Score: score} }

func TestCompare(t *testing.T) {
	exact := truth{keys: []string{"a", "b", "c", "d"}, scores: []float64{9, 5, 2, 2}}
	for _, c := range []struct {
		name   string
		hits   []flashdb.Hit
		recall float64
	}{
		{"all", []flashdb.Hit{hit("a", 9), hit("b", 5), hit("c", 2), hit("d", 2)}, 1},
		{"none", nil, 0},
		{"one missed", []flashdb.Hit{hit("a", 9), hit("c", 2), hit("d", 2), hit("e", 1)}, .75},
		{"a tie at the end is found", []flashdb.Hit{hit("a", 9), hit("b", 5), hit("c", 2), hit("tie", 2)}, 1},
		{"a tie by the last bit is found", []flashdb.Hit{hit("a", 9), hit("b", 5), hit("c", 2), hit("tie", 1.99999)}, 1},
		{"just below is not", []flashdb.Hit{hit("a", 9), hit("b", 5), hit("c", 2), hit("x", 1.9999)}, .75},
		{"a known hit counts by its true score", []flashdb.Hit{hit("a", 9), hit("b", 1)}, .5},
		{"a hit counts once", []flashdb.Hit{hit("a", 9), hit("a", 9), hit("a", 9), hit("a", 9)}, .25},
		{"never more than all", []flashdb.Hit{hit("a", 9), hit("b", 5), hit("c", 2), hit("d", 2), hit("tie", 2)}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.InDelta(t, c.recall, compare(c.hits, exact).recall, 1e-12)
		})
	}
}

func TestCompareNearZero(t *testing.T) {
	// Relative to max(|kth|, 0.1): a k-th score of 0 has a margin of 1e-6.
	exact := truth{keys: []string{"a"}, scores: []float64{0}}
	assert.Equal(t, 1.0, compare([]flashdb.Hit{hit("x", -0.9e-6)}, exact).recall)
	assert.Equal(t, 0.0, compare([]flashdb.Hit{hit("x", -1.1e-6)}, exact).recall)
}

func TestCompareDifferences(t *testing.T) {
	exact := truth{keys: []string{"a", "b"}, scores: []float64{10, 0.01}}
	o := compare([]flashdb.Hit{hit("a", 10.5), hit("b", 0.02), hit("other", 99)}, exact)
	assert.InDelta(t, 0.5, o.maxAbs, 1e-6)
	assert.InDelta(t, 0.1, o.maxRel, 1e-6, "0.01 off near zero counts against 0.1")
}

func TestCompareWithoutAnswers(t *testing.T) {
	assert.Equal(t, 1.0, compare(nil, truth{}).recall)
}

func TestTruthCut(t *testing.T) {
	full := truth{keys: []string{"a", "b", "c"}, scores: []float64{3, 2, 1}}
	assert.Equal(t, []string{"a", "b"}, full.cut(2).keys)
	assert.Equal(t, []float64{3, 2, 1}, full.cut(9).scores)
}

func TestSpread(t *testing.T) {
	values := make([]float64, 40)
	for i := range values {
		values[i] = float64(40-i) / 40
	}
	mean, p5, worst := spread(values)
	assert.InDelta(t, 20.5/40, mean, 1e-12)
	assert.InDelta(t, 2.0/40, p5, 1e-12, "the second of 40")
	assert.InDelta(t, 1.0/40, worst, 1e-12)

	mean, p5, worst = spread([]float64{.5})
	assert.Equal(t, []float64{.5, .5, .5}, []float64{mean, p5, worst})
}
