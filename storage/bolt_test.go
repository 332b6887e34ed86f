package storage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/format"
)

// The locks that a panic leaves held are where this version of bbolt has them, and are released.
func TestLocksReleased(t *testing.T) {
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
	require.NotNil(t, tx.DB(), "its Close was not called")
}

// bbolt takes the other header when one is damaged, and with it the tree of an earlier transaction.
// That is noticed from the first transaction on, whoever wrote the last.
func TestHeaderDamagedUnderProcess(t *testing.T) {
	put := func(t *testing.T, s *Store) {
		t.Helper()
		for range 2 {
			require.NoError(t, s.db.Load().update(func(tx *bolt.Tx) error { return tx.Bucket(bucketOfMeta).Put([]byte("x"), []byte("y")) }))
		}
	}
	tests := map[string]func(t *testing.T, s *Store, path string) *Store{
		"written": func(t *testing.T, s *Store, _ string) *Store { put(t, s); return s },
		"compacted": func(t *testing.T, s *Store, _ string) *Store {
			_, _, err := s.Compact(context.Background(), nil, nil)
			require.NoError(t, err)
			return s
		},
		"opened": func(t *testing.T, s *Store, path string) *Store {
			put(t, s)
			require.NoError(t, s.Close())
			s, err := Open(path, &Options{NoSync: true})
			require.NoError(t, err)
			return s
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "flash.db")
			s, err := Open(path, &Options{NoSync: true})
			require.NoError(t, err)
			s = prepare(t, s, path)
			b := s.db.Load()
			var last int64
			require.NoError(t, b.view(func(tx *bolt.Tx) error { last = int64(tx.ID()); return nil }))
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
		})
	}
}

// What goes wrong with the copy of a Compact is not blamed on the store's file.
func TestCopyThatFails(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		damage func(t *testing.T, dst *boltFile)
		want   error
	}{
		"it is not used any more": {func(_ *testing.T, dst *boltFile) { dst.fail(boom) }, boom},
		"it is cut short": {func(t *testing.T, dst *boltFile) {
			if runtime.GOOS == "windows" {
				t.Skip("Windows does not cut a file that is mapped")
			}
			require.NoError(t, os.Truncate(dst.path, 2*defaultPageSize))
		}, format.ErrCorrupt},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := Open(filepath.Join(t.TempDir(), "flash.db"), &Options{NoSync: true})
			require.NoError(t, err)
			loadNodes(t, s, 300, 64, 100)
			src := s.db.Load()
			dst, _, err := openFile(s.place.copy(), s.opts, false)
			require.NoError(t, err)
			c := &copier{ctx: context.Background(), src: src, dst: dst, pending: copyBytes}
			c.progress = func(int64) { tt.damage(t, dst) }
			err = src.view(c.copy)
			require.ErrorIs(t, err, tt.want)
			require.NotContains(t, err.Error(), src.path+":")
			require.NoError(t, src.cause())
			require.NoError(t, dst.close(), "nobody waits for the lock of its transaction")
			require.NoError(t, s.Close())
		})
	}
}
