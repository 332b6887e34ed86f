package flashdb

import (
	"context"
	"iter"
	"sync"
)

// PredictBatch predicts for every key, several at a time on Options.Workers
// goroutines, and yields the results in the order of the keys. A key that fails
// yields its error, with Result.Source set, and the rest goes on; a done ctx
// ends the sequence with its error. A caller that stops early waits for the few
// queries under way.
func (c *Collection) PredictBatch(ctx context.Context, keys []string, k int, opts *PredictOptions) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		running, cancel := context.WithCancel(ctx)
		var work sync.WaitGroup
		defer work.Wait()
		defer cancel()
		slots := make(chan chan answered, max(0, c.db.opts.Workers-1))
		work.Go(func() { c.startBatch(running, &work, slots, keys, k, opts) })
		done := 0
		for slot := range slots {
			a := <-slot
			if !yield(a.res, a.err) {
				return
			}
			done++
		}
		if err := ctx.Err(); err != nil && done < len(keys) {
			yield(Result{Source: keys[done]}, err)
		}
	}
}

type answered struct {
	res Result
	err error
}

// startBatch starts a query for each key as slots has room, and hands over in
// order where its answer will be.
func (c *Collection) startBatch(ctx context.Context, work *sync.WaitGroup, slots chan<- chan answered, keys []string, k int, opts *PredictOptions) {
	defer close(slots)
	for _, key := range keys {
		slot := make(chan answered, 1)
		select {
		case slots <- slot:
		case <-ctx.Done():
			return
		}
		work.Go(func() {
			res, err := c.Predict(ctx, key, k, opts)
			res.Source = key
			slot <- answered{res, err}
		})
	}
}
