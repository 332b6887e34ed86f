package storage_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
)

// acrossSample is sample with two more collections and links between them: 2 has users, who are
// linked to papers, to users and to nodes of 3.
func acrossSample(t *testing.T, s *storage.Store) {
	t.Helper()
	sample(t, s)
	commit(
		t, s, 2,
		storage.CreateCollection{UID: 2, Name: "users", Schema: storage.Schema{Dim: 1}},
		storage.CreateCollection{UID: 3, Name: "tags", Schema: storage.Schema{Dim: 1}},
		storage.PutNode{UID: 2, ID: 0, Key: "ann", Row: []float32{1}},
		storage.PutNode{UID: 2, ID: 1, Key: "bob", Row: []float32{2}},
		storage.PutNode{UID: 3, ID: 0, Key: "new", Row: []float32{3}},
		storage.Link{UID: 2, Source: 0, Targets: []uint32{1}},
		storage.Link{UID: 2, Source: 0, To: 1, Targets: []uint32{0, 1}},
		storage.Link{UID: 2, Source: 1, To: 1, Targets: []uint32{1}},
		storage.Link{UID: 2, Source: 1, To: 3, Targets: []uint32{0}},
	)
}

// assertLinksOfSample requires the links that acrossSample makes.
func assertLinksOfSample(t *testing.T, s *storage.Store) {
	t.Helper()
	require.NoError(t, s.View(func(v *storage.View) error {
		assert.Equal(t, []uint32{1}, v.Links(2, 0, 2).ToArray())
		assert.Equal(t, []uint32{0, 1}, v.Links(2, 0, 1).ToArray())
		assert.Equal(t, []uint32{1}, v.Links(2, 1, 1).ToArray())
		assert.Equal(t, []uint32{0}, v.Links(2, 1, 3).ToArray())
		assert.Equal(t, []uint32{1, 2}, v.Links(1, 0, 1).ToArray())
		assert.Nil(t, v.Links(1, 0, 2), "a link has one direction")
		require.Len(t, v.LinkingTo(1), 1)
		assert.Equal(t, "users", v.LinkingTo(1)[0].Name)
		assert.Empty(t, v.LinkingTo(2))
		return nil
	}))
}

// acrossFile returns the path of a closed store that holds acrossSample.
func acrossFile(t *testing.T) string {
	t.Helper()
	path := newPath(t)
	s := openWith(t, path, storage.OptionsFor(0, 0))
	acrossSample(t, s)
	flush(t, s)
	require.NoError(t, s.Close())
	return path
}

// formatOf returns the version that a closed file states.
func formatOf(t *testing.T, path string) (version uint32) {
	t.Helper()
	edit(t, path, func(tx *bolt.Tx) error {
		version = binary.LittleEndian.Uint32(tx.Bucket([]byte("meta")).Get([]byte("format")))
		return nil
	})
	return version
}

// acrossKeys counts the entries of users that lead to a collection.
func acrossKeys(t *testing.T, path string, to byte) (n int) {
	t.Helper()
	edit(t, path, func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("c")).Bucket([]byte{0, 0, 0, 2}).Bucket([]byte("across"))
		if b == nil {
			n = -1
			return nil
		}
		return b.ForEach(func(k, _ []byte) error {
			if k[3] == to {
				n++
			}
			return nil
		})
	})
	return n
}

func TestFrozenFileWithLinksAcross(t *testing.T) {
	s := open(t, frozenFile(t, 4, acrossSample))
	assertClean(t, s)
	assertLinksOfSample(t, s)
	commit(t, s, 3, storage.Unlink{UID: 2, Source: 0, To: 1, Targets: []uint32{0}})
	flush(t, s)
	assertClean(t, s)
}

// The first link to another collection makes a file one that older programs refuse, who would not
// keep it.
func TestLinksAcrossRaiseTheVersion(t *testing.T) {
	path := sampleFile(t)
	assert.Equal(t, uint32(3), formatOf(t, path))
	path = acrossFile(t)
	assert.Equal(t, uint32(4), formatOf(t, path))
	s := open(t, path)
	assertLinksOfSample(t, s)
	_, _, err := s.Compact(t.Context(), nil, nil)
	require.NoError(t, err)
	assertLinksOfSample(t, s)
	assertClean(t, s)
	require.NoError(t, s.Close())
	assert.Equal(t, uint32(4), formatOf(t, path))

	for _, layout := range []uint32{1, 2} {
		s := open(t, sampleOf(t, layout))
		c := s.Begin()
		require.NoError(t, c.Apply(storage.CreateCollection{UID: 2, Name: "users", Schema: storage.Schema{Dim: 1}}, 2))
		require.NoError(t, c.Apply(storage.PutNode{UID: 2, ID: 0, Key: "ann", Row: []float32{1}}, 2))
		err := c.Apply(storage.Link{UID: 2, Source: 0, To: 1, Targets: []uint32{0}}, 2)
		assert.ErrorIs(t, err, format.ErrVersion)
		assert.ErrorContains(t, err, "links to another collection need 3 or later")
	}
}

func TestLinksAcrossEnd(t *testing.T) {
	for _, flushed := range []bool{true, false} {
		path := newPath(t)
		s := open(t, path)
		acrossSample(t, s)
		if flushed {
			flush(t, s)
		}
		commit(t, s, 3, storage.DeleteNode{UID: 2, ID: 1}, storage.DeleteNode{UID: 1, ID: 0})
		require.NoError(t, s.View(func(v *storage.View) error {
			assert.Nil(t, v.Links(2, 1, 1))
			assert.Nil(t, v.Links(2, 1, 3))
			assert.Equal(t, []uint32{0, 1}, v.Links(2, 0, 1).ToArray(), "readers subtract the deleted")
			return nil
		}))
		flush(t, s)
		assertClean(t, s)
		// A collection of the name of one that was dropped is another.
		commit(
			t, s, 4, storage.Link{UID: 2, Source: 0, To: 3, Targets: []uint32{0}}, storage.DropCollection{UID: 1},
			storage.CreateCollection{UID: 4, Name: "papers", Schema: storage.Schema{Dim: 1}},
			storage.PutNode{UID: 4, ID: 0, Key: "a", Row: []float32{1}},
		)
		for range 2 {
			require.NoError(t, s.View(func(v *storage.View) error {
				assert.Nil(t, v.Links(2, 0, 1))
				assert.Nil(t, v.Links(2, 0, 4))
				assert.Equal(t, []uint32{0}, v.Links(2, 0, 3).ToArray())
				assert.Empty(t, v.LinkingTo(1))
				assert.Empty(t, v.LinkingTo(4))
				return nil
			}))
			flush(t, s)
			assertClean(t, s)
		}
		require.NoError(t, s.Close())
		assert.Zero(t, acrossKeys(t, path, 1))
		assert.Equal(t, 1, acrossKeys(t, path, 3))
		s = open(t, path)
		commit(t, s, 5, storage.DropCollection{UID: 3})
		flush(t, s)
		assertClean(t, s)
		require.NoError(t, s.Close())
		assert.Equal(t, -1, acrossKeys(t, path, 3), "the bucket went with its last links")
	}
}

func TestLinksAcrossRefused(t *testing.T) {
	s := open(t, newPath(t))
	acrossSample(t, s)
	for _, op := range []storage.Op{
		storage.Link{UID: 2, Source: 0, To: 9, Targets: []uint32{0}},
		storage.Link{UID: 2, Source: 9, To: 1, Targets: []uint32{0}},
		storage.Link{UID: 2, Source: 0, To: 1, Targets: []uint32{0, 2}},
		storage.Unlink{UID: 2, Source: 9, To: 1, Targets: []uint32{0}},
	} {
		assert.ErrorIs(t, s.Begin().Apply(op, 3), storage.ErrNotFound)
	}
	commit(t, s, 3, storage.Unlink{UID: 2, Source: 0, To: 9, Targets: []uint32{0}})
	assertLinksOfSample(t, s)
}

func TestCheckFindsLinksAcross(t *testing.T) {
	const toPapers0, toPapers2, toNobody = "\x00\x00\x00\x01\x00\x00\x00\x00", "\x00\x00\x00\x01\x00\x00\x00\x02", "\x00\x00\x00\x09\x00\x00\x00\x00"
	put := func(key string, value []byte) plant {
		return plantRaw("across", key, storage.Seal(2, "across", key, value))
	}
	users := func(across ...byte) []byte {
		return append([]byte{1, 0, 2, 2, 5, 'u', 's', 'e', 'r', 's'}, across...)
	}
	info := func(value []byte) plant {
		return func(c *bolt.Bucket) error { return c.Put([]byte("info"), storage.Seal(2, "", "info", value)) }
	}
	testFindings(t, acrossFile, 2, []finding{
		{"nothing", info(users(2, 1, 3)), nil},
		{"links lost", plantDelete("across", toPapers0), []string{"across: 2 entries, want 3"}},
		{"links of a node that is not there", put(toPapers2, bitmapOf(0)), []string{"across: id 2 is not live", "across: 4 entries, want 3"}},
		{"links to an unused id", put(toPapers0, bitmapOf(7)), []string{"across: id 0 is linked to id 7, and the next id is 3"}},
		{"links empty", put(toPapers0, bitmapOf()), []string{"across: those of id 0 are empty"}},
		{"links damaged", plantRaw("across", toPapers0, bitmapOf(0)), []string{"across: 0 to UID 1 at offset"}},
		{"a bad key", put("abc", bitmapOf(0)), []string{"across: key 616263 has 3 bytes, want 8", "across: 4 entries, want 3"}},
		{"links to no collection", put(toNobody, bitmapOf(0)), []string{"across: id 0 has links to the collection with UID 9, and info does not say so", "across: 4 entries, want 3"}},
		{"info names no collection", info(users(3, 1, 3, 9)), []string{"info: it has links to the collection with UID 9, and there is no other one of that"}},
		{"info names itself", info(users(3, 1, 3, 2)), []string{"info: it has links to the collection with UID 2"}},
		{"info leaves one out", info(users(1, 1)), []string{"across: id 1 has links to the collection with UID 3, and info does not say so"}},
	})
	for _, cut := range [][]byte{users(2, 1), users(9), users(1, 1, 1)} {
		path := acrossFile(t)
		edit(t, path, func(tx *bolt.Tx) error { return info(cut)(tx.Bucket([]byte("c")).Bucket([]byte{0, 0, 0, 2})) })
		_, err := storage.Open(path, nil)
		assert.ErrorIs(t, err, format.ErrCorrupt)
	}
}
