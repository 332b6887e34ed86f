package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/control"
)

// open returns the database in dir: opened here, or asked of the process that
// has it open. The owner is tried first where there is a socket, since Open
// would wait for its lock.
func (a *app) open(ctx context.Context, dir string, opts flashdb.Options) (database, error) {
	if a.shared != nil {
		return sharedDB{a.shared}, nil
	}
	if _, err := os.Lstat(filepath.Join(dir, control.SocketName)); err == nil {
		db, err := openRemote(ctx, dir, a.err)
		if !errors.Is(err, control.ErrNoOwner) {
			return db, err
		}
	}
	db, err := flashdb.Open(dir, &opts)
	if errors.Is(err, flashdb.ErrLocked) {
		// Its owner may have made the socket meanwhile.
		remote, rerr := openRemote(ctx, dir, a.err)
		if !errors.Is(rerr, control.ErrNoOwner) {
			return remote, rerr
		}
		return nil, fmt.Errorf("%w; or let it serve %s: open it there with Options.Control, or with `flashdb serve`", err, control.SocketName)
	}
	if err != nil {
		return nil, err
	}
	return localDB{db}, nil
}

// withDB runs fn on the existing database in dir. What Close reports is never
// lost behind a success.
func (a *app) withDB(ctx context.Context, dir string, opts flashdb.Options, fn func(db database) error) error {
	opts.MustExist = true
	db, err := a.open(ctx, dir, opts)
	if err != nil {
		return err
	}
	return errors.Join(fn(db), db.Close())
}

// withCollection runs fn on a collection of the existing database in dir.
func (a *app) withCollection(ctx context.Context, dir, name string, opts flashdb.Options, fn func(db database, c collection) error) error {
	return a.withDB(ctx, dir, opts, func(db database) error {
		c, err := collectionOf(ctx, db, name)
		if err != nil {
			return err
		}
		return fn(db, c)
	})
}

// collectionOf returns a collection; one that is not there is an error that says
// which are.
func collectionOf(ctx context.Context, db database, name string) (collection, error) {
	c, err := db.Collection(ctx, name)
	if !errors.Is(err, flashdb.ErrNotFound) {
		return c, err
	}
	names, lerr := db.Collections(ctx)
	if lerr != nil {
		return nil, errors.Join(err, lerr)
	}
	return nil, fmt.Errorf("%w; the database has %s", err, orNone(shownList(names, 8), "none: `flashdb create` makes one"))
}
