package storage

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSlab carves many pieces: they have the room asked for, and share none.
func TestSlab(t *testing.T) {
	for _, n := range []int{0, 1, 7, 128, maxBlock / 8, maxBlock/8 + 1, 2 * maxBlock} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var s slab
			var pieces [][]byte
			for i := range 100 {
				p := s.alloc(n)
				require.Empty(t, p)
				require.Equal(t, n, cap(p))
				for range n {
					p = append(p, byte(i))
				}
				pieces = append(pieces, p)
			}
			for i, p := range pieces {
				require.True(t, bytes.Equal(bytes.Repeat([]byte{byte(i)}, n), p), "piece %d", i)
			}
		})
	}
}

// TestSlabIsNoLargerThanItsPieces: what a layer keeps in memory is what it says it does, however
// few its values are.
func TestSlabIsNoLargerThanItsPieces(t *testing.T) {
	for _, pieces := range []int{1, 2, 3, 100, 10_000} {
		var b block[float32]
		allocated := 0
		for range pieces {
			before := len(b.free)
			b.carve(100)
			if after := len(b.free) + 100; after > before {
				allocated += after
			}
		}
		assert.LessOrEqual(t, allocated, min(3*100*pieces, 100*pieces+2*maxBlock), "%d pieces of 100", pieces)
		assert.GreaterOrEqual(t, allocated, 100*pieces)
	}
}
