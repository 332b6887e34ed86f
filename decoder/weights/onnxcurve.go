package weights

import (
	"fmt"
	"math"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/internal/fault"
	"github.com/flashdb/flashdb/decoder/internal/smooth"
)

// curvePoints are where two activations are compared: near zero, where the smooth ones bend, and
// far out, where a clipped one would show.
var curvePoints = func() (points []float64) {
	for _, x := range []float64{0, 0.05, 0.1, 0.3, 0.5, 0.75, 1, 1.3, 1.7, 2, 2.5, 3, 4, 5, 6.5, 8, 20, 60} {
		points = append(points, x, -x)
	}
	return points
}()

// recognise finds the activation that a function of one element is. Exporters write one activation
// in many ways (GELU as five nodes, SiLU as two), so it is the values that are compared and not the
// nodes.
func recognise(curve func(x float64) float64) (decoder.Activation, *float64, error) {
	slope := -curve(-1)
	for _, known := range []struct {
		name  decoder.Activation
		value func(x float64) float64
	}{
		{decoder.Identity, func(x float64) float64 { return x }},
		{decoder.ReLU, relu},
		{decoder.GELU, smooth.GELU},
		{decoder.GELUTanh, smooth.GELUTanh},
		{decoder.SiLU, smooth.SiLU},
		{decoder.Tanh, math.Tanh},
		{decoder.Sigmoid, smooth.Sigmoid},
		{decoder.LeakyReLU, func(x float64) float64 {
			if x > 0 {
				return x
			}
			return slope * x
		}},
	} {
		if agrees(curve, known.value) {
			if known.name == decoder.LeakyReLU {
				return decoder.LeakyReLU, &slope, nil
			}
			return known.name, nil, nil
		}
	}
	return "", nil, fmt.Errorf("the activation with values %.4g at -1, %.4g at 0 and %.4g at 1 is none of %s", curve(-1), curve(0), curve(1),
		fault.Words(networkActivations...))
}

// agrees compares two functions to what constants rounded to float32 cost.
func agrees(f, h func(x float64) float64) bool {
	for _, x := range curvePoints {
		if want := h(x); !(math.Abs(f(x)-want) <= 2e-6*max(1, math.Abs(want))) {
			return false
		}
	}
	return true
}
