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
		Use:   "link DIR COLLECTION EDGES [--ids] [--undirected] [--dry-run]",
		Short: "Record known links, which predictions leave out",
		Long: `Link records known links from a file of two columns, source and target: keys, or with
--ids row numbers of the imported file. The file is .parquet, .csv or, by any other name,
tab-separated; - is standard input. It may be compressed with zstd or gzip. Of a file
with more columns, --source-column and --target-column name the two; a Parquet file has
them as source and target. All of it is checked before anything is stored; recording a
link twice is recording it once.`,
		Example: `  flashdb link papers.flash papers cites.tsv
  flashdb link papers.flash papers train.tsv.zst --ids --undirected
  flashdb link papers.flash papers cites.parquet --source-column citing --target-column cited`,
		Args: usage.Args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withEdges(cmd.Context(), args, flags, a.link)
		},
	}
	flags.add(cmd, "record each edge in both directions")
	return cmd
}

// link records the links of a file, or says how many of them would be new.
func (a *app) link(ctx context.Context, c collection, file tableFile, flags edgeFlags) error {
	start := time.Now()
	links, err := a.readLinks(ctx, c, file, flags.byRow, flags.undirected)
	if err != nil {
		return err
	}
	if flags.dryRun {
		return a.dryLink(ctx, c, links)
	}
	if err := a.inBatches(ctx, "link", links, c.LinkAll); err != nil {
		return err
	}
	elapsed := time.Since(start)
	if a.json {
		return a.emit(struct {
			Edges   int     `json:"edges"`
			Links   int     `json:"links"`
			Seconds float64 `json:"seconds"`
		}{links.edges, len(links.pairs), elapsed.Seconds()})
	}
	_, err = fmt.Fprintf(a.out, "read %s, recorded %s in %s\n", show.Count(links.edges, "edge"), show.Count(len(links.pairs), "link"), show.Duration(elapsed))
	return err
}

// dryLink is link without its writes.
func (a *app) dryLink(ctx context.Context, c collection, links *fileLinks) error {
	known, err := a.countKnown(ctx, c, links)
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
