package conformance

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/flashdb/flashdb/remote"
)

// A Faulty is an engine that fails as it is told.
type Faulty struct {
	remote.Engine

	mu sync.Mutex
	// calls are made before a call of that name reaches the engine.
	calls map[string]func(n int) error
	made  map[string]int
	// changed, if set, changes what Search returns.
	changed func(*remote.Answer)
}

// On calls fn before each call of that name, with how many there were before. If fn returns an
// error, the call fails with it.
func (f *Faulty) On(call string, fn func(n int) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls, f.made = map[string]func(int) error{}, map[string]int{}
	}
	f.calls[call], f.made[call] = fn, 0
}

// Change lets fn change every answer to a Search; nil ends it.
func (f *Faulty) Change(fn func(*remote.Answer)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed = fn
}

func (f *Faulty) before(call string) error {
	f.mu.Lock()
	fn, n := f.calls[call], f.made[call]
	if fn != nil {
		f.made[call]++
	}
	f.mu.Unlock()
	if fn == nil {
		return nil
	}
	return fn(n)
}

// Search implements remote.Engine.
func (f *Faulty) Search(ctx context.Context, in remote.Name, q *remote.Query) (remote.Answer, error) {
	if err := f.before("search"); err != nil {
		return remote.Answer{}, err
	}
	a, err := f.Engine.Search(ctx, in, q)
	f.mu.Lock()
	changed := f.changed
	f.mu.Unlock()
	if err == nil && changed != nil {
		changed(&a)
	}
	return a, err
}

// Put implements remote.Engine.
func (f *Faulty) Put(ctx context.Context, in remote.Name, rows []remote.Row) error {
	if err := f.before("put"); err != nil {
		return err
	}
	return f.Engine.Put(ctx, in, rows)
}

// Get implements remote.Engine.
func (f *Faulty) Get(ctx context.Context, in remote.Name, keys []string) ([]remote.Row, error) {
	if err := f.before("get"); err != nil {
		return nil, err
	}
	return f.Engine.Get(ctx, in, keys)
}

// Publish implements remote.Engine.
func (f *Faulty) Publish(ctx context.Context, names ...remote.Name) error {
	err := f.Engine.Publish(ctx, names...)
	if fault := f.before("publish"); fault != nil { // the answer is lost, and not the call
		return fault
	}
	return err
}

// Gone is what a call returns while the engine does not answer.
func Gone(int) error { return fmt.Errorf("%w: connection refused", remote.ErrUnavailable) }

// Slow returns a function that waits.
func Slow(d time.Duration) func(int) error {
	return func(int) error {
		time.Sleep(d)
		return nil
	}
}
