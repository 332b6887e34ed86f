package decoder

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The tables are as exact as their comment says, everywhere and relative to small values near zero;
// beyond them nothing changes.
func TestCurves(t *testing.T) {
	for name, tabulated := range curves {
		c := tabulated()
		at := func(x float64) (value, slope float64) {
			v, s := []float32{float32(x)}, []float32{1}
			c.backward(s, v)
			c.apply(v, v)
			return float64(v[0]), float64(s[0])
		}
		for x := -12.0; x <= 12; x += 0.0013 {
			x := float64(float32(x))
			value, slope := at(x)
			assert.InDelta(t, c.value(x), value, 1e-9+6e-8*math.Abs(value), "%s(%v)", name, x)
			assert.InDelta(t, c.slope(x), slope, 1e-6, "slope of %s at %v", name, x)
		}
		for _, x := range []float64{0, 1e-30, -1e-20, 8, -8, 100, -100, 3e38, -3e38} {
			x := float64(float32(x))
			value, slope := at(x)
			assert.InDelta(t, c.value(x), value, 1e-14+6e-8*math.Abs(value), "%s(%v)", name, x)
			assert.InDelta(t, c.slope(x), slope, 6e-8, "slope of %s at %v", name, x)
		}
		for _, x := range []float64{1e-6, -1e-6, 1e-4, -1e-4} {
			x := float64(float32(x))
			value, _ := at(x)
			assert.InEpsilon(t, c.value(x), value, 1e-7, "%s(%v)", name, x)
		}
		value, slope := at(math.NaN())
		assert.True(t, math.IsNaN(value) && math.IsNaN(slope), name)
	}
}

// The slopes are the derivatives of the values.
func TestCurveSlopes(t *testing.T) {
	const step = 1e-5
	for name, tabulated := range curves {
		c := tabulated()
		for x := -9.0; x <= 9; x += 0.013 {
			assert.InDelta(t, (c.value(x+step)-c.value(x-step))/(2*step), c.slope(x), 1e-9, "%s at %v", name, x)
		}
	}
}
