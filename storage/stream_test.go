package storage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/storage"
)

// streamSample returns a flushed store with n nodes of one dimension, the row of each its id, every
// seventh deleted.
func streamSample(t *testing.T, n uint32) *storage.Store {
	t.Helper()
	s := open(t, newPath(t))
	c := s.Begin()
	require.NoError(t, c.Apply(storage.CreateCollection{UID: 1, Name: "c", Schema: storage.Schema{Dim: 1}}, 1))
	for id := range n {
		require.NoError(t, c.Apply(storage.PutNode{UID: 1, ID: id, Key: fmt.Sprint(id), Row: []float32{float32(id)}}, 1))
	}
	for id := uint32(0); id < n; id += 7 {
		require.NoError(t, c.Apply(storage.DeleteNode{UID: 1, ID: id}, 1))
	}
	s.Stage(c)
	s.Publish()
	flush(t, s)
	return s
}

func TestRows(t *testing.T) {
	const n = 9000 // several blocks
	s := streamSample(t, n)
	for _, from := range []uint32{0, 1, 4000, n - 1, n, 1<<32 - 1} {
		next, blocks := from, 0
		require.NoError(t, s.Rows(t.Context(), 1, from, func(ids []uint32, rows []float32) error {
			blocks++
			require.Len(t, rows, len(ids))
			for i, id := range ids {
				if next%7 == 0 {
					next++
				}
				require.Equal(t, next, id)
				require.Equal(t, float32(id), rows[i])
				next++
			}
			return nil
		}))
		if from < n {
			assert.Equal(t, uint32(n), next)
			assert.Equal(t, from < 2, blocks > 3)
		}
	}
}

func TestRowsStops(t *testing.T) {
	s := streamSample(t, 5000)
	stop := errors.New("stop")
	calls := 0
	err := s.Rows(t.Context(), 1, 0, func([]uint32, []float32) error { calls++; return stop })
	assert.ErrorIs(t, err, stop)
	assert.Equal(t, 1, calls)

	ctx, cancel := context.WithCancel(t.Context())
	err = s.Rows(ctx, 1, 0, func([]uint32, []float32) error { cancel(); return nil })
	assert.ErrorIs(t, err, context.Canceled)

	// No transaction is open while fn runs, so that it may use the store in every way.
	err = s.Rows(t.Context(), 1, 0, func([]uint32, []float32) error {
		if _, ok := collection(t, s); ok {
			commit(t, s, 2, storage.DropCollection{UID: 1})
			flush(t, s)
		}
		return nil
	})
	assert.ErrorIs(t, err, storage.ErrNotFound)
}

func collection(t *testing.T, s *storage.Store) (info storage.Info, ok bool) {
	t.Helper()
	require.NoError(t, s.View(func(v *storage.View) error {
		info, ok = v.Collection("c")
		return nil
	}))
	return info, ok
}

func TestDirtyAndGenerations(t *testing.T) {
	const n = 9000
	s := streamSample(t, n)
	dirty := func() map[uint32]uint64 {
		found := map[uint32]uint64{}
		require.NoError(t, s.Dirty(1, func(id uint32, lsn uint64) error {
			found[id] = lsn
			return nil
		}))
		return found
	}
	all := dirty()
	assert.Len(t, all, n-(n+6)/7)
	for id, lsn := range all {
		require.NotZero(t, id%7)
		require.Equal(t, uint64(1), lsn)
	}
	put := func(lsn uint64, id uint32) {
		commit(t, s, lsn, storage.PutNode{UID: 1, ID: id, Key: fmt.Sprint(id), Row: []float32{-1}})
	}
	put(2, 5)
	put(3, 8999)
	assert.ErrorContains(t, s.PublishGeneration(1, 1, 3), "only 1 has been flushed")
	flush(t, s)
	require.NoError(t, s.PublishGeneration(1, 7, 2))
	assert.Equal(t, map[uint32]uint64{8999: 3}, dirty(), "newer than the generation")
	info, _ := collection(t, s)
	assert.Equal(t, uint64(7), info.Generation)
	assert.Equal(t, uint64(2), info.BuildLSN)

	put(4, 8999)
	put(5, 1)
	flush(t, s)
	commit(t, s, 6, storage.DeleteNode{UID: 1, ID: 8999})
	flush(t, s)
	assert.Equal(t, map[uint32]uint64{1: 5}, dirty(), "a deleted node is not dirty")
	info, _ = collection(t, s)
	assert.Equal(t, uint64(7), info.Generation, "a flush leaves the generation alone")
	require.NoError(t, s.PublishGeneration(1, 8, s.Applied()))
	assert.Empty(t, dirty())

	assert.ErrorIs(t, s.PublishGeneration(9, 1, 0), storage.ErrNotFound)
	stop := errors.New("stop")
	put(7, 2)
	flush(t, s)
	assert.ErrorIs(t, s.Dirty(1, func(uint32, uint64) error { return stop }), stop)
}

// A generation published while a change is in the making must survive that change.
func TestPublishGenerationBesideWriter(t *testing.T) {
	s := streamSample(t, 10)
	c := s.Begin()
	require.NoError(t, c.Apply(storage.DeleteNode{UID: 1, ID: 3}, 2))
	require.NoError(t, s.PublishGeneration(1, 4, 1))
	s.Stage(c)
	s.Publish()
	info, _ := collection(t, s)
	assert.Equal(t, uint64(4), info.Generation)
	flush(t, s)
	info, _ = collection(t, s)
	assert.Equal(t, uint64(4), info.Generation)
}
