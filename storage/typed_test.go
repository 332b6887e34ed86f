package storage_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
)

// typedSample is acrossSample with links that have relations: papers cite each other, users like
// and wrote papers.
func typedSample(t *testing.T, s *storage.Store) {
	t.Helper()
	acrossSample(t, s)
	commit(
		t, s, 3,
		storage.Link{UID: 1, Source: 0, Relation: "cites", Targets: []uint32{0, 1}},
		storage.Link{UID: 2, Source: 0, To: 1, Relation: "likes", Targets: []uint32{0, 1}},
		storage.Link{UID: 2, Source: 1, To: 1, Relation: "likes", Targets: []uint32{1}},
		storage.Link{UID: 2, Source: 1, To: 1, Relation: "wrote", Targets: []uint32{1}},
	)
}

// typedFile returns the path of a closed store that holds typedSample.
func typedFile(t *testing.T) string {
	t.Helper()
	path := newPath(t)
	s := openWith(t, path, storage.OptionsFor(0, 0))
	typedSample(t, s)
	flush(t, s)
	require.NoError(t, s.Close())
	return path
}

// related lists the links of a node as "relation" or "~relation" and the ids.
func related(v *storage.View, uid, id, to uint32) map[string][]uint32 {
	all := map[string][]uint32{}
	for _, r := range v.Related(uid, id, to) {
		name := r.Relation
		if r.Reverse {
			name = "~" + name
		}
		all[name] = r.IDs.ToArray()
	}
	return all
}

func assertTypedSample(t *testing.T, s *storage.Store) {
	t.Helper()
	assertLinksOfUntyped(t, s)
	require.NoError(t, s.View(func(v *storage.View) error {
		assert.Equal(t, map[string][]uint32{"cites": {0, 1}, "~cites": {0}}, related(v, 1, 0, 1))
		assert.Equal(t, map[string][]uint32{"~cites": {0}}, related(v, 1, 1, 1))
		assert.Equal(t, map[string][]uint32{"likes": {0, 1}}, related(v, 2, 0, 1))
		assert.Equal(t, map[string][]uint32{"likes": {1}, "wrote": {1}}, related(v, 2, 1, 1))
		assert.Equal(t, map[string][]uint32{"~likes": {0, 1}, "~wrote": {1}}, related(v, 1, 1, 2))
		assert.Empty(t, v.Related(2, 0, 2))
		assert.Empty(t, v.Related(9, 0, 1))
		return nil
	}))
}

// assertLinksOfUntyped requires the links without a relation that typedSample makes.
func assertLinksOfUntyped(t *testing.T, s *storage.Store) {
	t.Helper()
	require.NoError(t, s.View(func(v *storage.View) error {
		assert.Equal(t, []uint32{1, 2}, v.Links(1, 0, 1).ToArray())
		assert.Equal(t, []uint32{0, 1}, v.Links(2, 0, 1).ToArray())
		assert.Equal(t, []uint32{1}, v.Links(2, 1, 1).ToArray())
		return nil
	}))
}

func TestFrozenFileWithRelations(t *testing.T) {
	s := open(t, frozenFile(t, 5, typedSample))
	assertClean(t, s)
	assertTypedSample(t, s)
	commit(t, s, 4, storage.Unlink{UID: 2, Source: 0, To: 1, Relation: "likes", Targets: []uint32{0}})
	flush(t, s)
	assertClean(t, s)
}

// The first link with a relation makes a file one that older programs refuse.
func TestRelationsRaiseTheVersion(t *testing.T) {
	path := sampleFile(t)
	s := open(t, path)
	commit(t, s, 2, storage.Link{UID: 1, Source: 0, Relation: "cites", Targets: []uint32{1}})
	flush(t, s)
	require.NoError(t, s.Close())
	assert.Equal(t, uint32(5), formatOf(t, path))

	path = typedFile(t)
	s = open(t, path)
	assertTypedSample(t, s)
	_, _, err := s.Compact(t.Context(), nil, nil)
	require.NoError(t, err)
	assertTypedSample(t, s)
	assertClean(t, s)
	require.NoError(t, s.Close())
	assert.Equal(t, uint32(5), formatOf(t, path))

	for _, layout := range []uint32{1, 2} {
		s := open(t, sampleOf(t, layout))
		err := s.Begin().Apply(storage.Link{UID: 1, Source: 0, Relation: "cites", Targets: []uint32{1}}, 2)
		assert.ErrorIs(t, err, format.ErrVersion)
		assert.ErrorContains(t, err, "links with a relation need 3 or later")
	}
}

// Links with a relation end with either node, and with either collection.
func TestRelationsEnd(t *testing.T) {
	for _, flushed := range []bool{true, false} {
		s := open(t, newPath(t))
		typedSample(t, s)
		if flushed {
			flush(t, s)
		}
		commit(t, s, 4, storage.DeleteNode{UID: 2, ID: 1})
		require.NoError(t, s.View(func(v *storage.View) error {
			assert.Empty(t, v.Related(2, 1, 1))
			assert.Equal(t, map[string][]uint32{"~likes": {0, 1}, "~wrote": {1}}, related(v, 1, 1, 2), "readers subtract the deleted")
			return nil
		}))
		flush(t, s)
		assertClean(t, s)
		commit(
			t, s, 5, storage.Link{UID: 1, Source: 0, Relation: "cites", Targets: []uint32{0}}, storage.DropCollection{UID: 2},
			storage.CreateCollection{UID: 4, Name: "users", Schema: storage.Schema{Dim: 1}},
			storage.PutNode{UID: 4, ID: 0, Key: "ann", Row: []float32{1}},
		)
		for range 2 {
			require.NoError(t, s.View(func(v *storage.View) error {
				assert.Empty(t, v.Related(1, 1, 2))
				assert.Empty(t, v.Related(1, 1, 4))
				assert.Equal(t, map[string][]uint32{"cites": {0, 1}, "~cites": {0}}, related(v, 1, 0, 1))
				return nil
			}))
			flush(t, s)
			assertClean(t, s)
		}
	}
}

func TestRelationsRefused(t *testing.T) {
	s := open(t, newPath(t))
	typedSample(t, s)
	for _, op := range []storage.Op{
		storage.Link{UID: 2, Source: 0, To: 9, Relation: "likes", Targets: []uint32{0}},
		storage.Link{UID: 2, Source: 9, To: 1, Relation: "likes", Targets: []uint32{0}},
		storage.Link{UID: 2, Source: 0, To: 1, Relation: "likes", Targets: []uint32{0, 2}},
		storage.Unlink{UID: 2, Source: 9, To: 1, Relation: "likes", Targets: []uint32{0}},
	} {
		assert.ErrorIs(t, s.Begin().Apply(op, 4), storage.ErrNotFound)
	}
	long := strings.Repeat("r", 1<<16)
	assert.ErrorContains(t, s.Begin().Apply(storage.Link{UID: 1, Source: 0, Relation: long, Targets: []uint32{1}}, 4), "relation")
	commit(
		t, s, 4,
		storage.Unlink{UID: 2, Source: 0, To: 9, Relation: "likes", Targets: []uint32{0}},
		storage.Unlink{UID: 2, Source: 0, To: 1, Relation: "hates", Targets: []uint32{0}},
		storage.Link{UID: 2, Source: 0, To: 1, Relation: "hates", Targets: nil},
	)
	assertTypedSample(t, s)
}

func TestCheckFindsRelations(t *testing.T) {
	const toPapers0, toPapers2, toNobody = "\x00\x00\x00\x01\x00\x00\x00\x00", "\x00\x00\x00\x01\x00\x00\x00\x02", "\x00\x00\x00\x09\x00\x00\x00\x00"
	put := func(key string, value []byte) plant {
		return plantRaw("typed", key, storage.Seal(2, "typed", key, value))
	}
	value := func(links ...[]byte) []byte {
		b := []byte{byte(len(links))}
		for _, l := range links {
			b = append(b, l...)
		}
		return b
	}
	links := func(relation string, direction byte, ids ...uint32) []byte {
		bitmap := bitmapOf(ids...)
		b := append([]byte{byte(len(relation))}, relation...)
		return append(append(b, direction), append(binary.AppendUvarint(nil, uint64(len(bitmap))), bitmap...)...)
	}
	torn := `typed: links of relation "likes" from "users" to "papers" are not the same at both ends`
	testFindings(t, typedFile, 2, []finding{
		{"nothing", put(toPapers0, value(links("likes", 0, 0, 1))), nil},
		{"links lost", plantDelete("typed", toPapers0), []string{"typed: 1 entries, want 2", torn}},
		{"one link lost", put(toPapers0, value(links("likes", 0, 1))), []string{torn}},
		{"another relation", put(toPapers0, value(links("hates", 0, 0, 1))), []string{`"hates" from "users"`, torn}},
		{"another direction", put(toPapers0, value(links("likes", 1, 0, 1))), []string{`"likes" from "papers" to "users"`, torn}},
		{"a node that is not there", put(toPapers2, value(links("likes", 0, 0))), []string{"typed: id 2 is not live", "typed: 3 entries, want 2"}},
		{"an unused id", put(toPapers0, value(links("likes", 0, 0, 1, 7))), []string{"typed: id 0 is linked to id 7, and the next id is 3", torn}},
		{"an empty bitmap", put(toPapers0, value(links("likes", 0))), []string{`links of relation "likes", 0 of them`, torn}},
		{"no name", put(toPapers0, value(links("", 0, 1))), []string{`links of relation "", 1 of them`, torn}},
		{"direction 2", put(toPapers0, value(links("likes", 2, 0, 1))), []string{"direction 2, want 0 or 1", torn}},
		{"twice", put(toPapers0, value(links("likes", 0, 0), links("likes", 0, 1))), []string{`links of relation "likes" come after those of "likes"`, torn}},
		{"bytes too many", put(toPapers0, append(value(links("likes", 0, 0, 1)), 9)), []string{"1 bytes too many", torn}},
		{"damaged", plantRaw("typed", toPapers0, value(links("likes", 0, 0, 1))), []string{"typed: 0 to UID 1", torn}},
		{"a bad key", put("abc", value(links("likes", 0, 0))), []string{"typed: key 616263 has 3 bytes, want 8", "typed: 3 entries, want 2"}},
		{"no collection", put(toNobody, value(links("likes", 0, 0))), []string{"typed: id 0 has links to the collection with UID 9, and info does not say so", "typed: 3 entries, want 2"}},
	})
}

// Damage in the links of one node is an error of whoever reads them.
func TestRelationsDamaged(t *testing.T) {
	path := typedFile(t)
	const toPapers0 = "\x00\x00\x00\x01\x00\x00\x00\x00"
	edit(t, path, func(tx *bolt.Tx) error {
		return plantRaw("typed", toPapers0, []byte{1, 2, 3, 4, 5})(tx.Bucket([]byte("c")).Bucket([]byte{0, 0, 0, 2}))
	})
	s, err := storage.Open(path, nil)
	require.NoError(t, err)
	defer s.Close()
	err = s.View(func(v *storage.View) error {
		assert.Empty(t, v.Related(2, 0, 1))
		return nil
	})
	assert.ErrorIs(t, err, format.ErrCorrupt)
	assert.ErrorContains(t, err, "typed")
}

// A change that is discarded leaves links with relations as they were: it must not have changed
// what others read.
func TestRelationsOfDiscardedChange(t *testing.T) {
	s := openWith(t, newPath(t), storage.OptionsFor(0, 0))
	typedSample(t, s)
	c := s.Begin()
	for _, op := range []storage.Op{
		storage.Link{UID: 2, Source: 0, To: 1, Relation: "hates", Targets: []uint32{1}},
		storage.Link{UID: 2, Source: 1, To: 1, Relation: "likes", Targets: []uint32{0}},
		storage.Unlink{UID: 2, Source: 1, To: 1, Relation: "wrote", Targets: []uint32{1}},
		storage.Unlink{UID: 1, Source: 0, Relation: "cites", Targets: []uint32{1}},
	} {
		require.NoError(t, c.Apply(op, 4))
	}
	s.Discard()
	assertTypedSample(t, s)
}

// TestLinkCountOfRelations: in memory and in the file, each link once.
func TestLinkCountOfRelations(t *testing.T) {
	s := openWith(t, newPath(t), storage.OptionsFor(0, 0))
	typedSample(t, s)
	for range 2 {
		require.NoError(t, s.View(func(v *storage.View) error {
			assert.Equal(t, uint64(10), v.LinkCount(1), "six of them with a relation")
			assert.Equal(t, uint64(1), v.LinkCount(2))
			return nil
		}))
		flush(t, s)
	}
}
