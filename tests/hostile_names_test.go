package tests

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
	"github.com/flashdb/flashdb/internal/attempts"
	"github.com/flashdb/flashdb/internal/backup"
	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/vfs"
	"github.com/flashdb/flashdb/storage"
	"github.com/flashdb/flashdb/wal"
)

// hostileNames are names that no collection may have.
var hostileNames = []string{
	"../../victim", "..", ".", "", "a/b", `a\b`, `..\..\victim`, "/etc", "c:victim", ".hidden", "-flag", "a\x00b", "a\nb", "\x1b[2J", "ä",
	strings.Repeat("x", 65), strings.Repeat("x", 300), "a b", "*",
}

// A victim is a directory that a name could lead to from the index directory of a database beside
// it.
func newVictim(t *testing.T, base string) (unharmed func()) {
	t.Helper()
	dir := filepath.Join(base, "victim")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "precious"), []byte("precious"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gen-000007.ivf"), []byte("precious"), 0o600))
	want := tree(t, dir)
	return func() { require.Equal(t, want, tree(t, dir)) }
}

// renameInLog adds to the log of a closed database that a collection of the name was created, with
// a node in it.
func renameInLog(t *testing.T, dir, name string) {
	t.Helper()
	l, err := wal.Open(vfs.OS(), filepath.Join(dir, "wal"), nil)
	require.NoError(t, err)
	_, err = l.Do(context.Background(), wal.Write{Prepare: func(wal.LSN) ([]byte, error) {
		return storage.EncodeOps([]storage.Op{
			storage.CreateCollection{UID: 2, Name: name, Schema: storage.Schema{Dim: 2}},
			storage.PutNode{UID: 2, Key: "a", Row: []float32{1, 2}},
		}), nil
	}})
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

// renameInStore gives the only collection of a closed database, c, another name in flash.db, with
// right checksums.
func renameInStore(t *testing.T, dir, name string) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, "flash.db"), 0o600, nil)
	require.NoError(t, err)
	uid := []byte{0, 0, 0, 1}
	put := func(b *bolt.Bucket, of []byte, bucket, key string, value []byte) {
		crc := format.CRC(slices.Concat(of, []byte(bucket), []byte(key), value))
		require.NoError(t, b.Put([]byte(key), binary.LittleEndian.AppendUint32(value, crc)))
	}
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		names := tx.Bucket([]byte("names"))
		require.NoError(t, names.Delete([]byte("c")))
		put(names, make([]byte, 4), "names", name, []byte{1, 0, 0, 0})
		b := tx.Bucket([]byte("c")).Bucket(uid)
		info := b.Get([]byte("info"))
		info, ok := bytes.CutSuffix(info[:len(info)-4], []byte("\x01c"))
		require.True(t, ok)
		info = append(binary.AppendUvarint(slices.Clone(info), uint64(len(name))), name...)
		put(b, uid, "", "info", info)
		return nil
	}))
	require.NoError(t, db.Close())
}

// craftedStream backs up the files of a closed database as they are.
func craftedStream(t *testing.T, dir string) []byte {
	t.Helper()
	files := readFiles(t, dir)
	h := backup.Header{}
	var entries []backup.Entry
	for name, b := range files {
		kind := backup.Segment
		if name == "flash.db" {
			kind = backup.Store
		}
		entries = append(entries, backup.Entry{Kind: kind, Name: name, Size: uint64(len(b))})
		h.Entries++
		h.Bytes += uint64(len(b))
	}
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, h)
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, w.Entry(e, bytes.NewReader(files[e.Name])))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// TestHostileNames reads names that lead out of the database, and others that no collection may
// have, from each place that holds names.
func TestHostileNames(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine reads the names")
	}
	ctx := context.Background()
	places := []struct {
		name  string
		craft func(t *testing.T, dir, name string)
		file  string
	}{
		{"log", renameInLog, ".log: operations"},
		{"store", renameInStore, "flash.db: info"},
	}
	for _, place := range places {
		for _, name := range append(hostileNames, "fine") {
			if name == "" && place.name == "store" {
				continue // bbolt has no such key
			}
			t.Run(place.name+"/"+strings.Map(plain, name), func(t *testing.T) {
				attempts.Count(t, 1, "names")
				base := t.TempDir()
				unharmed := newVictim(t, base)
				dir := filepath.Join(base, "d.flash")
				p := openPlace(t, dir)
				p.puts(3)
				require.NoError(t, p.db.Checkpoint(ctx))
				require.NoError(t, p.db.Close())
				place.craft(t, dir, name)
				stream := craftedStream(t, dir)
				before := readFiles(t, dir)

				temp := filepath.Join(base, "temp")
				require.NoError(t, os.Mkdir(temp, 0o700))
				t.Setenv("TMPDIR", temp)
				t.Setenv("TMP", temp)
				restored := filepath.Join(base, "restored.flash")
				if name == "fine" { // what is crafted is right but for the name
					_, err := flashdb.VerifyBackup(ctx, bytes.NewReader(stream), nil)
					require.NoError(t, err)
					require.Empty(t, names(t, temp))
					_, err = flashdb.Restore(ctx, bytes.NewReader(stream), restored, nil)
					require.NoError(t, err)
					return
				}
				refused := func(what string, err error) {
					t.Helper()
					require.ErrorIs(t, err, flashdb.ErrCorrupt, what)
					require.ErrorContains(t, err, place.file, what)
					require.ErrorContains(t, err, "name", what)
					for _, r := range err.Error() {
						require.GreaterOrEqual(t, r, ' ', "%s: control characters are quoted", what)
					}
				}
				for _, readOnly := range []bool{true, false} {
					_, err := flashdb.Open(dir, &flashdb.Options{ReadOnly: readOnly})
					refused("open", err)
				}
				after := readFiles(t, dir)
				delete(after, "owner.pid")
				require.Equal(t, len(before), len(after))
				_, err := flashdb.VerifyBackup(ctx, bytes.NewReader(stream), nil)
				refused("verify", err)
				require.Empty(t, names(t, temp))
				_, err = flashdb.Restore(ctx, bytes.NewReader(stream), restored, nil)
				refused("restore", err)
				unharmed()
				require.Equal(t, []string{"d.flash", "temp", "victim"}, names(t, base))
			})
		}
	}
}

// TestHostileNamesOverTheSocket asks the owner of a database for what no collection may be called.
func TestHostileNamesOverTheSocket(t *testing.T) {
	ctx := context.Background()
	base := t.TempDir()
	unharmed := newVictim(t, base)
	p := openPlace(t, filepath.Join(base, "d.flash"))
	defer p.db.Close()
	client, err := control.Dial(p.db.Dir())
	require.NoError(t, err)
	defer client.Close()
	for _, name := range hostileNames {
		_, err := client.CreateCollection(ctx, name, flashdb.Schema{Dim: 2})
		require.ErrorIs(t, err, flashdb.ErrInvalid, "%q", name)
		require.ErrorIs(t, client.DropCollection(ctx, name), flashdb.ErrNotFound, "%q", name)
		_, err = client.Collection(ctx, name)
		require.ErrorIs(t, err, flashdb.ErrNotFound, "%q", name)
	}
	unharmed()
}

// plain makes a name one for a test.
func plain(r rune) rune {
	if r < ' ' || r == '/' || r == '\\' {
		return '_'
	}
	return r
}

// TestHostileEntries puts files into a backup under index directories of such names.
func TestHostileEntries(t *testing.T) {
	ctx := context.Background()
	base := t.TempDir()
	unharmed := newVictim(t, base)
	p := openPlace(t, filepath.Join(base, "d.flash"))
	p.puts(3)
	require.NoError(t, p.db.Close())
	store, err := os.ReadFile(filepath.Join(base, "d.flash", "flash.db"))
	require.NoError(t, err)
	for _, name := range hostileNames {
		entry := backup.Entry{Kind: backup.Generation, Name: "index/" + name + "/gen-000001.ivf", Size: 4}
		var out bytes.Buffer
		w, err := backup.NewWriter(&out, backup.Header{Entries: 2, Bytes: uint64(len(store)) + 4})
		require.NoError(t, err)
		require.NoError(t, w.Entry(backup.Entry{Kind: backup.Store, Name: "flash.db", Size: uint64(len(store))}, bytes.NewReader(store)))
		if err := w.Entry(entry, strings.NewReader("evil")); err != nil {
			w.Abandon()
			continue // the writer does not take it; the reader has tests of its own
		}
		require.NoError(t, w.Close())
		_, err = flashdb.VerifyBackup(ctx, bytes.NewReader(out.Bytes()), nil)
		require.ErrorIs(t, err, flashdb.ErrCorrupt, "%q", name)
		_, err = flashdb.Restore(ctx, bytes.NewReader(out.Bytes()), filepath.Join(base, "restored.flash"), nil)
		require.ErrorIs(t, err, flashdb.ErrCorrupt, "%q", name)
	}
	unharmed()
	require.Equal(t, []string{"d.flash", "victim"}, names(t, base))
	attempts.Count(t, len(hostileNames), "names")
}

// TestNewNames says which names a new collection may have. Those that only some system refuses are
// good where they exist already.
func TestNewNames(t *testing.T) {
	ctx := context.Background()
	d := openDB(t, filepath.Join(t.TempDir(), "test.flash"))
	defer checkAndClose(t, d)
	schema := flashdb.Schema{Dim: 2}
	reserved := []string{"con", "CON", "nul.txt", "Com1", "LPT9.tar.gz", "aux.", "end.", "..."}
	for _, name := range append(reserved, hostileNames...) {
		_, err := d.CreateCollection(name, schema)
		require.ErrorIs(t, err, flashdb.ErrInvalid, "%q", name)
		require.NotContains(t, err.Error(), "\n")
	}
	for _, name := range []string{"Papers", "console", "com10", "a.b", "_", "0", strings.Repeat("x", 64)} {
		_, err := d.CreateCollection(name, schema)
		require.NoError(t, err, "%q", name)
	}
	for _, name := range []string{"papers", "PAPERS", "A.B"} {
		_, err := d.CreateCollection(name, schema)
		require.ErrorIs(t, err, flashdb.ErrInvalid)
		require.ErrorContains(t, err, "only in case")
	}
	_, err := d.CreateCollection("Papers", schema)
	require.ErrorIs(t, err, flashdb.ErrExists)
	require.NoError(t, d.DropCollection(ctx, "Papers"))
	_, err = d.CreateCollection("papers", schema)
	require.NoError(t, err)

	for _, name := range []string{"con", "end.", "nul.txt"} { // made by an earlier version
		base := t.TempDir()
		dir := filepath.Join(base, "d.flash")
		p := openPlace(t, dir)
		p.puts(3)
		require.NoError(t, p.db.Checkpoint(ctx))
		require.NoError(t, p.db.Close())
		renameInLog(t, dir, name)
		db, err := flashdb.Open(dir, nil)
		require.NoError(t, err)
		names, err := db.Collections(t.Context())
		require.NoError(t, err)
		require.Contains(t, names, name)
		require.NoError(t, db.Close())
	}
}
