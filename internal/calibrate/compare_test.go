package calibrate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb/internal/calibrate"
)

func TestWorse(t *testing.T) {
	for _, tt := range []struct {
		name          string
		before, after []float64
		fall          float64
		worse         bool
	}{
		{"none", nil, nil, 0, false},
		{"one source says nothing", []float64{1}, []float64{0}, 0, false},
		{"the same", []float64{1, .9, .8}, []float64{1, .9, .8}, 0, false},
		{"better", []float64{.9, .9, .9}, []float64{1, .95, .99}, -.08, false},
		{"within the tolerance", []float64{1, 1, 1, 1}, []float64{.99, .995, .99, .995}, .0075, false},
		{"everywhere", []float64{1, .99, 1, .98}, []float64{.95, .93, .94, .94}, .0525, true},
		{"one source of four: it may be chance", []float64{1, 1, 1, 1}, []float64{1, 1, 1, .8}, .05, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fall, worse := calibrate.Worse(tt.before, tt.after, .01)
			assert.InDelta(t, tt.fall, fall, 1e-9)
			assert.Equal(t, tt.worse, worse)
		})
	}
}
