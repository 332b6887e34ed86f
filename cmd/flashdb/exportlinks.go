package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/parquet"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
	"github.com/flashdb/flashdb/internal/codec"
)

func (a *app) exportLinksCommand() *cobra.Command {
	var format, sourceCollection string
	known := []string{formatTSV, formatCSV, formatParquet}
	cmd := &cobra.Command{
		Use:   "links DIR COLLECTION FILE [--source-collection C]",
		Short: "Write the known links of a collection to a file",
		Long: `Links writes every known link as a line of two keys, source and target, that link reads:
.tsv, .csv or .parquet, compressed if the name ends in .zst or .gz; - is standard output.
Where links have a relation, every line has three columns, source, relation and target, that
link --triples reads; the relation of those without one is empty.
With --source-collection it writes the links from that collection's nodes instead of those
from the collection's own. The file must not exist yet.`,
		Example: `  flashdb export links papers.flash papers cites.tsv.zst
  flashdb export links shop.flash items likes.tsv --source-collection users`,
		Args: usage.Args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, err := formatOf(args[2], format, known)
			if err != nil {
				return err
			}
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{ReadOnly: true}, func(db database, c collection) error {
				start := time.Now()
				from, err := sourceCollectionOf(cmd.Context(), db, c, sourceCollection)
				if err != nil {
					return err
				}
				links, err := a.exportLinks(cmd.Context(), from, c, kind, args[2])
				if err != nil {
					return err
				}
				return a.printExport(args[2], "link", links, time.Since(start))
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "`format` of the file: tsv, csv or parquet (default by its name)")
	cmd.Flags().StringVar(&sourceCollection, "source-collection", "", "write the links from nodes of this `collection`")
	completeWords(cmd, "format", known...)
	return cmd
}

// exportLinks writes the links from one collection to another, or to itself.
func (a *app) exportLinks(ctx context.Context, from, into collection, format, file string) (links int64, err error) {
	sources, err := takeCensus(ctx, from)
	if err != nil {
		return 0, err
	}
	targets, err := takeCensus(ctx, into)
	if err != nil {
		return 0, err
	}
	wanted := from.Name()
	if wanted == into.Name() {
		wanted = ""
	}
	p := terminal.NewProgress(a.err)
	defer p.Clear()
	related, err := anyRelation(ctx, into, wanted)
	if err != nil {
		return 0, err
	}
	others := map[string]int64{} // links from other collections
	err = a.writeFile(file, func(w io.Writer) error {
		var out interface {
			Write(fields ...string) error
			Close() error
		} = parquet.NewEdgeWriter(w, sources.binary || targets.binary, related)
		if format != formatParquet {
			if out, err = codec.NewTableWriter(w, format); err != nil {
				return err
			}
		}
		for e, err := range into.Links(ctx) {
			if err != nil {
				return err
			}
			if e.SourceCollection != wanted {
				others[e.SourceCollection]++
				continue
			}
			fields := []string{e.Source, e.Target}
			if related {
				fields = []string{e.Source, e.Relation, e.Target}
			}
			if err := out.Write(fields...); err != nil {
				return err
			}
			if links++; links%1024 == 0 {
				p.Update("export", links, 0)
			}
		}
		return out.Close()
	})
	if err != nil || wanted != "" {
		return links, err
	}
	p.Clear()
	for _, name := range slices.Sorted(maps.Keys(others)) {
		fmt.Fprintf(a.err, "%s from %s: not written; --source-collection %s writes them\n", show.Count(others[name], "link"), name, name)
	}
	return links, nil
}

// anyRelation tells whether any link from one collection has a relation.
func anyRelation(ctx context.Context, into collection, from string) (bool, error) {
	for e, err := range into.Links(ctx) {
		if err != nil || (e.SourceCollection == from && e.Relation != "") {
			return err == nil, err
		}
	}
	return false, nil
}
