package storage

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/format"
)

// The locks that are taken back after a panic are where this version of bbolt has them, and are given back.
func TestLocksTakenBack(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "flash.db"), &Options{NoSync: true})
	require.NoError(t, err)
	b := s.db.Load()
	require.NotNil(t, boltLock[sync.Mutex](b.bolt, "rwlock"))
	require.NotNil(t, boltLock[sync.Mutex](b.bolt, "metalock"))
	require.NotNil(t, boltLock[sync.RWMutex](b.bolt, "mmaplock"))
	require.Nil(t, boltLock[sync.RWMutex](b.bolt, "metalock"), "of another kind")
	require.Nil(t, boltLock[sync.Mutex](b.bolt, "nolock"))

	b.unlock(true) // nobody holds it: that must not be fatal
	_, err = b.bolt.Begin(true)
	require.NoError(t, err)
	b.unlock(true)
	boltLock[sync.Mutex](b.bolt, "metalock").Lock()
	boltLock[sync.RWMutex](b.bolt, "mmaplock").RLock()
	b.unlock(false)
	require.NoError(t, b.view(func(*bolt.Tx) error { return nil }))
	require.NoError(t, s.Close())
}

// A bbolt whose locks are not known is left as it is, and Close does not wait for it.
func TestLocksNotKnown(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "flash.db"), &Options{NoSync: true})
	require.NoError(t, err)
	b := s.db.Load()
	tx, err := b.bolt.Begin(true)
	require.NoError(t, err)
	b.stuck.Store(true)
	require.NoError(t, s.Close())
	require.NotNil(t, tx.DB(), "it was not asked")
}

// bbolt takes the other header when one is damaged, and with it the tree of an earlier transaction.
func TestHeaderDamagedUnderProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flash.db")
	s, err := Open(path, &Options{NoSync: true})
	require.NoError(t, err)
	b := s.db.Load()
	for range 2 {
		require.NoError(t, b.update(func(tx *bolt.Tx) error { return tx.Bucket(bucketOfMeta).Put([]byte("x"), []byte("y")) }))
	}
	last := b.last.Load()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, 64), last%2*defaultPageSize+pageHeader)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	nothing := func(*bolt.Tx) error { t.Error("it was entered"); return nil }
	for range 2 {
		require.ErrorIs(t, b.view(nothing), format.ErrCorrupt)
		require.ErrorContains(t, b.update(nothing), "it was changed under this process")
	}
	require.NoError(t, s.Close())
}
