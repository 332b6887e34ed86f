package simd

// The generic product works on tiles of two rows by four outputs: eight sums, the four weights and
// the two inputs they need stay in registers.
const (
	tileRows = 2
	tileOuts = 4
	// chunk is the number of terms summed up in registers before they are added to the total in
	// dst: a sum of partial sums loses less precision than one running sum.
	chunk = 32
)

// mulPanelsGeneric sets dst to rows * transpose(W) + bias.
func (m *Matrix) mulPanelsGeneric(dst, rows, bias []float32, n int) {
	m.fill(dst, bias)
	for first := 0; first < m.out; first += tileOuts {
		width := min(tileOuts, m.out-first)
		panel := m.data[first/panelWidth*m.in*panelWidth:]
		weights := panel[first%panelWidth : m.in*panelWidth]
		for i := 0; i < n; i += tileRows {
			// An odd last row is paired with itself, so that every row goes through the same
			// instructions.
			j := min(i+1, n-1)
			r0, r1 := rows[i*m.in:(i+1)*m.in], rows[j*m.in:(j+1)*m.in]
			d0, d1 := dst[i*m.out+first:], dst[j*m.out+first:]
			addTile(d0[:width], d1[:width], r0, r1, weights, i != j)
		}
	}
}

// addTile adds the products of two rows and up to four outputs to d0 and d1, to d0 alone unless
// pair is set. weights starts at the tile's first output and has the stride of a panel.
func addTile(d0, d1, r0, r1, weights []float32, pair bool) {
	for len(r0) > 0 {
		k := min(chunk, len(r0))
		s := tileSums(r0[:k], r1[:k], weights)
		for o := range d0 {
			d0[o] += s[o]
		}
		if pair {
			for o := range d1 {
				d1[o] += s[tileOuts+o]
			}
		}
		r0, r1 = r0[k:], r1[k:]
		weights = weights[min(k*panelWidth, len(weights)):]
	}
}

// tileSums returns the inner products of r0, then of r1, with the first four outputs in weights.
func tileSums(r0, r1, weights []float32) [tileRows * tileOuts]float32 {
	var s00, s01, s02, s03, s10, s11, s12, s13 float32
	r1 = r1[:len(r0)]
	for k, x := range r0 {
		w := (*[tileOuts]float32)(weights[k*panelWidth:])
		y := r1[k]
		s00 += x * w[0]
		s01 += x * w[1]
		s02 += x * w[2]
		s03 += x * w[3]
		s10 += y * w[0]
		s11 += y * w[1]
		s12 += y * w[2]
		s13 += y * w[3]
	}
	return [...]float32{s00, s01, s02, s03, s10, s11, s12, s13}
}

// packPanelGeneric transposes rows of weights, at most 32, row-major with in columns, into a panel
// and sets the outputs that are missing to zero. It leaves out the outputs before firstOut and the
// inputs before firstIn.
func packPanelGeneric(panel, w []float32, in int, colScale []float32, firstOut, firstIn int) {
	width := len(w) / in
	w = w[firstOut*in:]
	for k := firstIn; k < in; k++ {
		scale := float32(1)
		if colScale != nil {
			scale = colScale[k]
		}
		line := panel[k*panelWidth : (k+1)*panelWidth]
		clear(line[width:])
		line = line[firstOut:width]
		for o := range line {
			line[o] = w[o*in+k] * scale
		}
	}
}
