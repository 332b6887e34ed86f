//go:build !noasm && (amd64 || arm64)

package simd

// rowBlock is the number of rows taken through all panels before the next ones: a multiple of the
// kernels' 6 rows, few enough that their inputs and outputs stay in the L1 and L2 caches beside a
// panel.
const rowBlock = 48

// noBias stands for a bias of zeros.
var noBias [panelWidth]float32

// mulPanels is mulPanelsGeneric by the kernels of the active class.
func (m *Matrix) mulPanels(dst, rows, bias []float32, n int) {
	if active == generic {
		m.mulPanelsGeneric(dst, rows, bias, n)
		return
	}
	whole := m.out / panelWidth
	for n > 0 {
		count := min(n, rowBlock)
		for p := range whole {
			start := noBias[:]
			if bias != nil {
				start = bias[p*panelWidth:]
			}
			m.mulPanel(dst[p*panelWidth:], m.out, rows, start, p, count)
		}
		if whole*panelWidth < m.out {
			m.mulLastPanel(dst[whole*panelWidth:], rows, bias, count)
		}
		dst, rows = dst[count*m.out:], rows[count*m.in:]
		n -= count
	}
}

// mulLastPanel computes the outputs of a panel that is not full. The kernels write whole panels, so
// it goes through memory of its own.
func (m *Matrix) mulLastPanel(dst, rows, bias []float32, n int) {
	var tile [rowBlock * panelWidth]float32
	var start [panelWidth]float32
	first := m.out / panelWidth * panelWidth
	if bias != nil {
		copy(start[:], bias[first:])
	}
	m.mulPanel(tile[:], panelWidth, rows, start[:], first/panelWidth, n)
	for i := range n {
		copy(dst[i*m.out:][:m.out-first], tile[i*panelWidth:])
	}
}

// mulPanel sets n rows of dst, stride apart, to start plus the products of rows and panel p. There
// must be room for 32 outputs each, whatever the panel has.
func (m *Matrix) mulPanel(dst []float32, stride int, rows, start []float32, p, n int) {
	panel := m.data[p*m.in*panelWidth : (p+1)*m.in*panelWidth]
	_, _ = dst[(n-1)*stride+panelWidth-1], start[panelWidth-1] // the kernels check nothing
	outs := min(panelWidth, m.out-p*panelWidth)
	chunk, width := tileShape()
	for k := 0; k < m.in; k += chunk {
		inputs := min(chunk, m.in-k)
		for o := 0; o < outs; o += width {
			init, initStride := &dst[o], stride
			if k == 0 {
				init, initStride = &start[o], 0
			}
			if wideTiles() {
				mulWideTile(&dst[o], init, &rows[k], &panel[k*panelWidth+o], n, inputs, stride, initStride, m.in)
			} else {
				mulTile(&dst[o], init, &rows[k], &panel[k*panelWidth+o], n, inputs, stride, initStride, m.in)
			}
		}
	}
}

// unscaled stands for column scales of 1.
var unscaled = func() (scale [64]float32) {
	for i := range scale {
		scale[i] = 1
	}
	return scale
}()

// packPanel is packPanelGeneric, with the whole tiles of 8 outputs by 4 inputs done in assembly.
func packPanel(panel, w []float32, in int, colScale []float32) {
	outs, ins := len(w)/in&^7, in&^3
	if active == generic {
		outs, ins = 0, 0
	}
	for k := 0; k < ins; k += len(unscaled) {
		scale := unscaled[:]
		if colScale != nil {
			scale = colScale[k:]
		}
		for o := 0; o < outs; o += 8 {
			packTile(&panel[k*panelWidth+o], &w[o*in+k], &scale[0], in, min(len(unscaled), ins-k))
		}
	}
	if outs < panelWidth {
		packPanelGeneric(panel, w, in, colScale, outs, 0)
	}
	if ins < in {
		packPanelGeneric(panel, w, in, colScale, 0, ins)
	}
}
