package simd

// Product adds products of transposed matrices: the gradients of weights. It holds working memory,
// belongs to one goroutine at a time, and its zero value is ready.
type Product struct {
	a, b Matrix // a block of rows, transposed and in panels
}

// Add adds transpose(a) * b to dst. a is row-major n x rows, b row-major n x cols, dst row-major
// rows x cols.
//
//	for i := range n {
//		for o := range rows {
//			for k := range cols {
//				dst[o*cols+k] += a[i*rows+o] * b[i*cols+k]
//			}
//		}
//	}
func (p *Product) Add(dst, a, b []float32, n, rows, cols int) {
	dst, a, b = dst[:rows*cols], a[:n*rows], b[:n*cols]
	if rows > 1 && cols > 1 {
		p.add(dst, a, b, n, rows, cols)
		return
	}
	addProductGeneric(dst, a, b, n, rows, cols)
}

// addProductGeneric adds the rows of b, scaled by the values of a.
func addProductGeneric(dst, a, b []float32, n, rows, cols int) {
	for i := range n {
		row := b[i*cols : (i+1)*cols]
		for o, x := range a[i*rows : (i+1)*rows] {
			axpy(dst[o*cols:(o+1)*cols], x, row)
		}
	}
}
