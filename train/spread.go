package train

import "github.com/flashdb/flashdb/internal/simd"

// columns is some columns of a row-major matrix: values [at, at+width) of each row of stride
// values.
type columns struct {
	data              []float32
	stride, at, width int
}

// row returns the columns of row i.
func (c columns) row(i int) []float32 { return c.data[i*c.stride+c.at:][:c.width] }

// spreading sends values along links: y_i = left_i * sum of right_j * x_j over the neighbours j of
// i, and i itself if self. It is its own transpose with left and right exchanged, because links are
// spread both ways.
type spreading struct {
	*adjacency
	left, right []float32
	self        bool
}

// transposed returns the spreading of gradients.
func (s spreading) transposed() spreading {
	s.left, s.right = s.right, s.left
	return s
}

// apply sets y to the spreading of x. A row is added up by one goroutine, in the order of its
// neighbours.
func (s spreading) apply(c crew, y, x columns) {
	const size = 64
	c.ranges(len(s.start)-1, size, func(_, first, last int) {
		for i := first; i < last; i++ {
			row := y.row(i)
			clear(row)
			if s.self {
				simd.Axpy(row, s.left[i]*s.right[i], x.row(i))
			}
			for _, j := range s.of(uint32(i)) {
				simd.Axpy(row, s.left[i]*s.right[j], x.row(int(j)))
			}
		}
	})
}
