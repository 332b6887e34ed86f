package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

func (a *app) unlinkCommand() *cobra.Command {
	var flags edgeFlags
	cmd := &cobra.Command{
		Use:   "unlink DIR COLLECTION EDGES [--source-collection C] [--ids] [--undirected] [--dry-run]",
		Short: "Forget known links, so that they may be predicted again",
		Long: `Unlink forgets the links of a file that ` + "`flashdb link`" + ` would record: two columns, source and
target, of keys, or with --ids of row numbers of the imported file, in the same formats. The
nodes stay. The whole file is checked before anything is changed; a link that is not known
is skipped and counted.`,
		Example: `  flashdb unlink papers.flash papers retracted.tsv --dry-run
  flashdb unlink shop.flash items returned.tsv --source-collection users
  flashdb unlink papers.flash papers test.tsv.zst --ids --undirected
  printf '2209.10100\t1706.03762\n' | flashdb unlink papers.flash papers -`,
		Args: usage.Args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withEdges(cmd.Context(), args, flags, func(ctx context.Context, links *fileLinks) error {
				return a.unlink(ctx, links, flags.dryRun)
			})
		},
	}
	flags.add(cmd, "forget each edge in both directions")
	return cmd
}

// unlink forgets the links of a file, or says how many of them it would.
func (a *app) unlink(ctx context.Context, links *fileLinks, dryRun bool) error {
	if dryRun {
		known, err := a.countKnown(ctx, links)
		if err != nil {
			return err
		}
		return a.printUnlink(links, known, nil)
	}
	known := 0
	err := a.inBatches(ctx, "unlink", links, func(ctx context.Context, edges ...flashdb.Edge) error {
		n, err := links.into.Unlink(ctx, edges...)
		known += n
		return err
	})
	if err != nil {
		return err
	}
	elapsed := time.Since(links.began)
	return a.printUnlink(links, known, &elapsed)
}

// printUnlink says what was done, or with no time what would be.
func (a *app) printUnlink(links *fileLinks, known int, elapsed *time.Duration) error {
	if a.json {
		j := struct {
			DryRun  bool     `json:"dry_run,omitempty"`
			Edges   int      `json:"edges"`
			Links   int      `json:"links"`
			Known   int      `json:"known"`
			Seconds *float64 `json:"seconds,omitempty"`
		}{DryRun: elapsed == nil, Edges: links.edges, Links: len(links.pairs), Known: known}
		if elapsed != nil {
			seconds := elapsed.Seconds()
			j.Seconds = &seconds
		}
		return a.emit(j)
	}
	note := ""
	if unknown := len(links.pairs) - known; unknown > 0 {
		note = fmt.Sprintf(" (%s not known)", show.Number(unknown))
	}
	read, forgot := show.Count(links.edges, "edge"), show.Count(known, "link")
	if elapsed == nil {
		_, err := fmt.Fprintf(a.out, "read %s, would forget %s%s; nothing was changed\n", read, forgot, note)
		return err
	}
	_, err := fmt.Fprintf(a.out, "read %s, forgot %s%s in %s\n", read, forgot, note, show.Duration(*elapsed))
	return err
}
