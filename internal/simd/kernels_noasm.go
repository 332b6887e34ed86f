//go:build noasm || !(amd64 || arm64)

package simd

func dot(a, b []float32) float32               { return dotGeneric(a, b) }
func dotWide(a []float64, b []float32) float64 { return dotWideGeneric(a, b) }
func squaredL2(a, b []float32) float32         { return squaredL2Generic(a, b) }
func mulDot(a, b, c []float32) float32         { return mulDotGeneric(a, b, c) }

func axpy(dst []float32, alpha float32, x []float32)    { axpyGeneric(dst, alpha, x) }
func mul(dst, a, b []float32)                           { mulGeneric(dst, a, b) }
func relu(x []float32)                                  { reluGeneric(x) }
func gate(dst, x []float32)                             { gateGeneric(dst, x) }
func dotRows(dst, q, rows []float32)                    { dotRowsGeneric(dst, q, rows) }
func atLeast(bits []uint64, x []float32, least float32) { atLeastGeneric(bits, x, least) }
func prefetch(*byte, int)                               {}

func dotBytes(dst []float32, q, rows []int8, factors []float32, scale float32) {
	dotBytesGeneric(dst, q, rows, factors, scale)
}

func (m *Matrix) mulPanels(dst, rows, bias []float32, n int) {
	m.mulPanelsGeneric(dst, rows, bias, n)
}

func (p *Product) add(dst, a, b []float32, n, rows, cols int) {
	addProductGeneric(dst, a, b, n, rows, cols)
}

func scan4(pos []uint32, sums []uint16, codes, lut []byte, pairs int, min uint16) int {
	return scan4Generic(pos, sums, codes, lut, pairs, min)
}

func packPanel(panel, w []float32, in int, colScale []float32) {
	packPanelGeneric(panel, w, in, colScale, 0, 0)
}
