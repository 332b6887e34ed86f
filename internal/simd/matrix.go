package simd

import (
	"fmt"
	"unsafe"
)

// panelWidth is the number of outputs that lie side by side in a panel: two AVX-512 registers, four
// of AVX2 or eight of NEON.
const panelWidth = 32

// Matrix holds the weights of a linear layer in the order Mul reads them. The zero value is an
// empty 0 x 0 matrix. A packed Matrix is immutable and safe for concurrent readers until it is
// handed to Pack again.
//
// Layout: the outputs are cut into panels of 32; the last one is padded with zero weights. A panel
// holds, for each input in turn, the weights of its 32 outputs:
//
//	[ceil(out/32)][in][32]float32
//
// so that a kernel reads a panel front to back, once for each tile of rows, and combines one value
// of a row with all 32 outputs at once.
//
// A matrix of one output has nothing to put side by side: it is kept as the one row of weights it
// is, and Mul is DotRows.
type Matrix struct {
	out, in int
	data    []float32
}

// Pack stores w, row-major out x in (the layout of a PyTorch Linear weight), for use by Mul and
// returns the matrix. colScale, nil or in long, multiplies the columns: W*diag(colScale) is packed.
// The memory of into is reused when into is not nil and large enough; into must have no readers
// left. w is not retained.
func Pack(into *Matrix, w []float32, out, in int, colScale []float32) *Matrix {
	if out < 0 || in < 0 || len(w) != out*in {
		panic(fmt.Sprintf("simd: Pack: %d weights given for a %d x %d matrix", len(w), out, in))
	}
	if colScale != nil && len(colScale) != in {
		panic(fmt.Sprintf("simd: Pack: %d column scales given for %d columns", len(colScale), in))
	}
	if into == nil {
		into = new(Matrix)
	}
	into.out, into.in = out, in
	if out == 1 {
		into.reserve(in)
		packRow(into.data, w, colScale)
		return into
	}
	if in == 0 {
		return into
	}
	panels := (out + panelWidth - 1) / panelWidth
	into.reserve(panels * in * panelWidth)
	for p := range panels {
		first := p * panelWidth
		width := min(panelWidth, out-first)
		panel := into.data[p*in*panelWidth : (p+1)*in*panelWidth]
		packPanel(panel, w[first*in:(first+width)*in], in, colScale)
	}
	return into
}

// PackTransposed is Pack of the transpose of w: w is row-major in x out. Where W is a layer's
// weight, row-major out x in, PackTransposed(into, w, in, out) is what takes gradients back through
// the layer.
func PackTransposed(into *Matrix, w []float32, out, in int) *Matrix {
	if out < 0 || in < 0 || len(w) != out*in {
		panic(fmt.Sprintf("simd: PackTransposed: %d weights given for a %d x %d matrix", len(w), out, in))
	}
	if into == nil {
		into = new(Matrix)
	}
	into.out, into.in = out, in
	if out == 1 {
		into.reserve(in)
		copy(into.data, w)
		return into
	}
	panels := (out + panelWidth - 1) / panelWidth
	into.reserve(panels * in * panelWidth)
	for p := range panels {
		copyPanel(into.data[p*in*panelWidth:], w, p*panelWidth, out, in)
	}
	return into
}

// copyPanel copies the columns from first on, at most 32, of n rows of w, row-major n x cols, and
// fills a panel up with zeros.
func copyPanel(panel, w []float32, first, cols, n int) {
	width := min(panelWidth, cols-first)
	for k := range n {
		line := panel[k*panelWidth : (k+1)*panelWidth]
		copy(line[:width], w[k*cols+first:])
		clear(line[width:])
	}
}

// reserve sets the length of m.data to n; the contents are unspecified. The memory is aligned to
// cache lines, so that no load of weights straddles two.
func (m *Matrix) reserve(n int) {
	if cap(m.data) < n {
		const line = 64 / 4
		data := make([]float32, n+line-1)
		past := int(uintptr(unsafe.Pointer(unsafe.SliceData(data))) / 4 % line)
		m.data = data[(line-past)%line:]
	}
	m.data = m.data[:n]
}

// packRow copies one row of weights, scaled.
func packRow(dst, row, colScale []float32) {
	if colScale == nil {
		copy(dst, row)
		return
	}
	Mul(dst, row, colScale)
}

// Out returns the number of outputs: rows of the weight matrix.
func (m *Matrix) Out() int { return m.out }

// In returns the number of inputs: columns of the weight matrix.
func (m *Matrix) In() int { return m.in }

// Mul applies the layer to n rows: dst = rows * transpose(W) + bias. rows is row-major n x in, dst
// row-major n x out, bias nil (zeros) or out long. dst may not overlap rows. The bits of an output
// row depend only on its input row, not on n or on its place among the n, as long as the kernel
// class is the same.
//
//	for i := range n {
//		for o := range out {
//			dst[i*out+o] = bias[o]
//			for k := range in {
//				dst[i*out+o] += rows[i*in+k] * w[o*in+k]
//			}
//		}
//	}
func (m *Matrix) Mul(dst, rows, bias []float32, n int) {
	dst, rows = dst[:n*m.out], rows[:n*m.in]
	if bias != nil {
		bias = bias[:m.out]
	}
	if m.out == 1 {
		dotRows(dst, m.data, rows)
		if bias != nil {
			for i := range dst {
				dst[i] += bias[0]
			}
		}
		return
	}
	if m.in == 0 {
		m.fill(dst, bias)
		return
	}
	m.mulPanels(dst, rows, bias, n)
}

// fill sets every row of dst to bias.
func (m *Matrix) fill(dst, bias []float32) {
	if bias == nil {
		clear(dst)
		return
	}
	for len(dst) > 0 {
		copy(dst, bias)
		dst = dst[m.out:]
	}
}
