package storage_test

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
)

// record is the model of a Link with a time, before its links are there.
func (m *model) record(o storage.Link) {
	to := m.collections[linksOf(o.UID, o.Source, o.To).to]
	if o.Recorded == 0 || to == nil {
		return
	}
	seen := map[uint32]bool{}
	for _, id := range o.Targets {
		l := storage.RecentLink{UID: o.UID, Source: o.Source, Target: id, Relation: o.Relation, At: o.Recorded}
		if !seen[id] && !m.linked(l, to.info.UID) {
			to.recent = append(to.recent, l)
		}
		seen[id] = true
	}
}

// linked reports whether a link is there, and both of its ends.
func (m *model) linked(l storage.RecentLink, to uint32) bool {
	from := m.collections[l.UID]
	if from == nil {
		return false
	}
	_, source := from.nodes[l.Source]
	_, target := m.collections[to].nodes[l.Target]
	at := linksFrom{l.Source, to}
	if l.Relation != "" {
		return source && target && from.typed[typedFrom{at, l.Relation, false}][l.Target]
	}
	return source && target && from.links[at][l.Target]
}

// recentLinks is the model of RecentLinks.
func (m *model) recentLinks(to uint32, after int64) (links []storage.RecentLink) {
	first := map[storage.RecentLink]bool{}
	for _, l := range m.collections[to].recent {
		name := l
		name.At = 0
		if !first[name] && l.At > after && m.linked(l, to) {
			links = append(links, l)
		}
		first[name] = true
	}
	return links
}

// linkedStore is a store with five nodes in "papers", UID 1, and two in "users", UID 2, with links
// of three changes, at the times 10, 20 and 30.
func linkedStore(t *testing.T, path string) *storage.Store {
	t.Helper()
	s := openWith(t, path, storage.OptionsFor(0, 0))
	fillLinked(t, s)
	return s
}

func fillLinked(t *testing.T, s *storage.Store) {
	t.Helper()
	ops := []storage.Op{
		storage.CreateCollection{UID: 1, Name: "papers", Schema: storage.Schema{Dim: 1}},
		storage.CreateCollection{UID: 2, Name: "users", Schema: storage.Schema{Dim: 1}},
	}
	for id := range uint32(5) {
		ops = append(ops, storage.PutNode{UID: 1, ID: id, Key: string('a' + rune(id)), Row: []float32{1}})
	}
	for id := range uint32(2) {
		ops = append(ops, storage.PutNode{UID: 2, ID: id, Key: string('x' + rune(id)), Row: []float32{1}})
	}
	commit(t, s, 1, append(ops, storage.Link{UID: 1, Source: 0, Targets: []uint32{1}})...)
	commit(t, s, 2, storage.Link{UID: 1, Source: 0, Targets: []uint32{1, 2, 2}, Recorded: 10})
	commit(t, s, 3, storage.Link{UID: 2, Source: 1, To: 1, Targets: []uint32{4}, Recorded: 20},
		storage.Link{UID: 2, Source: 1, To: 1, Relation: "likes", Targets: []uint32{4, 3}, Recorded: 20})
	commit(t, s, 4, storage.Link{UID: 1, Source: 0, Targets: []uint32{2, 3}, Recorded: 30})
	flush(t, s)
}

func recentOf(t *testing.T, s *storage.Store, to uint32, after int64) (links []storage.RecentLink) {
	t.Helper()
	require.NoError(t, s.View(func(v *storage.View) error { links = v.RecentLinks(to, after); return nil }))
	return links
}

func TestRecentLinks(t *testing.T) {
	path := newPath(t)
	s := linkedStore(t, path)
	want := []storage.RecentLink{
		{UID: 1, Source: 0, Target: 2, At: 10},
		{UID: 2, Source: 1, Target: 4, At: 20},
		{UID: 2, Source: 1, Target: 4, Relation: "likes", At: 20},
		{UID: 2, Source: 1, Target: 3, Relation: "likes", At: 20},
		{UID: 1, Source: 0, Target: 3, At: 30},
	}
	for range 2 {
		assert.Equal(t, want, recentOf(t, s, 1, 0))
		assert.Equal(t, want[1:], recentOf(t, s, 1, 10), "those of the time itself are not after it")
		assert.Empty(t, recentOf(t, s, 1, 30))
		assert.Empty(t, recentOf(t, s, 2, 0))
		assertClean(t, s)
		require.NoError(t, s.Close())
		assert.Equal(t, uint32(9), formatOf(t, path))
		s = openWith(t, path, storage.OptionsFor(0, 0))
	}

	// One that is gone does not count, and one that came back has its first time.
	commit(t, s, 5, storage.Unlink{UID: 1, Source: 0, Targets: []uint32{2, 3}}, storage.DeleteNode{UID: 1, ID: 4})
	commit(t, s, 6, storage.Link{UID: 1, Source: 0, Targets: []uint32{2}, Recorded: 40})
	for range 2 {
		assert.Equal(t, []storage.RecentLink{want[0], want[3]}, recentOf(t, s, 1, 0))
		assert.Empty(t, recentOf(t, s, 1, 20))
		flush(t, s)
		assertClean(t, s)
	}
	commit(t, s, 7, storage.DropCollection{UID: 2})
	for range 2 {
		assert.Equal(t, want[:1], recentOf(t, s, 1, 0))
		flush(t, s)
		assertClean(t, s)
	}
}

// TestRecentLinksAreBounded records more links than are kept: one at a time and many in one change.
func TestRecentLinksAreBounded(t *testing.T) {
	path := newPath(t)
	s := openWith(t, path, storage.OptionsFor(0, 0))
	const nodes = storage.MaxRecent + 3000
	puts := make(storage.PutNodes, nodes)
	for i := range puts {
		puts[i] = storage.PutNode{UID: 1, ID: uint32(i), Key: string(binary.BigEndian.AppendUint32(nil, uint32(i))), Row: []float32{1}}
	}
	commit(t, s, 1, storage.CreateCollection{UID: 1, Name: "papers", Schema: storage.Schema{Dim: 1}}, puts)
	lsn := uint64(1)
	link := func(source uint32, targets ...uint32) {
		lsn++
		commit(t, s, lsn, storage.Link{UID: 1, Source: source, Targets: targets, Recorded: int64(lsn)})
	}
	newest := func(n int, source, last uint32) {
		t.Helper()
		links := recentOf(t, s, 1, 0)
		require.Len(t, links, n)
		assert.Equal(t, source, links[len(links)-1].Source)
		assert.Equal(t, last, links[len(links)-1].Target)
	}
	all := make([]uint32, nodes)
	for i := range all {
		all[i] = uint32(i)
	}
	link(0, all...)
	for range 2 {
		newest(storage.MaxRecent, 0, nodes-1)
		flush(t, s)
		assertClean(t, s)
	}
	for i := range uint32(3000) {
		link(1, i)
		if i%1000 == 0 {
			flush(t, s)
		}
	}
	newest(storage.MaxRecent, 1, 2999)
	flush(t, s)
	assert.Equal(t, 3001, entriesOf(t, path), "the first change is needed still")
	newest(storage.MaxRecent, 1, 2999)
	link(2, all[:storage.MaxRecent]...)
	flush(t, s)
	assert.Equal(t, 1, entriesOf(t, path))
	newest(storage.MaxRecent, 2, storage.MaxRecent-1)
	assertClean(t, s)
}

// entriesOf returns the number of entries of bucket recent.
func entriesOf(t *testing.T, path string) (n int) {
	t.Helper()
	copied := path + ".copy"
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, b, 0o600))
	edit(t, copied, func(tx *bolt.Tx) error {
		n = tx.Bucket([]byte("c")).Bucket([]byte{0, 0, 0, 1}).Bucket([]byte("recent")).Stats().KeyN
		return nil
	})
	return n
}

func TestCheckFindsInRecent(t *testing.T) {
	file := func(t *testing.T) string {
		path := newPath(t)
		require.NoError(t, linkedStore(t, path).Close())
		return path
	}
	lsn := func(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }
	put := func(n uint64, value ...byte) plant { return plantPut("recent", lsn(n), value) }
	testFindings(t, file, 1, []finding{
		{"as it should be", put(4, 1, 30, 1, 0, 0, 1, 3), nil},
		{"entry missing", plantDelete("recent", lsn(3)), []string{"recent: 2 entries, want 3"}},
		{"number of links", put(4, 2, 30, 1, 0, 0, 1, 3), []string{"recent: LSN 4: corrupt data: value at offset 7: 1 links, want 2"}},
		{"no time", put(4, 1, 0, 1, 0, 0, 1, 3), []string{"1 links of time 0"}},
		{"no links", put(4, 1, 30, 1, 0, 0, 0), []string{"no links of the node with id 0"}},
		{"no such target", put(4, 1, 30, 1, 0, 0, 1, 5), []string{"id 0 is linked to id 5, and the next id is 5"}},
		{"no such source", put(4, 1, 30, 2, 0, 2, 1, 3), []string{"a link starts at id 2 of the collection with UID 2"}},
		{"no such collection", put(4, 1, 30, 9, 0, 2, 1, 3), []string{"a link starts at id 2 of the collection with UID 9"}},
		{"seal", plantRaw("recent", lsn(4), []byte{1, 30, 1, 0, 0, 1, 3, 0, 0, 0, 0}), []string{"recent: LSN 4 at offset"}},
		{"later than the last change", func(c *bolt.Bucket) error {
			return errors.Join(plantDelete("recent", lsn(4))(c), put(5, 1, 30, 1, 0, 0, 1, 3)(c))
		}, []string{"recent: links were recorded at LSN 5, the last change applied is 4"}},
	})
}

// TestRecentNeedsBlocks: a file of an early version cannot have times, and says so.
func TestRecentNeedsBlocks(t *testing.T) {
	s := openWith(t, frozenFile(t, 2, sample), nil)
	err := s.Begin().Apply(storage.Link{UID: 1, Source: 0, Targets: []uint32{1}, Recorded: 10}, 2)
	assert.ErrorIs(t, err, format.ErrVersion)
	assert.ErrorContains(t, err, "links with a time need 3 or later")
}

// TestFrozenRecent opens a file with times of links, and of the cut of a release, as the program
// that first had them wrote it.
func TestFrozenRecent(t *testing.T) {
	s := openWith(t, frozenFile(t, 9, func(t *testing.T, s *storage.Store) {
		fillLinked(t, s)
		require.NoError(t, s.StageRelease("next", []uint32{1}, when))
		require.NoError(t, s.SetCut("next", when.AddDate(0, 0, -1)))
	}), nil)
	assert.Len(t, recentOf(t, s, 1, 0), 5)
	assert.Equal(t, when.AddDate(0, 0, -1).Unix(), cutOf(t, s, "next"))
	assertClean(t, s)
}

func cutOf(t *testing.T, s *storage.Store, name string) (at int64) {
	t.Helper()
	require.NoError(t, s.View(func(v *storage.View) error {
		for _, r := range v.Releases() {
			if r.Name == name {
				at = r.Cut.Unix()
			}
		}
		return nil
	}))
	return at
}

func TestSetCut(t *testing.T) {
	path := newPath(t)
	s := released(t, path)
	again := func(version uint32) {
		require.NoError(t, s.Close())
		require.Equal(t, version, formatOf(t, path))
		s = openWith(t, path, storage.OptionsFor(0, 0))
	}
	assert.Equal(t, when.Unix(), cutOf(t, s, "next"), "when it was staged")
	again(7)
	earlier := when.AddDate(0, 0, -3)
	require.NoError(t, s.SetCut("next", earlier))
	for range 2 {
		assert.Equal(t, earlier.Unix(), cutOf(t, s, "next"))
		assertClean(t, s)
		again(9)
	}
	// Segments, which came with version 8, do not lower the version.
	require.NoError(t, s.PublishGeneration(1, 2, s.Applied()))
	require.NoError(t, s.PublishSegments("", 1, 2, []storage.Segment{{Number: 3, LSN: s.Applied()}}))
	again(9)
	require.ErrorIs(t, s.SetCut("1", when), storage.ErrState)
	require.ErrorIs(t, s.SetCut("no", when), storage.ErrNotFound)
	require.ErrorContains(t, s.SetCut("next", when.AddDate(-100, 0, 0)), "not a time from 1970 on")
	require.NoError(t, s.PublishRelease("next", when))
	assert.Equal(t, earlier.Unix(), cutOf(t, s, "next"), "it stays when it is live")
	again(9)
}

func FuzzDecodeRecent(f *testing.F) {
	f.Add([]byte{1, 30, 1, 0, 0, 1, 3})
	f.Add([]byte{3, 30, 1, 0, 0, 1, 3, 2, 1, 'x', 5, 2, 200, 1, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		again, err := storage.RoundTripRecent(b)
		if err != nil {
			assert.True(t, errors.Is(err, format.ErrCorrupt), "%v", err)
			return
		}
		_, err = storage.RoundTripRecent(again)
		assert.NoError(t, err)
	})
}
