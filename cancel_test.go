package flashdb_test

import (
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// TestCancelledContext makes every call that takes a context with one that has ended. Nothing
// changes, and the error of the context is returned.
func TestCancelledContext(t *testing.T) {
	d := openDB(t)
	c := d.collection("c", smallDim)
	rng := rand.New(rand.NewPCG(31, 0))
	vec := randomVector(rng, smallDim)
	nodes := []flashdb.Node{{Key: "a", Embedding: vec}, {Key: "b", Embedding: vec}}
	require.NoError(t, c.Upsert(context.Background(), nodes...))
	dec := dotDecoder(t, smallDim)
	require.NoError(t, c.PutDecoder(context.Background(), "dot", dec))
	done, cancel := context.WithCancel(context.Background())
	cancel()
	before, err := d.Stats(context.Background())
	require.NoError(t, err)

	for _, call := range []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"Upsert", func(ctx context.Context) error { return c.Upsert(ctx, nodes...) }},
		{"Delete", func(ctx context.Context) error { _, err := c.Delete(ctx, "a"); return err }},
		{"Link", func(ctx context.Context) error { return c.Link(ctx, flashdb.Edge{Source: "a", Target: "b"}) }},
		{"Unlink", func(ctx context.Context) error {
			_, err := c.Unlink(ctx, flashdb.Edge{Source: "a", Target: "b"})
			return err
		}},
		{"PutDecoder", func(ctx context.Context) error { return c.PutDecoder(ctx, "other", dec) }},
		{"DropDecoder", func(ctx context.Context) error { return c.DropDecoder(ctx, "dot") }},
		{"SetMeta", func(ctx context.Context) error { return c.SetMeta(ctx, "a", "b") }},
		{"SetTags", func(ctx context.Context) error { return c.SetTags(ctx, "a", nil) }},
		{"SetPayload", func(ctx context.Context) error { return c.SetPayload(ctx, "a", nil) }},
		{"PredictVectors", func(ctx context.Context) error {
			for _, err := range c.PredictVectors(ctx, [][]float32{vec}, 1, nil) {
				return err
			}
			return nil
		}},
		{"Get", func(ctx context.Context) error { _, err := c.Get(ctx, "a"); return err }},
		{"Keys", func(ctx context.Context) error {
			for _, err := range c.Keys(ctx) {
				return err
			}
			return nil
		}},
		{"RowKeys", func(ctx context.Context) error { _, err := c.RowKeys(ctx, 0, 1); return err }},
		{"Linked", func(ctx context.Context) error { _, err := c.Linked(ctx, flashdb.Edge{Source: "a"}); return err }},
		{"Predict", func(ctx context.Context) error { _, err := c.Predict(ctx, "a", 1, nil); return err }},
		{"PredictVector", func(ctx context.Context) error { _, err := c.PredictVector(ctx, vec, 1, nil); return err }},
		{"PredictBatch", func(ctx context.Context) error {
			for _, err := range c.PredictBatch(ctx, []string{"a"}, 1, nil) {
				return err
			}
			return nil
		}},
		{"Score", func(ctx context.Context) error { _, err := c.Score(ctx, "a", []string{"b"}, nil); return err }},
		{"Search", func(ctx context.Context) error { _, err := c.Search(ctx, vec, 1, nil); return err }},
		{"Rebuild", func(ctx context.Context) error {
			_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
			return err
		}},
		{"Backup", func(ctx context.Context) error { _, err := d.Backup(ctx, io.Discard, nil); return err }},
		{"Compact", func(ctx context.Context) error { _, err := d.Compact(ctx, nil); return err }},
		{"Check", func(ctx context.Context) error { _, err := d.Check(ctx); return err }},
		{"Stats", func(ctx context.Context) error { _, err := d.Stats(ctx); return err }},
		{"Checkpoint", func(ctx context.Context) error { return d.Checkpoint(ctx) }},
	} {
		t.Run(call.name, func(t *testing.T) { assert.ErrorIs(t, call.do(done), context.Canceled) })
	}
	after, err := d.Stats(context.Background())
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// TestCancelWaiting cancels calls that wait for a rebuild to end.
func TestCancelWaiting(t *testing.T) {
	d := openDB(t)
	c := d.collection("c", smallDim)
	rng := rand.New(rand.NewPCG(32, 0))
	require.NoError(t, c.Upsert(context.Background(), flashdb.Node{Key: "a", Embedding: randomVector(rng, smallDim)}))
	building, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var first sync.WaitGroup
	first.Go(func() {
		_, err := c.Rebuild(context.Background(), &flashdb.RebuildOptions{Force: true, Progress: func(string, int64, int64) {
			once.Do(func() { close(building); <-release })
		}})
		assert.NoError(t, err)
	})
	<-building
	waiting := map[string]func(ctx context.Context) error{
		"Rebuild": func(ctx context.Context) error { _, err := c.Rebuild(ctx, nil); return err },
		"Compact": func(ctx context.Context) error { _, err := d.Compact(ctx, nil); return err },
	}
	for name, call := range waiting {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		var second sync.WaitGroup
		second.Go(func() { ended <- call(ctx) })
		cancel()
		assert.ErrorIs(t, <-ended, context.Canceled, name)
		second.Wait()
	}
	close(release)
	first.Wait()
}
