package storage_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
)

var when = time.Unix(1_700_000_000, 0)

// content is what a store shows of one release: rows by key, and the names of decoders.
type content struct {
	rows     map[string]float32
	decoders []string
	encoder  string
	nodes    int
}

func contentOf(t *testing.T, s *storage.Store, release string) content {
	t.Helper()
	c := content{rows: map[string]float32{}}
	require.NoError(t, s.ViewOf(release, func(v *storage.View) error {
		info, ok := v.Collection("papers")
		require.True(t, ok)
		c.nodes = info.Count
		for id := range info.NextID {
			key, ok := v.Key(info.UID, id)
			var row [1]float32
			has := v.Row(row[:], info.UID, id)
			if has {
				require.True(t, ok, "a row without a node")
				c.rows[key] = row[0]
			}
			if ids := v.RowIDs(info.UID); ids != nil {
				assert.Equal(t, has, ids.Contains(id), "%q %d", release, id)
			}
		}
		assert.Equal(t, len(c.rows), info.Rows)
		c.decoders = v.Decoders(info.UID)
		c.encoder, _ = v.Meta(info.UID, "flashdb.encoder")
		return nil
	}))
	return c
}

// released is a store with the nodes a, b and c, and a release "next" in which a and c have rows.
func released(t *testing.T, path string) *storage.Store {
	t.Helper()
	s := openWith(t, path, storage.OptionsFor(0, 0))
	fillReleased(t, s)
	return s
}

func fillReleased(t *testing.T, s *storage.Store) {
	t.Helper()
	commit(t, s, 1,
		storage.CreateCollection{UID: 1, Name: "papers", Schema: storage.Schema{Dim: 1}},
		storage.PutNode{UID: 1, ID: 0, Key: "a", Row: []float32{1}},
		storage.PutNode{UID: 1, ID: 1, Key: "b", Row: []float32{2}},
		storage.PutNode{UID: 1, ID: 2, Key: "c", Row: []float32{3}, Tags: []string{"x"}},
		storage.Link{UID: 1, Source: 0, Targets: []uint32{1}},
		storage.PutDecoder{UID: 1, Name: "cites", Blob: []byte("old")},
		storage.SetMeta{UID: 1, Name: "flashdb.encoder", Value: "old"},
		storage.SetMeta{UID: 1, Name: "theirs", Value: "kept"},
	)
	flush(t, s)
	require.NoError(t, s.StageRelease("next", []uint32{1}, when))
	require.NoError(t, s.PutStagedRows("next", 1, []storage.IDRow{{2, []float32{30}}, {0, []float32{10}}}))
	require.NoError(t, s.PutStaged("next", storage.PutDecoder{UID: 1, Name: "treats", Blob: []byte("new")}, storage.SetPlans{UID: 1, Name: "treats", Blob: []byte("p")},
		storage.SetMeta{UID: 1, Name: "flashdb.encoder", Value: "new"}))
}

var (
	oldContent = content{rows: map[string]float32{"a": 1, "b": 2, "c": 3}, decoders: []string{"cites"}, encoder: "old", nodes: 3}
	newContent = content{rows: map[string]float32{"a": 10, "c": 30}, decoders: []string{"treats"}, encoder: "new", nodes: 3}
)

func TestReleasePublishAndRollBack(t *testing.T) {
	path := newPath(t)
	s := released(t, path)
	again := func() {
		require.NoError(t, s.Close())
		s = openWith(t, path, storage.OptionsFor(0, 0))
	}
	for range 2 {
		assert.Equal(t, oldContent, contentOf(t, s, ""))
		assert.Equal(t, newContent, contentOf(t, s, "next"))
		assert.Equal(t, oldContent, contentOf(t, s, "1"), "the name of the live one")
		assertClean(t, s)
		again()
	}
	for range 2 {
		require.NoError(t, s.PublishRelease("next", when))
		for range 2 {
			assert.Equal(t, newContent, contentOf(t, s, ""))
			assert.Equal(t, oldContent, contentOf(t, s, "1"))
			require.NoError(t, s.View(func(v *storage.View) error {
				assert.Equal(t, []uint32{1}, v.Links(1, 0, 0).ToArray())
				value, _ := v.Meta(1, "theirs")
				assert.Equal(t, "kept", value)
				return nil
			}))
			assertClean(t, s)
			again()
		}
		name, err := s.RollBack(when)
		require.NoError(t, err)
		assert.Equal(t, "1", name)
		assert.Equal(t, oldContent, contentOf(t, s, ""))
		assert.Equal(t, newContent, contentOf(t, s, "next"))
	}
	_, err := s.RollBack(when)
	require.ErrorIs(t, err, storage.ErrNotFound)
	again() // a refused call leaves the store usable
	require.NoError(t, s.DropRelease("next"))
	require.True(t, s.Dropping())
	again()
	require.NoError(t, s.Purge())
	again()
	require.NoError(t, s.Forget())
	require.False(t, s.Dropping())
	assertClean(t, s)
	require.ErrorIs(t, s.ViewOf("next", func(*storage.View) error { return nil }), storage.ErrNotFound)
}

// TestReleaseFrozenFile is TestFrozenFile for releases. The first release is the former one of
// "next", and another is staged.
func TestReleaseFrozenFile(t *testing.T) {
	s := openWith(t, frozenFile(t, 7, func(t *testing.T, s *storage.Store) {
		fillReleased(t, s)
		require.NoError(t, s.PublishRelease("next", when))
		require.NoError(t, s.StageRelease("third", []uint32{1}, when))
	}), nil)
	assertClean(t, s)
	assert.Equal(t, newContent, contentOf(t, s, ""))
	assert.Equal(t, oldContent, contentOf(t, s, "1"))
	assert.Empty(t, contentOf(t, s, "third").rows)
	_, err := s.RollBack(when)
	require.NoError(t, err)
	assert.Equal(t, oldContent, contentOf(t, s, ""))
}

func TestReleaseWritesGoToTheLiveOne(t *testing.T) {
	s := released(t, newPath(t))
	commit(t, s, 2,
		storage.PutNode{UID: 1, ID: 3, Key: "d", Row: []float32{4}},
		storage.AddNode{UID: 1, ID: 4, Key: "e", Tags: []string{"x"}},
		storage.DeleteNode{UID: 1, ID: 2},
		storage.PutDecoder{UID: 1, Name: "more", Blob: []byte("m")},
	)
	require.NoError(t, s.PutStagedRows("next", 1, []storage.IDRow{{4, []float32{50}}})) // not flushed as yet
	live := content{rows: map[string]float32{"a": 1, "b": 2, "d": 4}, decoders: []string{"cites", "more"}, encoder: "old", nodes: 4}
	next := content{rows: map[string]float32{"a": 10, "e": 50}, decoders: []string{"treats"}, encoder: "new", nodes: 4}
	for range 2 {
		assert.Equal(t, live, contentOf(t, s, ""))
		assert.Equal(t, next, contentOf(t, s, "next"))
		flush(t, s)
		assertClean(t, s)
	}
	require.NoError(t, s.PublishRelease("next", when))
	assert.Equal(t, next, contentOf(t, s, ""))
	assert.Equal(t, live, contentOf(t, s, "1"))
	commit(t, s, 3, storage.PutNode{UID: 1, ID: 1, Key: "b", Row: []float32{20}}, storage.DeleteNode{UID: 1, ID: 0}, storage.PutNode{UID: 1, ID: 4, Key: "e", Row: []float32{51}})
	flush(t, s)
	assertClean(t, s)
	assert.Equal(t, map[string]float32{"b": 20, "e": 51}, contentOf(t, s, "").rows)
	assert.Equal(t, map[string]float32{"b": 2, "d": 4}, contentOf(t, s, "1").rows)
}

func TestReleaseRefuses(t *testing.T) {
	s := released(t, newPath(t))
	assert.ErrorIs(t, s.StageRelease("next", []uint32{1}, when), storage.ErrReleaseExists)
	assert.ErrorIs(t, s.StageRelease("1", []uint32{1}, when), storage.ErrReleaseExists)
	assert.ErrorIs(t, s.StageRelease("third", []uint32{9}, when), storage.ErrNotFound)
	assert.ErrorContains(t, s.StageRelease("a/b", nil, when), "name")
	assert.ErrorIs(t, s.PublishRelease("no", when), storage.ErrNotFound)
	assert.ErrorIs(t, s.PublishRelease("1", when), storage.ErrState)
	assert.ErrorIs(t, s.DropRelease("1"), storage.ErrState)
	assert.ErrorIs(t, s.DropRelease("no"), storage.ErrNotFound)
	assert.ErrorIs(t, s.PutStagedRows("1", 1, nil), storage.ErrState)
	assert.ErrorIs(t, s.PutStagedRows("next", 2, nil), storage.ErrNotFound)
	assert.ErrorContains(t, s.PutStagedRows("next", 1, []storage.IDRow{{0, []float32{1, 2}}}), "2 values")
	assert.ErrorContains(t, s.PutStaged("next", storage.SetMeta{UID: 1, Name: "theirs", Value: "x"}), "no release")
	assert.ErrorIs(t, s.PutStaged("next", storage.SetPlans{UID: 1, Name: "no"}), storage.ErrNotFound)
	assert.ErrorContains(t, s.PutStaged("next", storage.DeleteNode{UID: 1}), "not for a release")
	flush(t, s)
	assert.Equal(t, newContent, contentOf(t, s, "next"), "a refused call changes nothing")
	commit(t, s, 2, storage.CreateCollection{UID: 3, Name: "users", Schema: storage.Schema{Dim: 1}})
	c := s.Begin()
	assert.ErrorContains(t, c.Apply(storage.AddNode{UID: 3, ID: 0, Key: "u"}, 3), "no release was staged over it")
	assert.ErrorContains(t, s.StageRelease("late", []uint32{1}, when), "not flushed")
}

// TestCheckFindsInReleases plants damage into a staged release, whose set has UID 2.
func TestCheckFindsInReleases(t *testing.T) {
	file := func(t *testing.T) string {
		path := newPath(t)
		require.NoError(t, released(t, path).Close())
		return path
	}
	set := func(fn plant) plant {
		return func(c *bolt.Bucket) error { return fn(c.Tx().Bucket([]byte("sets")).Bucket([]byte{0, 0, 0, 2})) }
	}
	held := func(ids ...uint32) plant {
		return set(func(s *bolt.Bucket) error {
			return s.Put([]byte("held"), storage.Seal(2, "", "held", bitmapOf(ids...)))
		})
	}
	const in = `release "next": collection "papers": `
	testFindings(t, file, 1, []finding{
		{"as it should be", held(0, 2), nil},
		{"row missing", held(0, 1, 2), []string{in + "rows: the row of id 1 is missing (1 rows are)"}},
		{"row too many", held(0), []string{in + "rows: id 2 has a row and should have none (1 such rows)"}},
		{"damaged decoder", set(plantRaw("decoders", "treats", []byte("new"))), []string{`decoders: "treats" at offset`}},
		{"live row too many", plantKey("held", bitmapOf(0, 1)), []string{`collection "papers": held: id 2 has a row, and is not in it`}},
		{"set of nobody", func(c *bolt.Bucket) error {
			_, err := c.Tx().Bucket([]byte("sets")).CreateBucket([]byte{0, 0, 0, 9})
			return err
		}, []string{"sets: no collection or release has the set 00000009"}},
		{"set of two", plantKey("set", []byte{2, 0, 0, 0}), []string{"sets: 2 collections and releases have the set with UID 2, want 1"}},
	})
}

func TestReleaseOfADroppedCollection(t *testing.T) {
	path := newPath(t)
	s := released(t, path)
	require.NoError(t, s.PublishRelease("next", when))
	commit(t, s, 2, storage.DropCollection{UID: 1})
	flush(t, s)
	assertClean(t, s)
	require.NoError(t, s.Close())
	s = openWith(t, path, storage.OptionsFor(0, 0))
	require.NoError(t, s.View(func(v *storage.View) error {
		require.Len(t, v.Releases(), 2)
		assert.Empty(t, v.Releases()[0].Collections)
		return nil
	}))
	_, err := s.RollBack(when)
	require.NoError(t, err)
	assertClean(t, s)
}

func TestReleaseOfAnOldFile(t *testing.T) {
	s := openWith(t, newPath(t), storage.OptionsFor(storage.Layouts[1], 0))
	commit(t, s, 1, storage.CreateCollection{UID: 1, Name: "papers", Schema: storage.Schema{Dim: 1}})
	flush(t, s)
	require.ErrorIs(t, s.StageRelease("next", []uint32{1}, when), format.ErrVersion)
	require.NoError(t, s.ViewOf("1", func(v *storage.View) error {
		require.Len(t, v.Releases(), 1)
		assert.Equal(t, "1", v.Releases()[0].Name)
		assert.Equal(t, storage.Live, v.Releases()[0].State)
		assert.Len(t, v.Releases()[0].Collections, 1)
		return nil
	}))
	flush(t, s)
}

// TestReleaseHistories compares random histories of writes, releases and crashes with maps.
func TestReleaseHistories(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { releaseHistory(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

// releaseHistory keeps the rows of each release by id, and which nodes are live.
func releaseHistory(t *testing.T, rng *rand.Rand) {
	path := newPath(t)
	s := openWith(t, path, storage.OptionsFor(0, 3))
	var log []storage.Op // of one operation each
	commitOne := func(op storage.Op) {
		log = append(log, op)
		commit(t, s, uint64(len(log)), op)
	}
	commitOne(storage.CreateCollection{UID: 1, Name: "papers", Schema: storage.Schema{Dim: 1}})
	live, staged, former := map[uint32]float32{}, map[string]map[uint32]float32{}, map[uint32]float32(nil)
	nodes, next, names, now, formerName := map[uint32]bool{}, uint32(0), 0, "1", ""
	key := func(id uint32) string { return fmt.Sprint("k", id) }
	some := func() (uint32, bool) {
		ids := slices.Sorted(maps.Keys(nodes))
		if len(ids) == 0 {
			return 0, false
		}
		return ids[rng.IntN(len(ids))], true
	}
	hasReleases := false
	for range 150 {
		switch n := rng.IntN(20); {
		case n < 5:
			v := rng.Float32()
			commitOne(storage.PutNode{UID: 1, ID: next, Key: key(next), Row: []float32{v}})
			nodes[next], live[next] = true, v
			next++
		case n < 6 && hasReleases:
			commitOne(storage.AddNode{UID: 1, ID: next, Key: key(next)})
			nodes[next] = true
			next++
		case n < 8:
			if id, ok := some(); ok {
				v := rng.Float32()
				commitOne(storage.PutNode{UID: 1, ID: id, Key: key(id), Row: []float32{v}})
				live[id] = v
			}
		case n < 10:
			if id, ok := some(); ok {
				commitOne(storage.DeleteNode{UID: 1, ID: id})
				delete(nodes, id)
				delete(live, id)
				delete(former, id)
				for _, of := range staged {
					delete(of, id)
				}
			}
		case n < 11:
			flush(t, s)
			names++
			name := fmt.Sprint("r", names)
			require.NoError(t, s.StageRelease(name, []uint32{1}, when))
			staged[name], hasReleases = map[uint32]float32{}, true
		case n < 15:
			for _, name := range slices.Sorted(maps.Keys(staged)) {
				var rows []storage.IDRow
				for range rng.IntN(5) {
					if id, ok := some(); ok {
						v := rng.Float32()
						rows = append(rows, storage.IDRow{ID: id, Row: []float32{v}})
						staged[name][id] = v
					}
				}
				require.NoError(t, s.PutStagedRows(name, 1, rows))
			}
		case n < 16:
			if names := slices.Sorted(maps.Keys(staged)); len(names) > 0 {
				name := names[rng.IntN(len(names))]
				flush(t, s)
				require.NoError(t, s.PublishRelease(name, when))
				former, live, formerName, now = live, staged[name], now, name
				delete(staged, name)
			}
		case n < 17 && former != nil:
			flush(t, s)
			name, err := s.RollBack(when)
			require.NoError(t, err)
			require.Equal(t, formerName, name)
			staged[now] = live
			live, former, now, formerName = former, nil, name, ""
		case n < 18:
			flush(t, s)
			require.NoError(t, s.Purge())
			if rng.IntN(2) == 0 && hasReleases {
				require.NoError(t, s.Forget())
			}
		default: // a crash: what was not flushed comes from the log
			applied := s.Applied()
			require.NoError(t, s.Close())
			s = openWith(t, path, storage.OptionsFor(0, 3))
			require.Equal(t, applied, s.Applied())
			for lsn := applied + 1; lsn <= uint64(len(log)); lsn++ {
				commit(t, s, lsn, log[lsn-1])
			}
		}
		check := func(release string, want map[uint32]float32) {
			rows := map[string]float32{}
			for id, v := range want {
				rows[key(id)] = v
			}
			require.Equal(t, rows, contentOf(t, s, release).rows, "release %q", release)
		}
		check("", live)
		for name, of := range staged {
			check(name, of)
		}
		if former != nil {
			check(formerName, former)
		}
	}
	flush(t, s)
	assertClean(t, s)
}

func FuzzDecodeRelease(f *testing.F) {
	f.Add("next", []byte{2, 1, 0, 0, 1, 1, 3})
	f.Add("1", []byte{1, 2, 200, 1, 0, 0})
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		again, err := storage.RoundTripRelease(name, b)
		if err != nil {
			assert.True(t, errors.Is(err, format.ErrCorrupt), "%v", err)
			return
		}
		_, err = storage.RoundTripRelease(name, again)
		assert.NoError(t, err)
	})
}

// TestEmbeddedRows: rows that were computed from links are marked until others are put.
func TestEmbeddedRows(t *testing.T) {
	path := newPath(t)
	s := released(t, path)
	marked := func(release string, want ...uint32) {
		t.Helper()
		for range 2 {
			require.NoError(t, s.ViewOf(release, func(v *storage.View) error {
				assert.ElementsMatch(t, want, v.EmbeddedIDs(1).ToArray())
				return nil
			}))
			assertClean(t, s)
			require.NoError(t, s.Close())
			s = openWith(t, path, storage.OptionsFor(0, 0))
		}
	}
	marked("next")
	row := func(id uint32) storage.IDRow { return storage.IDRow{ID: id, Row: []float32{1}} }
	require.NoError(t, s.PutEmbeddedRows("next", 1, []storage.IDRow{row(1), row(2)}))
	marked("next", 1, 2)
	marked("")
	require.NoError(t, s.PutStagedRows("next", 1, []storage.IDRow{row(2), row(0)}))
	marked("next", 1)
	require.NoError(t, s.PublishRelease("next", when))
	marked("", 1)
	marked("1")
	_, err := s.RollBack(when)
	require.NoError(t, err)
	require.NoError(t, s.PutStagedRows("next", 1, []storage.IDRow{row(1)}))
	marked("next")
	require.NoError(t, s.PutEmbeddedRows("next", 1, []storage.IDRow{row(1)}))
	require.NoError(t, s.Close())
	edit(t, path, func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("sets")).Bucket([]byte{0, 0, 0, 2}).Put([]byte("embedded"), []byte("damaged"))
	})
	s = openWith(t, path, storage.OptionsFor(0, 0))
	require.ErrorIs(t, s.ViewOf("next", func(v *storage.View) error { v.EmbeddedIDs(1); return nil }), format.ErrCorrupt)
	findings := 0
	s.Check(func(f string) {
		findings++
		assert.Contains(t, f, `release "next": collection "papers": `)
		assert.Contains(t, f, "embedded")
	})
	assert.Equal(t, 1, findings)
	require.NoError(t, s.PutStagedRows("next", 1, []storage.IDRow{row(0)}), "it is replaced")
	marked("next")
}
