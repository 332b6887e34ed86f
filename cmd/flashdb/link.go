package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
)

// batchEdges is how many edges one atomic act records.
const batchEdges = 10_000

func (a *app) linkCommand() *cobra.Command {
	var byRow, undirected, dryRun bool
	var format, sourceColumn, targetColumn string
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
		Args: args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{ReadOnly: dryRun}, func(_ database, c collection) (err error) {
				start := time.Now()
				file, table, err := a.openEdges(args[2], format, sourceColumn, targetColumn)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, file.remove()) }()
				if dryRun {
					return a.dryLink(cmd.Context(), c, table, byRow, undirected)
				}
				edges, links, err := a.link(cmd.Context(), c, table, byRow, undirected)
				if err != nil {
					return err
				}
				elapsed := time.Since(start)
				if a.json {
					return a.emit(struct {
						Edges   int     `json:"edges"`
						Links   int     `json:"links"`
						Seconds float64 `json:"seconds"`
					}{edges, links, elapsed.Seconds()})
				}
				_, err = fmt.Fprintf(a.out, "read %s, recorded %s in %s\n", counted(edges, "edge"), counted(links, "link"), took(elapsed))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&byRow, "ids", false, "the columns are row numbers of the imported file, not keys")
	cmd.Flags().BoolVar(&undirected, "undirected", false, "record each edge in both directions")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "check the whole file and say what would happen, but store nothing")
	cmd.Flags().StringVar(&format, "format", "", "`format` of the file: tsv, csv or parquet (default by its name)")
	cmd.Flags().StringVar(&sourceColumn, "source-column", "", "`column` of sources, by the header")
	cmd.Flags().StringVar(&targetColumn, "target-column", "", "`column` of targets, by the header")
	completeWords(cmd, "format", formatTSV, formatCSV, formatParquet)
	return cmd
}

// openEdges finds a file of edges and its two columns.
func (a *app) openEdges(arg, format, source, target string) (*inputFile, tableFile, error) {
	if (source == "") != (target == "") {
		return nil, tableFile{}, errors.New("--source-column and --target-column go together: give both")
	}
	if arg == standardInput {
		format = cmp.Or(format, formatTSV)
	}
	file, err := a.openInput(arg, format)
	if err != nil {
		return nil, tableFile{}, err
	}
	columns := []string{source, target}
	switch {
	case source != "":
	case file.isParquet():
		columns = []string{"source", "target"}
	default:
		columns = nil
	}
	table, err := file.table(columns)
	if err != nil {
		return nil, tableFile{}, errors.Join(err, file.remove())
	}
	return file, table, nil
}

// link returns how many edges the file has, and how many different links they
// make.
func (a *app) link(ctx context.Context, c collection, file tableFile, byRow, undirected bool) (edges, links int, err error) {
	p := newProgress(a.err)
	defer p.clear()
	nodes, err := newNodeIndex(ctx, c)
	if err != nil {
		return 0, 0, err
	}
	pairs, edges, err := readLinks(ctx, file, nodes, byRow, undirected, p)
	if err != nil {
		return 0, 0, err
	}
	batch := make([]flashdb.Edge, 0, batchEdges)
	for done := 0; done < len(pairs); done += len(batch) {
		batch = batch[:0]
		for _, e := range pairs[done:min(done+batchEdges, len(pairs))] {
			batch = append(batch, flashdb.Edge{Source: nodes.keys[e.source], Target: nodes.keys[e.target]})
		}
		if err := c.LinkAll(ctx, batch...); err != nil {
			return 0, 0, err
		}
		p.update("link "+file.name, int64(done), int64(len(pairs)))
	}
	return edges, len(pairs), nil
}

// dryLink is link without its writes: it says how many links would be new.
func (a *app) dryLink(ctx context.Context, c collection, file tableFile, byRow, undirected bool) error {
	p := newProgress(a.err)
	defer p.clear()
	nodes, err := newNodeIndex(ctx, c)
	if err != nil {
		return err
	}
	pairs, edges, err := readLinks(ctx, file, nodes, byRow, undirected, p)
	if err != nil {
		return err
	}
	added := len(pairs)
	for i := 0; i < len(pairs); {
		source := pairs[i].source
		targets, err := c.Linked(ctx, nodes.keys[source])
		if err != nil {
			return err
		}
		known := make(map[string]bool, len(targets))
		for _, key := range targets {
			known[key] = true
		}
		for ; i < len(pairs) && pairs[i].source == source; i++ {
			if known[nodes.keys[pairs[i].target]] {
				added--
			}
		}
		p.update("check "+file.name, int64(i), int64(len(pairs)))
	}
	p.clear()
	if a.json {
		return a.emit(struct {
			DryRun bool `json:"dry_run"`
			Edges  int  `json:"edges"`
			Links  int  `json:"links"`
			New    int  `json:"new"`
		}{true, edges, len(pairs), added})
	}
	_, err = fmt.Fprintf(a.out, "read %s, would record %s: %s new, %s known; nothing was stored\n",
		counted(edges, "edge"), counted(len(pairs), "link"), grouped(added), grouped(len(pairs)-added))
	return err
}

type idPair struct{ source, target uint32 }

// readLinks reads and resolves the file and returns the different links it makes,
// in order, so that the links of a source fall into one act, and its number of
// edges.
func readLinks(ctx context.Context, file tableFile, nodes *nodeIndex, byRow, undirected bool, p *progress) (pairs []idPair, edges int, err error) {
	if pairs, err = readEdges(ctx, file, nodes, byRow, p); err != nil {
		return nil, 0, err
	}
	edges = len(pairs)
	if undirected {
		for _, e := range pairs[:edges] {
			pairs = append(pairs, idPair{e.target, e.source})
		}
	}
	slices.SortFunc(pairs, func(x, y idPair) int {
		return cmp.Or(cmp.Compare(x.source, y.source), cmp.Compare(x.target, y.target))
	})
	return slices.Compact(pairs), edges, nil
}

// readEdges reads and resolves every edge of the file.
func readEdges(ctx context.Context, file tableFile, nodes *nodeIndex, byRow bool, p *progress) (pairs []idPair, err error) {
	table, err := file.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	resolve := nodes.byKey
	if byRow {
		resolve = func(s string) (uint32, error) {
			row, err := parseRow(s)
			if err != nil {
				return 0, err
			}
			return nodes.byRow(row)
		}
	}
	for {
		fields, line, err := table.Next()
		if errors.Is(err, io.EOF) {
			return pairs, nil
		}
		if err != nil {
			return nil, err
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("%s: %s %d: %s, want two: source and target", file.name, file.unit, line, counted(len(fields), "column"))
		}
		var e idPair
		if e.source, err = resolve(fields[0]); err == nil {
			e.target, err = resolve(fields[1])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s %d: %w", file.name, file.unit, line, err)
		}
		pairs = append(pairs, e)
		if len(pairs)%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			p.update("read "+file.name, int64(len(pairs)), 0)
		}
	}
}
