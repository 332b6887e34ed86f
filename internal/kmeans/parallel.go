package kmeans

import (
	"context"
	"sync"
	"sync/atomic"
)

// taskRows is the number of rows of one task. It is fixed, so that the work is cut in the same way
// for any number of workers.
const taskRows = 4096

// tasks returns how many tasks n rows make.
func tasks(n int) int { return (n + taskRows - 1) / taskRows }

// parallel calls do(worker, task) for every task in 0..n-1, each on one of the workers, and waits.
// Once ctx is done it begins no further task and returns the context's error.
func parallel(ctx context.Context, workers, n int, do func(worker, task int)) error {
	workers = min(workers, n)
	if workers <= 1 {
		for task := range n {
			if err := ctx.Err(); err != nil {
				return err
			}
			do(0, task)
		}
		return ctx.Err()
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				task := int(next.Add(1)) - 1
				if task >= n {
					return
				}
				do(worker, task)
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}
