package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i) // 100 down to 1
	}
	tests := []struct {
		name   string
		values []float64
		p      float64
		want   float64
	}{
		{"5th of a hundred", hundred, 5, 5},
		{"median of a hundred", hundred, 50, 50},
		{"99th of a hundred", hundred, 99, 99},
		{"the smallest", hundred, 0, 1},
		{"the largest", hundred, 100, 100},
		{"one value", []float64{7}, 99, 7},
		{"median of three", []float64{9, 1, 5}, 50, 5},
		{"5th of thirty", hundred[:30], 5, 72}, // rank 2 of 71 to 100
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, percentile(tt.values, tt.p))
		})
	}
	assert.True(t, math.IsNaN(percentile(nil, 50)))
	assert.Equal(t, 100.0, hundred[0], "the values keep their order")
}

func TestFitExponent(t *testing.T) {
	xs := []float64{50e3, 100e3, 200e3, 400e3, 750e3}
	ys := make([]float64, len(xs))
	for i, x := range xs {
		ys[i] = 0.02 * math.Pow(x, 0.37)
	}
	a, e := fitExponent(xs, ys)
	assert.InDelta(t, 0.02, a, 1e-9)
	assert.InDelta(t, 0.37, e, 1e-9)

	_, e = fitExponent([]float64{5}, []float64{1})
	assert.True(t, math.IsNaN(e), "one size has no slope")
	_, e = fitExponent([]float64{5, 5}, []float64{1, 2})
	assert.True(t, math.IsNaN(e), "one size twice has no slope")
}

func TestSignificant(t *testing.T) {
	for want, v := range map[string]float64{
		"0.0123": 0.01234, "0.123": 0.1234, "1.23": 1.234, "12.3": 12.34, "123": 123.4, "1,234": 1234.4, "1,234,568": 1234567.8, "100": 99.96, "-": 0,
	} {
		assert.Equal(t, want, significant(v))
	}
}
