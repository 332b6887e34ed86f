package train

import (
	"sync"
	"sync/atomic"
)

// lanes is the number of parts that sums are divided into, for any number of cores. Each lane adds
// up its own chunks in order, and lanes are added up in order. So the result does not depend on
// scheduling. No more cores than lanes are of use.
const lanes = 16

// crew is a number of goroutines that share work.
type crew struct{ cores int }

// each calls fn for every task below n, on c.cores goroutines. worker is below c.cores, and no two
// calls at the same time have the same one. Tasks begin in order.
func (c crew) each(n int, fn func(worker, task int)) {
	workers := min(c.cores, n)
	if workers <= 1 {
		for task := range n {
			fn(0, task)
		}
		return
	}
	var next atomic.Int64
	var wait sync.WaitGroup
	for worker := range workers {
		wait.Go(func() {
			for task := int(next.Add(1)) - 1; task < n; task = int(next.Add(1)) - 1 {
				fn(worker, task)
			}
		})
	}
	wait.Wait()
}

// chunks calls fn for consecutive ranges [first, last) of n things, each of at most size. Lane i
// gets the chunks i, i + lanes and so on, in order, on one goroutine.
func (c crew) chunks(n, size int, fn func(worker, lane, first, last int)) {
	count := (n + size - 1) / size
	c.each(min(lanes, count), func(worker, lane int) {
		for chunk := lane; chunk < count; chunk += lanes {
			fn(worker, lane, chunk*size, min(n, (chunk+1)*size))
		}
	})
}

// ranges calls fn for consecutive ranges [first, last) of n things. It is for results that do not
// depend on the ranges.
func (c crew) ranges(n, size int, fn func(worker, first, last int)) {
	c.each((n+size-1)/size, func(worker, task int) { fn(worker, task*size, min(n, (task+1)*size)) })
}
