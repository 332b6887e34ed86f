package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb"
)

func TestRecall(t *testing.T) {
	exact := newTruth([]string{"a", "b", "c", "d"}, []float64{5, 4, 3, 2})
	hit := func(key string, score float32) flashdb.Hit { return flashdb.Hit{Key: key, Score: score} }
	tests := []struct {
		name string
		hits []flashdb.Hit
		want float64
	}{
		{"all", []flashdb.Hit{hit("a", 5), hit("b", 4), hit("c", 3), hit("d", 2)}, 1},
		{"none", nil, 0},
		{"one missed", []flashdb.Hit{hit("a", 5), hit("b", 4), hit("c", 3), hit("x", 1.9)}, .75},
		{"a tie with the last", []flashdb.Hit{hit("a", 5), hit("b", 4), hit("c", 3), hit("x", 2)}, 1},
		{"within the tolerance", []flashdb.Hit{hit("x", 1.99999)}, .25},
		{"below the tolerance", []flashdb.Hit{hit("x", 1.9999)}, 0},
		{"a known node counts by its true score", []flashdb.Hit{hit("d", 1)}, .25},
		{"the same node twice", []flashdb.Hit{hit("a", 5), hit("a", 5)}, .25},
		{"more ties than places", []flashdb.Hit{hit("a", 5), hit("b", 4), hit("c", 3), hit("x", 2), hit("y", 2)}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.InDelta(t, tt.want, exact.recall(tt.hits), 1e-12)
		})
	}
}

func TestRecallNearZero(t *testing.T) {
	exact := newTruth([]string{"a"}, []float64{0})
	assert.Equal(t, 1.0, exact.recall([]flashdb.Hit{{Key: "x", Score: -0.9e-6}}), "the tolerance is taken of scoreFloor at least")
	assert.Equal(t, 0.0, exact.recall([]flashdb.Hit{{Key: "x", Score: -1.1e-6}}))
}

func TestTruthOfHits(t *testing.T) {
	hits := []flashdb.Hit{{Key: "a", Score: 2}, {Key: "b", Score: 1}}
	exact := truthOf(hits)
	assert.Equal(t, 1.0, exact.kth)
	assert.Equal(t, 1.0, exact.recall(hits))
	assert.Equal(t, 0.5, exact.recall(hits[1:]))
}
