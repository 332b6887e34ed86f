package main

import (
	"context"
	"sync/atomic"
)

// An interrupted command has graceTime to end. One that has something worth keeping may take
// longer: it says so here.
type keeperKey struct{}

// withKeeper returns a context in which a command may ask for time, and what it has asked for.
func withKeeper(ctx context.Context) (context.Context, *atomic.Bool) {
	keeps := new(atomic.Bool)
	return context.WithValue(ctx, keeperKey{}, keeps), keeps
}

// keepAfterInterrupt asks that this command may end in its own time after it was interrupted from
// now on. A second signal ends it at once.
func keepAfterInterrupt(ctx context.Context) {
	if keeps, ok := ctx.Value(keeperKey{}).(*atomic.Bool); ok {
		keeps.Store(true)
	}
}
