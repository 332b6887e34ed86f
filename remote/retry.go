package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// firstPause is the mean pause before the second attempt. Each further one is twice as long.
const firstPause = 50 * time.Millisecond

// patient is an engine whose calls are repeated while it is not available, and have a time limit.
// Stage, Publish, Drop and Refresh have no limit, because an engine may build or remove an index in
// them, for minutes. A Scan has no limit either and is not repeated: its rows were passed on
// already.
type patient struct {
	Engine
	attempts int
	timeout  time.Duration
	partial  bool // an Answer of a part of the rows is one
}

// again calls fn until it succeeds, fails for another reason than ErrUnavailable, or has been
// called often enough.
func again[T any](ctx context.Context, p *patient, timeout time.Duration, fn func(ctx context.Context) (T, error)) (got T, err error) {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		limited, cancel := context.WithTimeout(ctx, timeout)
		got, err = fn(limited)
		timedOut := limited.Err() != nil && ctx.Err() == nil
		cancel()
		if err != nil && timedOut {
			err = fmt.Errorf("%w: no answer within %v", ErrUnavailable, timeout)
		}
		if err == nil || !errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
			return got, err
		}
		if attempt == p.attempts {
			return got, fmt.Errorf("%w (%d attempts)", err, attempt)
		}
		select { // between half and one and a half of the pause, so that clients do not come together
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return got, ctx.Err()
		}
		pause *= 2
	}
}

// unlimited is the time limit of calls that have none of their own.
const unlimited = 1 << 62 * time.Nanosecond

// nothing is the result of a call that has none.
type nothing struct{}

func (p *patient) Live(ctx context.Context, collection string) (Version, error) {
	return again(ctx, p, p.timeout, func(ctx context.Context) (Version, error) { return p.Engine.Live(ctx, collection) })
}

func (p *patient) Versions(ctx context.Context, collection string) ([]Name, error) {
	return again(ctx, p, p.timeout, func(ctx context.Context) ([]Name, error) { return p.Engine.Versions(ctx, collection) })
}

func (p *patient) Stage(ctx context.Context, collection string, v Version) error {
	_, err := again(ctx, p, unlimited, func(ctx context.Context) (nothing, error) { return nothing{}, p.Engine.Stage(ctx, collection, v) })
	return err
}

func (p *patient) Publish(ctx context.Context, names ...Name) error {
	_, err := again(ctx, p, unlimited, func(ctx context.Context) (nothing, error) { return nothing{}, p.Engine.Publish(ctx, names...) })
	return err
}

func (p *patient) Drop(ctx context.Context, of Name) error {
	_, err := again(ctx, p, unlimited, func(ctx context.Context) (nothing, error) { return nothing{}, p.Engine.Drop(ctx, of) })
	return err
}

func (p *patient) Put(ctx context.Context, in Name, rows []Row) error {
	_, err := again(ctx, p, p.timeout, func(ctx context.Context) (nothing, error) { return nothing{}, p.Engine.Put(ctx, in, rows) })
	return err
}

func (p *patient) Delete(ctx context.Context, in Name, keys []string) (int, error) {
	return again(ctx, p, p.timeout, func(ctx context.Context) (int, error) { return p.Engine.Delete(ctx, in, keys) })
}

func (p *patient) Refresh(ctx context.Context, of Name) error {
	_, err := again(ctx, p, unlimited, func(ctx context.Context) (nothing, error) { return nothing{}, p.Engine.Refresh(ctx, of) })
	return err
}

func (p *patient) Get(ctx context.Context, in Name, keys []string) ([]Row, error) {
	return again(ctx, p, p.timeout, func(ctx context.Context) ([]Row, error) { return p.Engine.Get(ctx, in, keys) })
}

func (p *patient) Search(ctx context.Context, in Name, q *Query) (Answer, error) {
	return again(ctx, p, p.timeout, func(ctx context.Context) (Answer, error) {
		a, err := p.Engine.Search(ctx, in, q)
		if err == nil && a.Missing != "" && !p.partial {
			err = fmt.Errorf("%w: %s", ErrUnavailable, a.Missing)
		}
		return a, err
	})
}

func (p *patient) Count(ctx context.Context, in Name) (int, error) {
	return again(ctx, p, p.timeout, func(ctx context.Context) (int, error) { return p.Engine.Count(ctx, in) })
}
