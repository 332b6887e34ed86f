package main

import (
	"errors"

	"github.com/flashdb/flashdb"
)

// withDB runs fn on the existing database in dir. What Close reports is never
// lost behind a success.
func withDB(dir string, opts flashdb.Options, fn func(db *flashdb.DB) error) error {
	opts.MustExist = true
	db, err := flashdb.Open(dir, &opts)
	if err != nil {
		return err
	}
	return errors.Join(fn(db), db.Close())
}

// withCollection runs fn on a collection of the existing database in dir.
func withCollection(dir, name string, opts flashdb.Options, fn func(db *flashdb.DB, c *flashdb.Collection) error) error {
	return withDB(dir, opts, func(db *flashdb.DB) error {
		c, err := db.Collection(name)
		if err != nil {
			return err
		}
		return fn(db, c)
	})
}
