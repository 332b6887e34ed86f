package conformance

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/remote"
)

// testTrouble lets the engine fail in every way: the answer is an error, or right.
func testTrouble(t *testing.T, p *pair) {
	ctx := context.Background()
	predict := func() (flashdb.Result, error) {
		return p.remote.Predict(ctx, "n1", 10, &flashdb.PredictOptions{Plan: &flashlight.Plan{Rounds: 3, PerRound: 50}})
	}
	want, err := predict()
	require.NoError(t, err)

	p.engine.On("search", func(n int) error { // one failure in the middle
		if n == 1 {
			return Gone(n)
		}
		return nil
	})
	got, err := predict()
	require.NoError(t, err, "the call was repeated")
	assertSame(t, want.Hits, got.Hits, "after a repeated call")

	p.engine.On("search", func(n int) error {
		if n > 0 {
			return Gone(n)
		}
		return nil
	})
	_, err = predict()
	require.ErrorIs(t, err, remote.ErrUnavailable)
	assert.ErrorContains(t, err, "3 attempts")
	p.engine.On("get", Gone)
	_, err = predict()
	require.ErrorIs(t, err, remote.ErrUnavailable)
	p.engine.On("get", func(int) error { return nil })

	p.engine.On("search", Slow(50*time.Millisecond))
	limited, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	_, err = p.remote.Predict(limited, "n1", 10, nil)
	cancel()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	p.engine.On("search", func(int) error { return nil })

	p.engine.Change(func(a *remote.Answer) { a.Missing = "1 of 3 shards" })
	_, err = predict()
	require.ErrorIs(t, err, remote.ErrUnavailable)
	assert.ErrorContains(t, err, "1 of 3 shards")
	p.engine.Change(func(a *remote.Answer) {
		for i := range a.Rows {
			for j := range a.Rows[i] {
				v := slices.Clone(a.Rows[i][j].Vector)
				v[0] += .5
				a.Rows[i][j].Vector = v
			}
		}
	})
	_, err = predict()
	require.ErrorIs(t, err, remote.ErrForeign, "rows of another model are not scored")
	p.engine.Change(func(a *remote.Answer) {
		for i := range a.Rows {
			for j := range a.Rows[i] {
				a.Rows[i][j].Vector = a.Rows[i][j].Vector[1:]
			}
		}
	})
	_, err = predict()
	require.ErrorIs(t, err, remote.ErrForeign)
	p.engine.Change(func(a *remote.Answer) { a.Rows = a.Rows[:0] })
	_, err = predict()
	require.ErrorContains(t, err, "query vectors")
	p.engine.Change(nil)
	got, err = predict()
	require.NoError(t, err)
	assertSame(t, want.Hits, got.Hits, "well again")
}

// testResume interrupts a push, and continues it.
func testResume(t *testing.T, p *pair) {
	ctx := context.Background()
	other, local := embedded(t, p.name, 3)
	before := p.remote.Version()
	p.engine.On("put", func(n int) error {
		if n >= 3 {
			return Gone(n)
		}
		return nil
	})
	o := &remote.PushOptions{BatchBytes: 20_000}
	_, err := p.db.Push(ctx, other, []string{p.name}, o)
	require.ErrorIs(t, err, remote.ErrUnavailable)
	live, err := p.engine.Live(ctx, p.name)
	require.NoError(t, err)
	assert.Equal(t, before, live.ID, "queries go on with the former version")
	p.engine.On("put", func(int) error { return nil })
	p.engine.On("publish", func(n int) error {
		if n == 0 {
			return Gone(n) // after it was done
		}
		return nil
	})
	res, err := p.db.Push(ctx, other, []string{p.name}, o)
	require.NoError(t, err)
	assert.Positive(t, res.Resumed)
	assert.Equal(t, pairRows, res.Resumed+res.Rows)
	want, err := local.Predict(ctx, "n9", 20, &flashdb.PredictOptions{Exact: true})
	require.NoError(t, err)
	got, err := p.remote.Predict(ctx, "n9", 20, &flashdb.PredictOptions{Exact: true, IncludeLinked: true})
	require.NoError(t, err)
	assertSame(t, want.Hits, got.Hits, "after the push")

	// Other rows: an unfinished push of the former ones is not continued.
	p.engine.On("put", func(n int) error {
		if n >= 3 {
			return Gone(n)
		}
		return nil
	})
	_, err = p.db.Push(ctx, p.embedded, []string{p.name}, o)
	require.Error(t, err)
	p.engine.On("put", func(int) error { return nil })
	require.NoError(t, p.local.Upsert(ctx, flashdb.Node{Key: "n5", Embedding: make([]float32, pairDim)}))
	res, err = p.db.Push(ctx, p.embedded, []string{p.name}, o)
	require.NoError(t, err)
	assert.Zero(t, res.Resumed)

	p.engine.On("put", func(n int) error {
		if n >= 3 {
			return Gone(n)
		}
		return nil
	})
	_, err = p.db.Push(ctx, other, []string{p.name}, o)
	require.Error(t, err)
	p.engine.On("put", func(int) error { return nil })
	res, err = p.db.Push(ctx, other, []string{p.name}, &remote.PushOptions{Restart: true})
	require.NoError(t, err)
	assert.Zero(t, res.Resumed)
	assert.Equal(t, pairRows, res.Rows)
	names, err := p.engine.Versions(ctx, p.name)
	require.NoError(t, err)
	assert.Len(t, names, 1)
}
