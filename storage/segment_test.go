package storage_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
)

// dirtyOf returns the ids whose rows are newer than the generation and its segments.
func dirtyOf(t *testing.T, s *storage.Store) map[uint32]uint64 {
	t.Helper()
	found := map[uint32]uint64{}
	require.NoError(t, s.Dirty(1, func(id uint32, lsn uint64) error {
		found[id] = lsn
		return nil
	}))
	return found
}

// papers returns the collection of sample.
func papers(t *testing.T, s *storage.Store) (info storage.Info) {
	t.Helper()
	require.NoError(t, s.View(func(v *storage.View) error {
		info, _ = v.Collection("papers")
		return nil
	}))
	return info
}

// TestSegments: segments are recorded with their generation, take rows out of dirty, survive
// flushes, a Compact and a reopen, and end with the generation.
func TestSegments(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	sample(t, s)
	flush(t, s)
	require.NoError(t, s.PublishGeneration(1, 4, 1))
	reopen := func(version uint32) {
		t.Helper()
		require.NoError(t, s.Close())
		assert.Equal(t, version, formatOf(t, path))
		s = open(t, path)
	}
	reopen(3)
	put := func(lsn uint64, id uint32) {
		commit(t, s, lsn, storage.PutNode{UID: 1, ID: id, Key: fmt.Sprint("n", id), Row: []float32{1, 2}})
	}
	segments := func() []storage.Segment { return papers(t, s).Segments }
	put(2, 3)
	put(3, 4)
	assert.ErrorContains(t, s.PublishSegments("", 1, 4, []storage.Segment{{Number: 5, LSN: 2}}), "only 1 has been flushed")
	flush(t, s)
	require.NoError(t, s.PublishSegments("", 1, 4, []storage.Segment{{Number: 5, LSN: 2}}))
	assert.Equal(t, map[uint32]uint64{4: 3}, dirtyOf(t, s), "newer than the segment")
	assert.Equal(t, []storage.Segment{{Number: 5, LSN: 2}}, segments())
	reopen(8)

	put(4, 5)
	flush(t, s)
	two := []storage.Segment{{Number: 5, LSN: 2}, {Number: 7, LSN: 3}}
	require.NoError(t, s.PublishSegments("", 1, 4, two))
	assert.Equal(t, map[uint32]uint64{5: 4}, dirtyOf(t, s))
	_, _, err := s.Compact(t.Context(), nil, nil)
	require.NoError(t, err)
	reopen(8)
	assert.Equal(t, two, segments())
	assert.Equal(t, uint64(1), papers(t, s).BuildLSN)

	for want, bad := range map[string][]storage.Segment{
		"segment 4: want a number of its own":          {{Number: 4, LSN: 3}},
		"segment 0: want a number of its own":          {{Number: 0, LSN: 3}},
		"segment 5: want a number":                     {{Number: 5, LSN: 3}, {Number: 5, LSN: 3}},
		"segment 6 is of LSN 2, and an older one of 3": {{Number: 5, LSN: 3}, {Number: 6, LSN: 2}},
		"built at LSN 9":                               {{Number: 5, LSN: 9}},
	} {
		assert.ErrorContains(t, s.PublishSegments("", 1, 4, bad), want)
	}
	assert.ErrorContains(t, s.PublishSegments("", 1, 5, two), "generation 4 is served")
	assert.ErrorIs(t, s.PublishSegments("", 9, 4, two), storage.ErrNotFound)
	assert.Equal(t, two, segments(), "a refused publish changes nothing")

	require.NoError(t, s.PublishGeneration(1, 8, s.Applied()))
	assert.Empty(t, segments())
	put(5, 6)
	flush(t, s)
	assertClean(t, s)
}

// TestSegmentsNeedBlocks: a file of an early version cannot have segments, and says so.
func TestSegmentsNeedBlocks(t *testing.T) {
	s := openWith(t, frozenFile(t, 2, sample), nil)
	assert.False(t, s.Segmented())
	err := s.PublishSegments("", 1, 4, []storage.Segment{{Number: 5, LSN: 1}})
	assert.ErrorIs(t, err, format.ErrVersion)
	assert.ErrorContains(t, err, "index segments need 3 or later")
}

// TestFrozenSegments opens a file with segments as the program that first had them wrote it.
func TestFrozenSegments(t *testing.T) {
	s := openWith(t, frozenFile(t, 8, func(t *testing.T, s *storage.Store) {
		sample(t, s)
		flush(t, s)
		require.NoError(t, s.PublishGeneration(1, 2, 1))
		require.NoError(t, s.PublishSegments("", 1, 2, []storage.Segment{{Number: 3, LSN: 1}}))
	}), nil)
	assert.True(t, s.Segmented())
	assertClean(t, s)
}
