package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/filter"
	"github.com/flashdb/flashdb/remote"
	"github.com/flashdb/flashdb/remote/conformance"
)

// rowsOf returns n rows of random values, with tags a to d.
func rowsOf(t *testing.T, v *remote.Version, n int) []remote.Row {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	rows := make([]remote.Row, n)
	for i := range rows {
		embedding := make([]float32, v.Dim)
		for j := range embedding {
			embedding[j] = float32(rng.NormFloat64())
		}
		var tags []string
		for _, tag := range []string{"a", "b", "c", "d"} {
			if rng.IntN(2) == 0 {
				tags = append(tags, tag)
			}
		}
		var err error
		rows[i], err = v.NewRow(flashdb.Node{Key: fmt.Sprint("k", i), Embedding: embedding, Tags: tags})
		require.NoError(t, err)
	}
	return rows
}

// staging stages a version with n rows.
func staging(t *testing.T, e *Engine, collection string, n int) (remote.Name, []remote.Row) {
	t.Helper()
	ctx := context.Background()
	v := remote.Version{ID: fmt.Sprintf("%016x", rand.Uint64()), Dim: 6, Norm: 10}
	name := remote.Name{Collection: collection, Version: v.ID}
	require.NoError(t, e.Stage(ctx, collection, v))
	rows := rowsOf(t, &v, n)
	require.NoError(t, e.Put(ctx, name, rows))
	return name, rows
}

// opened returns an engine that is closed at the end of the test.
func opened(t *testing.T) *Engine {
	t.Helper()
	e := open(t, configured(t))
	t.Cleanup(func() { assert.NoError(t, e.Close()) })
	return e
}

// TestForeign finds tables of other makers under our names.
func TestForeign(t *testing.T) {
	ctx := context.Background()
	e := opened(t)
	sql := func(statement string) {
		t.Helper()
		_, err := e.pool.Exec(ctx, statement)
		require.NoError(t, err)
	}
	v := remote.Version{ID: "0123456789abcdef", Dim: 6, Norm: 1}
	name := remote.Name{Collection: "papers", Version: v.ID}
	sql("CREATE SCHEMA " + e.config.Schema)
	sql("CREATE TABLE " + e.named("versions") + " (collection text, number int)")
	_, err := e.Live(ctx, "papers")
	require.ErrorIs(t, err, remote.ErrForeign)
	require.ErrorIs(t, e.Stage(ctx, "papers", v), remote.ErrForeign)
	require.ErrorIs(t, e.Drop(ctx, name), remote.ErrForeign)
	sql("DROP TABLE " + e.named("versions"))

	sql("CREATE TABLE " + e.table(name) + " (key text, vector text)")
	require.ErrorIs(t, e.Stage(ctx, "papers", v), remote.ErrForeign)
	names, err := e.Versions(ctx, "papers")
	require.NoError(t, err)
	assert.Empty(t, names, "nothing is left of the attempt")
	require.NoError(t, e.Drop(ctx, name))
	var there bool
	require.NoError(t, e.pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", e.table(name)).Scan(&there))
	assert.True(t, there, "a table of somebody else is not dropped")
	query := &remote.Query{Vectors: [][]float32{make([]float32, 7)}, N: 1, Effort: 1}
	_, err = e.Search(ctx, name, query)
	require.ErrorIs(t, err, remote.ErrForeign)
	_, err = e.Get(ctx, name, []string{"x"})
	require.ErrorIs(t, err, remote.ErrForeign)
	require.ErrorIs(t, e.Put(ctx, name, rowsOf(t, &v, 1)), remote.ErrForeign)
	sql("DROP TABLE " + e.table(name))

	require.NoError(t, e.Stage(ctx, "papers", v))
	require.NoError(t, e.Put(ctx, name, rowsOf(t, &v, 60)))
	query.Vectors[0] = query.Vectors[0][1:]
	for _, query.Exact = range []bool{true, false} {
		_, err = e.Search(ctx, name, query)
		require.ErrorIs(t, err, flashdb.ErrDim)
	}
	r := remote.Row{Key: "x", Vector: make([]float32, 3)}
	require.ErrorIs(t, e.Put(ctx, name, []remote.Row{r}), flashdb.ErrDim)
	r = remote.Row{Key: "x", Vector: make([]float32, 7), Tags: []string{"zero\x00"}}
	require.ErrorIs(t, e.Put(ctx, name, []remote.Row{r}), flashdb.ErrInvalid)
	sql("UPDATE " + e.table(name) + " SET sum = -1")
	_, err = e.Get(ctx, name, []string{"k1"})
	require.ErrorIs(t, err, remote.ErrForeign)
	sql("UPDATE " + e.named("versions") + " SET description = 'x'")
	require.NoError(t, e.Publish(ctx, name))
	_, err = e.Live(ctx, "papers")
	require.ErrorIs(t, err, remote.ErrForeign)

	v.Dim = maxDim
	require.ErrorIs(t, e.Stage(ctx, "papers", v), flashdb.ErrInvalid)
	require.ErrorIs(t, e.Stage(ctx, `papers"; --`, v), flashdb.ErrInvalid)
	require.ErrorIs(t, e.Stage(ctx, "papers", remote.Version{ID: "x", Dim: 3}), flashdb.ErrInvalid)
}

// TestFiltersOnServer compares conditions with filters evaluated here.
func TestFiltersOnServer(t *testing.T) {
	ctx := context.Background()
	e := opened(t)
	name, rows := staging(t, e, "papers", 200)
	require.NoError(t, e.Publish(ctx, name))
	for _, text := range []string{
		"a", "not a", "a and b", "a or b", "(a or b) and not (c and d)", "not (a or b or c or d)", `a or "'"`, `not "\x00" and a`,
		"a and b and (c or not d) or not a and not b", `not (a and (b or "x\"'$1"))`,
	} {
		f, err := filter.Parse(text)
		require.NoError(t, err)
		var want, got []string
		for _, r := range rows {
			if conformance.Matches(f, r.Tags) {
				want = append(want, r.Key)
			}
		}
		require.NoError(t, e.Scan(ctx, name, f, func(some []remote.Row) error {
			for _, r := range some {
				got = append(got, r.Key)
			}
			return nil
		}))
		assert.ElementsMatch(t, want, got, text)
	}
}

// TestPublishWhileRead publishes while the former version is read: queries see the new one at once,
// the reader goes on, and the former table is dropped when it has ended.
func TestPublishWhileRead(t *testing.T) {
	ctx := context.Background()
	e := opened(t)
	e.sweepTime = 0
	former, rows := staging(t, e, "papers", 100)
	require.NoError(t, e.Publish(ctx, former))
	next, _ := staging(t, e, "papers", 100)
	require.NoError(t, e.Refresh(ctx, next))
	reader, err := e.pool.Begin(ctx)
	require.NoError(t, err)
	defer reader.Rollback(ctx)
	count := func() (n int) {
		t.Helper()
		require.NoError(t, reader.QueryRow(ctx, "SELECT count(*) FROM "+e.table(former)).Scan(&n))
		return n
	}
	require.Equal(t, len(rows), count())
	published := make(chan error, 1)
	go func() { published <- e.Publish(ctx, next) }()
	require.Eventually(t, func() bool {
		v, err := e.Live(ctx, "papers")
		return err == nil && v.ID == next.Version
	}, time.Minute, time.Millisecond)
	require.NoError(t, <-published, "the former table is left for later")
	require.Equal(t, len(rows), count())
	names, err := e.Versions(ctx, "papers")
	require.NoError(t, err)
	assert.Equal(t, []remote.Name{next}, names)
	require.ErrorIs(t, e.Drop(ctx, former), remote.ErrUnavailable, "it is being read")
	require.ErrorIs(t, e.Stage(ctx, "papers", remote.Version{ID: former.Version, Dim: 6}), remote.ErrUnavailable)
	n, err := e.Count(ctx, former)
	require.NoError(t, err, "a reader of the former version sees it whole")
	assert.Equal(t, len(rows), n)

	require.NoError(t, reader.Rollback(ctx))
	require.NoError(t, e.Publish(ctx, next), "it drops what was left")
	_, err = e.Count(ctx, former)
	require.ErrorIs(t, err, flashdb.ErrNotFound)
}

// TestScanStops stops a Scan, and uses the engine during one.
func TestScanStops(t *testing.T) {
	ctx := context.Background()
	c := configured(t)
	c.Connections = 2
	e := open(t, c)
	defer e.Close()
	name, _ := staging(t, e, "papers", 5000)
	stop := fmt.Errorf("enough")
	for range 5 {
		err := e.Scan(ctx, name, nil, func(some []remote.Row) error {
			n, err := e.Count(ctx, name)
			assert.NoError(t, err)
			assert.Equal(t, 5000, n)
			return stop
		})
		require.Equal(t, stop, err)
	}
}

// TestBuildGoesOn ends the context of a Refresh, and the engine: the index is built nevertheless.
func TestBuildGoesOn(t *testing.T) {
	ctx := context.Background()
	e := opened(t)
	built := func(name remote.Name) bool {
		there, err := e.built(ctx, name)
		return assert.NoError(t, err) && there
	}
	name, _ := staging(t, e, "papers", 10_000)
	left := open(t, e.config)
	limited, cancel := context.WithCancel(ctx)
	begun := make(chan error, 1)
	go func() { begun <- left.Refresh(limited, name) }()
	running := func() (n int) {
		assert.NoError(t, e.pool.QueryRow(ctx, "SELECT count(*) FROM pg_stat_progress_create_index WHERE relid = to_regclass($1)", e.table(name)).Scan(&n))
		return n
	}
	require.Eventually(t, func() bool { return running() > 0 || built(name) }, time.Minute, time.Millisecond)
	cancel()
	if err := <-begun; err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	require.NoError(t, left.Close())
	require.Eventually(t, func() bool { return built(name) }, time.Minute, time.Millisecond)
	require.ErrorContains(t, left.Refresh(ctx, name), "closed")

	// Two engines build the same: one of them waits for the other.
	other := open(t, e.config)
	defer other.Close()
	name, _ = staging(t, e, "papers", 3000)
	both := make(chan error, 2)
	for _, engine := range []*Engine{e, other} {
		go func() { both <- engine.Refresh(ctx, name) }()
	}
	require.NoError(t, <-both)
	require.NoError(t, <-both)
	assert.True(t, built(name))
}

// TestIndexIsUsed reads the plans of both kinds of search.
func TestIndexIsUsed(t *testing.T) {
	ctx := context.Background()
	c := avoiding(t, configured(t))
	e := open(t, c)
	defer e.Close()
	name, rows := staging(t, e, "papers", 2000)
	require.NoError(t, e.Refresh(ctx, name))
	for _, exact := range []bool{true, false} {
		q := &remote.Query{N: 10, Effort: 2000, Exclude: []string{"k1", "k2"}}
		text, args, err := e.nearest(name, q, rows[0].Vector, exact)
		require.NoError(t, err)
		tx, err := e.pool.Begin(ctx)
		require.NoError(t, err)
		_, err = tx.Exec(ctx, settings, e.settings(q, exact)...)
		require.NoError(t, err)
		var plan json.RawMessage
		require.NoError(t, tx.QueryRow(ctx, "EXPLAIN (FORMAT JSON) "+text, args...).Scan(&plan))
		require.NoError(t, tx.Rollback(ctx))
		if exact {
			assert.NotContains(t, string(plan), vectorIndex(name))
		} else {
			assert.Contains(t, string(plan), vectorIndex(name))
		}
	}
}

// TestIndexGivesUp asks for the rows that are furthest away: what the index does not find is found
// by comparing all rows.
func TestIndexGivesUp(t *testing.T) {
	ctx := context.Background()
	e := open(t, avoiding(t, configured(t)))
	defer e.Close()
	e.minCompared = 1
	name, rows := staging(t, e, "papers", 3000)
	require.NoError(t, e.Refresh(ctx, name))
	q := &remote.Query{Vectors: [][]float32{rows[0].Vector}, N: len(rows), Exact: true}
	a, err := e.Search(ctx, name, q)
	require.NoError(t, err)
	var want []string
	for _, r := range a.Rows[0][len(rows)-10:] {
		r.Tags = []string{"far"}
		require.NoError(t, e.Put(ctx, name, []remote.Row{r}))
		want = append(want, r.Key)
	}
	for _, q.N = range []int{5, 10, 20} {
		q.Exact, q.Effort, q.Filter = false, 10, &remote.Filter{Tag: "far"}
		a, err := e.Search(ctx, name, q)
		require.NoError(t, err)
		require.Len(t, a.Rows[0], min(q.N, len(want)))
		for i, r := range a.Rows[0] {
			assert.Equal(t, want[i], r.Key)
		}
	}
}

// TestPutTwice puts one key several times in one call: the last row stays.
func TestPutTwice(t *testing.T) {
	ctx := context.Background()
	e := opened(t)
	name, rows := staging(t, e, "papers", copyFrom)
	for _, some := range [][]remote.Row{rows[:3], rows} {
		var twice []remote.Row
		for _, tag := range []string{"first", "second"} {
			for _, r := range some {
				r.Tags = []string{tag}
				twice = append(twice, r)
			}
		}
		require.NoError(t, e.Put(ctx, name, twice))
		got, err := e.Get(ctx, name, []string{some[0].Key, some[len(some)-1].Key})
		require.NoError(t, err)
		require.Len(t, got, 2)
		for _, r := range got {
			assert.Equal(t, []string{"second"}, r.Tags)
		}
	}
	n, err := e.Count(ctx, name)
	require.NoError(t, err)
	assert.Equal(t, len(rows), n)
}
