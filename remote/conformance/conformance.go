// Package conformance holds the tests that every remote.Engine must pass.
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, func(t *testing.T) remote.Engine { return open(t) })
//	}
package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/filter"
	"github.com/flashdb/flashdb/remote"
)

// Run runs every test. open returns an engine that is connected to a running server. Each test
// makes collections of its own, whose names begin with "conformance-", and drops them at its end.
func Run(t *testing.T, open func(t *testing.T) remote.Engine) {
	for name, test := range map[string]func(t *testing.T, e remote.Engine){
		"Rows":     testRows,
		"Versions": testVersions,
		"Search":   testSearch,
		"Filters":  testFilters,
		"Excluded": testExcluded,
		"Updates":  testUpdates,
		"Missing":  testMissing,
		"Recall":   testRecall,
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t)
			t.Cleanup(func() { assert.NoError(t, e.Close()) })
			test(t, e)
		})
	}
	runCollection(t, open)
}

const dim = 12

// named returns a name of a version that no other test uses, and drops it in the end.
func named(t *testing.T, e remote.Engine, v *remote.Version) remote.Name {
	t.Helper()
	ctx := context.Background()
	v.ID = fmt.Sprintf("%016x", rand.Uint64())
	name := remote.Name{Collection: "conformance-" + fmt.Sprintf("%08x", rand.Uint32()), Version: v.ID}
	t.Cleanup(func() {
		names, err := e.Versions(ctx, name.Collection)
		assert.NoError(t, err)
		for _, n := range names {
			assert.NoError(t, e.Drop(ctx, n))
		}
	})
	return name
}

// filled makes a version of n rows, publishes it and returns its rows by key.
func filled(t *testing.T, e remote.Engine, n int) (remote.Name, remote.Version, map[string]remote.Row) {
	t.Helper()
	ctx := context.Background()
	v := remote.Version{Dim: dim, Norm: 8, Decoders: map[string][]byte{"d": {1, 2, 3}}}
	name := named(t, e, &v)
	require.NoError(t, e.Stage(ctx, name.Collection, v))
	rng := rand.New(rand.NewPCG(1, 2))
	rows := map[string]remote.Row{}
	var all []remote.Row
	for i := range n {
		r := row(t, &v, rng, fmt.Sprint("k", i))
		if i%2 == 0 {
			r.Tags = append(r.Tags, "even")
		}
		if i%10 == 0 {
			r.Tags = append(r.Tags, "a b", `"'\`)
		}
		rows[r.Key] = r
		all = append(all, r)
	}
	for some := range slices.Chunk(all, 500) {
		require.NoError(t, e.Put(ctx, name, some))
	}
	require.NoError(t, e.Refresh(ctx, name))
	require.NoError(t, e.Publish(ctx, name))
	return name, v, rows
}

// row makes a row with random values.
func row(t *testing.T, v *remote.Version, rng *rand.Rand, key string) remote.Row {
	t.Helper()
	embedding := make([]float32, v.Dim)
	for i := range embedding {
		embedding[i] = float32(rng.NormFloat64())
	}
	r, err := v.NewRow(flashdb.Node{Key: key, Embedding: embedding})
	require.NoError(t, err)
	return r
}

// strange are keys that are hard to quote, split or compare.
var strange = []string{
	"plain", " ", "a b", "a,b", `quo"te`, "apo'strophe", `back\slash`, "slash/..", "new\nline", "tab\t", "%41", "_id", "null", "{}", "[1]",
	"日本語", "\u00e9", "e\u0301", "😀", "-1", "1e5", "ünïcode", "a/b?c=d&e#f", "*", "?", "$1", "'; drop table x; --", string(make([]byte, 0)) + "\x7f",
	fmt.Sprintf("%01024d", 7),
}

// testRows puts rows with strange keys, tags and payloads, and reads each back as it was.
func testRows(t *testing.T, e remote.Engine) {
	ctx := context.Background()
	v := remote.Version{Dim: 5, Norm: 1e16, Decoders: map[string][]byte{"d": {0, 255, 1}, "other name": make([]byte, 1<<20)}, Sources: map[string]string{"users": "0123456789abcdef"}}
	name := named(t, e, &v)
	require.NoError(t, e.Stage(ctx, name.Collection, v))
	var rows []remote.Row
	for i, key := range strange {
		embedding := []float32{float32(i), -0.1, 1e-30, 3.4e15, 1.0 / 3}
		r, err := v.NewRow(flashdb.Node{Key: key, Embedding: embedding})
		require.NoError(t, err)
		switch i % 3 {
		case 0:
			r.Tags, r.Payload = strange[:5], []byte{0, 1, 255, '"', '{'}
		case 1:
			r.Payload = []byte(`{"title": "x"}`)
		}
		rows = append(rows, r)
	}
	require.NoError(t, e.Put(ctx, name, rows))
	require.NoError(t, e.Put(ctx, name, rows[:3]), "again")
	got, err := e.Get(ctx, name, append(slices.Clone(strange), "unknown"))
	require.NoError(t, err)
	require.Len(t, got, len(rows), "before any refresh")
	for _, r := range got {
		want := rows[slices.Index(strange, r.Key)]
		assert.Equal(t, want.Vector, r.Vector, "%q: the very values", r.Key)
		assert.Equal(t, want.Sum, r.Sum, "%q", r.Key)
		assert.ElementsMatch(t, want.Tags, r.Tags, "%q", r.Key)
		assert.Equal(t, string(want.Payload), string(r.Payload), "%q", r.Key)
	}
	none, err := e.Get(ctx, name, nil)
	require.NoError(t, err)
	assert.Empty(t, none)

	require.NoError(t, e.Refresh(ctx, name))
	scanned := scan(t, e, name, nil)
	assert.Len(t, scanned, len(rows))
	for key, r := range scanned {
		assert.Equal(t, rows[slices.Index(strange, key)].Sum, r.Sum, "%q", key)
		assert.Equal(t, rows[slices.Index(strange, key)].Vector, r.Vector, "%q", key)
	}
	require.NoError(t, e.Publish(ctx, name))
	live, err := e.Live(ctx, name.Collection)
	require.NoError(t, err)
	assert.Equal(t, v, live)
}

// scan returns all rows by key, and requires that none comes twice.
func scan(t *testing.T, e remote.Engine, name remote.Name, f *remote.Filter) map[string]remote.Row {
	t.Helper()
	rows := map[string]remote.Row{}
	require.NoError(t, e.Scan(context.Background(), name, f, func(some []remote.Row) error {
		for _, r := range some {
			_, twice := rows[r.Key]
			assert.False(t, twice, "%q", r.Key)
			r.Vector = slices.Clone(r.Vector)
			rows[r.Key] = r
		}
		return nil
	}))
	return rows
}

// testVersions stages, publishes and drops versions.
func testVersions(t *testing.T, e remote.Engine) {
	ctx := context.Background()
	first, _, rows := filled(t, e, 20)
	second := remote.Version{ID: fmt.Sprintf("%016x", rand.Uint64()), Dim: dim + 1, Norm: 2, Decoders: map[string][]byte{}}
	name := remote.Name{Collection: first.Collection, Version: second.ID}
	require.NoError(t, e.Stage(ctx, name.Collection, second))
	r := row(t, &second, rand.New(rand.NewPCG(3, 4)), "new")
	require.NoError(t, e.Put(ctx, name, []remote.Row{r}))
	second.Norm = 3
	require.NoError(t, e.Stage(ctx, name.Collection, second), "again: the rows stay")
	require.NoError(t, e.Refresh(ctx, name))

	live, err := e.Live(ctx, name.Collection)
	require.NoError(t, err)
	assert.Equal(t, first.Version, live.ID)
	names, err := e.Versions(ctx, name.Collection)
	require.NoError(t, err)
	assert.Equal(t, []remote.Name{first, name}, names)
	n, err := e.Count(ctx, first)
	require.NoError(t, err)
	assert.Equal(t, len(rows), n)

	require.NoError(t, e.Publish(ctx, name))
	live, err = e.Live(ctx, name.Collection)
	require.NoError(t, err)
	assert.Equal(t, second, live)
	a, err := e.Search(ctx, name, &remote.Query{Vectors: [][]float32{r.Vector}, N: 5, Effort: 5})
	require.NoError(t, err)
	require.Len(t, a.Rows[0], 1)
	assert.Equal(t, "new", a.Rows[0][0].Key)
	for what, err := range calls(e, first) {
		assert.ErrorIs(t, err, flashdb.ErrNotFound, "%s of the version that was live", what)
	}

	require.NoError(t, e.Publish(ctx, name), "again")
	require.NoError(t, e.Drop(ctx, name))
	require.NoError(t, e.Drop(ctx, name), "again")
	_, err = e.Live(ctx, name.Collection)
	require.ErrorIs(t, err, flashdb.ErrNotFound)
}

// calls returns the error of every call on a version.
func calls(e remote.Engine, name remote.Name) map[string]error {
	ctx := context.Background()
	all := map[string]error{}
	all["put"] = e.Put(ctx, name, []remote.Row{{Key: "x", Vector: make([]float32, dim+1)}})
	_, all["delete"] = e.Delete(ctx, name, []string{"k1"})
	all["refresh"] = e.Refresh(ctx, name)
	_, all["get"] = e.Get(ctx, name, []string{"k1"})
	_, all["search"] = e.Search(ctx, name, &remote.Query{Vectors: [][]float32{make([]float32, dim+1)}, N: 1, Effort: 1})
	all["scan"] = e.Scan(ctx, name, nil, func([]remote.Row) error { return nil })
	_, all["count"] = e.Count(ctx, name)
	all["publish"] = e.Publish(ctx, name)
	return all
}

// testMissing asks for a collection that does not exist.
func testMissing(t *testing.T, e remote.Engine) {
	ctx := context.Background()
	name := remote.Name{Collection: "conformance-none", Version: "0123456789abcdef"}
	_, err := e.Live(ctx, name.Collection)
	require.ErrorIs(t, err, flashdb.ErrNotFound)
	names, err := e.Versions(ctx, name.Collection)
	require.NoError(t, err)
	assert.Empty(t, names)
	for what, err := range calls(e, name) {
		assert.ErrorIs(t, err, flashdb.ErrNotFound, what)
	}
	require.NoError(t, e.Drop(ctx, name))
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = e.Live(cancelled, name.Collection)
	assert.Error(t, err)
}

// testSearch compares exact searches with distances computed here.
func testSearch(t *testing.T, e remote.Engine) {
	ctx := context.Background()
	name, v, rows := filled(t, e, 300)
	rng := rand.New(rand.NewPCG(5, 6))
	queries := [][]float32{row(t, &v, rng, "q").Vector, row(t, &v, rng, "q").Vector, make([]float32, dim+1)}
	for _, n := range []int{1, 10, 300, 500} {
		a, err := e.Search(ctx, name, &remote.Query{Vectors: queries, N: n, Exact: true})
		require.NoError(t, err)
		assert.Empty(t, a.Missing)
		require.Len(t, a.Rows, len(queries))
		for i, found := range a.Rows {
			require.Len(t, found, min(n, 300))
			assertNearest(t, queries[i], found, rows)
			for _, r := range found {
				assert.Equal(t, rows[r.Key].Vector, r.Vector)
				assert.Equal(t, rows[r.Key].Sum, r.Sum)
				assert.ElementsMatch(t, rows[r.Key].Tags, r.Tags)
				assert.Empty(t, r.Payload)
			}
		}
	}
}

// assertNearest checks that no row outside of found is clearly nearer than one of them.
func assertNearest(t *testing.T, q []float32, found []remote.Row, of map[string]remote.Row) {
	t.Helper()
	distance := func(r remote.Row) (sum float64) {
		for i, x := range r.Vector {
			d := float64(x) - float64(q[i])
			sum += d * d
		}
		return sum
	}
	in, furthest, before := map[string]bool{}, 0.0, 0.0
	for _, r := range found {
		assert.False(t, in[r.Key], "%q twice", r.Key)
		in[r.Key] = true
		assert.Contains(t, of, r.Key)
		d := distance(r)
		assert.GreaterOrEqual(t, d, before*(1-1e-5), "nearest first")
		before, furthest = d, max(furthest, d)
	}
	for key, r := range of {
		assert.False(t, !in[key] && distance(r) < furthest*(1-1e-5), "%q is nearer than a row found", key)
	}
}

// testFilters compares filtered searches and scans with filters evaluated here.
func testFilters(t *testing.T, e remote.Engine) {
	ctx := context.Background()
	name, v, rows := filled(t, e, 200)
	even, spaced := &remote.Filter{Tag: "even"}, &remote.Filter{Tag: "a b"}
	quoted := &remote.Filter{Tag: `"'\`}
	unknown := &remote.Filter{Tag: "unknown"}
	not := func(f *remote.Filter) *remote.Filter {
		return &remote.Filter{Op: remote.Not, Args: []*remote.Filter{f}}
	}
	span := func(from, to string) *remote.Filter {
		return &remote.Filter{Span: &filter.Span{From: from, To: to}}
	}
	q := row(t, &v, rand.New(rand.NewPCG(7, 8)), "q").Vector
	for i, f := range []*remote.Filter{
		even, quoted, not(even), unknown, not(unknown), span("a", "b"), span("a b", "a b\x01"), span("f", "z"), not(span(`"`, "a")),
		{Op: remote.And, Args: []*remote.Filter{even, span("a", "b")}},
		{Op: remote.Or, Args: []*remote.Filter{span("a", "b"), quoted}},
		{Op: remote.And, Args: []*remote.Filter{even, spaced}},
		{Op: remote.Or, Args: []*remote.Filter{not(even), spaced, unknown}},
		{Op: remote.And, Args: []*remote.Filter{even, not(&remote.Filter{Op: remote.Or, Args: []*remote.Filter{spaced, unknown}})}},
	} {
		want := map[string]remote.Row{}
		for key, r := range rows {
			if Matches(f, r.Tags) {
				want[key] = r
			}
		}
		assert.Len(t, scan(t, e, name, f), len(want), "filter %d", i)
		for _, exact := range []bool{true, false} {
			a, err := e.Search(ctx, name, &remote.Query{Vectors: [][]float32{q}, N: 15, Effort: 100, Exact: exact, Filter: f})
			require.NoError(t, err)
			require.Len(t, a.Rows[0], min(15, len(want)), "filter %d", i)
			for _, r := range a.Rows[0] {
				assert.Contains(t, want, r.Key, "filter %d", i)
			}
			if exact {
				assertNearest(t, q, a.Rows[0], want)
			}
		}
	}
}

// Matches reports whether tags match a filter.
func Matches(f *remote.Filter, tags []string) bool {
	switch {
	case f == nil:
		return true
	case f.Op == remote.Not:
		return !Matches(f.Args[0], tags)
	case f.Span != nil:
		return slices.ContainsFunc(tags, func(tag string) bool { return f.Span.From <= tag && tag < f.Span.To })
	case f.Op == "":
		return slices.Contains(tags, f.Tag)
	}
	for _, a := range f.Args {
		if Matches(a, tags) != (f.Op == remote.And) {
			return f.Op == remote.Or
		}
	}
	return f.Op == remote.And
}

// testExcluded leaves out the nearest rows, many of them, and all.
func testExcluded(t *testing.T, e remote.Engine) {
	ctx := context.Background()
	const n = 2000
	name, v, rows := filled(t, e, n)
	q := row(t, &v, rand.New(rand.NewPCG(9, 10)), "q").Vector
	all, err := e.Search(ctx, name, &remote.Query{Vectors: [][]float32{q}, N: n, Exact: true})
	require.NoError(t, err)
	var keys []string
	for _, r := range all.Rows[0] {
		keys = append(keys, r.Key)
	}
	require.Len(t, keys, n)
	for _, without := range []int{1, 100, 1000, n - 3, n} {
		left := map[string]remote.Row{}
		for _, key := range keys[without:] {
			left[key] = rows[key]
		}
		exclude := append([]string{"unknown", `"`}, keys[:without]...)
		for _, exact := range []bool{true, false} {
			a, err := e.Search(ctx, name, &remote.Query{Vectors: [][]float32{q}, N: 100, Effort: 400, Exact: exact, Exclude: exclude})
			require.NoError(t, err)
			require.Len(t, a.Rows[0], min(100, len(left)), "without %d, exact %v", without, exact)
			for _, r := range a.Rows[0] {
				assert.Contains(t, left, r.Key, "without %d", without)
			}
			if exact {
				assertNearest(t, q, a.Rows[0], left)
			}
		}
	}
}

// testUpdates replaces and deletes rows.
func testUpdates(t *testing.T, e remote.Engine) {
	ctx := context.Background()
	name, v, _ := filled(t, e, 50)
	moved := row(t, &v, rand.New(rand.NewPCG(11, 12)), "k7")
	moved.Tags, moved.Payload = []string{"moved"}, []byte("new")
	require.NoError(t, e.Put(ctx, name, []remote.Row{moved}))
	deleted, err := e.Delete(ctx, name, []string{"k1", "k2", "unknown", `x"y`})
	require.NoError(t, err)
	assert.Equal(t, 2, deleted)
	deleted, err = e.Delete(ctx, name, []string{"k1"})
	require.NoError(t, err)
	assert.Zero(t, deleted)
	got, err := e.Get(ctx, name, []string{"k1", "k7"})
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.Equal(t, moved, got[0])

	require.NoError(t, e.Refresh(ctx, name))
	n, err := e.Count(ctx, name)
	require.NoError(t, err)
	assert.Equal(t, 48, n)
	a, err := e.Search(ctx, name, &remote.Query{Vectors: [][]float32{moved.Vector}, N: 50, Effort: 50})
	require.NoError(t, err)
	require.Len(t, a.Rows[0], 48)
	assert.Equal(t, "k7", a.Rows[0][0].Key)
	assert.Equal(t, moved.Vector, a.Rows[0][0].Vector)
	for _, r := range a.Rows[0] {
		assert.NotContains(t, []string{"k1", "k2"}, r.Key)
	}
	require.NoError(t, e.Put(ctx, name, nil))
	_, err = e.Delete(ctx, name, nil)
	require.NoError(t, err)
}

// testRecall requires that a search with a reasonable effort finds most of the nearest rows, while
// hundreds are excluded.
func testRecall(t *testing.T, e remote.Engine) {
	ctx := context.Background()
	name, v, _ := filled(t, e, 5000)
	rng := rand.New(rand.NewPCG(13, 14))
	found, wanted := 0, 0
	for range 10 {
		q := row(t, &v, rng, "q").Vector
		q[dim] = 0
		query := remote.Query{Vectors: [][]float32{q}, N: 100, Effort: 500, Exact: true}
		for range 3 {
			query.Exact = true
			truth, err := e.Search(ctx, name, &query)
			require.NoError(t, err)
			query.Exact = false
			a, err := e.Search(ctx, name, &query)
			require.NoError(t, err)
			in := map[string]bool{}
			for _, r := range a.Rows[0] {
				in[r.Key] = true
			}
			require.Len(t, in, 100)
			for _, r := range truth.Rows[0] {
				wanted++
				if in[r.Key] {
					found++
				}
				query.Exclude = append(query.Exclude, r.Key)
			}
		}
	}
	assert.Greater(t, float64(found)/float64(wanted), .9, "an effort of 500 for 100 rows of 5,000")
}
