package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/control"
)

// open returns the database in dir: opened here, or asked of the process that has it open. The
// owner is tried first, since Open would wait for its lock.
func (a *app) open(ctx context.Context, dir string, opts flashdb.Options) (database, error) {
	if a.shared != nil {
		return a.shared.Lend(), nil
	}
	db, err := openRemote(ctx, dir, a.err)
	if !errors.Is(err, control.ErrNoOwner) {
		return db, err
	}
	own, err := flashdb.Open(dir, &opts)
	if errors.Is(err, flashdb.ErrLocked) {
		// Its owner may have made the socket meanwhile.
		remote, rerr := openRemote(ctx, dir, a.err)
		if !errors.Is(rerr, control.ErrNoOwner) {
			return remote, rerr
		}
		return nil, fmt.Errorf("%w, or let it answer other commands: open it there with `flashdb serve`, or call control.Serve in the program", err)
	}
	if err != nil {
		return nil, err
	}
	return control.Local(own), nil
}

// openRemote connects to the process that has dir open and says so on w. It returns
// control.ErrNoOwner when nobody answers.
func openRemote(ctx context.Context, dir string, w io.Writer) (database, error) {
	db, err := control.Dial(dir)
	if err != nil {
		return nil, err
	}
	pid, err := db.Owner(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	fmt.Fprintf(w, "%s is open in process %d; asked it through %s\n", show.Text(dir), pid, control.SocketName)
	return db, nil
}

// withDB runs fn on the existing database in dir. What Close reports is never lost behind a
// success.
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

// sourceCollectionOf returns the collection that sources are nodes of: the one of that name, or c
// where there is none.
func sourceCollectionOf(ctx context.Context, db database, c collection, name string) (collection, error) {
	if name == "" {
		return c, nil
	}
	return collectionOf(ctx, db, name)
}

// collectionOf returns a collection; one that is not there is an error that says which are.
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
