package flashdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/backup"
)

// streamOf makes a well-formed stream of files that Backup would not write.
func streamOf(t testing.TB, entries ...backup.Entry) []byte {
	t.Helper()
	h := backup.Header{Entries: uint32(len(entries))}
	for _, e := range entries {
		h.Bytes += e.Size
	}
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, h)
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, w.Entry(e, strings.NewReader(strings.Repeat("x", int(e.Size)))))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestRestoreRefuses(t *testing.T) {
	store := backup.Entry{Kind: backup.Store, Name: "flash.db", Size: 5}
	tests := []struct {
		name    string
		entries []backup.Entry
		want    string
	}{
		{"no store", nil, "there is no flash.db"},
		{"two stores", []backup.Entry{store, store}, "or is there twice"},
		{"store elsewhere", []backup.Entry{{Kind: backup.Store, Name: "wal/flash.db"}}, "no file that a database has"},
		{"foreign file", []backup.Entry{{Kind: backup.Generation, Name: "notes.txt"}}, "no file that a database has"},
		{"owner", []backup.Entry{{Kind: backup.Segment, Name: "owner.pid"}}, "no file that a database has"},
		{"generation outside", []backup.Entry{{Kind: backup.Generation, Name: "index/gen-000001.ivf"}}, "no file that a database has"},
		{"generation below", []backup.Entry{{Kind: backup.Generation, Name: "index/c/d/gen-000001.ivf"}}, "no file that a database has"},
		{"hidden collection", []backup.Entry{{Kind: backup.Generation, Name: "index/.ssh/gen-000001.ivf"}}, "no file that a database has"},
		{"segment name", []backup.Entry{{Kind: backup.Segment, Name: "wal/1.log"}}, "no file that a database has"},
		{"garbage in it", []backup.Entry{store}, "flash.db"},
		{"empty store", []backup.Entry{{Kind: backup.Store, Name: "flash.db"}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parent := t.TempDir()
			_, err := flashdb.Restore(context.Background(), bytes.NewReader(streamOf(t, tt.entries...)), filepath.Join(parent, "db"), nil)
			if tt.want == "" {
				require.NoError(t, err, "an empty file is an empty database")
				return
			}
			require.ErrorIs(t, err, flashdb.ErrCorrupt)
			require.ErrorContains(t, err, tt.want)
			requireNames(t, parent)
		})
	}
}

// A stream that is cut, or that has a flipped bit, is refused and leaves nothing behind, wherever
// the damage is. The exception is a bit that Zstandard ignores, so that the stream unpacks to the
// same bytes. Package internal/backup tries every byte of a small stream.
func TestRestoreRefusesDamage(t *testing.T) {
	d := openDB(t)
	fill(t, d)
	stream := backUp(t, d.DB, nil)
	parent := t.TempDir()
	refused := func(what string, bad []byte) {
		_, err := flashdb.Restore(context.Background(), bytes.NewReader(bad), filepath.Join(parent, "db"), &flashdb.RestoreOptions{Name: "b.zst"})
		require.Error(t, err, what)
		require.True(t, errors.Is(err, flashdb.ErrCorrupt) || errors.Is(err, flashdb.ErrVersion), "%s: %v", what, err)
		require.ErrorContains(t, err, "b.zst", what)
		require.NotContains(t, err.Error(), "\n")
		requireNames(t, parent)
	}
	plain := unpacked(stream)
	require.NotNil(t, plain)
	changed := func(i int, b byte) {
		bad := bytes.Clone(stream)
		bad[i] = b
		if !bytes.Equal(plain, unpacked(bad)) {
			refused(fmt.Sprintf("byte %d made %#x", i, b), bad)
		}
	}
	rng := rand.New(rand.NewPCG(8, 8))
	for range 60 {
		n := rng.IntN(len(stream))
		refused(fmt.Sprintf("cut at %d", n), stream[:n])
		i := rng.IntN(len(stream))
		changed(i, stream[i]^1<<rng.IntN(8))
	}
	const edge = 24 // the header of the Zstandard frame and its first block; the last block and the checksum
	for _, from := range []int{0, len(stream) - edge} {
		for i := from; i < from+edge; i++ {
			refused(fmt.Sprintf("cut at %d", i), stream[:i])
			changed(i, stream[i]^1<<rng.IntN(8))
			changed(i, ^stream[i])
			changed(i, 0)
		}
	}
	refused("bytes added", append(bytes.Clone(stream), "x"...))

	_, err := flashdb.VerifyBackup(context.Background(), bytes.NewReader(stream[:len(stream)-1]), nil)
	require.ErrorIs(t, err, flashdb.ErrCorrupt)
	_, err = flashdb.VerifyBackup(context.Background(), bytes.NewReader(stream), &flashdb.RestoreOptions{MaxBytes: 10})
	require.ErrorContains(t, err, "unpacks to more than 10 bytes")
}

// unpacked returns the contents of a Zstandard stream, or nil if it is damaged.
func unpacked(stream []byte) []byte {
	d, err := zstd.NewReader(nil)
	if err != nil {
		return nil
	}
	defer d.Close()
	plain, err := d.DecodeAll(stream, nil)
	if err != nil {
		return nil
	}
	return plain
}

func TestRestoreEndsWithItsContext(t *testing.T) {
	d := openDB(t)
	fill(t, d)
	stream := backUp(t, d.DB, nil)
	parent := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	_, err := flashdb.Restore(ctx, bytes.NewReader(stream), filepath.Join(parent, "db"), &flashdb.RestoreOptions{
		Progress: func(string, int64, int64) { cancel() },
	})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, flashdb.ErrCorrupt)
	requireNames(t, parent)
}

// FuzzRestore restores arbitrary bytes as a stream, and as the bbolt file of a well-formed stream.
// A refused stream leaves nothing behind, and Check finds nothing in a restored database.
func FuzzRestore(f *testing.F) {
	d := &testDB{t: f, dir: filepath.Join(f.TempDir(), "db")}
	d.open()
	_, err := d.CreateCollection("c", flashdb.Schema{Dim: 1})
	require.NoError(f, err)
	stream := backUp(f, d.DB, nil)
	require.NoError(f, d.Close())
	f.Add(stream)
	f.Add(stream[:len(stream)-5])
	f.Add([]byte{})
	store, err := os.ReadFile(filepath.Join(d.dir, "flash.db"))
	require.NoError(f, err)
	f.Add(store[:min(len(store), 64<<10)])
	ctx := context.Background()
	f.Fuzz(func(t *testing.T, b []byte) {
		h := backup.Header{Entries: 1, Bytes: uint64(len(b))}
		var wrapped bytes.Buffer
		w, err := backup.NewWriter(&wrapped, h)
		require.NoError(t, err)
		require.NoError(t, w.Entry(backup.Entry{Kind: backup.Store, Name: "flash.db", Size: h.Bytes}, bytes.NewReader(b)))
		require.NoError(t, w.Close())
		for _, stream := range [][]byte{b, wrapped.Bytes()} {
			parent := t.TempDir()
			dir := filepath.Join(parent, "db")
			_, err := flashdb.Restore(ctx, bytes.NewReader(stream), dir, &flashdb.RestoreOptions{MaxBytes: 4 << 20})
			if err != nil {
				requireNames(t, parent)
				continue
			}
			requireNames(t, parent, "db")
			db, err := flashdb.Open(dir, nil)
			require.NoError(t, err)
			findings, err := db.Check(ctx)
			require.NoError(t, err)
			require.Empty(t, findings)
			require.NoError(t, db.Close())
		}
	})
}
