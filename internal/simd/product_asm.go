//go:build !noasm && (amd64 || arm64)

package simd

// add is addProductGeneric by the kernels of Matrix.Mul. A block of 32 rows of a is packed: that
// transposes it. Of b, 32 columns at a time become the panel.
func (p *Product) add(dst, a, b []float32, n, rows, cols int) {
	if active == generic {
		addProductGeneric(dst, a, b, n, rows, cols)
		return
	}
	p.b.reserve(panelWidth * panelWidth)
	for n > 0 {
		count := min(n, panelWidth)
		p.a.reserve(rows * panelWidth)
		packPanel(p.a.data, a[:count*rows], rows, nil)
		for first := 0; first < cols; first += panelWidth {
			copyPanel(p.b.data, b, first, cols, count)
			if first+panelWidth <= cols {
				p.addPanel(dst[first:], cols, rows, count)
			} else {
				p.addLastPanel(dst, first, rows, cols, count)
			}
		}
		a, b, n = a[count*rows:], b[count*cols:], n-count
	}
}

// addPanel adds the product of the packed block, count rows of it, and the panel to 32 columns of
// dst, whose rows are stride apart.
func (p *Product) addPanel(dst []float32, stride, rows, count int) {
	_ = dst[(rows-1)*stride+panelWidth-1] // the kernels check nothing
	_, width := tileShape()
	for o := 0; o < panelWidth; o += width {
		if wideTiles() {
			mulWideTile(&dst[o], &dst[o], &p.a.data[0], &p.b.data[o], rows, count, stride, stride, panelWidth)
		} else {
			mulTile(&dst[o], &dst[o], &p.a.data[0], &p.b.data[o], rows, count, stride, stride, panelWidth)
		}
	}
}

// addLastPanel is addPanel for the columns from first on where fewer than 32 are left: in memory of
// their own, a few rows at a time.
func (p *Product) addLastPanel(dst []float32, first, rows, cols, count int) {
	var tile [rowBlock * panelWidth]float32
	packed := p.a.data
	for done := 0; done < rows; done += rowBlock {
		some := min(rowBlock, rows-done)
		part := dst[done*cols+first:]
		for i := range some {
			copy(tile[i*panelWidth:][:cols-first], part[i*cols:])
		}
		p.a.data = packed[done*panelWidth:]
		p.addPanel(tile[:], panelWidth, some, count)
		for i := range some {
			copy(part[i*cols:][:cols-first], tile[i*panelWidth:])
		}
	}
	p.a.data = packed
}
