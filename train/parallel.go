package train

import (
	"sync"
	"sync/atomic"
)

// lanes is the number of parts that work with sums of its own is cut into, whatever the number of
// cores. Each lane adds up its own chunks in order, and lanes are added up in order: the bits do
// not depend on who did what when. It bounds the cores that can be of use.
const lanes = 16

// crew is a number of goroutines that share work.
type crew struct{ cores int }

// each calls fn for every task below n, on as many goroutines as there are cores. Worker is below
// c.cores: no two calls at a time have the same one. Tasks are begun in order.
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

// chunks calls fn for consecutive ranges [first, last) of n things, size at most each. A lane gets
// every chunk whose number is its own modulo lanes, in order, by one goroutine.
func (c crew) chunks(n, size int, fn func(worker, lane, first, last int)) {
	count := (n + size - 1) / size
	c.each(min(lanes, count), func(worker, lane int) {
		for chunk := lane; chunk < count; chunk += lanes {
			fn(worker, lane, chunk*size, min(n, (chunk+1)*size))
		}
	})
}

// ranges calls fn for consecutive ranges [first, last) of n things whose results do not depend on
// the cut.
func (c crew) ranges(n, size int, fn func(worker, first, last int)) {
	c.each((n+size-1)/size, func(worker, task int) { fn(worker, task*size, min(n, (task+1)*size)) })
}
