package main

import (
	"context"
	"errors"

	"github.com/flashdb/flashdb"
)

// open returns the database in dir.
func (a *app) open(_ context.Context, dir string, opts flashdb.Options) (database, error) {
	db, err := flashdb.Open(dir, &opts)
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
		c, err := db.Collection(ctx, name)
		if err != nil {
			return err
		}
		return fn(db, c)
	})
}
