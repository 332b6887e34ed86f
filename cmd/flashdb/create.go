package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

func (a *app) createCommand() *cobra.Command {
	var schema flashdb.Schema
	cmd := &cobra.Command{
		Use:        "create DIR COLLECTION --dim N [--normalize]",
		SuggestFor: []string{"new", "init", "make"},
		Short:      "Create a collection, and the database directory if need be",
		Example: `  flashdb create papers.flash papers --dim 128
  flashdb create papers.flash abstracts --dim 384 --normalize`,
		Args: usage.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("dim") {
				return errors.New("--dim is missing: give the width of the embeddings, 1 or more")
			}
			return a.create(cmd.Context(), args[0], args[1], schema)
		},
	}
	cmd.Flags().IntVar(&schema.Dim, "dim", 0, "width of every embedding (needed)")
	cmd.Flags().BoolVar(&schema.Normalize, "normalize", false, "scale every embedding to length 1 as it is stored")
	return cmd
}

func (a *app) create(ctx context.Context, dir, name string, schema flashdb.Schema) error {
	if schema.Dim < 1 {
		return fmt.Errorf("create %s: --dim is %d: give the width of the embeddings, 1 or more", name, schema.Dim)
	}
	if err := a.createCollection(ctx, dir, name, schema); err != nil {
		return err
	}
	if a.json {
		return a.emit(struct {
			Dir        string `json:"dir"`
			Collection string `json:"collection"`
			Dim        int    `json:"dim"`
			Normalize  bool   `json:"normalize"`
		}{dir, name, schema.Dim, schema.Normalize})
	}
	_, err := fmt.Fprintf(a.out, "created collection %s of dimension %d in %s\n", name, schema.Dim, show.Text(dir))
	return err
}

// createCollection leaves an empty database when it fails after the open: once the lock is given
// back, what lies at the path may be another's.
func (a *app) createCollection(ctx context.Context, dir, name string, schema flashdb.Schema) error {
	db, err := a.open(ctx, dir, flashdb.Options{})
	if err != nil {
		return err
	}
	if _, err = db.CreateCollection(ctx, name, schema); errors.Is(err, flashdb.ErrExists) {
		err = fmt.Errorf("%w: name another, or remove it with %s", err, a.verb("drop"))
	}
	return errors.Join(err, db.Close())
}
