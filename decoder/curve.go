package decoder

import (
	"math"
	"sync"

	"github.com/flashdb/flashdb/decoder/internal/smooth"
)

// curve is a smooth activation. The error function and the exponential cost more than the matrix
// product of a layer, so the curve is tabulated: between neighbouring knots it is the cubic that
// has its values and slopes at both (Hermite interpolation). With h the distance of knots the error
// is at most h^4/384 times the fourth derivative, below 1e-9 and thus far below what float32 keeps;
// at a knot, and 0 is one, it vanishes. Beyond the table the function itself is called.
type curve struct {
	value, slope func(x float64) float64
	cubics       [][4]float64 // of t, the distance from the left knot in units of h, by ascending powers
}

const (
	curveReach = 8  // the table covers -curveReach to curveReach
	curveKnots = 64 // a unit of x; 1/h
)

// curves makes, once, the table of each smooth activation.
var curves = map[Activation]func() *curve{
	GELU:     sync.OnceValue(func() *curve { return tabulate(smooth.GELU, smooth.GELUSlope) }),
	GELUTanh: sync.OnceValue(func() *curve { return tabulate(smooth.GELUTanh, smooth.GELUTanhSlope) }),
	SiLU:     sync.OnceValue(func() *curve { return tabulate(smooth.SiLU, smooth.SiLUSlope) }),
	Tanh:     sync.OnceValue(func() *curve { return tabulate(math.Tanh, smooth.TanhSlope) }),
	Sigmoid:  sync.OnceValue(func() *curve { return tabulate(smooth.Sigmoid, smooth.SigmoidSlope) }),
}

func tabulate(value, slope func(x float64) float64) *curve {
	c := &curve{value: value, slope: slope, cubics: make([][4]float64, 2*curveReach*curveKnots)}
	for i := range c.cubics {
		left := float64(i)/curveKnots - curveReach
		right := float64(i+1)/curveKnots - curveReach
		v, rise := value(left), value(right)-value(left)
		s0, s1 := slope(left)/curveKnots, slope(right)/curveKnots // a unit of t
		c.cubics[i] = [4]float64{v, s0, 3*rise - 2*s0 - s1, s0 + s1 - 2*rise}
	}
	return c
}

// apply writes the curve at src to dst, which may be src.
func (c *curve) apply(dst, src []float32) {
	for i, x := range src {
		at := (float64(x) + curveReach) * curveKnots
		if !(at >= 0 && at < 2*curveReach*curveKnots) { // NaN too
			dst[i] = float32(c.value(float64(x)))
			continue
		}
		p := &c.cubics[int(at)]
		t := at - float64(int(at))
		dst[i] = float32(p[0] + t*(p[1]+t*(p[2]+t*p[3])))
	}
}

// backward multiplies grad by the slope of the curve at src: that of the cubic, which is within
// 1e-6 of the true one.
func (c *curve) backward(grad, src []float32) {
	for i, x := range src {
		at := (float64(x) + curveReach) * curveKnots
		if !(at >= 0 && at < 2*curveReach*curveKnots) {
			grad[i] *= float32(c.slope(float64(x)))
			continue
		}
		p := &c.cubics[int(at)]
		t := at - float64(int(at))
		grad[i] *= float32((p[1] + t*(2*p[2]+t*3*p[3])) * curveKnots)
	}
}
