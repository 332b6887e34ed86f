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

// activation is an Activation ready to run.
type activation struct {
	name  Activation
	slope float32 // of LeakyReLU
	curve *curve  // of a smooth activation
}

func newActivation(name Activation, slope *float64) activation {
	a := activation{name: name, slope: defaultSlope}
	if slope != nil {
		a.slope = float32(*slope)
	}
	if tabulated, ok := curves[name]; ok {
		a.curve = tabulated()
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
		a.curve.apply(dst, src)
	}
}

// backward multiplies grad, the gradient with respect to the output, by the derivative at src, the
// input. A piecewise linear neuron is active iff its input is > 0, so at 0 it is not.
func (a *activation) backward(grad, src []float32) {
	switch a.name {
	case Identity:
	case ReLU:
		// Signs of activations are close to coin flips. Bits are compared, as that compiles to a
		// conditional move: read as integers, the positive floats up to infinity are 1 to its bits;
		// zeros, negatives and NaNs lie outside.
		const inf = 0x7f800000
		grad = grad[:len(src)]
		for i, x := range src {
			g := math.Float32bits(grad[i])
			if math.Float32bits(x)-1 >= inf {
				g = 0
			}
			grad[i] = math.Float32frombits(g)
		}
	case LeakyReLU:
		for i, x := range src {
			if !(x > 0) {
				grad[i] *= a.slope
			}
		}
	default:
		a.curve.backward(grad, src)
	}
}
