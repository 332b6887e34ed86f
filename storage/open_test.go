package storage_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
)

// open opens a store whose cleanup flushes, checks and closes it.
func open(t *testing.T, path string) *storage.Store {
	t.Helper()
	return openWith(t, path, &storage.Options{NoSync: true})
}

func openWith(t *testing.T, path string, o *storage.Options) *storage.Store {
	t.Helper()
	s, err := storage.Open(path, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		if _, err := s.Flush(); err != nil {
			assert.ErrorIs(t, err, storage.ErrClosed)
			return // the test closed it
		}
		assertClean(t, s)
		assert.NoError(t, s.Close())
	})
	return s
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "flash.db") }

func assertClean(t *testing.T, s *storage.Store) {
	t.Helper()
	s.Check(func(finding string) { t.Errorf("check: %s", finding) })
}

// commit applies ops as one change, and publishes it.
func commit(t testing.TB, s *storage.Store, lsn uint64, ops ...storage.Op) {
	t.Helper()
	stage(t, s, lsn, ops...)
	s.Publish()
}

func stage(t testing.TB, s *storage.Store, lsn uint64, ops ...storage.Op) {
	t.Helper()
	c := s.Begin()
	for _, op := range ops {
		require.NoError(t, c.Apply(op, lsn))
	}
	s.Stage(c)
}

func flush(t *testing.T, s *storage.Store) {
	t.Helper()
	_, err := s.Flush()
	require.NoError(t, err)
}

// sample publishes, as LSN 1, a collection "papers" of UID 1 with three nodes, one of them deleted.
func sample(t *testing.T, s *storage.Store) {
	t.Helper()
	commit(
		t, s, 1,
		storage.CreateCollection{UID: 1, Name: "papers", Schema: storage.Schema{Dim: 2}},
		storage.PutNode{UID: 1, ID: 0, Key: "a", Row: []float32{1, 2}, Tags: []string{"x", "y"}, Payload: []byte("pay")},
		storage.PutNode{UID: 1, ID: 1, Key: "b", Row: []float32{3, 4}, Tags: []string{"x"}},
		storage.PutNode{UID: 1, ID: 2, Key: "c", Row: []float32{5, 6}},
		storage.Link{UID: 1, Source: 0, Targets: []uint32{1, 2}},
		storage.DeleteNode{UID: 1, ID: 2},
		storage.PutDecoder{UID: 1, Name: "cites", Blob: []byte{1, 2, 3}},
		storage.SetMeta{UID: 1, Name: "origin", Value: "test"},
	)
}

// edit changes a closed file behind the store's back.
func edit(t *testing.T, path string, fn func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true})
	require.NoError(t, err)
	require.NoError(t, db.Update(fn))
	require.NoError(t, db.Close())
}

// sampleFile returns the path of a closed store that holds the sample.
func sampleFile(t *testing.T) string { return sampleOf(t, 0) }

// sampleOf is sampleFile with a layout, 0 for the newest.
func sampleOf(t *testing.T, layout uint32) string {
	t.Helper()
	path := newPath(t)
	o := storage.OptionsFor(layout, 0)
	o.PageSize = 4096
	s, err := storage.Open(path, o)
	require.NoError(t, err)
	sample(t, s)
	flush(t, s)
	assertClean(t, s)
	require.NoError(t, s.Close())
	return path
}

// fillPages overwrites the pages after the two headers that list free pages, or all others.
func fillPages(b []byte, with byte, free bool) []byte {
	for page := b[2*4096:]; len(page) > 0; page = page[4096:] {
		if (page[8] == 0x10) == free {
			for i := range page[:4096] {
				page[i] = with
			}
		}
	}
	return b
}

func TestOpenRefuses(t *testing.T) {
	damage := func(fn func(b []byte) []byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, fn(b), 0o600))
		}
	}
	put := func(bucket, key string, value []byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			edit(t, path, func(tx *bolt.Tx) error { return tx.Bucket([]byte(bucket)).Put([]byte(key), value) })
		}
	}
	inCollection := func(key string, value []byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			edit(t, path, func(tx *bolt.Tx) error {
				return plantKey(key, value)(tx.Bucket([]byte("c")).Bucket([]byte{0, 0, 0, 1}))
			})
		}
	}
	tests := []struct {
		name   string
		damage func(t *testing.T, path string)
		target error
		want   string
	}{
		{"text", damage(func([]byte) []byte { return []byte("this is no database\n") }), format.ErrCorrupt, "not a flashdb database"},
		{"zeros", damage(func(b []byte) []byte { return make([]byte, len(b)) }), format.ErrCorrupt, "not a flashdb database"},
		{"cut within the header", damage(func(b []byte) []byte { return b[:50] }), format.ErrCorrupt, "not a flashdb database"},
		{"cut within the second header", damage(func(b []byte) []byte { return b[:5000] }), format.ErrCorrupt, "file size too small"},
		{"cut after the header", damage(func(b []byte) []byte { return b[:2*4096] }), format.ErrCorrupt, "file ends early"},
		{"both headers damaged", damage(func(b []byte) []byte { b[40]++; b[4096+40]++; return b }), format.ErrCorrupt, "not a flashdb database"},
		{"free pages damaged", damage(func(b []byte) []byte { return fillPages(b, 0x00, true) }), format.ErrCorrupt, "free pages"},
		{"pages zeroed", damage(func(b []byte) []byte { return fillPages(b, 0x00, false) }), format.ErrCorrupt, "bbolt pages"},
		{"pages overwritten", damage(func(b []byte) []byte { return fillPages(b, 0xff, false) }), format.ErrCorrupt, "bbolt pages"},
		{"newer format", put("meta", "format", []byte{10, 0, 0, 0}), format.ErrVersion, "has format version 10, this program reads up to version 9"},
		{"format missing", func(t *testing.T, path string) {
			edit(t, path, func(tx *bolt.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("format")) })
		}, format.ErrCorrupt, "meta: format"},
		{"older format than it is", put("meta", "format", []byte{1, 0, 0, 0}), format.ErrCorrupt, "meta: applied"},
		{"applied damaged", put("meta", "applied", []byte{1}), format.ErrCorrupt, "meta: applied"},
		{"next damaged", put("meta", "next", []byte{1, 0, 0, 0, 0, 0, 0, 0}), format.ErrCorrupt, "meta: next"},
		{"name damaged", put("names", "papers", []byte{1, 0, 0, 0, 0, 0, 0, 0}), format.ErrCorrupt, `names: "papers" at offset`},
		{"names missing", func(t *testing.T, path string) {
			edit(t, path, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("names")) })
		}, format.ErrCorrupt, `"names" or "c" is missing`},
		{"name without a collection", put("names", "ghost", storage.Seal(0, "names", "ghost", []byte{9, 0, 0, 0})), format.ErrCorrupt, `collection "ghost"`},
		{"two names of one collection", put("names", "other", storage.Seal(0, "names", "other", []byte{1, 0, 0, 0})), format.ErrCorrupt, `"other" leads to UID 1, that of collection "papers"`},
		{"info damaged", inCollection("info", []byte{2}), format.ErrCorrupt, "info at offset 1"},
		{"index damaged", inCollection("index", []byte{0x80}), format.ErrCorrupt, "index at offset 0"},
		{"tombs damaged", inCollection("tombs", []byte("no bitmap")), format.ErrCorrupt, "tombs"},
		{"other program's", func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true})
			require.NoError(t, err)
			require.NoError(t, db.Update(func(tx *bolt.Tx) error {
				_, err := tx.CreateBucket([]byte("theirs"))
				return err
			}))
			require.NoError(t, db.Close())
		}, format.ErrCorrupt, "it is a bbolt file of another program"},
		{"free pages not listed", func(t *testing.T, path string) {
			db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true, NoSync: true})
			require.NoError(t, err)
			require.NoError(t, db.Update(func(*bolt.Tx) error { return nil }))
			require.NoError(t, db.Close())
		}, format.ErrCorrupt, "does not list its free pages"},
		{"a directory", func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Mkdir(path, 0o700))
		}, format.ErrCorrupt, "not a flashdb database"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := sampleFile(t)
			tt.damage(t, path)
			for _, readOnly := range []bool{false, true} {
				_, err := storage.Open(path, &storage.Options{ReadOnly: readOnly, NoSync: true})
				require.Error(t, err)
				assert.ErrorIs(t, err, tt.target)
				assert.ErrorContains(t, err, tt.want)
				assert.NotContains(t, err.Error(), "\n")
				assert.ErrorContains(t, err, path)
			}
		})
	}
}

// A branch that leads back to itself would make bbolt overflow the stack, which no program
// survives.
func TestOpenRefusesLoops(t *testing.T) {
	path := newPath(t)
	s, err := storage.Open(path, &storage.Options{PageSize: 1024, NoSync: true})
	require.NoError(t, err)
	commit(t, s, 1, storage.CreateCollection{UID: 1, Name: "c", Schema: storage.Schema{Dim: 2}})
	for id := range uint32(300) {
		commit(t, s, uint64(id)+2, storage.PutNode{UID: 1, ID: id, Key: string(rune('a'+id/26)) + string(rune('a'+id%26)), Row: []float32{1, 2}})
	}
	flush(t, s)
	require.NoError(t, s.Close())
	sound, err := os.ReadFile(path)
	require.NoError(t, err)
	branches := 0
	for page := uint64(2); page < uint64(len(sound))/1024; page++ {
		head := sound[page*1024:]
		if binary.NativeEndian.Uint64(head) != page || binary.NativeEndian.Uint16(head[8:]) != 1 {
			continue
		}
		branches++
		for element := range uint64(binary.NativeEndian.Uint16(head[10:])) {
			b := bytes.Clone(sound)
			binary.NativeEndian.PutUint64(b[page*1024+16+element*16+8:], page)
			require.NoError(t, os.WriteFile(path, b, 0o600))
			_, err := storage.Open(path, &storage.Options{NoSync: true})
			require.ErrorIs(t, err, format.ErrCorrupt)
			require.ErrorContains(t, err, "it is free, or part of something else")
		}
	}
	require.NotZero(t, branches)
}

// A crash can leave one of the two headers torn; the other one counts then.
func TestOpenWithOneHeader(t *testing.T) {
	for page := range 2 {
		path := sampleFile(t)
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		clear(b[page*4096 : page*4096+80])
		require.NoError(t, os.WriteFile(path, b, 0o600))

		s, err := storage.Open(path, nil)
		require.NoError(t, err)
		// The flush of the sample was the third transaction, which is the second header's.
		assert.Equal(t, uint64(1-page), s.Applied())
		require.NoError(t, s.Close())
	}
}

func TestOpenLocked(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	_, err := storage.Open(path, nil)
	assert.ErrorIs(t, err, storage.ErrLocked)
	assert.ErrorContains(t, err, path)
	assert.NotErrorIs(t, err, format.ErrCorrupt)

	require.NoError(t, s.Close())
	again := open(t, path)
	assert.Zero(t, again.Applied())
}

// A file that made bbolt panic can be opened once it is repaired, so no lock stays behind.
func TestOpenReleasesDamagedFile(t *testing.T) {
	path := sampleFile(t)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, free := range []bool{false, true} {
		require.NoError(t, os.WriteFile(path, fillPages(bytes.Clone(good), 0, free), 0o600))
		_, err = storage.Open(path, nil)
		require.ErrorIs(t, err, format.ErrCorrupt)

		require.NoError(t, os.WriteFile(path, good, 0o600))
		s, err := storage.Open(path, nil)
		require.NoError(t, err)
		assert.Equal(t, uint64(1), s.Applied())
		require.NoError(t, s.Close())
	}
}

func TestOpenReadOnly(t *testing.T) {
	_, err := storage.Open(newPath(t), &storage.Options{ReadOnly: true})
	assert.ErrorIs(t, err, os.ErrNotExist)

	path := sampleFile(t)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	s, err := storage.Open(path, &storage.Options{ReadOnly: true})
	require.NoError(t, err)
	defer s.Close()
	other, err := storage.Open(path, &storage.Options{ReadOnly: true})
	require.NoError(t, err, "readers share the file")
	require.NoError(t, other.Close())
	_, err = storage.Open(path, nil)
	assert.ErrorIs(t, err, storage.ErrLocked, "a writer does not")

	commit(t, s, 2, storage.SetMeta{UID: 1, Name: "origin", Value: "log"})
	require.NoError(t, s.View(func(v *storage.View) error {
		value, ok := v.Meta(1, "origin")
		assert.True(t, ok)
		assert.Equal(t, "log", value, "a log can be replayed")
		return nil
	}))
	_, err = s.Flush()
	assert.ErrorIs(t, err, storage.ErrReadOnly)
	assert.ErrorIs(t, s.PublishGeneration(1, 1, 1), storage.ErrReadOnly)
	assertClean(t, s)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, before, after)
}

func TestOptions(t *testing.T) {
	for _, size := range []int{-1, 512, 5000, 128 << 10} {
		_, err := storage.Open(newPath(t), &storage.Options{PageSize: size})
		assert.ErrorContains(t, err, "page size")
	}
	for _, size := range []int{1 << 10, 64 << 10} {
		path := newPath(t)
		s, err := storage.Open(path, &storage.Options{PageSize: size})
		require.NoError(t, err)
		sample(t, s)
		flush(t, s)
		require.NoError(t, s.Close())
		s = open(t, path)
		assert.Equal(t, uint64(1), s.Applied(), "the file knows its page size")
	}
}

func TestClosed(t *testing.T) {
	s := open(t, newPath(t))
	sample(t, s)
	s.Begin() // left open: Close must not wait for it
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	assert.ErrorIs(t, s.View(func(*storage.View) error { return nil }), storage.ErrClosed)
	assert.ErrorIs(t, s.Begin().Apply(storage.DropCollection{UID: 1}, 2), storage.ErrClosed)
	_, err := s.Flush()
	assert.ErrorIs(t, err, storage.ErrClosed)
	var findings []string
	s.Check(func(f string) { findings = append(findings, f) })
	assert.Equal(t, []string{storage.ErrClosed.Error()}, findings)
}
