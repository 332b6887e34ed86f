package storage

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/format"
)

// FuzzRelated: a value of bucket typed is refused as corrupt, or read and written as it was read.
func FuzzRelated(f *testing.F) {
	for _, all := range [][]Related{
		nil,
		{{"treats", false, roaring.BitmapOf(1, 2, 70000)}},
		{{"", true, roaring.BitmapOf(1)}, {"causes", true, roaring.BitmapOf(3)}, {"causes", false, roaring.BitmapOf(4)}},
	} {
		value, err := encodeRelated(all)
		require.NoError(f, err)
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		all, err := decodeRelated(value)
		if err != nil {
			assert.ErrorIs(t, err, format.ErrCorrupt)
			return
		}
		written, err := encodeRelated(all)
		require.NoError(t, err)
		again, err := decodeRelated(written)
		require.NoError(t, err)
		require.Len(t, again, len(all))
		for i := range all {
			assert.Zero(t, compareRelated(all[i], again[i]))
			assert.True(t, all[i].IDs.Equals(again[i].IDs))
			assert.False(t, all[i].IDs.IsEmpty())
		}
	})
}
