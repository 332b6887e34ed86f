package ivf

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb/index"
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

// TestDenied compares the filter in its fast form with what its bitmaps say. One value serves
// several filters in turn, as it does rounds and queries.
func TestDenied(t *testing.T) {
	const rows = 1000
	rng := rand.New(rand.NewPCG(3, 3))
	some := func(n int, most uint32) *roaring.Bitmap {
		b := roaring.New()
		for range n {
			b.Add(rng.Uint32N(most))
		}
		return b
	}
	run := roaring.New()
	run.AddRange(100, 900)
	run.RunOptimize()
	for name, maxID := range map[string]uint32{"dense ids": rows + 70, "sparse ids": 1 << 30} {
		ix := &Index{maxID: maxID}
		ix.header.rows = rows
		d := newDenied(ix)
		for what, allowed := range map[string]*roaring.Bitmap{
			"all": nil, "none": roaring.New(), "few": some(30, rows), "half": some(rows/2, rows), "a run": run,
			"newer ids too": some(500, 3*rows), "ids far above": roaring.BitmapOf(5, 1<<31), "one": roaring.BitmapOf(rows),
		} {
			f := index.Filter{Allowed: allowed, Excluded: some(20, rows), Masked: some(5, rows)}
			d.set(&f)
			for id := range uint32(rows + 1) {
				want := f.Excluded.Contains(id) || f.Masked.Contains(id) || allowed != nil && !allowed.Contains(id)
				if !assert.Equal(t, want, d.has(id), "%s, %s allowed: id %d", name, what, id) {
					return
				}
			}
		}
	}
}
