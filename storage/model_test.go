package storage_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/attr"
	"github.com/flashdb/flashdb/storage"
)

// A model is what a store should hold, in maps.
type model struct {
	next        uint32 // UID
	collections map[uint32]*modelCollection
}

type modelCollection struct {
	info  storage.Info
	nodes map[uint32]modelNode
	links map[linksFrom]map[uint32]bool
	typed map[typedFrom]map[uint32]bool
	blobs map[string]string // "d" or "m" and name
	tombs map[uint32]bool
	dirty map[uint32]uint64

	recent []storage.RecentLink // to nodes of it, as recorded
}

// linksFrom names the links of a node to the nodes of a collection.
type linksFrom struct{ id, to uint32 }

// linksOf is where an operation's links are.
func linksOf(uid, id, to uint32) linksFrom {
	if to == 0 {
		to = uid
	}
	return linksFrom{id, to}
}

// typedFrom names the links of a node with one relation and direction to the nodes of a collection.
type typedFrom struct {
	linksFrom
	relation string
	reverse  bool
}

// relate changes links with a relation at both of their ends.
func (m *model) relate(uid, source, to uint32, relation string, targets []uint32, linked bool) {
	if to == 0 {
		to = uid
	}
	set := func(uid uint32, from typedFrom, other uint32) {
		c := m.collections[uid]
		switch {
		case c == nil:
		case !linked:
			delete(c.typed[from], other)
		case c.typed[from] == nil:
			c.typed[from] = map[uint32]bool{other: true}
		default:
			c.typed[from][other] = true
		}
	}
	for _, target := range targets {
		set(uid, typedFrom{linksFrom{source, to}, relation, false}, target)
		set(to, typedFrom{linksFrom{target, uid}, relation, true}, source)
	}
}

type modelNode struct {
	key     string
	row     []float32
	tags    []string // sorted, no duplicates
	payload []byte

	attributes map[string]attr.Value // not changed once it is there
}

func newModel() *model { return &model{next: 1, collections: map[uint32]*modelCollection{}} }

func (m *model) clone() *model {
	c := &model{next: m.next, collections: map[uint32]*modelCollection{}}
	for uid, col := range m.collections {
		clone := *col
		clone.nodes = maps.Clone(col.nodes)
		clone.blobs = maps.Clone(col.blobs)
		clone.tombs = maps.Clone(col.tombs)
		clone.dirty = maps.Clone(col.dirty)
		clone.recent = slices.Clone(col.recent)
		clone.links = map[linksFrom]map[uint32]bool{}
		for from, targets := range col.links {
			clone.links[from] = maps.Clone(targets)
		}
		clone.typed = map[typedFrom]map[uint32]bool{}
		for from, targets := range col.typed {
			clone.typed[from] = maps.Clone(targets)
		}
		c.collections[uid] = &clone
	}
	return c
}

func (m *model) apply(op storage.Op, lsn uint64) {
	uid := op.Collection()
	c := m.collections[uid]
	switch o := op.(type) {
	case storage.CreateCollection:
		m.next++
		m.collections[uid] = &modelCollection{
			info:  storage.Info{UID: uid, Name: o.Name, Schema: o.Schema},
			nodes: map[uint32]modelNode{},
			links: map[linksFrom]map[uint32]bool{},
			typed: map[typedFrom]map[uint32]bool{},
			blobs: map[string]string{},
			tombs: map[uint32]bool{},
			dirty: map[uint32]uint64{},
		}
	case storage.DropCollection:
		delete(m.collections, uid)
		for _, other := range m.collections {
			maps.DeleteFunc(other.links, func(from linksFrom, _ map[uint32]bool) bool { return from.to == uid })
			maps.DeleteFunc(other.typed, func(from typedFrom, _ map[uint32]bool) bool { return from.to == uid })
		}
	case storage.PutNodes:
		for _, put := range o {
			m.apply(put, lsn)
		}
	case storage.PutNode:
		if o.ID == c.info.NextID {
			c.info.NextID++
			c.info.Count++
		}
		tags := slices.Clone(o.Tags)
		slices.Sort(tags)
		c.nodes[o.ID] = modelNode{o.Key, slices.Clone(o.Row), slices.Compact(tags), bytes.Clone(o.Payload), attributesOf(nil, o.Attributes, nil)}
		c.dirty[o.ID] = lsn
	case storage.SetTags:
		n := c.nodes[o.ID]
		n.tags = slices.Compact(slices.Sorted(slices.Values(o.Tags)))
		c.nodes[o.ID] = n
	case storage.SetAttributes:
		n := c.nodes[o.ID]
		n.attributes = attributesOf(n.attributes, o.Set, o.Remove)
		c.nodes[o.ID] = n
	case storage.SetPayload:
		n := c.nodes[o.ID]
		n.payload = bytes.Clone(o.Payload)
		c.nodes[o.ID] = n
	case storage.DeleteNode:
		delete(c.nodes, o.ID)
		maps.DeleteFunc(c.links, func(from linksFrom, _ map[uint32]bool) bool { return from.id == o.ID })
		maps.DeleteFunc(c.typed, func(from typedFrom, _ map[uint32]bool) bool { return from.id == o.ID })
		delete(c.dirty, o.ID)
		c.tombs[o.ID] = true
		c.info.Count--
	case storage.Link:
		m.record(o)
		if o.Relation != "" {
			m.relate(uid, o.Source, o.To, o.Relation, o.Targets, true)
			return
		}
		from := linksOf(uid, o.Source, o.To)
		if c.links[from] == nil {
			c.links[from] = map[uint32]bool{}
		}
		for _, id := range o.Targets {
			c.links[from][id] = true
		}
	case storage.Unlink:
		if o.Relation != "" {
			m.relate(uid, o.Source, o.To, o.Relation, o.Targets, false)
			return
		}
		for _, id := range o.Targets {
			delete(c.links[linksOf(uid, o.Source, o.To)], id)
		}
	case storage.PutDecoder:
		c.blobs["d"+o.Name] = string(o.Blob)
		delete(c.blobs, "p"+o.Name)
	case storage.DropDecoder:
		delete(c.blobs, "d"+o.Name)
		delete(c.blobs, "p"+o.Name)
	case storage.SetPlans:
		c.blobs["p"+o.Name] = string(o.Blob)
	case storage.SetMeta:
		c.blobs["m"+o.Name] = o.Value
	}
}

// publishGeneration is the model of Store.PublishGeneration.
func (m *model) publishGeneration(uid uint32, number, buildLSN uint64) {
	c := m.collections[uid]
	if c == nil {
		return
	}
	c.info.Generation, c.info.BuildLSN = number, buildLSN
	maps.DeleteFunc(c.dirty, func(_ uint32, lsn uint64) bool { return lsn <= buildLSN })
}

// getters are the methods that View and Changes share.
type getters interface {
	Collections() []storage.Info
	Collection(name string) (storage.Info, bool)
	ID(uid uint32, key string) (uint32, bool)
	Node(uid, id uint32) (storage.Node, bool)
	Key(uid, id uint32) (string, bool)
	Row(dst []float32, uid, id uint32) bool
	Links(uid, id, to uint32) *roaring.Bitmap
	Related(uid, id, to uint32) []storage.Related
	LinkingTo(to uint32) []storage.Info
	Tag(uid uint32, tag string) *roaring.Bitmap
	Tags(uid uint32) map[string]uint64
	Tombs(uid uint32) *roaring.Bitmap
	RecentLinks(to uint32, after int64) []storage.RecentLink
	Decoder(uid uint32, name string) ([]byte, bool)
	Decoders(uid uint32) []string
	Meta(uid uint32, name string) (string, bool)
	Plans(uid uint32, name string) ([]byte, bool)
	KeysWithPrefix(uid uint32, prefix string, limit int) []string
	attributeGetters
}

// equal requires that g shows exactly m.
func (m *model) equal(t *testing.T, g getters) {
	t.Helper()
	infos := g.Collections()
	require.Len(t, infos, len(m.collections))
	for _, info := range infos {
		c := m.collections[info.UID]
		require.NotNil(t, c, "UID %d", info.UID)
		require.Equal(t, c.shown(), info)
		byName, ok := g.Collection(info.Name)
		require.True(t, ok)
		require.Equal(t, info, byName)
		c.equal(t, g)
		for after := range int64(4) {
			require.Equal(t, m.recentLinks(info.UID, after), g.RecentLinks(info.UID, after), "after %d", after)
		}
		for to := range m.next {
			m.equalLinks(t, g, info, to)
		}
	}
	_, ok := g.Collection("never created")
	require.False(t, ok)
	require.Empty(t, g.Tags(m.next+5))
}

// shown is how a store describes the collection. Without releases each node has a row.
func (c *modelCollection) shown() storage.Info {
	info := c.info
	info.Rows = info.Count
	return info
}

// equalLinks requires the links from one collection to another, or to itself; there are none to one
// that was dropped.
func (m *model) equalLinks(t *testing.T, g getters, from storage.Info, to uint32) {
	t.Helper()
	c, any := m.collections[from.UID], false
	for id := range c.info.NextID + 2 {
		want := setOf(c.links[linksFrom{id, to}])
		any = any || want != nil
		if to == 0 {
			continue // stands for the collection itself
		}
		require.Equal(t, want, arrayOf(g.Links(from.UID, id, to)), "links of %d to %d", id, to)
		any = any || c.equalRelated(t, g, id, to)
	}
	if any && to != from.UID {
		require.Contains(t, g.LinkingTo(to), c.shown())
	}
}

// equalRelated requires the links with relations of a node, and reports whether there are any.
func (c *modelCollection) equalRelated(t *testing.T, g getters, id, to uint32) (any bool) {
	t.Helper()
	got := map[typedFrom][]uint32{}
	for _, r := range g.Related(c.info.UID, id, to) {
		got[typedFrom{linksFrom{id, to}, r.Relation, r.Reverse}] = r.IDs.ToArray()
	}
	for from, want := range c.typed {
		if from.linksFrom == (linksFrom{id, to}) && len(want) > 0 {
			any = true
			require.Equal(t, setOf(want), got[from], "links of %d to %d: %+v", id, to, from)
			delete(got, from)
		}
	}
	require.Empty(t, got)
	return any
}

func (c *modelCollection) equal(t *testing.T, g getters) {
	t.Helper()
	uid := c.info.UID
	tags := map[string]*roaring.Bitmap{}
	row := make([]float32, c.info.Schema.Dim)
	for id := range c.info.NextID + 2 {
		want, live := c.nodes[id]
		n, ok := g.Node(uid, id)
		require.Equal(t, live, ok, "node %d", id)
		key, ok := g.Key(uid, id)
		require.Equal(t, live, ok)
		require.Equal(t, live, g.Row(row, uid, id), "row %d", id)
		if !live {
			continue
		}
		require.Equal(t, want.key, n.Key)
		require.Equal(t, want.key, key)
		require.Equal(t, want.row, row)
		require.Equal(t, string(want.payload), string(n.Payload))
		require.True(t, slices.Equal(want.tags, n.Tags), "tags of %d: want %q, got %q", id, want.tags, n.Tags)
		got, ok := g.ID(uid, want.key)
		require.True(t, ok, "id of %q", want.key)
		require.Equal(t, id, got)
		for _, tag := range want.tags {
			if tags[tag] == nil {
				tags[tag] = roaring.New()
			}
			tags[tag].Add(id)
		}
	}
	counts := map[string]uint64{}
	for tag, want := range tags {
		counts[tag] = want.GetCardinality()
		require.Equal(t, want.ToArray(), arrayOf(g.Tag(uid, tag)), "tag %q", tag)
	}
	require.Equal(t, counts, g.Tags(uid))
	require.Nil(t, g.Tag(uid, "carried by none"))
	require.Equal(t, setOf(c.tombs), arrayOf(g.Tombs(uid)))
	c.equalAttributes(t, g)
	c.equalKeys(t, g)
	c.equalBlobs(t, g)
}

// equalKeys looks for the prefixes of every key.
func (c *modelCollection) equalKeys(t *testing.T, g getters) {
	t.Helper()
	var keys []string
	for _, n := range c.nodes {
		keys = append(keys, n.key)
	}
	slices.Sort(keys)
	for _, key := range append([]string{"held by none"}, keys...) {
		for _, end := range []int{0, 1, len(key)} {
			want := []string{}
			for _, k := range keys {
				if strings.HasPrefix(k, key[:end]) {
					want = append(want, k)
				}
			}
			for _, limit := range []int{0, 1, 3, len(keys) + 1} {
				got := g.KeysWithPrefix(c.info.UID, key[:end], limit)
				require.True(t, slices.Equal(want[:min(limit, len(want))], got),
					"at most %d keys that begin with %q: want of %q, got %q", limit, key[:end], want, got)
			}
		}
	}
}

func (c *modelCollection) equalBlobs(t *testing.T, g getters) {
	t.Helper()
	var decoders []string
	for k, want := range c.blobs {
		switch name := k[1:]; k[0] {
		case 'd':
			decoders = append(decoders, name)
			got, ok := g.Decoder(c.info.UID, name)
			require.True(t, ok)
			require.Equal(t, want, string(got))
		case 'p':
			got, ok := g.Plans(c.info.UID, name)
			require.True(t, ok, "plans %q", name)
			require.Equal(t, want, string(got))
		default:
			got, ok := g.Meta(c.info.UID, name)
			require.True(t, ok, "meta %q", name)
			require.Equal(t, want, got)
		}
	}
	slices.Sort(decoders)
	require.Equal(t, decoders, g.Decoders(c.info.UID))
	for _, name := range []string{"d0", "d1", "d2"} {
		_, stored := c.blobs["d"+name]
		_, ok := g.Decoder(c.info.UID, name)
		require.Equal(t, stored, ok)
		_, planned := c.blobs["p"+name]
		_, ok = g.Plans(c.info.UID, name)
		require.Equal(t, planned, ok)
	}
}

// equalStreams requires that Rows and Dirty stream what m holds, all of it flushed.
func (m *model) equalStreams(t *testing.T, s *storage.Store) {
	t.Helper()
	for uid, c := range m.collections {
		dim := c.info.Schema.Dim
		rows := map[uint32][]float32{}
		last := -1
		require.NoError(t, s.Rows(t.Context(), uid, 0, func(ids []uint32, block []float32) error {
			require.Len(t, block, len(ids)*dim)
			for i, id := range ids {
				require.Greater(t, int(id), last)
				last = int(id)
				rows[id] = slices.Clone(block[i*dim : (i+1)*dim])
			}
			return nil
		}))
		want := map[uint32][]float32{}
		for id, n := range c.nodes {
			want[id] = n.row
		}
		require.Equal(t, want, rows)
		dirty := map[uint32]uint64{}
		require.NoError(t, s.Dirty(uid, func(id uint32, lsn uint64) error {
			dirty[id] = lsn
			return nil
		}))
		require.Equal(t, c.dirty, dirty)
	}
}

// arrayOf returns the members of a bitmap, nil if it is nil. No getter returns an empty bitmap.
func arrayOf(b *roaring.Bitmap) []uint32 {
	if b == nil {
		return nil
	}
	return b.ToArray()
}

// setOf returns the members of a set in order, nil if there are none.
func setOf(set map[uint32]bool) []uint32 {
	return slices.Sorted(maps.Keys(set))
}

func assertView(t *testing.T, s *storage.Store, m *model) {
	t.Helper()
	assert.NoError(t, s.View(func(v *storage.View) error {
		m.equal(t, v)
		return nil
	}))
}
