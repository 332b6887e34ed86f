package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
)

func (a *app) rebuildCommand() *cobra.Command {
	var opts flashdb.RebuildOptions
	var collection string
	cmd := &cobra.Command{
		Use:   "rebuild DIR [--collection C]",
		Short: "Build the index of each collection anew",
		Long: `Rebuild builds a new generation of the index of each collection, or of one, and
serves it. Below 20,000 nodes no index is needed, and none is built unless forced.

Exit code: 0 done or nothing to do, 1 error, 3 another process has DIR open.`,
		Example: `  flashdb rebuild papers.flash                    # the nightly job
  flashdb rebuild papers.flash --collection papers --force`,
		Args: args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.rebuild(cmd.Context(), args[0], collection, opts)
			if errors.Is(err, flashdb.ErrLocked) {
				return &codedError{exitLocked, err}
			}
			return err
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&collection, "collection", "", "only this collection (default all)")
	fs.BoolVar(&opts.Force, "force", false, "build below 20,000 nodes, and when nothing has changed")
	fs.IntVar(&opts.Lists, "lists", 0, "number of inverted lists (default min(n/64, 16 sqrt n))")
	fs.IntVar(&opts.Bits, "bits", 0, "bits of a sub-quantizer, 4 or 8 (default 4)")
	fs.Uint64Var(&opts.Seed, "seed", 0, "seed of sampling and training: the same rows and seed give the same file")
	fs.BoolVar(&opts.OmitRows, "omit-rows", false, "leave full rows out of the index: half the disk, slower scoring")
	return cmd
}

func (a *app) rebuild(ctx context.Context, dir, collection string, opts flashdb.RebuildOptions) error {
	if err := opts.Validate(); err != nil {
		return err
	}
	return a.withDB(ctx, dir, flashdb.Options{}, func(db database) error {
		names := []string{collection}
		if collection == "" {
			var err error
			if names, err = db.Collections(ctx); err != nil {
				return err
			}
		}
		for _, name := range names {
			c, err := db.Collection(ctx, name)
			if err != nil {
				return err
			}
			res, err := a.rebuildOne(ctx, c, opts)
			if err != nil {
				return err
			}
			if err := a.printRebuild(name, res); err != nil {
				return err
			}
		}
		return nil
	})
}

// rebuildOne rebuilds with a progress line.
func (a *app) rebuildOne(ctx context.Context, c collection, opts flashdb.RebuildOptions) (flashdb.RebuildResult, error) {
	p := newProgress(a.err)
	defer p.clear()
	opts.Progress = func(stage string, done, total int64) {
		p.update(fmt.Sprintf("rebuild %s: %s", c.Name(), stage), done, total)
	}
	return c.Rebuild(ctx, &opts)
}

func (a *app) printRebuild(name string, res flashdb.RebuildResult) error {
	if a.json {
		return a.emit(struct {
			Collection string  `json:"collection"`
			Built      bool    `json:"built"`
			Reason     string  `json:"reason,omitempty"`
			Generation uint64  `json:"generation"`
			Rows       int     `json:"rows"`
			Lists      int     `json:"lists"`
			Bytes      int64   `json:"bytes"`
			Seconds    float64 `json:"seconds"`
		}{name, res.Built, res.Reason, res.Generation, res.Rows, res.Lists, res.Bytes, res.Elapsed.Seconds()})
	}
	var err error
	if res.Built {
		_, err = fmt.Fprintf(a.out, "%s: built generation %d: %s in %s, %s, %s\n", name, res.Generation,
			counted(res.Rows, "row"), counted(res.Lists, "list"), sized(res.Bytes), took(res.Elapsed))
	} else {
		_, err = fmt.Fprintf(a.out, "%s: nothing to do: %s\n", name, res.Reason)
	}
	return err
}
