package flashdb

import (
	"context"
	"iter"
	"sync"
)

// PredictBatch calls Predict for every key, on Options.Workers goroutines, and yields the results
// in the order of the keys. If one key fails, its error is yielded with Result.Source set, and the
// sequence continues. When ctx ends, the sequence ends with its error. A caller that stops early
// waits for the queries that are running.
func (c *Collection) PredictBatch(ctx context.Context, keys []string, k int, opts *PredictOptions) iter.Seq2[Result, error] {
	source := func(i int) string { return keys[i] }
	return c.each(ctx, len(keys), source, func(ctx context.Context, i int) (Result, error) {
		return c.Predict(ctx, keys[i], k, opts)
	})
}

// PredictVectors is PredictBatch for sources that are not stored: see PredictVector. It yields one
// result for each vector, in the order of the vectors. Result.Source is empty.
func (c *Collection) PredictVectors(ctx context.Context, sources [][]float32, k int, opts *PredictOptions) iter.Seq2[Result, error] {
	source := func(int) string { return "" }
	return c.each(ctx, len(sources), source, func(ctx context.Context, i int) (Result, error) {
		return c.PredictVector(ctx, sources[i], k, opts)
	})
}

// each runs n queries, several at a time, and yields their results in order, each with its source.
func (c *Collection) each(ctx context.Context, n int, source func(i int) string, ask func(ctx context.Context, i int) (Result, error)) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		running, cancel := context.WithCancel(ctx)
		var work sync.WaitGroup
		defer work.Wait()
		defer cancel()
		slots := make(chan chan answered, max(0, c.db.opts.Workers-1))
		work.Go(func() { start(running, &work, slots, n, ask) })
		done := 0
		for slot := range slots {
			a := <-slot
			a.res.Source = source(done)
			if !yield(a.res, a.err) {
				return
			}
			done++
		}
		if err := ctx.Err(); err != nil && done < n {
			yield(Result{Source: source(done)}, err)
		}
	}
}

type answered struct {
	res Result
	err error
}

// start starts n queries as slots has room. It sends, in order, the channels that will receive
// their results.
func start(ctx context.Context, work *sync.WaitGroup, slots chan<- chan answered, n int, ask func(ctx context.Context, i int) (Result, error)) {
	defer close(slots)
	for i := range n {
		slot := make(chan answered, 1)
		select {
		case slots <- slot:
		case <-ctx.Done():
			return
		}
		work.Go(func() {
			res, err := ask(ctx, i)
			slot <- answered{res, err}
		})
	}
}
