package tests

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/vfs"
	"github.com/flashdb/flashdb/storage"
)

// TestNewerVersionsAreRefused raises the version in each kind of file and blob: it is refused with
// ErrVersion, which names both numbers.
func TestNewerVersionsAreRefused(t *testing.T) {
	stream, err := os.ReadFile(filepath.Join(frozenDir, "frozen-v3.zst"))
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "db")
	unpackTo(t, dir, stream)
	open := func(string) error {
		db, err := flashdb.Open(dir, &flashdb.Options{ReadOnly: true})
		if err == nil {
			err = db.Close()
		}
		return err
	}
	tests := []struct {
		name   string
		file   string // pattern in the directory
		newest uint32
		raise  func(b []byte) []byte // nil: it is flash.db
		read   func(path string) error
	}{
		{"flash.db", "flash.db", 9, nil, open},
		{"log segment", "wal/*.log", 1, func(b []byte) []byte { return raised(b, 8, 20) }, open},
		{"generation", "index/papers/*.ivf", 1, func(b []byte) []byte { return raised(b, 8, 92) }, func(path string) error {
			_, err := ivf.Open(vfs.OS(), path)
			return err
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found, err := filepath.Glob(filepath.Join(dir, tt.file))
			require.NoError(t, err)
			require.Len(t, found, 1)
			sound, err := os.ReadFile(found[0])
			require.NoError(t, err)
			require.NoError(t, tt.read(found[0]))
			if tt.raise != nil {
				require.NoError(t, os.WriteFile(found[0], tt.raise(bytes.Clone(sound)), 0o600))
			} else {
				raiseStore(t, found[0])
			}
			requireVersions(t, tt.read(found[0]), tt.newest)
			require.NoError(t, os.WriteFile(found[0], sound, 0o600))
		})
	}
	t.Run("operations", func(t *testing.T) {
		_, err := storage.DecodeOps([]byte{8})
		requireVersions(t, err, 7)
	})
	t.Run("decoder", func(t *testing.T) {
		newest, err := decoder.NewRelations(decoder.DistMult, 1, []string{"cites"}, []float32{1})
		require.NoError(t, err)
		const newestBlob = 4 // that of a mixture with gated units; this one is of version 3
		blob := decoder.Marshal(newest)
		binary.LittleEndian.PutUint32(blob[4:], newestBlob)
		_, err = decoder.Unmarshal(raised(blob, 4, len(blob)-4))
		requireVersions(t, err, newestBlob)
	})
	t.Run("list of a snapshot", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "snap")
		_, err := flashdb.Restore(t.Context(), bytes.NewReader(stream), dir, &flashdb.RestoreOptions{Snapshot: true})
		require.NoError(t, err)
		list, err := os.ReadFile(filepath.Join(dir, "snapshot.files"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "snapshot.files"), raised(list, 8, len(list)-4), 0o600))
		_, err = flashdb.Open(dir, nil)
		requireVersions(t, err, 1)
	})
	t.Run("backup stream", func(t *testing.T) {
		d, err := zstd.NewReader(nil)
		require.NoError(t, err)
		defer d.Close()
		plain, err := d.DecodeAll(stream, nil)
		require.NoError(t, err)
		e, err := zstd.NewWriter(nil)
		require.NoError(t, err)
		newer := e.EncodeAll(raised(plain, 8, 32), nil)
		_, err = flashdb.Restore(t.Context(), bytes.NewReader(newer), filepath.Join(t.TempDir(), "db"), nil)
		requireVersions(t, err, 1)
	})
}

// raised adds 1 to the version at an offset, and repairs the checksum, at another, of all bytes
// before that.
func raised(b []byte, at, sum int) []byte {
	binary.LittleEndian.PutUint32(b[at:], binary.LittleEndian.Uint32(b[at:])+1)
	binary.LittleEndian.PutUint32(b[sum:], format.CRC(b[:sum]))
	return b
}

func raiseStore(t *testing.T, path string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte{10, 0, 0, 0})
	}))
	require.NoError(t, db.Close())
}

func requireVersions(t *testing.T, err error, newest uint32) {
	t.Helper()
	require.ErrorIs(t, err, flashdb.ErrVersion)
	require.ErrorContains(t, err, fmt.Sprintf("format version %d, this program reads up to version %d", newest+1, newest))
}
