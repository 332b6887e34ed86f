package calibrate

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb/index"
)

// TestRecallOfExtremeScores: what ties with the k-th best is found, be it infinite or no number.
func TestRecallOfExtremeScores(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	hits := func(scores ...float32) (out []index.Hit) {
		for i, s := range scores {
			out = append(out, index.Hit{ID: uint32(i), Score: s})
		}
		return out
	}
	for _, tt := range []struct {
		truth, found []index.Hit
		want         float64
	}{
		{hits(3, 2), hits(3, 2), 1},
		{hits(3, 2), hits(3, 1), 0.5},
		{hits(inf, inf), hits(inf, inf), 1},
		{hits(inf, inf), hits(inf, 7), 0.5},
		{hits(inf, 2), hits(inf, 2), 1},
		{hits(3, -inf), hits(3, -inf), 1},
		{hits(3, -inf), hits(3, nan), 0.5},
		{hits(3, 2), hits(3, nan), 0.5},
		{hits(3, nan), hits(3, nan), 1},
		{hits(nan, nan), hits(nan, nan), 1},
		{hits(nan, nan), hits(nan), 0.5},
	} {
		truth := truth{hits: tt.truth}
		assert.InDelta(t, tt.want, truth.recall(tt.found, 2), 1e-9, "%v of %v", tt.found, tt.truth)
	}
}
