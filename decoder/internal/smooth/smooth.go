// Package smooth has the smooth activations a decoder may use, as PyTorch defines them, and their
// slopes, in float64.
package smooth

import "math"

// Sigmoid is 1 / (1 + e^-x).
func Sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// SigmoidSlope is the derivative of Sigmoid.
func SigmoidSlope(x float64) float64 {
	s := Sigmoid(x)
	return s * (1 - s)
}

// TanhSlope is the derivative of math.Tanh.
func TanhSlope(x float64) float64 {
	t := math.Tanh(x)
	return 1 - t*t
}

// SiLU is x*Sigmoid(x).
func SiLU(x float64) float64 { return x * Sigmoid(x) }

// SiLUSlope is the derivative of SiLU.
func SiLUSlope(x float64) float64 {
	s := Sigmoid(x)
	return s * (1 + x*(1-s))
}

// normalCDF is the standard normal distribution function. Erfc keeps its relative precision in the
// lower tail, where 1+erf would cancel.
func normalCDF(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

// GELU is x*Phi(x), by the error function.
func GELU(x float64) float64 { return x * normalCDF(x) }

// GELUSlope is the derivative of GELU.
func GELUSlope(x float64) float64 {
	density := math.Exp(-0.5*x*x) / math.Sqrt(2*math.Pi)
	return normalCDF(x) + x*density
}

// The tanh form of GELU: x/2 * (1 + tanh(k*(x + c*x^3))), k = sqrt(2/pi).
const (
	geluTanhScale = 0.7978845608028654
	geluTanhCube  = 0.044715
)

// GELUTanh is the tanh approximation of GELU.
func GELUTanh(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(geluTanhScale*(x+geluTanhCube*x*x*x)))
}

// GELUTanhSlope is the derivative of GELUTanh.
func GELUTanhSlope(x float64) float64 {
	t := math.Tanh(geluTanhScale * (x + geluTanhCube*x*x*x))
	return 0.5*(1+t) + 0.5*x*(1-t*t)*geluTanhScale*(1+3*geluTanhCube*x*x)
}
