package tests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// TestEverythingTogether makes every kind of call at once, from many goroutines, and closes the
// database in their middle: each call succeeds or says that it is closed, and after a reopen all
// that was acknowledged is there.
func TestEverythingTogether(t *testing.T) {
	const before = 4 // rounds of each loop before Close
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "test.flash")
	d, err := flashdb.Open(dir, &flashdb.Options{FlushBytes: 1 << 16, SegmentRows: 30, CalibrateTime: -1})
	require.NoError(t, err)
	c, err := d.CreateCollection("c", flashdb.Schema{Dim: modelDim})
	require.NoError(t, err)
	first := seed(t)
	require.NoError(t, c.PutDecoder(ctx, "dot", dotDecoder(t, modelDim)))
	rng := rand.New(rand.NewPCG(first, 1))
	for i := range 200 {
		require.NoError(t, c.Upsert(ctx, flashdb.Node{Key: fmt.Sprintf("stable%d", i), Embedding: randomVector(rng, modelDim)}))
	}
	vec := randomVector(rng, modelDim)

	var writing [writers]ledger
	var generators [writers]*generator
	var loops sync.WaitGroup
	var warm atomic.Int64 // rounds that all loops still owe
	enough := make(chan struct{})
	// loop calls until the database is closed; other errors than allowed fail.
	loop := func(name string, call func() error, allowed ...error) {
		warm.Add(before)
		loops.Go(func() {
			for n := 1; ; n++ {
				err := call()
				if errors.Is(err, flashdb.ErrClosed) {
					return
				}
				expected := err == nil
				for _, a := range allowed {
					expected = expected || errors.Is(err, a)
				}
				if !assert.True(t, expected, "%s: %v", name, err) {
					return
				}
				if n <= before && warm.Add(-1) == 0 {
					close(enough)
				}
			}
		})
	}
	warm.Add(1) // while the loops are started
	for w := range writers {
		generators[w] = newGenerator(writerPrefix(w), first+uint64(w))
		loop("write", func() error {
			write := generators[w].next()
			writing[w].tried++
			err := write.do(ctx, c)
			if err == nil {
				generators[w].applied(write)
				writing[w].acked++
			}
			return err
		})
	}
	for name, call := range map[string]func() error{
		"predict": func() error {
			_, err := c.Predict(ctx, "stable7", 5, &flashdb.PredictOptions{Decoder: "dot"})
			return err
		},
		"exact": func() error {
			_, err := c.Predict(ctx, "stable8", 5, &flashdb.PredictOptions{Decoder: "dot", Exact: true})
			return err
		},
		"search": func() error { _, err := c.Search(ctx, vec, 5, &flashdb.SearchOptions{Filter: "red"}); return err },
		"batch": func() error {
			for _, err := range c.PredictBatch(ctx, []string{"stable1", "stable2"}, 3, &flashdb.PredictOptions{Decoder: "dot"}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"keys":  func() error { _, err := c.RowKeys(ctx, 0, 100); return err },
		"stats": func() error { _, err := d.Stats(ctx); return err },
		"rebuild": func() error {
			_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 3})
			return err
		},
		"newer": func() error {
			_, err := c.Rebuild(ctx, &flashdb.RebuildOptions{NewerOnly: true})
			return err
		},
		"checkpoint": func() error { return d.Checkpoint(ctx) },
		"backup":     func() error { _, err := d.Backup(ctx, io.Discard, nil); return err },
		"compact":    func() error { _, err := d.Compact(ctx, nil); return err },
		"check": func() error {
			findings, err := d.Check(ctx)
			if err == nil {
				assert.Empty(t, findings)
			}
			return err
		},
	} {
		loop(name, call)
	}
	loop("calibrate", func() error {
		_, err := c.Calibrate(ctx, &flashdb.CalibrateOptions{Decoder: "dot", Sources: 3})
		return err
	}, flashdb.ErrInvalid) // before the first generation
	loop("drop", func() error {
		other, err := d.CreateCollection("other", flashdb.Schema{Dim: 2})
		if err == nil {
			err = other.Upsert(ctx, flashdb.Node{Key: "a", Embedding: []float32{1, 2}})
		}
		if err == nil {
			err = d.DropCollection(ctx, "other")
		}
		return err
	})
	if warm.Add(-1) == 0 {
		close(enough)
	}
	<-enough
	require.NoError(t, d.Close())
	loops.Wait()

	d = openDB(t, dir)
	defer checkAndClose(t, d)
	c, err = d.Collection("c")
	require.NoError(t, err)
	writes := int64(0)
	for w := range writers {
		writes += writing[w].acked
		replayed(t, c, writerPrefix(w), first+uint64(w), writing[w].acked, writing[w].tried)
	}
	t.Logf("%d writes acknowledged", writes)
}
