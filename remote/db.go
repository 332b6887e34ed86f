package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/flashdb/flashdb"
)

// Options configure Open. The zero value, or nil, means the defaults.
type Options struct {
	// Timeout is how long one call of the engine may take that reads or writes rows. Default 30 s.
	Timeout time.Duration
	// Attempts is how often a call is made in all while the engine is not available. Default 4.
	Attempts int
	// Partial answers queries also while parts of the rows do not answer. QueryStats.Plan then says
	// which. Without it such a query fails with ErrUnavailable.
	Partial bool
	// Logger gets what goes wrong beside the calls. Default none.
	Logger *slog.Logger
}

// A DB is a directory with the links and calibrations of collections whose rows are in an engine.
// It is safe for concurrent use.
type DB struct {
	local  *flashdb.DB
	engine *patient
	opts   Options

	mu          sync.Mutex
	collections map[string]*Collection
}

// Open opens the directory dir, which it creates if it does not exist, beside an engine. The
// directory is a flashdb database: its lock, its durability and its commands for check and backup
// are those of flashdb. Close closes both.
func Open(ctx context.Context, dir string, e Engine, opts *Options) (*DB, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Attempts == 0 {
		o.Attempts = 4
	}
	if o.Timeout < 0 || o.Attempts < 0 {
		return nil, fmt.Errorf("%w: timeout is %v and attempts are %d: want positive values, or 0 for the defaults", flashdb.ErrInvalid, o.Timeout, o.Attempts)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	local, err := flashdb.Open(dir, &flashdb.Options{Logger: o.Logger, CalibrateTime: -1})
	if err != nil {
		return nil, err
	}
	return &DB{
		local: local, opts: o, collections: map[string]*Collection{},
		engine: &patient{Engine: e, attempts: o.Attempts, timeout: o.Timeout, partial: o.Partial},
	}, nil
}

// Close closes the directory and the engine.
func (db *DB) Close() error { return errors.Join(db.local.Close(), db.engine.Close()) }

// Collection returns the collection of that name, or flashdb.ErrNotFound if the engine serves no
// version of it.
func (db *DB) Collection(ctx context.Context, name string) (*Collection, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if c := db.collections[name]; c != nil {
		return c, nil
	}
	v, err := db.engine.Live(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open collection: %w", err)
	}
	local, err := db.linksOf(name)
	if err != nil {
		return nil, err
	}
	c := &Collection{db: db, name: name, local: local}
	if c.served, err = c.load(ctx, v); err != nil {
		return nil, fmt.Errorf("open collection %q: %w", name, err)
	}
	db.collections[name] = c
	return c, nil
}

// linksOf returns the local collection that holds the links of a collection. Its nodes are those
// that have links. An embedding of a single zero stands for the one that the engine holds.
func (db *DB) linksOf(name string) (*flashdb.Collection, error) {
	return db.local.OpenCollection(name, flashdb.Schema{Dim: 1})
}
