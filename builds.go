package flashdb

import (
	"context"
	"errors"
	"sync"
)

// errMergeCancelled is the cause of a merge of segments that was cancelled because another call
// waits for it.
var errMergeCancelled = errors.New("the merge of segments was cancelled for another call")

// builds say who may make, publish and remove index files. A merge of segments takes long, so new
// segments are built and published beside it. Everything else, such as a rebuild, excludes both.
type builds struct {
	merging  turn // held by a merge, and by everything else but a new segment
	segments turn // held while a new segment is built, while a merge is published, and by everything else

	mu          sync.Mutex
	cancelMerge context.CancelCauseFunc // of the merge that runs; nil if none does
}

func newBuilds() builds { return builds{merging: make(turn, 1), segments: make(turn, 1)} }

// take excludes all others. It cancels a merge that runs.
func (b *builds) take(ctx context.Context) error {
	b.mu.Lock()
	if b.cancelMerge != nil {
		b.cancelMerge(errMergeCancelled)
	}
	b.mu.Unlock()
	if err := b.merging.take(ctx); err != nil {
		return err
	}
	if err := b.segments.take(ctx); err != nil {
		b.merging.pass()
		return err
	}
	return nil
}

func (b *builds) pass() {
	b.segments.pass()
	b.merging.pass()
}

// merge calls fn, with a context that is cancelled when another call waits.
func (b *builds) merge(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := b.merging.take(ctx); err != nil {
		return err
	}
	defer b.merging.pass()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b.mu.Lock()
	b.cancelMerge = cancel
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.cancelMerge = nil
		b.mu.Unlock()
	}()
	return fn(ctx)
}
