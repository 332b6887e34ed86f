package storage

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/attr"
	"github.com/flashdb/flashdb/internal/format"
)

// FuzzColumn: a column is refused as corrupt, or read, written as it was, and asked without a
// fault.
func FuzzColumn(f *testing.F) {
	for _, values := range [][]any{{1.5, 2, 2, -7}, {"a", "", "b"}, {true}, {false, true, true}} {
		first, err := attr.Of(values[0])
		require.NoError(f, err)
		c := newColumn(first.Kind())
		for i, x := range values {
			v, err := attr.Of(x)
			require.NoError(f, err)
			c.set(200*i+i, v)
		}
		f.Add(c.encode())
	}
	wide := newColumn(attr.Number)
	for i := range columnIDs {
		v, err := attr.Of(i / 3)
		require.NoError(f, err)
		wide.set(i, v)
	}
	f.Add(wide.encode())
	f.Fuzz(func(t *testing.T, value []byte) {
		stored, err := readColumn(value)
		if err != nil {
			assert.ErrorIs(t, err, format.ErrCorrupt)
			return
		}
		low, err := stored.distinct(0)
		if err == nil { // a query does not look at all of it, and must come to an end all the same
			var words [columnWords]uint64
			for _, ranges := range [][]attr.Range{{attr.Point(low)}, {{From: attr.Cut{Value: low}}}, {attr.Point(low), {To: attr.Cut{Value: low}}}} {
				stored.match(ranges, words[:])
			}
		}
		c, err := stored.column()
		if err != nil {
			assert.ErrorIs(t, err, format.ErrCorrupt)
			return
		}
		require.Equal(t, stored.mask, c.mask)
		written := c.encode()
		again, err := readColumn(written)
		require.NoError(t, err)
		back, err := again.column()
		require.NoError(t, err)
		require.Equal(t, c, back)
		require.True(t, bytes.Equal(written, value) || len(written) < len(value), "a varint may be longer than need be")
	})
}
