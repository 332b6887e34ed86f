package simd

import "fmt"

const (
	byteRows  = 16 // rows in a block of ByteRows
	byteGroup = 4  // values of a row that lie together
	byteMost  = 127
)

// ByteRows is a matrix of whole numbers from -127 to 127 with a factor for each row, laid out for
// the products of all its rows with one vector. Products are added up as integers: they are the
// same with every kernel class.
//
// A block is 16 rows. Its values lie by groups of four: four values of the first row, four of the
// second and so on, then the next four of each. Rows are padded with zeros to whole pairs of
// groups, the last block to 16 rows.
type ByteRows struct {
	n, dim  int
	groups  int // of a row, an even number
	values  []int8
	factors []float32 // of whole blocks
}

// PackBytes returns the matrix of row-major values, n x dim, and n factors. No value may be -128.
// dim is at most 65,536, so that no sum overflows.
func PackBytes(values []int8, factors []float32, dim int) *ByteRows {
	n := len(factors)
	if dim < 1 || dim > 1<<16 || len(values) != n*dim {
		panic(fmt.Sprintf("simd: PackBytes: %d values are not %d rows of dimension %d (1 to 65,536)", len(values), n, dim))
	}
	m := &ByteRows{n: n, dim: dim, groups: byteGroups(dim)}
	blocks := (n + byteRows - 1) / byteRows
	m.values = make([]int8, blocks*m.blockBytes())
	m.factors = make([]float32, blocks*byteRows)
	copy(m.factors, factors)
	for i := range n {
		block := m.values[i/byteRows*m.blockBytes():]
		for j, x := range values[i*dim : (i+1)*dim] {
			block[(j/byteGroup*byteRows+i%byteRows)*byteGroup+j%byteGroup] = x
		}
	}
	return m
}

// byteGroups returns the number of groups of a row of dim values.
func byteGroups(dim int) int { return (dim + 2*byteGroup - 1) / (2 * byteGroup) * 2 }

func (m *ByteRows) blockBytes() int { return m.groups * byteRows * byteGroup }

// Bytes returns how much memory the matrix takes.
func (m *ByteRows) Bytes() int { return len(m.values) + 4*len(m.factors) }

// PaddedDim returns the length that a vector must have for Dot: dim, rounded up to a multiple of 8.
func (m *ByteRows) PaddedDim() int { return m.groups * byteGroup }

// Dot sets dst to scale times the inner products of q and len(dst) rows from row first on, a
// multiple of 16. q has PaddedDim values from -127 to 127, those beyond the dimension are 0.
//
//	for i := range dst {
//		var sum int32
//		for j := range dim {
//			sum += int32(q[j]) * int32(values[(first+i)*dim+j])
//		}
//		dst[i] = float32(sum) * factors[first+i] * scale
//	}
func (m *ByteRows) Dot(dst []float32, q []int8, first int, scale float32) {
	if first%byteRows != 0 || first+len(dst) > m.n || len(q) != m.PaddedDim() {
		panic(fmt.Sprintf("simd: ByteRows.Dot: %d values, rows %d to %d of %d, dimension %d", len(q), first, first+len(dst), m.n, m.dim))
	}
	values, factors := m.values[first/byteRows*m.blockBytes():], m.factors[first:]
	whole := len(dst) / byteRows
	if whole > 0 {
		dotBytes(dst[:whole*byteRows], q, values[:whole*m.blockBytes()], factors[:whole*byteRows], scale)
	}
	if rest := dst[whole*byteRows:]; len(rest) > 0 {
		var last [byteRows]float32
		dotBytes(last[:], q, values[whole*m.blockBytes():][:m.blockBytes()], factors[whole*byteRows:][:byteRows], scale)
		copy(rest, last[:])
	}
}
