package weights

import (
	"errors"
	"math"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/onnx"
)

// onnxMoment is a value on the way to a layer norm that is spelled out, as exporters do below opset
// 17: (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps).
type onnxMoment struct {
	part momentPart
	of   *onnxFlow // x
	eps  float64
}

type momentPart uint8

const (
	momentMean      momentPart = iota // mean(x)
	momentCentred                     // x - mean(x)
	momentSquared                     // its square
	momentVariance                    // the mean of that, and of a row with eps added
	momentDeviation                   // the root of that
	momentInverse                     // 1 / deviation
)

var errMoment = errors.New("goes on with the mean or variance of a row in another way than a layer norm does: " +
	"(x - mean) / sqrt(variance + eps), with the variance over n and not n-1")

func (m *onnxMoment) as(part momentPart) onnxValue {
	return onnxValue{moment: &onnxMoment{part: part, of: m.of, eps: m.eps}}
}

// reduceMean is the mean of a row, or of its squares.
func (g *onnxGraph) reduceMean(n *onnx.Node, in []onnxValue) (onnxValue, error) {
	axes, ok := numbersOf(n, in, 1, "axes")
	if a, there := n.Attributes["keepdims"]; !ok || len(axes) != 1 || !g.lastAxis(axes[0]) || there && a.Int == 0 {
		return onnxValue{}, errors.New("is no mean over the values of each row, kept as a dimension")
	}
	switch m := in[0].moment; {
	case m != nil && m.part == momentSquared:
		return m.as(momentVariance), nil
	case in[0].flow == nil:
		return onnxValue{}, errMoment
	}
	if err := g.onHead(in[0].flow); err != nil {
		return onnxValue{}, err
	}
	return onnxValue{moment: &onnxMoment{part: momentMean, of: in[0].flow}}, nil
}

// centre is x minus its mean.
func (m *onnxMoment) centre(x onnxValue) (onnxValue, error) {
	if m.part != momentMean || x.flow != m.of {
		return onnxValue{}, errMoment
	}
	return m.as(momentCentred), nil
}

// power is the square or, of a variance, the root or its inverse.
func (m *onnxMoment) power(exponent onnxValue) (onnxValue, error) {
	switch e, ok := scalar(exponent); {
	case ok && m.part == momentCentred && e == 2:
		return m.as(momentSquared), nil
	case ok && m.part == momentVariance && e == 0.5:
		return m.as(momentDeviation), nil
	case ok && m.part == momentVariance && e == -0.5:
		return m.as(momentInverse), nil
	}
	return onnxValue{}, errMoment
}

// addEps adds a constant to a variance.
func addEps(in []onnxValue) (onnxValue, error) {
	m, constant := in[0].moment, in[1]
	if m == nil {
		m, constant = in[1].moment, in[0]
	}
	eps, ok := scalar(constant)
	if !ok || m.part != momentVariance || m.eps != 0 {
		return onnxValue{}, errMoment
	}
	v := m.as(momentVariance)
	v.moment.eps = eps
	return v, nil
}

func (g *onnxGraph) sqrt(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	if m := in[0].moment; m != nil && m.part == momentVariance {
		return m.as(momentDeviation), nil
	}
	return elementwise(in[0], math.Sqrt)
}

func (g *onnxGraph) reciprocal(_ *onnx.Node, in []onnxValue) (onnxValue, error) {
	if m := in[0].moment; m != nil && m.part == momentDeviation {
		return m.as(momentInverse), nil
	}
	return elementwise(in[0], func(x float64) float64 { return 1 / x })
}

// overDeviation divides by a deviation: x minus its mean, which ends the norm, or 1.
func (g *onnxGraph) overDeviation(x onnxValue, m *onnxMoment) (onnxValue, error) {
	if m.part != momentDeviation {
		return onnxValue{}, errMoment
	}
	if one, ok := scalar(x); ok && one == 1 {
		return m.as(momentInverse), nil
	}
	return g.normalised(x.moment, m)
}

// multiplyMoment squares x minus its mean, or ends the norm.
func (g *onnxGraph) multiplyMoment(in []onnxValue) (onnxValue, error) {
	a, b := in[0].moment, in[1].moment
	switch {
	case a == nil || b == nil:
		return onnxValue{}, errMoment
	case a.part == momentCentred && b.part == momentCentred && a.of == b.of:
		return a.as(momentSquared), nil
	case a.part == momentInverse:
		return g.normalised(b, a)
	case b.part == momentInverse:
		return g.normalised(a, b)
	}
	return onnxValue{}, errMoment
}

// normalised makes the norm of x minus its mean and the deviation, which a weight and a bias may
// follow.
func (g *onnxGraph) normalised(centred, deviation *onnxMoment) (onnxValue, error) {
	if centred == nil || centred.part != momentCentred || centred.of != deviation.of {
		return onnxValue{}, errMoment
	}
	return g.norm(decoder.LayerNorm, deviation.eps, deviation.of, nil)
}
