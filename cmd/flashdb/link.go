package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

func (a *app) linkCommand() *cobra.Command {
	var flags edgeFlags
	cmd := &cobra.Command{
		Use:   "link DIR COLLECTION EDGES [--source-collection C] [--ids] [--undirected] [--dry-run]",
		Short: "Record known links, which predictions leave out",
		Long: `Link records known links from a file of two columns, source and target. They hold keys, or
with --ids row numbers of the imported file. The file is .parquet, .csv or, with any other
name, tab-separated; - is standard input. It may be compressed with zstd or gzip. If it has
more columns, --source-column and --target-column name the two; the columns of a Parquet file
are called source and target by default. The whole file is checked before anything is stored.
A link that is recorded already changes nothing.

A link may have a relation: --relation gives one to all, --triples reads it from the middle of
three columns, as files of knowledge graphs have it. A prediction for a relation leaves out only
the links of that relation.

With --source-collection the sources are nodes of another collection, such as users who like
items. A prediction for such a user then leaves these items out.`,
		Example: `  flashdb link papers.flash papers cites.tsv
  flashdb link papers.flash papers train.tsv.zst --ids --undirected
  flashdb link shop.flash items likes.tsv --source-collection users
  flashdb link kg.flash entities triples.tsv --triples
  flashdb link papers.flash papers cites.parquet --source-column citing --target-column cited`,
		Args: usage.Args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withEdges(cmd.Context(), args, flags, func(ctx context.Context, links *fileLinks) error {
				return a.link(ctx, links, flags.dryRun)
			})
		},
	}
	flags.add(cmd, "record each edge in both directions")
	return cmd
}

// link records the links of a file, or says how many of them would be new.
func (a *app) link(ctx context.Context, links *fileLinks, dryRun bool) error {
	if dryRun {
		return a.dryLink(ctx, links)
	}
	if err := a.inBatches(ctx, "link", links, links.into.Link); err != nil {
		return err
	}
	elapsed := time.Since(links.began)
	if a.json {
		return a.emit(struct {
			Edges   int     `json:"edges"`
			Links   int     `json:"links"`
			Seconds float64 `json:"seconds"`
		}{links.edges, len(links.pairs), elapsed.Seconds()})
	}
	_, err := fmt.Fprintf(a.out, "read %s, recorded %s in %s\n", show.Count(links.edges, "edge"), show.Count(len(links.pairs), "link"), show.Duration(elapsed))
	return err
}

// dryLink is link without its writes.
func (a *app) dryLink(ctx context.Context, links *fileLinks) error {
	known, err := a.countKnown(ctx, links)
	if err != nil {
		return err
	}
	added := len(links.pairs) - known
	if a.json {
		return a.emit(struct {
			DryRun bool `json:"dry_run"`
			Edges  int  `json:"edges"`
			Links  int  `json:"links"`
			New    int  `json:"new"`
		}{true, links.edges, len(links.pairs), added})
	}
	_, err = fmt.Fprintf(a.out, "read %s, would record %s: %s new, %s known; nothing was stored\n",
		show.Count(links.edges, "edge"), show.Count(len(links.pairs), "link"), show.Number(added), show.Number(known))
	return err
}
