package decoder

import (
	"math"

	"github.com/flashdb/flashdb/internal/simd"
)

// Activation names the function a layer applies to each of its neurons.
type Activation string

// The activations there are, under the names PyTorch gives them.
const (
	Identity  Activation = "identity"
	ReLU      Activation = "relu"
	LeakyReLU Activation = "leaky_relu" // x, or slope*x where x <= 0
	GELU      Activation = "gelu"       // x*Phi(x), by the error function
	GELUTanh  Activation = "gelu_tanh"  // the tanh approximation of GELU
	SiLU      Activation = "silu"       // x*sigmoid(x)
	Tanh      Activation = "tanh"
	Sigmoid   Activation = "sigmoid"
)

// defaultSlope is PyTorch's negative_slope of a leaky ReLU.
const defaultSlope = 0.01

// curve is a smooth activation: its value and its derivative. Both are computed in float64, since the float32 forms lose the
// digits a deep network's logit is checked to.
type curve struct {
	value func(x float64) float64
	slope func(x float64) float64
}

// curves holds the smooth activations. The piecewise linear ones have loops of their own.
var curves = map[Activation]curve{
	GELU:     {gelu, geluSlope},
	GELUTanh: {geluTanh, geluTanhSlope},
	SiLU:     {silu, siluSlope},
	Tanh:     {math.Tanh, tanhSlope},
	Sigmoid:  {sigmoid, sigmoidSlope},
}

// activation is an Activation ready to run.
type activation struct {
	name  Activation
	slope float32 // of LeakyReLU
	curve curve   // of a smooth activation
}

func newActivation(name Activation, slope *float64) activation {
	a := activation{name: name, slope: defaultSlope, curve: curves[name]}
	if slope != nil {
		a.slope = float32(*slope)
	}
	return a
}

// apply writes the activation of src to dst, which may be src and for Identity is.
func (a *activation) apply(dst, src []float32) {
	switch a.name {
	case Identity:
	case ReLU:
		if &dst[0] != &src[0] {
			copy(dst, src)
		}
		simd.ReLU(dst)
	case LeakyReLU:
		for i, x := range src {
			if !(x > 0) {
				x *= a.slope
			}
			dst[i] = x
		}
	default:
		for i, x := range src {
			dst[i] = float32(a.curve.value(float64(x)))
		}
	}
}

// backward multiplies grad, the gradient with respect to the output, by the derivative at src, the input. A piecewise
// linear neuron is active iff its input is > 0, so at 0 it is not.
func (a *activation) backward(grad, src []float32) {
	switch a.name {
	case Identity:
	case ReLU:
		for i, x := range src {
			if !(x > 0) {
				grad[i] = 0
			}
		}
	case LeakyReLU:
		for i, x := range src {
			if !(x > 0) {
				grad[i] *= a.slope
			}
		}
	default:
		for i, x := range src {
			grad[i] *= float32(a.curve.slope(float64(x)))
		}
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
