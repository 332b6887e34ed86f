package codec

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// maxOffset bounds byte offsets and sizes, so that sums of two of them and conversions to int
// cannot overflow.
const maxOffset = math.MaxInt / 4

// maxRank is the most dimensions read, as many as PyTorch and NumPy write.
const maxRank = 64

func errRank(n int) error { return fmt.Errorf("%d dimensions: at most %d are read", n, maxRank) }

// product multiplies the dimensions of a declared shape; ok is false for negative ones and for
// arrays beyond any address space. The bound holds for the product of the nonzero dimensions, so
// later partial products are safe too.
func product(shape []int64) (n int64, ok bool) {
	n = 1
	empty := false
	for _, dim := range shape {
		if dim < 0 {
			return 0, false
		}
		if dim == 0 {
			empty = true
			continue
		}
		high, low := bits.Mul64(uint64(n), uint64(dim))
		if high != 0 || low > maxOffset/8 {
			return 0, false
		}
		n = int64(low)
	}
	if empty {
		return 0, true
	}
	return n, true
}

// checkStrides accepts strides under which the last element of shape has an index that can exist.
// shape has passed product.
func checkStrides(shape, strides []int64) ([]int, bool) {
	if len(strides) != len(shape) {
		return nil, false
	}
	last := int64(0)
	for i, stride := range strides {
		if stride < 0 || stride > maxOffset {
			return nil, false
		}
		if shape[i] < 2 {
			continue
		}
		high, low := bits.Mul64(uint64(shape[i]-1), uint64(stride))
		if high != 0 || low > uint64(maxOffset-last) {
			return nil, false
		}
		last += int64(low)
	}
	return ints(strides), true
}

// ints converts dimensions or strides already known to fit.
func ints(values []int64) []int {
	converted := make([]int, len(values))
	for i, v := range values {
		converted[i] = int(v)
	}
	return converted
}

// rowMajor is the strides of a contiguous array, last dimension fastest.
func rowMajor(shape []int) []int {
	strides := make([]int, len(shape))
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = step
		step *= max(shape[i], 1)
	}
	return strides
}

// columnMajor is the strides of a contiguous array in Fortran order.
func columnMajor(shape []int64) []int64 {
	strides := make([]int64, len(shape))
	step := int64(1)
	for i, dim := range shape {
		strides[i] = step
		step *= max(dim, 1)
	}
	return strides
}

// shapeText prints a shape from a file, shortened when it is absurdly long.
func shapeText(shape []int64) string {
	const most = 8
	if len(shape) <= most {
		return fmt.Sprint(shape)
	}
	return strings.TrimSuffix(fmt.Sprint(shape[:most]), "]") + fmt.Sprintf(" ... %d dimensions]", len(shape))
}
