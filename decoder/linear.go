package decoder

import (
	"math"

	"github.com/flashdb/flashdb/internal/simd"
)

// linearDecoder is a Dot or Bilinear decoder, or a DistMult or ComplEx one without relations: bound
// to a source it is one query vector.
type linearDecoder struct{ model }

func newLinear(m model) *linearDecoder { return &linearDecoder{m} }

func (d *linearDecoder) Bind(into Bound, source []float32) Bound {
	d.checkSource(source)
	b := reuseLinear(into, d.spec.Dim)
	switch d.spec.Kind {
	case Dot:
		for k, x := range source {
			b.exact[k] = float64(x)
		}
	case DistMult, ComplEx:
		d.spec.relationQuery(b.exact, source, d.tensors[d.spec.Relation].Data, d.tensors[d.spec.Imaginary].Data, false)
	case Bilinear:
		// W^T x, row by row of W.
		clear(b.exact)
		w := d.tensors[d.spec.Weight].Data
		for i, x := range source {
			row := w[i*len(source) : (i+1)*len(source)]
			for k := range row {
				b.exact[k] += float64(x) * float64(row[k])
			}
		}
	}
	b.round()
	return b
}

// linearBound scores by one inner product. The query is kept in float64: a logit near zero is the
// difference of large terms, and float32 would lose it.
type linearBound struct {
	exact    []float64 // the query
	query    []float32 // the query, rounded: see round
	constant float64   // added to the inner product
}

// reuseLinear returns into if it is a linear bound of that width, otherwise a new one. Its constant
// is zero.
func reuseLinear(into Bound, dim int) *linearBound {
	if b, ok := into.(*linearBound); ok && len(b.exact) == dim {
		b.constant = 0
		return b
	}
	return &linearBound{exact: make([]float64, dim), query: make([]float32, dim)}
}

// round sets the float32 query from the exact one, scaled by a power of two if that has values that
// a float32 cannot hold: the rows of highest inner product with it are the same.
func (b *linearBound) round() {
	most := 0.0
	for _, q := range b.exact {
		most = max(most, math.Abs(q))
	}
	scale := 1.0
	if most > math.MaxFloat32 || (most < 1./(1<<100) && most > 0) {
		_, exponent := math.Frexp(most)
		scale = math.Ldexp(1, -exponent)
	}
	for k, q := range b.exact {
		b.query[k] = float32(scale * q)
	}
}

func (b *linearBound) Score(_ *Scratch, dst, rows []float32) {
	d := len(b.exact)
	for i := range dst {
		dst[i] = float32(simd.DotWide(b.exact, rows[i*d:(i+1)*d]) + b.constant)
	}
}

func (b *linearBound) Gradient(_ *Scratch, dst, rows, weights []float32) {
	n := checkGradient(dst, rows, weights, len(b.exact))
	total := 0.0
	switch {
	case weights == nil && n > 0:
		total = 1
	default:
		for _, w := range weights {
			total += float64(w)
		}
	}
	for k, q := range b.exact {
		dst[k] = float32(total * q)
	}
}

func (b *linearBound) Ones(dst []float32) { copy(dst, b.query) }

func (b *linearBound) Linear() bool { return true }
