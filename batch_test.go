package flashdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// emptyShop returns a database with collections of users and items of width 2.
func emptyShop(t *testing.T) (d *testDB, users, items *flashdb.Collection) {
	d = openDB(t)
	return d, d.collection("users", 2), d.collection("items", 2)
}

func node(key string, x, y float32, tags ...string) flashdb.Node {
	return flashdb.Node{Key: key, Embedding: []float32{x, y}, Tags: tags}
}

// TestBatch makes every kind of write in two collections at once.
func TestBatch(t *testing.T) {
	ctx := context.Background()
	d, users, items := emptyShop(t)
	require.NoError(t, items.Upsert(ctx, node("old", 1, 1), node("gone", 2, 2), node("tagged", 3, 3, "a")))
	require.NoError(t, items.Link(ctx, flashdb.Edge{Source: "old", Target: "tagged"}))
	require.NoError(t, items.PutDecoder(ctx, "first", dotDecoder(t, 2)))
	writes := d.Metrics().Writes

	var b flashdb.Batch
	b.Upsert("users", node("ann", 1, 0), node("bob", 0, 1))
	b.Upsert("items", node("new", 4, 4, "x"))
	b.Upsert("items", node("newer", 5, 5))
	b.Link("items", flashdb.Edge{Source: "new", Target: "old"})
	b.Unlink("items", flashdb.Edge{Source: "old", Target: "tagged"})
	b.Delete("items", "gone", "never stored")
	b.SetTags("items", "tagged", []string{"b", "a"})
	b.SetPayload("items", "tagged", []byte("payload"))
	b.PutDecoder("items", "second", dotDecoder(t, 2))
	b.DropDecoder("items", "first")
	b.SetMeta("users", "offset", "17")
	require.Equal(t, 11, b.Len())
	require.NoError(t, d.Apply(ctx, &b))
	assert.Equal(t, writes+1, d.Metrics().Writes, "it is one write")

	for range 2 {
		n, err := users.Get(ctx, "bob")
		require.NoError(t, err)
		assert.Equal(t, []float32{0, 1}, n.Embedding)
		n, err = items.Get(ctx, "tagged")
		require.NoError(t, err)
		assert.Equal(t, flashdb.Node{Key: "tagged", Embedding: []float32{3, 3}, Tags: []string{"a", "b"}, Payload: []byte("payload")}, n)
		for key, want := range map[string][]string{"new": {"old"}, "old": nil} {
			links, err := items.Linked(ctx, flashdb.Edge{Source: key})
			require.NoError(t, err)
			assert.Equal(t, want, links)
		}
		_, err = items.Get(ctx, "gone")
		require.ErrorIs(t, err, flashdb.ErrNotFound)
		names, err := items.Decoders(ctx)
		require.NoError(t, err)
		assert.Equal(t, []string{"second"}, names)
		value, _, err := users.Meta(ctx, "offset")
		require.NoError(t, err)
		assert.Equal(t, "17", value)
		res, err := items.PredictVector(ctx, []float32{1, 1}, 9, nil)
		require.NoError(t, err)
		var keys []string
		for _, h := range res.Hits {
			keys = append(keys, h.Key)
		}
		assert.Equal(t, []string{"newer", "new", "tagged", "old"}, keys)

		d.reopen()
		users, err = d.Collection("users")
		require.NoError(t, err)
		items, err = d.Collection("items")
		require.NoError(t, err)
	}
	require.NoError(t, d.Apply(ctx, new(flashdb.Batch)), "nothing to do is no failure")
}

// TestBatchOrder writes the same things several times: each write sees the effect of those before
// it.
func TestBatchOrder(t *testing.T) {
	ctx := context.Background()
	d, _, items := emptyShop(t)
	var b flashdb.Batch
	b.Upsert("items", node("a", 1, 1), node("b", 1, 1), node("a", 2, 2))
	b.Link("items", flashdb.Edge{Source: "a", Target: "b"})
	b.SetTags("items", "a", []string{"early"})
	b.Delete("items", "b")
	b.Upsert("items", node("b", 3, 3, "again"))
	b.SetTags("items", "a", []string{"late"})
	b.SetMeta("items", "m", "1")
	b.SetMeta("items", "m", "2")
	b.PutDecoder("items", "d", dotDecoder(t, 2))
	b.DropDecoder("items", "d")
	require.NoError(t, d.Apply(ctx, &b))

	a, err := items.Get(ctx, "a")
	require.NoError(t, err)
	assert.Equal(t, []float32{2, 2}, a.Embedding)
	assert.Equal(t, []string{"late"}, a.Tags)
	again, err := items.Get(ctx, "b")
	require.NoError(t, err)
	assert.Equal(t, []string{"again"}, again.Tags)
	links, err := items.Linked(ctx, flashdb.Edge{Source: "a"})
	require.NoError(t, err)
	assert.Empty(t, links, "the node that it led to is another")
	names, err := items.Decoders(ctx)
	require.NoError(t, err)
	assert.Empty(t, names)
	value, _, err := items.Meta(ctx, "m")
	require.NoError(t, err)
	assert.Equal(t, "2", value)
}

// TestBatchLinksAcross links users to items that the same batch stores, and removes one of the
// links again. A user that is replaced keeps its link. The link of a deleted user is removed.
func TestBatchLinksAcross(t *testing.T) {
	ctx := context.Background()
	d, users, items := emptyShop(t)
	require.NoError(t, users.Upsert(ctx, node("ann", 9, 9)))
	require.NoError(t, items.Upsert(ctx, node("tea", 1, 0), node("cake", 0, 1)))
	require.NoError(t, items.Link(ctx, likes("ann", "tea")))
	require.NoError(t, items.PutDecoder(ctx, "likes", dotDecoder(t, 2)))
	writes := d.Metrics().Writes

	var b flashdb.Batch
	b.Upsert("users", node("ann", 1, 0), node("bob", 0, 1), node("gone", 1, 1))
	b.Upsert("items", node("soup", 2, 2))
	b.Link("items", likes("bob", "soup"), likes("bob", "tea"), likes("gone", "soup"), flashdb.Edge{Source: "soup", Target: "tea"})
	b.Unlink("items", likes("bob", "tea"))
	b.Delete("users", "gone")
	require.NoError(t, d.Apply(ctx, &b))
	assert.Equal(t, writes+1, d.Metrics().Writes, "it is one write")

	for range 2 {
		items = existing(t, d, "items")
		assert.Equal(t, []flashdb.Edge{{Source: "soup", Target: "tea"}, likes("ann", "tea"), likes("bob", "soup")}, linksOf(t, items))
		for user, want := range map[string][]string{"ann": {"soup", "cake"}, "bob": {"cake", "tea"}} {
			res, err := items.Predict(ctx, user, 9, &flashdb.PredictOptions{SourceCollection: "users"})
			require.NoError(t, err)
			assert.Equal(t, want, keysOf(t, res), user)
		}
		hits, err := items.Score(ctx, "bob", []string{"soup"}, &flashdb.ScoreOptions{SourceCollection: "users"})
		require.NoError(t, err)
		assert.Equal(t, float32(2), hits[0].Score)
		d.checkAndClose()
		d.open()
	}
}

// TestBatchFails makes one write of a batch fail, for each kind of write. None of the batch is
// applied, and the error names the write.
func TestBatchFails(t *testing.T) {
	ctx := context.Background()
	d, users, items := emptyShop(t)
	require.NoError(t, items.Upsert(ctx, node("a", 1, 1)))
	for _, tt := range []struct {
		add  func(b *flashdb.Batch)
		is   error
		says string
	}{
		{func(b *flashdb.Batch) { b.Upsert("nowhere", node("a", 1, 1)) }, flashdb.ErrNotFound, `upsert into "nowhere": collection "nowhere" not found`},
		{func(b *flashdb.Batch) { b.Upsert("items", flashdb.Node{Key: "x", Embedding: []float32{1}}) }, flashdb.ErrDim, `upsert into "items": node "x"`},
		{func(b *flashdb.Batch) { b.SetTags("items", "x", nil) }, flashdb.ErrNotFound, `set tags in "items": node "x" not found`},
		{func(b *flashdb.Batch) { b.SetTags("items", "a", []string{""}) }, flashdb.ErrInvalid, `set tags in "items": node "a": invalid argument: tag ""`},
		{func(b *flashdb.Batch) { b.SetPayload("items", "x", nil) }, flashdb.ErrNotFound, `set payload in "items": node "x" not found`},
		{func(b *flashdb.Batch) { b.SetPayload("items", "a", make([]byte, 16<<20+1)) }, flashdb.ErrInvalid, `set payload in "items": node "a"`},
		{func(b *flashdb.Batch) { b.Link("items", flashdb.Edge{Source: "a", Target: "x"}) }, flashdb.ErrNotFound, `link in "items": edge "a" -> "x"`},
		{func(b *flashdb.Batch) { b.Link("items", likes("bob", "a")) }, flashdb.ErrNotFound, `link in "items": edge "bob" -> "a": node "bob" not found in collection "users"`},
		{func(b *flashdb.Batch) {
			b.Link("items", flashdb.Edge{SourceCollection: "nowhere", Source: "a", Target: "a"})
		}, flashdb.ErrNotFound, `link in "items": edge "a" -> "a": collection "nowhere" not found`},
		{func(b *flashdb.Batch) { b.Unlink("items", flashdb.Edge{Source: "x", Target: "a"}) }, flashdb.ErrNotFound, `unlink in "items": edge "x" -> "a"`},
		{func(b *flashdb.Batch) { b.PutDecoder("items", "d", nil) }, flashdb.ErrInvalid, `put decoder into "items": invalid argument: decoder "d" is nil`},
		{func(b *flashdb.Batch) { b.PutDecoder("items", "d", dotDecoder(t, 3)) }, flashdb.ErrDim, `put decoder into "items"`},
		{func(b *flashdb.Batch) { b.DropDecoder("items", "d") }, flashdb.ErrNotFound, `drop decoder from "items": decoder "d" not found`},
		{func(b *flashdb.Batch) { b.SetMeta("items", "", "v") }, flashdb.ErrInvalid, `set meta of "items"`},
	} {
		t.Run(tt.says, func(t *testing.T) {
			var b flashdb.Batch
			b.Upsert("users", node("ann", 1, 1))
			tt.add(&b)
			b.Delete("items", "a")
			err := d.Apply(ctx, &b)
			require.ErrorIs(t, err, tt.is)
			require.ErrorContains(t, err, "apply batch: write 2 of 3, "+tt.says)
			require.NotContains(t, err.Error(), "\n")
			_, err = users.Get(ctx, "ann")
			require.ErrorIs(t, err, flashdb.ErrNotFound)
			_, err = items.Get(ctx, "a")
			require.NoError(t, err)
		})
	}
	require.ErrorIs(t, d.Apply(ctx, nil), flashdb.ErrInvalid)
	done, cancel := context.WithCancel(ctx)
	cancel()
	var b flashdb.Batch
	b.Delete("items", "a")
	require.ErrorIs(t, d.Apply(done, &b), context.Canceled)
	require.NoError(t, d.DropCollection(ctx, "items"))
	require.ErrorIs(t, d.Apply(ctx, &b), flashdb.ErrNotFound)
}

// TestBatchCopies changes everything that a batch was given before it is applied.
func TestBatchCopies(t *testing.T) {
	ctx := context.Background()
	d, _, items := emptyShop(t)
	n := flashdb.Node{Key: "a", Embedding: []float32{1, 2}, Tags: []string{"t"}, Payload: []byte("p")}
	nodes, edges, keys, tags, payload := []flashdb.Node{n, node("b", 0, 0), node("c", 0, 0)}, []flashdb.Edge{{Source: "a", Target: "a"}}, []string{"b"}, []string{"x"}, []byte("y")
	var b flashdb.Batch
	b.Upsert("items", nodes...)
	b.Link("items", edges...)
	b.Delete("items", keys...)
	b.SetTags("items", "c", tags)
	b.SetPayload("items", "c", payload)
	n.Embedding[0], n.Tags[0], n.Payload[0], nodes[1], edges[0], keys[0], tags[0], payload[0] = 9, "z", 'z', n, flashdb.Edge{}, "a", "z", 'z'
	require.NoError(t, d.Apply(ctx, &b))
	got, err := items.Get(ctx, "a")
	require.NoError(t, err)
	assert.Equal(t, flashdb.Node{Key: "a", Embedding: []float32{1, 2}, Tags: []string{"t"}, Payload: []byte("p")}, got)
	got, err = items.Get(ctx, "c")
	require.NoError(t, err)
	assert.Equal(t, flashdb.Node{Key: "c", Embedding: []float32{0, 0}, Tags: []string{"x"}, Payload: []byte("y")}, got)
}

// TestBatchOfManyUpserts upserts nodes one by one in one batch, in turns into two collections, with
// some keys twice. The result is that of one upsert of all nodes.
func TestBatchOfManyUpserts(t *testing.T) {
	ctx := context.Background()
	d, users, items := emptyShop(t)
	rng := rand.New(rand.NewPCG(3, 3))
	want := map[*flashdb.Collection]map[string][]float32{users: {}, items: {}}
	var b flashdb.Batch
	for i := range 3000 {
		n := flashdb.Node{Key: fmt.Sprint("n", rng.IntN(2000)), Embedding: randomVector(rng, 2)}
		c := users
		if i/700%2 == 1 {
			c = items
		}
		b.Upsert(c.Name(), n)
		want[c][n.Key] = n.Embedding
	}
	require.NoError(t, d.Apply(ctx, &b))
	for c, nodes := range want {
		count := 0
		for n, err := range c.Nodes(ctx) {
			require.NoError(t, err)
			require.Equal(t, nodes[n.Key], n.Embedding)
			count++
		}
		require.Len(t, nodes, count)
	}
}

// TestSetTags changes tags and payloads of nodes in an index. The index still serves their rows,
// filters select by the new tags at once, and the log grows little.
func TestSetTags(t *testing.T) {
	ctx := context.Background()
	const dim, n = 512, 300
	d := openDB(t)
	c := d.collection("c", dim)
	rng := rand.New(rand.NewPCG(1, 2))
	var nodes []flashdb.Node
	for i := range n {
		nodes = append(nodes, flashdb.Node{Key: fmt.Sprint(i), Embedding: randomVector(rng, dim), Tags: []string{"old"}, Payload: []byte("before")})
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	require.NoError(t, c.PutDecoder(ctx, "dot", dotDecoder(t, dim)))
	_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 3})
	require.NoError(t, err)
	before, err := c.Predict(ctx, "0", n, nil)
	require.NoError(t, err)
	require.NoError(t, d.Checkpoint(ctx))

	size := logBytes(t, d.dir)
	require.NoError(t, c.SetTags(ctx, "7", []string{"new", "more", "new"}))
	require.NoError(t, c.SetPayload(ctx, "7", []byte("after")))
	require.NoError(t, c.SetTags(ctx, "8", nil))
	require.NoError(t, c.SetPayload(ctx, "8", nil))
	assert.Less(t, logBytes(t, d.dir)-size, int64(4*dim), "the embedding, of %d bytes, is not logged again", 4*dim)

	for _, state := range []string{"in memory", "flushed", "reopened"} {
		switch state {
		case "flushed":
			require.NoError(t, d.Checkpoint(ctx))
		case "reopened":
			d.reopen()
			c, err = d.Collection("c")
			require.NoError(t, err)
		}
		got, err := c.Get(ctx, "7")
		require.NoError(t, err)
		assert.Equal(t, flashdb.Node{Key: "7", Embedding: nodes[7].Embedding, Tags: []string{"more", "new"}, Payload: []byte("after")}, got, state)
		got, err = c.Get(ctx, "8")
		require.NoError(t, err)
		assert.Equal(t, flashdb.Node{Key: "8", Embedding: nodes[8].Embedding}, got, state)
		for filter, want := range map[string]int{"new": 1, "more and new": 1, "old": n - 3, "not old": 2} { // the source is left out
			res, err := c.Predict(ctx, "0", n, &flashdb.PredictOptions{Filter: filter})
			require.NoError(t, err)
			assert.Len(t, res.Hits, want, "%s: %s", state, filter)
		}
		after, err := c.Predict(ctx, "0", n, nil)
		require.NoError(t, err)
		assert.Equal(t, before.Hits, after.Hits, state)
		assert.Equal(t, before.Stats.Generation, after.Stats.Generation, state)
		assert.Zero(t, after.Stats.DeltaRows, "%s: the index has all rows", state)
	}
	require.ErrorIs(t, c.SetTags(ctx, "nobody", nil), flashdb.ErrNotFound)
	require.ErrorIs(t, c.SetPayload(ctx, "nobody", nil), flashdb.ErrNotFound)
	require.ErrorIs(t, c.SetTags(ctx, "1", []string{"\xff"}), flashdb.ErrInvalid)
}

// logBytes is how long the log is.
func logBytes(t *testing.T, dir string) (n int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "wal", "*.log"))
	require.NoError(t, err)
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		n += info.Size()
	}
	return n
}

// everyWrite returns a batch with a write of each kind.
func everyWrite(t testing.TB) *flashdb.Batch {
	var b flashdb.Batch
	b.Upsert("users", flashdb.Node{Key: "\xff\x00", Embedding: []float32{1, -0.5}, Tags: []string{"t"}, Payload: []byte{0, 255}}, flashdb.Node{Key: "b"})
	b.SetTags("items", "a", []string{"x", "y"})
	b.SetPayload("items", "a", []byte("p"))
	b.SetAttributes("items", "a", flashdb.Attributes{"price": 1.5, "brand": nil, "released": time.Date(2025, 1, 2, 0, 0, 0, 0, time.UTC)})
	b.Upsert("items", flashdb.Node{Key: "c", Attributes: flashdb.Attributes{"sold": true, "brand": "A"}})
	b.Delete("items", "a", "b")
	b.Link("items", flashdb.Edge{SourceCollection: "users", Source: "u", Target: "b"}, flashdb.Edge{Source: "a", Target: "b"})
	b.Unlink("items", flashdb.Edge{Source: "b", Target: "a"}, flashdb.Edge{SourceCollection: "users", Source: "u", Target: "a"})
	b.PutDecoder("items", "d", dotDecoder(t, 2))
	b.DropDecoder("items", "d")
	b.SetMeta("items", "m", "v")
	b.DropCollection("items")
	b.CreateCollection("items", flashdb.Schema{Dim: 3, Normalize: true})
	return &b
}

func TestBatchTravels(t *testing.T) {
	want := everyWrite(t)
	encoded, err := want.MarshalBinary()
	require.NoError(t, err)
	var got flashdb.Batch
	got.SetMeta("to be", "replaced", "")
	require.NoError(t, got.UnmarshalBinary(encoded))
	assert.Equal(t, want, &got)
	for n := range encoded {
		var cut flashdb.Batch
		require.ErrorIs(t, cut.UnmarshalBinary(encoded[:n]), flashdb.ErrCorrupt, "%d bytes", n)
		require.Zero(t, cut.Len())
	}
	require.ErrorIs(t, got.UnmarshalBinary([]byte{5, 0}), flashdb.ErrVersion)
	require.ErrorContains(t, got.UnmarshalBinary(append([]byte{4, 1, 77}, make([]byte, 12)...)), "unknown kind 77")
	require.ErrorContains(t, got.UnmarshalBinary(append([]byte{4, 1, 2}, make([]byte, 12)...)), "0 keys of a write to one node")
	var b flashdb.Batch
	b.PutDecoder("items", "d", nil)
	_, err = b.MarshalBinary()
	require.ErrorIs(t, err, flashdb.ErrInvalid)
}

// TestBatchFalseCounts checks that a false count in an encoded batch allocates no memory.
func TestBatchFalseCounts(t *testing.T) {
	filler := strings.Repeat("\xff", 1<<20)
	for _, head := range []string{"\x02\xff\xff\x03", "\x02\x01\x01\x00\xff\xff\x03", "\x02\x01\x04\x00\x00\xff\xff\x03", "\x02\x01\x05\x00\x00\x00\x00\x00\xff\xff\x03"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := new(flashdb.Batch).UnmarshalBinary([]byte(head + filler))
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, flashdb.ErrCorrupt)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20), "%q", head)
	}
}

func FuzzBatch(f *testing.F) {
	encoded, err := everyWrite(f).MarshalBinary()
	require.NoError(f, err)
	f.Add(encoded)
	f.Add([]byte{2, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var b, again flashdb.Batch
		if b.UnmarshalBinary(data) != nil {
			require.Zero(t, b.Len())
			return
		}
		// Varints may be longer than necessary, so the bytes may differ. Encoding once more changes
		// nothing.
		first, err := b.MarshalBinary()
		require.NoError(t, err)
		require.NoError(t, again.UnmarshalBinary(first))
		second, err := again.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, first, second)
	})
}
