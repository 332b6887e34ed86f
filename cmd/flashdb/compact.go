package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

func (a *app) compactCommand() *cobra.Command {
	var opts flashdb.CompactOptions
	cmd := &cobra.Command{
		Use:   "compact DIR",
		Short: "Return the space of what was deleted to the file system",
		Long: `Compact copies what a database holds into a new file and removes the old one, which never
shrinks by itself. It needs disk space for the copy. With --rebuild it also rebuilds every
index that holds deleted or replaced nodes.`,
		Example: `  flashdb compact papers.flash --rebuild`,
		Args:    usage.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.compact(cmd.Context(), args[0], opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Rebuild, "rebuild", false, "also rebuild the indexes that hold deleted or replaced nodes")
	return cmd
}

func (a *app) compact(ctx context.Context, dir string, opts flashdb.CompactOptions) error {
	return a.withDB(ctx, dir, flashdb.Options{}, func(db database) error {
		p := terminal.NewProgress(a.err)
		opts.Progress = func(stage string, done, total int64) { p.Update("compact: "+stage, done, total) }
		res, err := db.Compact(ctx, &opts)
		p.Clear()
		if err != nil {
			return err
		}
		return a.printCompact(dir, res)
	})
}

// jsonDiskUse is flashdb.DiskUse as --json prints it.
type jsonDiskUse struct {
	Store int64 `json:"store_bytes"`
	WAL   int64 `json:"wal_bytes"`
	Index int64 `json:"index_bytes"`
}

func (a *app) printCompact(dir string, res flashdb.CompactResult) error {
	if a.json {
		return a.emit(struct {
			Before  jsonDiskUse `json:"before"`
			After   jsonDiskUse `json:"after"`
			Rebuilt []string    `json:"rebuilt"`
			Seconds float64     `json:"seconds"`
		}{jsonDiskUse(res.Before), jsonDiskUse(res.After), append([]string{}, res.Rebuilt...), res.Elapsed.Seconds()})
	}
	fmt.Fprintf(a.out, "compacted %s in %s", show.Text(dir), show.Duration(res.Elapsed))
	if len(res.Rebuilt) > 0 {
		fmt.Fprintf(a.out, ", rebuilt the index of %s", strings.Join(res.Rebuilt, ", "))
	}
	fmt.Fprintln(a.out)
	return a.table(tabwriter.AlignRight, func(w io.Writer) {
		fmt.Fprint(w, "\tbefore\tafter\t\n")
		for _, row := range []struct {
			what          string
			before, after int64
		}{
			{"store", res.Before.Store, res.After.Store},
			{"log", res.Before.WAL, res.After.WAL},
			{"index", res.Before.Index, res.After.Index},
			{"total", res.Before.Total(), res.After.Total()},
		} {
			fmt.Fprintf(w, "  %s\t%s\t%s\t\n", row.what, show.Bytes(row.before), show.Bytes(row.after))
		}
	})
}
