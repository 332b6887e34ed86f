package storage_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
)

// Pages that are cut off and written over while somebody searches them turn to zeros and look
// empty. What is there is found or its page is refused, but nothing is said to be absent. A small
// bucket lies in a page that a search has passed already, unless bbolt copied it: where it lies
// depends on the length of what is before it.
func TestNothingIsLostInZeroedPages(t *testing.T) {
	lookups := map[string]func(t *testing.T, s *storage.Store, path string) error{
		"id":      viewed(func(v *storage.View) bool { _, ok := v.ID(1, "a"); return ok }),
		"row":     viewed(func(v *storage.View) bool { return v.Row(make([]float32, 2), 1, 0) }),
		"resolve": resolved,
	}
	for name, lookUp := range lookups {
		t.Run(name, func(t *testing.T) {
			refused := 0
			for pad := range 8 {
				path := newPath(t)
				s, err := storage.Open(path, &storage.Options{NoSync: true, PageSize: 4096})
				require.NoError(t, err)
				sample(t, s)
				commit(t, s, 2, storage.PutDecoder{UID: 1, Name: "cites", Blob: bytes.Repeat([]byte{1}, pad)})
				flush(t, s)
				if err := lookUp(t, s, path); err != nil {
					assert.ErrorIs(t, err, format.ErrCorrupt)
					refused++
				}
				require.NoError(t, s.Close())
			}
			require.NotZero(t, refused, "bbolt copied the bucket each time")
		})
	}
}

// zeroPages writes zeros over all pages but the headers. Small buckets keep their flags: a search
// looks at those first, and this stands for what happens right after.
func zeroPages(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	b = b[2*4096:]
	zeros := make([]byte, len(b))
	for at := range len(b) - 32 {
		inside := b[at:] // perhaps a bucket inside a value: no page, no sequence, and then a leaf that is no page either
		if bytes.Equal(inside[:24], make([]byte, 24)) && le.Uint16(inside[24:]) == 2 && le.Uint32(inside[28:]) == 0 {
			le.PutUint16(zeros[at+24:], 2)
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(zeros, 2*4096)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// viewed looks something up before and after the pages turn to zeros.
func viewed(lookUp func(v *storage.View) bool) func(t *testing.T, s *storage.Store, path string) error {
	return func(t *testing.T, s *storage.Store, path string) error {
		found := false
		err := s.View(func(v *storage.View) error {
			assert.True(t, lookUp(v))
			zeroPages(t, path)
			found = lookUp(v)
			return nil
		})
		assert.True(t, found || err != nil, "it was said to be absent")
		return err
	}
}

// resolved is viewed of the bulk lookup of keys.
func resolved(t *testing.T, s *storage.Store, path string) error {
	t.Helper()
	c := s.Begin()
	nodes := []storage.PutNode{{Key: "a"}, {Key: "b"}}
	require.NoError(t, c.Resolve(1, nodes))
	zeroPages(t, path)
	again := []storage.PutNode{{Key: "a"}, {Key: "aa"}, {Key: "b"}}
	err := c.Resolve(1, again)
	if err == nil {
		assert.Equal(t, []uint32{0, 3, 1}, []uint32{again[0].ID, again[1].ID, again[2].ID}, "a key was given a new id")
	}
	return err
}
