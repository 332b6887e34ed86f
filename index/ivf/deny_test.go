package ivf

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestDenseOnlyWhereItFits checks that there is no dense bitmap for few rows with high ids, nor on
// 32-bit systems for ids beyond an int.
func TestDenseOnlyWhereItFits(t *testing.T) {
	const many = math.MaxInt32 // rows
	assert.True(t, fitsDense(0, 1))
	assert.True(t, fitsDense(8<<16-1, 1))
	assert.False(t, fitsDense(9<<16, 1))
	assert.False(t, fitsDense(math.MaxUint32, 1000))
	assert.True(t, fitsDense(math.MaxInt32-wordBits, many))
	for _, id := range []uint32{math.MaxInt32 - wordBits + 1, math.MaxInt32, 1 << 31, math.MaxUint32} {
		assert.Equal(t, strconv.IntSize > 32, fitsDense(id, many), id)
	}
	if strconv.IntSize == 32 { // it would take too much memory elsewhere
		ix := &Index{maxID: math.MaxUint32, header: header{rows: many}}
		assert.NotPanics(t, func() { newDenied(ix) })
	}
}
