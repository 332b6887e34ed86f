package decoder

import (
	"errors"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/internal/simd"
)

// mlp is a HadamardMLP or ConcatMLP decoder.
type mlp struct {
	model
	net *network

	// explicit is how bounds feed the network. If false, the source is folded into the first layer,
	// which then reads the candidate's row as it is stored. If true, z is computed for each row,
	// because more than the first layer reads it.
	explicit bool

	fromSource []float32 // a folded ConcatMLP: the part of the first weight that reads the source, row-major, out x dim
	ones       []float64 // gradient with respect to z with all neurons active
	linear     bool      // the network is affine in z, then
	origin     float64   // is its logit at z = 0
}

func newMLP(m model) (*mlp, error) {
	from := newDraft(&m.spec, m.tensors)
	from.fold()
	d := &mlp{model: m, ones: from.ones(), linear: from.linear()}
	if d.linear {
		d.origin = from.origin()
	} else if err := d.compile(from); err != nil {
		return nil, err
	}
	if firstBad(narrow(d.ones)) >= 0 {
		return nil, errors.New("decoder weights: the product of the layers overflows float32")
	}
	return d, nil
}

// compile prepares the network to run.
func (d *mlp) compile(from *draft) error {
	net, err := from.build()
	if err != nil {
		return err
	}
	d.net = net
	d.explicit = net.input != nil || net.needsZ || net.layers[0].out == 1
	for i := range net.layers {
		if i > 0 || d.explicit {
			net.layers[i].pack()
		}
	}
	if d.spec.Kind == ConcatMLP && !d.explicit {
		d.split()
	}
	return nil
}

// split cuts the first weight [A B] of a ConcatMLP into A, which meets the source once a bind, and
// B, which meets every row.
func (d *mlp) split() {
	first := &d.net.layers[0].dense
	dim := d.spec.Dim
	forSource := make([]float32, 0, first.out*dim)
	forRow := make([]float32, 0, first.out*dim)
	for o := range first.out {
		row := first.weight[o*2*dim : (o+1)*2*dim]
		forSource = append(forSource, row[:dim]...)
		forRow = append(forRow, row[dim:]...)
	}
	d.fromSource = forSource
	first.in, first.weight = dim, forRow
	first.forward = simd.Pack(nil, forRow, first.out, dim, nil)
}

func (d *mlp) String() string {
	widths := []string{strconv.Itoa(d.spec.zWidth())}
	in := d.spec.zWidth()
	for i := range d.spec.Layers {
		out := len(d.tensors[d.spec.Layers[i].Weight].Data) / in
		widths = append(widths, strconv.Itoa(out))
		in = out
	}
	return string(d.spec.Kind) + " " + strings.Join(widths, "-")
}

func (d *mlp) Bind(into Bound, source []float32) Bound {
	d.checkSource(source)
	if d.linear {
		return d.bindLinear(into, source)
	}
	b, ok := into.(*mlpBound)
	if !ok || b.mlp != d {
		b = newMLPBound(d)
	}
	copy(b.source, source)
	switch {
	case d.explicit:
	case d.spec.Kind == HadamardMLP:
		b.first.forward = simd.Pack(b.first.forward, b.first.weight, b.first.out, b.first.in, source)
	default:
		b.foldBias()
	}
	return b
}

// bindLinear binds a network that is affine in z: it is one query, as the kinds without layers are.
func (d *mlp) bindLinear(into Bound, source []float32) Bound {
	dim := d.spec.Dim
	b := reuseLinear(into, dim)
	b.constant = d.origin
	if d.spec.Kind == HadamardMLP {
		for k, x := range source {
			b.exact[k] = d.ones[k] * float64(x)
		}
	} else {
		b.constant += simd.DotWide(d.ones[:dim], source)
		copy(b.exact, d.ones[dim:])
	}
	b.round()
	return b
}

// mlpBound is an MLP decoder whose source is fixed.
type mlpBound struct {
	*mlp
	source []float32
	wide   []float64 // the source, for foldBias
	first  dense     // of the first layer, with the source folded in unless explicit
}

// newMLPBound allocates a bound of d for Bind to fill.
func newMLPBound(d *mlp) *mlpBound {
	b := &mlpBound{mlp: d, source: make([]float32, d.spec.Dim), first: d.net.layers[0].dense}
	if !d.explicit && d.spec.Kind == ConcatMLP {
		b.wide = make([]float64, d.spec.Dim)
		b.first.bias = make([]float32, b.first.out)
	}
	return b
}

// foldBias sets the bias of the first layer to b + A x.
func (b *mlpBound) foldBias() {
	for k, x := range b.source {
		b.wide[k] = float64(x)
	}
	bias, dim := b.net.layers[0].bias, len(b.source)
	for o := range b.first.bias {
		b.first.bias[o] = float32(simd.DotWide(b.wide, b.fromSource[o*dim:(o+1)*dim]) + float64(bias[o]))
	}
}

func (b *mlpBound) Linear() bool { return false }

func (b *mlpBound) Ones(dst []float32) {
	if b.spec.Kind == ConcatMLP {
		for k, g := range b.ones[b.spec.Dim:] {
			dst[k] = float32(g)
		}
		return
	}
	for k, g := range b.ones {
		dst[k] = float32(g * float64(b.source[k]))
	}
}

// fillZ writes z of n rows, before the input norm.
func (b *mlpBound) fillZ(z, rows []float32, n int) {
	dim, width := len(b.source), b.net.width
	for i := range n {
		zRow, row := z[i*width:(i+1)*width], rows[i*dim:(i+1)*dim]
		if b.spec.Kind == HadamardMLP {
			simd.Mul(zRow, b.source, row)
			continue
		}
		copy(zRow, b.source)
		copy(zRow[dim:], row)
	}
}
