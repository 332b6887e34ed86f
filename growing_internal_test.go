package flashdb

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRowsLeftByASegmentCount builds segments late, as on a busy machine: the first has rows beyond
// those that asked for it. So the next time too few are left. They count towards the segment after
// that.
func TestRowsLeftByASegmentCount(t *testing.T) {
	db, err := Open(filepath.Join(t.TempDir(), "db"), &Options{SegmentRows: -1, CalibrateTime: -1})
	require.NoError(t, err)
	c, err := db.CreateCollection("c", Schema{Dim: 2})
	require.NoError(t, err)
	keys := 0
	put := func(n int) {
		t.Helper()
		nodes := make([]Node, n)
		for i := range nodes {
			keys++
			nodes[i] = Node{Key: fmt.Sprint(keys), Embedding: []float32{float32(keys), 1}}
		}
		require.NoError(t, c.Upsert(t.Context(), nodes...))
	}
	delta := func() uint64 {
		t.Helper()
		s, err := db.Stats(t.Context())
		require.NoError(t, err)
		return s.Collections[0].DeltaRows
	}
	put(100)
	_, err = c.Rebuild(t.Context(), &RebuildOptions{Force: true, Lists: 2})
	require.NoError(t, err)
	db.opts.SegmentRows = 20 // and no goroutine: grow does its work
	grow := func() {
		t.Helper()
		for c := db.grower.growing.next(); c != nil; c = db.grower.growing.next() {
			require.NoError(t, c.grow(t.Context()))
		}
	}

	for range 8 { // the third and the sixth ask for a segment
		put(8)
	}
	grow()
	assert.Zero(t, delta())
	put(8) // with the last two before, it asks
	grow()
	assert.EqualValues(t, 8, delta(), "too few")
	put(8)
	put(8)
	grow()
	assert.Zero(t, delta())
	require.NoError(t, db.Close())
}
