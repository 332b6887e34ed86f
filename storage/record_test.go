package storage

import (
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/format"
)

func TestRecord(t *testing.T) {
	for _, n := range []Node{
		{Key: "k"},
		{Key: "\x00\xff", Tags: []string{"a", "b"}, Payload: []byte("p")},
	} {
		b := appendRecord(nil, n.Key, n.Tags, n.Payload)
		assert.LessOrEqual(t, len(b), recordSize(n.Key, n.Tags, n.Payload))
		got, err := decodeRecord(b)
		require.NoError(t, err)
		assert.Equal(t, n, got)
		key, err := recordKey(b)
		require.NoError(t, err)
		assert.Equal(t, n.Key, string(key))
	}
	for _, b := range [][]byte{nil, {1}, {1, 'k'}, {1, 'k', 2, 1, 't'}} {
		_, err := decodeRecord(b)
		assert.ErrorIs(t, err, format.ErrCorrupt)
	}
}

func TestBitmapEncoding(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	runs, sparse, dense := roaring.New(), roaring.New(), roaring.New()
	runs.AddRange(5, 200_000)
	for range 1000 {
		sparse.Add(rng.Uint32())
	}
	for range 50_000 {
		dense.Add(rng.Uint32N(1 << 17))
	}
	for _, b := range []*roaring.Bitmap{roaring.New(), runs, sparse, dense} {
		data, err := encodeBitmap(b)
		require.NoError(t, err)
		got, err := decodeBitmap(data)
		require.NoError(t, err)
		require.True(t, b.Equals(got))

		// What was decoded owns its memory and may be changed.
		want := b.Clone()
		got.Add(70_000_000)
		want.Add(70_000_000)
		data[len(data)-1] ^= 0xff
		assert.True(t, want.Equals(got))
	}
	compact, err := encodeBitmap(runs)
	require.NoError(t, err)
	assert.Less(t, len(compact), 100, "runs are stored as such")
	_, err = decodeBitmap(append(compact, 0))
	assert.ErrorContains(t, err, "1 bytes too many")
	_, err = decodeBitmap(nil)
	assert.ErrorIs(t, err, format.ErrCorrupt)
}

func FuzzDecodeBitmap(f *testing.F) {
	b := roaring.BitmapOf(1, 2, 3, 1<<20)
	for range 2 {
		data, err := b.ToBytes()
		require.NoError(f, err)
		f.Add(data)
		b.AddRange(1<<16, 1<<18)
		b.RunOptimize()
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := decodeBitmap(data)
		if err != nil {
			return
		}
		// A bitmap that passes is one that can be worked with.
		other := b.Clone()
		other.Add(77)
		if !b.IsEmpty() {
			other.Remove(b.Minimum())
		}
		again, err := encodeBitmap(b)
		require.NoError(t, err)
		got, err := decodeBitmap(again)
		require.NoError(t, err)
		require.True(t, b.Equals(got))
	})
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(appendRecord(nil, "key", []string{"a", "b"}, []byte("payload")))
	f.Add([]byte{1, 'k', 2, 1, 't'})
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := decodeRecord(b)
		if err != nil {
			return
		}
		got, err := decodeRecord(appendRecord(nil, n.Key, n.Tags, n.Payload))
		require.NoError(t, err)
		assert.Equal(t, n, got)
	})
}

func TestInfo(t *testing.T) {
	c := &collection{uid: 7, name: "papers", schema: Schema{Dim: 300, Normalize: true}, count: 5, nextID: 900}
	got, err := decodeInfo(7, encodeInfo(c))
	require.NoError(t, err)
	assert.Equal(t, c, got)
	for n := range encodeInfo(c) {
		_, err := decodeInfo(7, encodeInfo(c)[:n])
		assert.ErrorIs(t, err, format.ErrCorrupt)
	}
	g, err := decodeGeneration(encodeGeneration(generation{number: 3, buildLSN: 1 << 40}))
	require.NoError(t, err)
	assert.Equal(t, generation{number: 3, buildLSN: 1 << 40}, g)
}
