package calibrate

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb/index"
)

// TestRecallOfExtremeScores checks that hits which tie with the k-th best count as found, also if
// that is infinite or NaN.
func TestRecallOfExtremeScores(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	scores := func(s ...float32) []float32 { return s }
	for _, tt := range []struct {
		truth, found []float32
		want         float64
	}{
		{scores(3, 2), scores(3, 2), 1},
		{scores(3, 2), scores(3, 1), 0.5},
		{scores(inf, inf), scores(inf, inf), 1},
		{scores(inf, inf), scores(inf, 7), 0.5},
		{scores(inf, 2), scores(inf, 2), 1},
		{scores(3, -inf), scores(3, -inf), 1},
		{scores(3, -inf), scores(3, nan), 0.5},
		{scores(3, 2), scores(3, nan), 0.5},
		{scores(3, nan), scores(3, nan), 1},
		{scores(nan, nan), scores(nan, nan), 1},
		{scores(nan, nan), scores(nan), 0.5},
	} {
		truth := truth{size: 2}
		for i := range tt.truth { // the other way round: put sorts
			truth.add(index.Hit{ID: uint32(i), Score: tt.truth[len(tt.truth)-1-i]})
		}
		truth.add(index.Hit{ID: 9, Score: nan})
		assert.InDelta(t, tt.want, truth.recall(tt.found, 2), 1e-9, "%v of %v", tt.found, tt.truth)
	}
}
