package storage_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
)

// bitmapOf returns the bytes of a bitmap.
func bitmapOf(ids ...uint32) []byte {
	b, err := roaring.BitmapOf(ids...).ToBytes()
	if err != nil {
		panic(err)
	}
	return b
}

// A plant puts damage into the collection of the sample.
type plant func(c *bolt.Bucket) error

func plantPut(bucket, key string, value []byte) plant {
	return plantRaw(bucket, key, storage.Seal(1, bucket, key, value))
}

// plantRaw puts a value without a seal of its own.
func plantRaw(bucket, key string, stored []byte) plant {
	return func(c *bolt.Bucket) error { return c.Bucket([]byte(bucket)).Put([]byte(key), stored) }
}

func plantDelete(bucket, key string) plant {
	return func(c *bolt.Bucket) error { return c.Bucket([]byte(bucket)).Delete([]byte(key)) }
}

func plantKey(key string, value []byte) plant {
	return func(c *bolt.Bucket) error { return c.Put([]byte(key), storage.Seal(1, "", key, value)) }
}

// A finding is damage and what Check says of it.
type finding struct {
	name  string
	plant plant
	want  []string // each is part of one finding, in order; there are no others
}

// testFindings plants damage into the collection of a UID, in closed files that newFile returns the
// paths of.
func testFindings(t *testing.T, newFile func(t *testing.T) string, uid byte, tests []finding) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := newFile(t)
			edit(t, path, func(tx *bolt.Tx) error { return tt.plant(tx.Bucket([]byte("c")).Bucket([]byte{0, 0, 0, uid})) })
			s, err := storage.Open(path, nil)
			require.NoError(t, err)
			defer s.Close()
			var findings []string
			s.Check(func(f string) { findings = append(findings, f) })
			require.Len(t, findings, len(tt.want), "%q", findings)
			for i, want := range tt.want {
				assert.Contains(t, findings[i], want)
				assert.NotContains(t, findings[i], "\n")
			}
		})
	}
}

// The sample's rows and dirty ids as blocks: ids 0 and 1 live, 2 deleted.
func TestCheckFindsInBlocks(t *testing.T) {
	const block0, block1 = "\x00\x00\x00\x00", "\x00\x00\x00\x01"
	mask := func(m uint64, rest ...byte) []byte { return append(binary.LittleEndian.AppendUint64(nil, m), rest...) }
	// rows makes a block of the sample's rows with a mask, sealed under their ids.
	rows := func(m uint64, rows ...[]byte) []byte {
		b := storage.Seal(1, "rows", block0, mask(m))
		for id, row := range rows {
			b = append(b, storage.Seal(1, "rows", string([]byte{0, 0, 0, byte(id)}), row)...)
		}
		return b
	}
	row := make([]byte, 8)
	plantRows := func(stored []byte) plant { return plantRaw("rows", block0, stored) }
	flipped := rows(3, row, row)
	flipped[len(flipped)-6] ^= 1
	lsn := func(m uint64, lsns ...uint64) []byte {
		b := mask(m)
		for _, l := range lsns {
			b = binary.LittleEndian.AppendUint64(b, l)
		}
		return b
	}
	huge := "\x7f\xff\xff\xff"
	testFindings(t, func(t *testing.T) string { return sampleOf(t, 3) }, 1, []finding{
		{"rows missing", plantDelete("rows", block0), []string{"rows: the row of id 0 is missing", "rows: the row of id 1 is missing"}},
		{"row missing", plantRows(rows(1, row)), []string{"rows: the row of id 1 is missing"}},
		{"row of a deleted node", plantRows(rows(7, row, row, row)), []string{"rows: id 2 belongs to no node"}},
		{"rows of no node", func(c *bolt.Bucket) error {
			stored := storage.Seal(1, "rows", block1, mask(1))
			stored = append(stored, storage.Seal(1, "rows", "\x00\x00\x00\x3b", row)...)
			return c.Bucket([]byte("rows")).Put([]byte(block1), stored)
		}, []string{"rows: id 59 belongs to no node"}},
		{"rows too short", plantRows(rows(3, row)), []string{"rows: block 0 at offset 0: 12 bytes of rows, want 24"}},
		{"rows too long", plantRows(rows(3, row, row, row)), []string{"rows: block 0 at offset 0: 36 bytes of rows, want 24"}},
		{"rows without a mask", plantRows([]byte{1}), []string{"rows: block 0 at offset 0: 1 bytes, want at least the 4 of a checksum"}},
		{"rows with half a mask", plantPut("rows", block0, []byte{1}), []string{"rows: block 0 at offset 0: 1 bytes, want at least the 8 of a mask"}},
		{"rows of nobody", plantRows(rows(0)), []string{"rows: block 0 at offset 0: mask 0x0"}},
		{"row not finite", plantRows(rows(3, row, []byte{0, 0, 0, 0, 0, 0, 0xc0, 0x7f})), []string{"rows: value 1 of id 1 is not a finite number"}},
		{"row of another node", plantRows(append(rows(3, row), storage.Seal(1, "rows", block0, row)...)), []string{"rows: 1 at offset 0: checksum"}},
		{"row damaged", plantRows(flipped), []string{"rows: 1 at offset"}},
		{"mask of another block", plantRows(append(storage.Seal(1, "rows", block1, mask(3)), rows(3, row, row)[12:]...)), []string{"rows: block 0 at offset 0: checksum"}},
		{"mask without a checksum", plantRows(append(mask(3), make([]byte, 28)...)), []string{"rows: block 0 at offset"}},
		{"rows with a bad key", plantRaw("rows", "abc", rows(3, row, row)), []string{"rows: key 616263 has 3 bytes, want 4"}},
		{"rows beyond all ids", plantRaw("rows", huge, rows(3, row, row)), []string{"rows: block 2147483647 at offset 0: id"}},
		{"node missing", plantDelete("keys", block1), []string{
			"rows: id 1 belongs to no node", "keys: 1 nodes, info says 2", `tags: "x" has id 1, whose node does not carry it`,
		}},
		{"dirty deleted node", plantPut("dirty", block0, lsn(4, 1)), []string{"dirty: id 2 is not live"}},
		{"dirty unused ids", plantPut("dirty", block1, lsn(3, 1)), []string{"dirty: id 64 is not live", "dirty: id 65 is not live"}},
		{"dirty too new", plantPut("dirty", block0, lsn(3, 1, 9)), []string{"dirty: id 1 has LSN 9, the last change applied is 1"}},
		{"dirty all too new", plantPut("dirty", block0, lsn(3, 9)), []string{"dirty: id 0 has LSN 9", "dirty: id 1 has LSN 9"}},
		{"dirty damaged", plantPut("dirty", block0, []byte{9}), []string{"dirty: block 0 at offset 0: 1 bytes"}},
		{"dirty with LSNs too many", plantPut("dirty", block0, lsn(3, 1, 1, 1)), []string{"dirty: block 0 at offset 0: 24 bytes of LSNs, want 8 or 16"}},
		{"dirty without LSNs", plantPut("dirty", block0, mask(3)), []string{"dirty: block 0 at offset 0: 0 bytes of LSNs"}},
		{"dirty without a checksum", plantRaw("dirty", block0, lsn(3, 1)), []string{"dirty: block 0 at offset"}},
		{"dirty beyond all ids", plantPut("dirty", huge, lsn(1, 1)), []string{"dirty: block 2147483647 at offset 0: id"}},
	})
}

func TestCheckFinds(t *testing.T) {
	const id0, id1, id2, id9 = "\x00\x00\x00\x00", "\x00\x00\x00\x01", "\x00\x00\x00\x02", "\x00\x00\x00\x09"
	testFindings(t, func(t *testing.T) string { return sampleOf(t, 2) }, 1, []finding{
		{"row missing", plantDelete("rows", id1), []string{"rows: the row of id 1 is missing"}},
		{"row of no node", plantPut("rows", id9, make([]byte, 8)), []string{"rows: id 9 belongs to no node"}},
		{"row of a deleted node", plantPut("rows", id2, make([]byte, 8)), []string{"rows: id 2 belongs to no node"}},
		{"row too short", plantPut("rows", id1, make([]byte, 4)), []string{"rows: the row of id 1 has 4 bytes, want 8"}},
		{"row not finite", plantPut("rows", id1, []byte{0, 0, 0, 0, 0, 0, 0xc0, 0x7f}), []string{"rows: value 1 of id 1 is not a finite number"}},
		{"node missing", plantDelete("keys", id1), []string{
			"rows: id 1 belongs to no node", "keys: 1 nodes, info says 2", `tags: "x" has id 1, whose node does not carry it`,
		}},
		{"node of a deleted id", plantPut("keys", id2, []byte{1, 'c', 0}), []string{"keys: id 2 is not live"}},
		{"node of an unused id", plantPut("keys", id9, []byte{1, 'z', 0}), []string{"keys: id 9 is not live"}},
		{"node damaged", plantPut("keys", id1, []byte{99}), []string{"keys: id 1: corrupt", `tags: "x" has id 1`}},
		{"node with a bad id", plantPut("keys", "abc", []byte{1, 'z', 0}), []string{"keys: key 616263 has 3 bytes, want 4"}},
		{"key missing", plantDelete("ids", "b"), []string{`ids: key "b" of id 1 leads to`, "ids: 1 keys, info says 2 nodes"}},
		{"key dangling", plantPut("ids", "zz", []byte{9, 0, 0, 0}), []string{"ids: 3 keys, info says 2 nodes"}},
		{"key of another node", plantPut("ids", "b", []byte{0, 0, 0, 0}), []string{`ids: key "b" of id 1 leads to 00000000`}},
		{"key damaged", plantPut("ids", "b", []byte{1}), []string{`ids: key "b" of id 1 leads to 01`}},
		{"count wrong", plantKey("info", []byte{2, 0, 7, 3, 6, 'p', 'a', 'p', 'e', 'r', 's'}), []string{
			"info: 7 live and 1 deleted nodes do not make 3", "keys: 2 nodes, info says 7", "ids: 2 keys, info says 7 nodes",
		}},
		{"next id wrong", plantKey("info", []byte{2, 0, 2, 2, 6, 'p', 'a', 'p', 'e', 'r', 's'}), []string{
			"tombs: id 2 is deleted, and the next id is 2", "info: 2 live and 1 deleted nodes do not make 2",
			"links: id 0 is linked to id 2, and the next id is 2",
		}},
		{"tombs lost", plantKey("tombs", bitmapOf()), []string{"info: 2 live and 0 deleted nodes do not make 3"}},
		{"tag lacks a node", plantPut("tags", "x", bitmapOf(0)), []string{`tags: "x" lacks id 1`}},
		{"tag of nobody", plantPut("tags", "z", bitmapOf(1)), []string{`tags: "z" has id 1, whose node does not carry it`}},
		{"tag of a deleted node", plantPut("tags", "x", bitmapOf(0, 1, 2)), []string{`tags: "x" has id 2`}},
		{"tag missing", plantDelete("tags", "y"), []string{`tags: "y" lacks id 0`}},
		{"tag empty", plantPut("tags", "z", bitmapOf()), []string{`tags: "z" is empty`}},
		{"tag damaged", plantPut("tags", "y", []byte("junk")), []string{`tags: "y": corrupt`, `tags: "y" lacks id 0`}},
		{"links of a deleted node", plantPut("links", id2, bitmapOf(0)), []string{"links: id 2 is not live", "links: 2 entries, want 1"}},
		{"links to an unused id", plantPut("links", id0, bitmapOf(9)), []string{"links: id 0 is linked to id 9, and the next id is 3"}},
		{"links damaged", plantPut("links", id0, []byte("junk")), []string{"links: id 0: corrupt"}},
		{"links empty", plantPut("links", id0, bitmapOf()), []string{"links: those of id 0 are empty"}},
		{"dirty deleted node", plantPut("dirty", id2, make([]byte, 8)), []string{"dirty: id 2 is not live"}},
		{"dirty too new", plantPut("dirty", id1, []byte{9, 0, 0, 0, 0, 0, 0, 0}), []string{"dirty: id 1 has LSN 9, the last change applied is 1"}},
		{"dirty damaged", plantPut("dirty", id1, []byte{9}), []string{"dirty: id 1: corrupt"}},
		{"generation too new", plantKey("index", []byte{1, 9}), []string{"index: generation 1 was built at LSN 9"}},
		{"links lost", plantDelete("links", id0), []string{"links: 0 entries, want 1"}},
		{"decoder lost", plantDelete("decoders", "cites"), []string{"decoders: 0 entries, want 1"}},
		{"meta lost", plantDelete("meta", "origin"), []string{"meta: 0 entries, want 1"}},
		{"row of another node", plantRaw("rows", id1, storage.Seal(1, "rows", id0, make([]byte, 8))), []string{"rows: 1 at offset 0: checksum"}},
		{"row of another collection", plantRaw("rows", id1, storage.Seal(2, "rows", id1, make([]byte, 8))), []string{"rows: 1"}},
		{"row without a checksum", plantRaw("rows", id1, make([]byte, 8)), []string{"rows: 1"}},
		{"node without a checksum", plantRaw("keys", id1, []byte{1, 'b', 0}), []string{"keys: 1 at offset", `tags: "x" has id 1`}},
		{"key without a checksum", plantRaw("ids", "b", []byte{1}), []string{`ids: "b" at offset`}},
		{"links without a checksum", plantRaw("links", id0, bitmapOf(1)), []string{"links: 0 at offset"}},
		{"tag without a checksum", plantRaw("tags", "y", bitmapOf(0)), []string{`tags: "y" at offset`, `tags: "y" lacks id 0`}},
		{"decoder without a checksum", plantRaw("decoders", "cites", []byte{1, 2, 3}), []string{`decoders: "cites" at offset`}},
		{"meta without a checksum", plantRaw("meta", "origin", []byte("test!")), []string{`meta: "origin" at offset`}},
		{"dirty without a checksum", plantRaw("dirty", id1, make([]byte, 8)), []string{"dirty: 1 at offset"}},
		{"plans of no decoder", func(c *bolt.Bucket) error {
			plans, err := c.CreateBucket([]byte("plans"))
			if err != nil {
				return err
			}
			return plans.Put([]byte("gone"), storage.Seal(1, "plans", "gone", nil))
		}, []string{`plans: there is no decoder "gone"`}},
		{"plans damaged", func(c *bolt.Bucket) error {
			plans, err := c.CreateBucket([]byte("plans"))
			if err != nil {
				return err
			}
			return plans.Put([]byte("cites"), []byte("junk junk"))
		}, []string{`plans: "cites" at offset`}},
		{"bucket without a name", func(c *bolt.Bucket) error {
			_, err := c.Tx().Bucket([]byte("c")).CreateBucket([]byte{0, 0, 0, 7})
			return err
		}, []string{"no name leads to the collection with UID 7"}},
		{"bucket with a bad name", func(c *bolt.Bucket) error {
			_, err := c.Tx().Bucket([]byte("c")).CreateBucket([]byte("x"))
			return err
		}, []string{"bucket 78 in c"}},
	})
}

// damagedFile returns a store of many nodes whose pages are overwritten wherever they hold the key
// of a node of the middle, but whose headers and free pages are whole.
func damagedFile(t *testing.T) (path, key string) {
	t.Helper()
	path = newPath(t)
	s, err := storage.Open(path, &storage.Options{PageSize: 4096, NoSync: true})
	require.NoError(t, err)
	c := s.Begin()
	require.NoError(t, c.Apply(storage.CreateCollection{UID: 1, Name: "c", Schema: storage.Schema{Dim: 1}}, 1))
	for id := range uint32(2000) {
		key := "key" + strings.Repeat("x", 30) + string(rune('A'+id/50)) + string(rune('A'+id%50))
		require.NoError(t, c.Apply(storage.PutNode{UID: 1, ID: id, Key: key, Row: []float32{1}}, 1))
	}
	s.Stage(c)
	s.Publish()
	flush(t, s)
	require.NoError(t, s.Close())

	key = "key" + strings.Repeat("x", 30) + "TT"
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	pages := 0
	for at := 2 * 4096; at+4096 <= len(b); at += 4096 {
		if page := b[at : at+4096]; bytes.Contains(page, []byte(key)) && page[8] == 2 { // a leaf
			clear(page)
			pages++
		}
	}
	require.Equal(t, 2, pages, "one in ids, one in keys")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	require.NoError(t, os.Truncate(path, 64<<20+4096)) // Open reads all pages of a file that is smaller
	return path, key
}

func TestDamagedPages(t *testing.T) {
	path, key := damagedFile(t)
	s, err := storage.Open(path, nil)
	require.NoError(t, err, "damage shows where it is met")
	defer s.Close()

	err = s.View(func(v *storage.View) error {
		_, ok := v.ID(1, key)
		assert.False(t, ok)
		_, ok = v.Meta(1, "anything")
		assert.False(t, ok, "once damage was met nothing is believed")
		return storage.ErrNotFound
	})
	assert.ErrorIs(t, err, format.ErrCorrupt, "not what the caller concluded")
	assert.NotErrorIs(t, err, storage.ErrNotFound)
	require.NoError(t, s.View(func(v *storage.View) error {
		assert.True(t, v.Row(make([]float32, 1), 1, 5), "other pages are whole")
		return nil
	}))

	c := s.Begin()
	_, ok := c.ID(1, key)
	assert.False(t, ok)
	put := storage.PutNode{UID: 1, ID: 2000, Key: key, Row: []float32{1}}
	assert.ErrorIs(t, c.Apply(put, 2), format.ErrCorrupt, "the key must not get a second id")

	var findings []string
	s.Check(func(f string) { findings = append(findings, f) })
	require.Len(t, findings, 1)
	assert.Contains(t, findings[0], "bbolt pages")
	require.NoError(t, s.Rows(t.Context(), 1, 0, func([]uint32, []float32) error { return nil }))
}

// A flush that fails leaves everything visible, and is not tried again.
func TestFlushFails(t *testing.T) {
	path, key := damagedFile(t)
	s, err := storage.Open(path, nil)
	require.NoError(t, err)
	commit(t, s, 2, storage.PutNode{UID: 1, ID: 2000, Key: key, Row: []float32{7}})
	pending := s.Pending()
	for range 2 {
		applied, err := s.Flush()
		assert.ErrorIs(t, err, format.ErrCorrupt)
		assert.Equal(t, uint64(1), applied)
		assert.ErrorContains(t, err, path)
	}
	assert.ErrorContains(t, s.PublishGeneration(1, 1, 1), "an earlier write failed")
	assert.Equal(t, pending, s.Pending())
	commit(t, s, 3, storage.SetMeta{UID: 1, Name: "still", Value: "writable"})
	require.NoError(t, s.View(func(v *storage.View) error {
		id, ok := v.ID(1, key)
		assert.True(t, ok)
		assert.Equal(t, uint32(2000), id)
		value, _ := v.Meta(1, "still")
		assert.Equal(t, "writable", value)
		return nil
	}))
	require.NoError(t, s.Close(), "no lock is held")
}

// The sticky damage of values, as opposed to pages.
func TestDamagedValues(t *testing.T) {
	tests := []struct {
		bucket, key string
		read        func(v *storage.View) bool
		want        string
	}{
		{"ids", "a", func(v *storage.View) bool { _, ok := v.ID(1, "a"); return ok }, `collection "papers": ids: "a"`},
		{"keys", "\x00\x00\x00\x00", func(v *storage.View) bool { _, ok := v.Node(1, 0); return ok }, `collection "papers": keys: 0`},
		{"keys", "\x00\x00\x00\x00", func(v *storage.View) bool { _, ok := v.Key(1, 0); return ok }, `collection "papers": keys: 0`},
		{"rows", "\x00\x00\x00\x00", func(v *storage.View) bool { return v.Row(make([]float32, 2), 1, 0) }, `collection "papers": rows: 0 at offset 0: 3 bytes, want 8`},
		{"links", "\x00\x00\x00\x00", func(v *storage.View) bool { return v.Links(1, 0, 1) != nil }, `collection "papers": links:`},
		{"tags", "x", func(v *storage.View) bool { return v.Tag(1, "x") != nil }, `collection "papers": tags: "x"`},
		{"tags", "x", func(v *storage.View) bool { _, ok := v.Tags(1)["x"]; return ok }, `collection "papers": tags: "x"`},
	}
	for _, tt := range tests {
		path := sampleOf(t, 2)
		edit(t, path, func(tx *bolt.Tx) error {
			return plantPut(tt.bucket, tt.key, []byte{0xff, 0xff, 0xff})(tx.Bucket([]byte("c")).Bucket([]byte{0, 0, 0, 1}))
		})
		s, err := storage.Open(path, nil)
		require.NoError(t, err)
		err = s.View(func(v *storage.View) error {
			assert.False(t, tt.read(v))
			return nil
		})
		assert.ErrorIs(t, err, format.ErrCorrupt)
		assert.ErrorContains(t, err, tt.want)
		assert.ErrorContains(t, err, path)
		require.NoError(t, s.Close())
	}
	path := sampleOf(t, 2)
	edit(t, path, func(tx *bolt.Tx) error {
		c := tx.Bucket([]byte("c")).Bucket([]byte{0, 0, 0, 1})
		const id1 = "\x00\x00\x00\x01"
		return errors.Join(plantPut("rows", id1, []byte{1})(c), plantPut("dirty", id1, []byte{1})(c))
	})
	s, err := storage.Open(path, nil)
	require.NoError(t, err)
	defer s.Close()
	assert.ErrorContains(t, s.Rows(t.Context(), 1, 0, nil), "rows: 1 at offset 0: 1 bytes, want 8")
	assert.ErrorContains(t, s.Dirty(1, nil), "dirty: 1 at offset 0")
	assert.ErrorIs(t, s.PublishGeneration(1, 1, 1), format.ErrCorrupt)
}

// A panic of the caller's function is the caller's, and leaves no transaction behind that would
// block Close.
func TestViewPanics(t *testing.T) {
	s := open(t, newPath(t))
	sample(t, s)
	assert.PanicsWithValue(t, "mine", func() { _ = s.View(func(*storage.View) error { panic("mine") }) })
	assert.Panics(t, func() {
		_ = s.View(func(v *storage.View) error { v.Row(make([]float32, 3), 1, 0); return nil })
	}, "row of another dimension")
	var kept *storage.View
	require.NoError(t, s.View(func(v *storage.View) error { kept = v; return nil }))
	assert.Panics(t, func() { kept.ID(1, "not in memory") }, "it has ended")
}

// A key is told to nobody before the checksum beside it vouches for it: what a page calls a key may
// be anything.
func TestPrefixVerifiesSeals(t *testing.T) {
	path := sampleFile(t)
	edit(t, path, func(tx *bolt.Tx) error {
		return plantRaw("ids", "b", []byte{1, 0, 0, 0, 1, 2, 3, 4})(tx.Bucket([]byte("c")).Bucket([]byte{0, 0, 0, 1}))
	})
	s, err := storage.Open(path, nil)
	require.NoError(t, err)
	defer s.Close()
	err = s.View(func(v *storage.View) error {
		assert.NotContains(t, v.KeysWithPrefix(1, "", 10), "b")
		return nil
	})
	require.ErrorIs(t, err, format.ErrCorrupt)
	require.ErrorContains(t, err, `ids: "b"`)
}
