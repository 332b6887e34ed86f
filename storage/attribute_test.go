package storage_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/attr"
	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
)

// attributeGetters are the methods of View and Changes about attributes.
type attributeGetters interface {
	Attributes(uid uint32) []storage.Attribute
	Attribute(uid uint32, name string) (storage.Attribute, bool)
	NodeAttributes(uid, id uint32) []attr.Named
	Match(uid uint32, name string, ranges []attr.Range) *roaring.Bitmap
	Spread(uid uint32, name string) storage.Spread
}

func value(t testing.TB, x any) attr.Value {
	t.Helper()
	v, err := attr.Of(x)
	require.NoError(t, err)
	return v
}

// named returns attributes from names and values in turn.
func named(t testing.TB, pairs ...any) (all []attr.Named) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, attr.Named{Name: pairs[i].(string), Value: value(t, pairs[i+1])})
	}
	return all
}

// attributesOf returns attributes after a change of them, in a new map.
func attributesOf(old map[string]attr.Value, set []attr.Named, remove []string) map[string]attr.Value {
	all := maps.Clone(old)
	for _, name := range remove {
		delete(all, name)
	}
	for _, a := range set {
		if all == nil {
			all = map[string]attr.Value{}
		}
		all[a.Name] = a.Value
	}
	return all
}

// equalAttributes requires the attributes of each node, and what is found by them.
func (c *modelCollection) equalAttributes(t *testing.T, g getters) {
	t.Helper()
	uid := c.info.UID
	values := map[string]map[uint32]attr.Value{}
	for id := range c.info.NextID + 2 {
		want := c.nodes[id].attributes
		got := map[string]attr.Value{}
		for _, a := range g.NodeAttributes(uid, id) {
			got[a.Name] = a.Value
		}
		require.Equal(t, len(want), len(got), "attributes of %d", id)
		for name, v := range want {
			require.Equal(t, v, got[name], "attribute %q of %d", name, id)
			if values[name] == nil {
				values[name] = map[uint32]attr.Value{}
			}
			values[name][id] = v
		}
	}
	var listed []string
	for _, a := range g.Attributes(uid) {
		listed = append(listed, a.Name)
		require.Equal(t, uint64(len(values[a.Name])), a.Count, a.Name)
	}
	require.Equal(t, slices.Sorted(maps.Keys(values)), listed)
	for name, of := range values {
		equalAttribute(t, g, uid, name, of)
	}
	_, ok := g.Attribute(uid, "held by none")
	require.False(t, ok)
	require.True(t, g.Match(uid, "held by none", []attr.Range{{}}).IsEmpty())
}

// equalAttribute requires what is found by one attribute, whose values are given.
func equalAttribute(t *testing.T, g attributeGetters, uid uint32, name string, of map[uint32]attr.Value) {
	t.Helper()
	sorted := slices.SortedFunc(maps.Values(of), attr.Compare)
	sorted = slices.Compact(sorted)
	info, ok := g.Attribute(uid, name)
	require.True(t, ok)
	require.Equal(t, sorted[0].Kind(), info.Kind)
	require.Equal(t, storage.Spread{Distinct: uint64(len(sorted)), Low: sorted[0], High: sorted[len(sorted)-1]}, g.Spread(uid, name))
	low, high := sorted[len(sorted)/4], sorted[len(sorted)*3/4]
	for _, ranges := range [][]attr.Range{
		{{}},
		{attr.Point(low)},
		{attr.Point(low), attr.Point(high)},
		{{From: attr.Cut{Value: low}}},
		{{From: attr.Cut{Value: low, After: true}}},
		{{To: attr.Cut{Value: high}}},
		{{To: attr.Cut{Value: high, After: true}}},
		{{From: attr.Cut{Value: low}, To: attr.Cut{Value: high}}},
		{{To: attr.Cut{Value: low}}, {From: attr.Cut{Value: high, After: true}}},
		{{From: attr.Cut{Value: high, After: true}, To: attr.Cut{Value: low}}}, // upside down: none
		nil,
	} {
		want := []uint32{}
		for _, id := range slices.Sorted(maps.Keys(of)) {
			if slices.ContainsFunc(ranges, func(r attr.Range) bool { return r.Holds(of[id]) }) {
				want = append(want, id)
			}
		}
		got := g.Match(uid, name, ranges)
		require.NoError(t, got.Validate())
		require.Equal(t, want, append([]uint32{}, got.ToArray()...), "%q in %v", name, ranges)
	}
}

// attributes draws those of a node, where the file may have any.
func (h *history) attributes() []attr.Named {
	if !h.across {
		return nil
	}
	r := h.rng
	all := named(
		h.t, "price", float64(r.IntN(2000))/8-100, "brand", fmt.Sprintf("b%d", r.IntN(40)), "sold", r.IntN(2) == 0,
		"released", time.UnixMicro(int64(r.IntN(1000))*1e9), "rare", 1,
	)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return slices.DeleteFunc(all, func(a attr.Named) bool { return r.IntN(3) == 0 || (a.Name == "rare" && r.IntN(20) > 0) })
}

func (h *history) setAttributes(c *modelCollection) storage.Op {
	o := storage.SetAttributes{UID: c.info.UID, ID: pick(h.rng, c.nodes), Set: h.attributes()}
	for _, name := range []string{"price", "brand", "sold", "released", "rare"} {
		if h.rng.IntN(3) == 0 && !slices.ContainsFunc(o.Set, func(a attr.Named) bool { return a.Name == name }) {
			o.Remove = append(o.Remove, name)
		}
	}
	return o
}

// TestAttributesOfMany looks things up in several columns, of each kind of places: one value, few,
// more than a byte holds, and one for each id, some in layers and some in the file.
func TestAttributesOfMany(t *testing.T) {
	const nodes = 4000
	rng := rand.New(rand.NewPCG(1, 2))
	s := open(t, newPath(t))
	commit(t, s, 1, storage.CreateCollection{UID: 1, Name: "c", Schema: storage.Schema{Dim: 1}})
	want := map[string]map[uint32]attr.Value{"one": {}, "few": {}, "some": {}, "each": {}, "text": {}, "words": {}}
	draw := func(id uint32) []attr.Named {
		all := named(t, "one", 1, "few", rng.IntN(5), "some", rng.IntN(300), "each", rng.Float64(), "text", fmt.Sprint(rng.IntN(1000)), "words", fmt.Sprint(rng.IntN(3)))
		all = slices.DeleteFunc(all, func(attr.Named) bool { return id >= 2048 && rng.IntN(10) == 0 })
		for name := range want {
			delete(want[name], id)
		}
		for _, a := range all {
			want[a.Name][id] = a.Value
		}
		return all
	}
	var puts storage.PutNodes
	for id := range uint32(nodes) {
		puts = append(puts, storage.PutNode{UID: 1, ID: id, Key: fmt.Sprint(id), Row: []float32{1}, Attributes: draw(id)})
	}
	check := func() {
		t.Helper()
		require.NoError(t, s.View(func(v *storage.View) error {
			for name, of := range want {
				equalAttribute(t, v, 1, name, of)
			}
			return nil
		}))
	}
	commit(t, s, 2, puts)
	check()
	flush(t, s)
	check()
	assertClean(t, s)
	for id := uint32(1000); id < 1100; id++ {
		puts[id].Attributes = draw(id)
		commit(t, s, uint64(id), puts[id])
	}
	check()
	flush(t, s)
	check()
	assertClean(t, s)
	before, after, err := s.Compact(t.Context(), nil, nil)
	require.NoError(t, err)
	assert.LessOrEqual(t, after, before)
	check()
	assertClean(t, s)
}

// TestAttributeTypes: an attribute has one type as long as a node has it.
func TestAttributeTypes(t *testing.T) {
	s := open(t, newPath(t))
	put := func(id uint32, key string, pairs ...any) storage.PutNode {
		return storage.PutNode{UID: 1, ID: id, Key: key, Row: []float32{1}, Attributes: named(t, pairs...)}
	}
	commit(t, s, 1, storage.CreateCollection{UID: 1, Name: "c", Schema: storage.Schema{Dim: 1}}, put(0, "a", "price", 1), put(1, "b", "price", 2))
	refused := func(op storage.Op, says string) {
		t.Helper()
		err := s.Begin().Apply(op, 100)
		require.ErrorIs(t, err, storage.ErrAttribute)
		require.ErrorContains(t, err, says)
	}
	refused(put(2, "c", "price", "cheap"), `attribute "price" of "c" is a number, and "cheap" a string`)
	refused(put(0, "a", "price", true), `attribute "price" of "c" is a number, and true a bool`)
	refused(storage.SetAttributes{UID: 1, ID: 0, Set: named(t, "a\x00b", 1)}, "control characters")
	refused(storage.SetAttributes{UID: 1, ID: 0, Set: []attr.Named{{Name: "x"}}}, `"x" has no value`)
	commit(t, s, 2, storage.SetAttributes{UID: 1, ID: 0, Remove: []string{"price", "never"}})
	commit(t, s, 3, put(1, "b", "price", "cheap")) // it was the last one
	flush(t, s)
	assertClean(t, s)
	commit(t, s, 4, storage.DeleteNode{UID: 1, ID: 1})
	require.NoError(t, s.View(func(v *storage.View) error {
		assert.Empty(t, v.Attributes(1))
		return nil
	}))
	flush(t, s)
	assertClean(t, s)
	var many []attr.Named
	for i := range 256 {
		many = append(many, named(t, fmt.Sprint(i), i)...)
	}
	commit(t, s, 5, storage.SetAttributes{UID: 1, ID: 0, Set: many})
	refused(storage.SetAttributes{UID: 1, ID: 0, Set: named(t, "more", 1)}, "one more than the 256")
}

// TestAttributesRaiseTheVersion: a file is of version 6 from the first attribute on, and files of
// versions 1 and 2 refuse attributes.
func TestAttributesRaiseTheVersion(t *testing.T) {
	for _, layout := range storage.Layouts {
		path := newPath(t)
		s := openWith(t, path, storage.OptionsFor(layout, 0))
		commit(t, s, 1, storage.CreateCollection{UID: 1, Name: "c", Schema: storage.Schema{Dim: 1}})
		put := storage.PutNode{UID: 1, Key: "a", Row: []float32{1}}
		commit(t, s, 2, put)
		flush(t, s)
		requireFormat := func(want uint32) {
			t.Helper()
			require.NoError(t, s.Close()) // its lock
			require.Equal(t, want, formatOf(t, path))
			s = openWith(t, path, storage.OptionsFor(layout, 0))
		}
		requireFormat(layout)
		put.Attributes = named(t, "price", 1)
		if err := s.Begin().Apply(put, 3); layout < 3 {
			require.ErrorIs(t, err, format.ErrVersion)
			require.ErrorContains(t, err, "attributes need 3 or later")
			continue
		}
		commit(t, s, 3, put)
		flush(t, s)
		requireFormat(6)
		commit(t, s, 4, storage.DeleteNode{UID: 1, ID: 0})
		flush(t, s)
		requireFormat(6) // once raised, it stays
	}
}

// attributedSample is what the frozen file of version 6 holds.
func attributedSample(t *testing.T, s *storage.Store) {
	t.Helper()
	commit(t, s, 1, storage.CreateCollection{UID: 1, Name: "papers", Schema: storage.Schema{Dim: 2}},
		storage.PutNode{UID: 1, ID: 0, Key: "a", Row: []float32{1, 2}, Attributes: named(t, "price", 3.5, "brand", "A", "sold", true)},
		storage.PutNode{UID: 1, ID: 1, Key: "b", Row: []float32{3, 4}, Attributes: named(t, "price", -1, "released", time.Date(2025, 1, 2, 3, 4, 5, 6000, time.UTC))},
	)
}

// TestFrozenFileWithAttributes is TestFrozenFile of version 6.
func TestFrozenFileWithAttributes(t *testing.T) {
	s := open(t, frozenFile(t, 6, attributedSample))
	assertClean(t, s)
	require.NoError(t, s.View(func(v *storage.View) error {
		assert.Equal(t, []storage.Attribute{{"brand", attr.String, 1}, {"price", attr.Number, 2}, {"released", attr.Time, 1}, {"sold", attr.Bool, 1}}, v.Attributes(1))
		assert.Equal(t, named(t, "brand", "A", "price", 3.5, "sold", true), v.NodeAttributes(1, 0))
		assert.Equal(t, named(t, "price", -1, "released", time.Date(2025, 1, 2, 3, 4, 5, 6000, time.UTC)), v.NodeAttributes(1, 1))
		assert.Equal(t, []uint32{1}, v.Match(1, "price", []attr.Range{{To: attr.Cut{Value: value(t, 3.5)}}}).ToArray())
		return nil
	}))
	commit(t, s, 2, storage.SetAttributes{UID: 1, ID: 1, Set: named(t, "brand", "B")})
	flush(t, s)
}

// attributed is a sample with attributes, in a closed file.
func attributed(t *testing.T) string {
	t.Helper()
	path := newPath(t)
	s, err := storage.Open(path, nil)
	require.NoError(t, err)
	commit(t, s, 1, storage.CreateCollection{UID: 1, Name: "papers", Schema: storage.Schema{Dim: 1}},
		storage.PutNode{UID: 1, ID: 0, Key: "a", Row: []float32{1}, Attributes: named(t, "price", 3, "brand", "A")},
		storage.PutNode{UID: 1, ID: 1, Key: "b", Row: []float32{1}, Attributes: named(t, "price", 4)},
		storage.PutNode{UID: 1, ID: 2, Key: "c", Row: []float32{1}, Attributes: named(t, "price", 5)},
		storage.DeleteNode{UID: 1, ID: 2})
	flush(t, s)
	require.NoError(t, s.Close())
	return path
}

func TestCheckFindsInAttributes(t *testing.T) {
	price, brand := "price\x00", "brand\x00"
	column := func(name string) string { return name + "\x00\x00\x00\x00" }
	numbers := func(mask byte, places []byte, values ...float64) []byte {
		b := append([]byte{byte(attr.Number), mask}, make([]byte, 127)...)
		b = append(b, byte(len(values)))
		for _, x := range values {
			b = append(b, value(t, x).Append(nil)[1:]...)
		}
		return append(b, places...)
	}
	plantPrice := func(value []byte) plant { return plantPut("attributes", column(price), value) }
	testFindings(t, attributed, 1, []finding{
		{"as it should be", plantPrice(numbers(3, []byte{0, 1}, 3, 4)), nil},
		{"of a deleted node", plantPrice(numbers(5, []byte{0, 1}, 3, 4)), []string{`"price" column 0 has id 2, which is not live`}},
		{"one too few", plantPrice(numbers(1, []byte{0}, 3)), []string{`"price" is of 2 nodes, and its columns hold 1`}},
		{"column missing", plantDelete("attributes", column(price)), []string{`"price" is of 2 nodes, and its columns hold 0`, "attributes: 3 entries, want 4"}},
		{"attribute missing", plantDelete("attributes", brand), []string{`"brand" column 0 is of an attribute that is missing`, "attributes: 3 entries, want 4"}},
		{"descending", plantPrice(numbers(3, []byte{0, 1}, 4, 3)), []string{`"price" column 0: `}},
		{"place of no value", plantPrice(numbers(3, []byte{0, 2}, 3, 4)), []string{"value 2 of 2"}},
		{"value of no id", plantPrice(numbers(3, []byte{0, 0}, 3, 4)), []string{"value 1 is that of no id"}},
		{"too short", plantPrice(numbers(3, []byte{0}, 3, 4)), []string{`"price" column 0: `}},
		{"too long", plantPrice(numbers(3, []byte{0, 1, 1}, 3, 4)), []string{`"price" column 0: `}},
		{"no values", plantPrice(numbers(0, nil)), []string{`"price" column 0: `}},
		{"of another type", plantPut("attributes", price, []byte{byte(attr.Time), 2}), []string{`holds values of type number, and the attribute is a time`}},
		{"of unknown type", plantPut("attributes", column(price), []byte{9}), []string{`"price" column 0: `}},
		{"without a checksum", plantRaw("attributes", column(price), numbers(3, []byte{0, 1}, 3, 4)), []string{`attributes: "price" column 0 at offset`}},
		{"of no attribute", plantPut("attributes", "what", []byte{1, 1}), []string{`key "what" is that of no attribute`, "attributes: 5 entries, want 4"}},
	})
}

// TestDamagedAttributes: what cannot be read is an error that says where.
func TestDamagedAttributes(t *testing.T) {
	path := attributed(t)
	edit(t, path, func(tx *bolt.Tx) error {
		return plantRaw("attributes", "price\x00\x00\x00\x00\x00", []byte("not a column"))(tx.Bucket([]byte("c")).Bucket([]byte{0, 0, 0, 1}))
	})
	s, err := storage.Open(path, nil)
	require.NoError(t, err)
	defer s.Close()
	for _, look := range []func(v *storage.View){
		func(v *storage.View) { v.Match(1, "price", []attr.Range{{}}) },
		func(v *storage.View) { v.NodeAttributes(1, 0) },
		func(v *storage.View) { v.Spread(1, "price") },
	} {
		err := s.View(func(v *storage.View) error { look(v); return nil })
		require.ErrorIs(t, err, format.ErrCorrupt)
		require.ErrorContains(t, err, `collection "papers": attributes: "price" column 0`)
	}
	require.ErrorIs(t, s.Begin().Apply(storage.SetAttributes{UID: 1, ID: 0, Set: named(t, "price", 9)}, 2), format.ErrCorrupt)
}
