package decoder

import (
	"math"
	"sync"
)

// curve is a smooth activation. The error function and the exponential cost more than the matrix product of a layer, so the curve is
// tabulated: between neighbouring knots it is the cubic that has its values and slopes at both (Hermite interpolation). With h the
// distance of knots the error is at most h^4/384 times the fourth derivative, below 1e-9 and thus far below what float32
// keeps; at a knot, and 0 is one, it vanishes. Beyond the table the function itself is called.
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
	GELU:     sync.OnceValue(func() *curve { return tabulate(gelu, geluSlope) }),
	GELUTanh: sync.OnceValue(func() *curve { return tabulate(geluTanh, geluTanhSlope) }),
	SiLU:     sync.OnceValue(func() *curve { return tabulate(silu, siluSlope) }),
	Tanh:     sync.OnceValue(func() *curve { return tabulate(math.Tanh, tanhSlope) }),
	Sigmoid:  sync.OnceValue(func() *curve { return tabulate(sigmoid, sigmoidSlope) }),
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

// backward multiplies grad by the slope of the curve at src: that of the cubic, which is within 1e-6 of the true one.
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

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func sigmoidSlope(x float64) float64 {
	s := sigmoid(x)
	return s * (1 - s)
}

func tanhSlope(x float64) float64 {
	t := math.Tanh(x)
	return 1 - t*t
}

func silu(x float64) float64 { return x * sigmoid(x) }

func siluSlope(x float64) float64 {
	s := sigmoid(x)
	return s * (1 + x*(1-s))
}

// normalCDF is the standard normal distribution function. Erfc keeps its relative precision in the lower tail, where 1+erf would
// cancel.
func normalCDF(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

func gelu(x float64) float64 { return x * normalCDF(x) }

func geluSlope(x float64) float64 {
	density := math.Exp(-0.5*x*x) / math.Sqrt(2*math.Pi)
	return normalCDF(x) + x*density
}

// The tanh form of GELU: x/2 * (1 + tanh(k*(x + c*x^3))), k = sqrt(2/pi).
const (
	geluTanhScale = 0.7978845608028654
	geluTanhCube  = 0.044715
)

func geluTanh(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(geluTanhScale*(x+geluTanhCube*x*x*x)))
}

func geluTanhSlope(x float64) float64 {
	t := math.Tanh(geluTanhScale * (x + geluTanhCube*x*x*x))
	return 0.5*(1+t) + 0.5*x*(1-t*t)*geluTanhScale*(1+3*geluTanhCube*x*x)
}
