package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
)

// batchEdges is how many edges one atomic batch records or forgets.
const batchEdges = 10_000

// edgeFlags say what a file of edges is, and what is to be done with it.
type edgeFlags struct {
	byRow, undirected, dryRun bool
	format                    string
	source, target            string // columns
}

func (f *edgeFlags) add(cmd *cobra.Command, undirected string) {
	cmd.Flags().BoolVar(&f.byRow, "ids", false, "the columns are row numbers of the imported file, not keys")
	cmd.Flags().BoolVar(&f.undirected, "undirected", false, undirected)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "check the whole file and say what would happen, but change nothing")
	cmd.Flags().StringVar(&f.format, "format", "", "`format` of the file: tsv, csv or parquet (default by its name)")
	cmd.Flags().StringVar(&f.source, "source-column", "", "`column` of sources, by the header")
	cmd.Flags().StringVar(&f.target, "target-column", "", "`column` of targets, by the header")
	completeWords(cmd, "format", formatTSV, formatCSV, formatParquet)
}

// withEdges runs fn on the collection and the file of edges that the arguments
// DIR COLLECTION EDGES name.
func (a *app) withEdges(ctx context.Context, args []string, flags edgeFlags, fn func(context.Context, collection, tableFile, edgeFlags) error) error {
	return a.withCollection(ctx, args[0], args[1], flashdb.Options{ReadOnly: flags.dryRun}, func(_ database, c collection) (err error) {
		file, table, err := a.openEdges(args[2], flags.format, flags.source, flags.target)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.remove()) }()
		return fn(ctx, c, table, flags)
	})
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

// fileLinks are the different links that a file of edges makes.
type fileLinks struct {
	name  string
	edges int      // of the file
	pairs []idPair // in order, so that the links of a source fall into one batch
	nodes *nodeIndex
}

type idPair struct{ source, target uint32 }

// readLinks reads and resolves a whole file.
func (a *app) readLinks(ctx context.Context, c collection, file tableFile, byRow, undirected bool) (*fileLinks, error) {
	p := terminal.NewProgress(a.err)
	defer p.Clear()
	nodes, err := newNodeIndex(ctx, c)
	if err != nil {
		return nil, err
	}
	pairs, err := readEdges(ctx, file, nodes, byRow, p)
	if err != nil {
		return nil, err
	}
	edges := len(pairs)
	if undirected {
		for _, e := range pairs[:edges] {
			pairs = append(pairs, idPair{e.target, e.source})
		}
	}
	slices.SortFunc(pairs, func(x, y idPair) int {
		return cmp.Or(cmp.Compare(x.source, y.source), cmp.Compare(x.target, y.target))
	})
	return &fileLinks{name: file.name, edges: edges, pairs: slices.Compact(pairs), nodes: nodes}, nil
}

// inBatches hands the links to do, as many as one batch holds at a time.
func (a *app) inBatches(ctx context.Context, verb string, links *fileLinks, do func(context.Context, ...flashdb.Edge) error) error {
	p := terminal.NewProgress(a.err)
	defer p.Clear()
	done, keys := 0, links.nodes.keys
	batch := make([]flashdb.Edge, 0, batchEdges)
	for pairs := range slices.Chunk(links.pairs, batchEdges) {
		batch = batch[:0]
		for _, e := range pairs {
			batch = append(batch, flashdb.Edge{Source: keys[e.source], Target: keys[e.target]})
		}
		if err := do(ctx, batch...); err != nil {
			return goesOn(err) // what is done is done, and done again it is nothing new
		}
		done += len(batch)
		p.Update(verb+" "+links.name, int64(done), int64(len(links.pairs)))
	}
	return nil
}

// countKnown returns how many of the links are known.
func (a *app) countKnown(ctx context.Context, c collection, links *fileLinks) (known int, err error) {
	p := terminal.NewProgress(a.err)
	defer p.Clear()
	pairs, keys := links.pairs, links.nodes.keys
	for i := 0; i < len(pairs); {
		source := pairs[i].source
		targets, err := c.Linked(ctx, keys[source])
		if err != nil {
			return 0, err
		}
		linked := make(map[string]bool, len(targets))
		for _, key := range targets {
			linked[key] = true
		}
		for ; i < len(pairs) && pairs[i].source == source; i++ {
			if linked[keys[pairs[i].target]] {
				known++
			}
		}
		p.Update("check "+links.name, int64(i), int64(len(pairs)))
	}
	return known, nil
}

// edgeHint says what may be meant by an edge that was not understood.
func (x *nodeIndex) edgeHint(fields []string, byRow bool) string {
	if byRow {
		if _, err := parseRow(fields[0]); err != nil {
			return ": without --ids the columns are keys"
		}
		return ""
	}
	numbers := true
	for _, field := range fields {
		row, err := parseRow(field)
		numbers = numbers && err == nil && row < int64(len(x.keys))
	}
	if numbers {
		return ": if these are row numbers of the imported file, say --ids"
	}
	if strings.EqualFold(fields[0], "source") || strings.EqualFold(fields[1], "target") {
		return fmt.Sprintf(": if this line is the header, say --source-column %s --target-column %s", show.Text(fields[0]), show.Text(fields[1]))
	}
	for _, field := range fields {
		if _, err := x.byKey(field); err != nil {
			if near := show.Nearest(field, x.keys, 2); len(near) > 0 {
				return ": " + show.DidYouMean(near)
			}
		}
	}
	return ""
}

// readEdges reads and resolves every edge of the file.
func readEdges(ctx context.Context, file tableFile, nodes *nodeIndex, byRow bool, p *terminal.Progress) (pairs []idPair, err error) {
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
			return nil, fmt.Errorf("%s: %s %d: %s, want two: source and target%s", file.name, file.unit, line, show.Count(len(fields), "column"), columnsHint(file.name, fields))
		}
		var e idPair
		if e.source, err = resolve(fields[0]); err == nil {
			e.target, err = resolve(fields[1])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s %d: %w%s", file.name, file.unit, line, err, nodes.edgeHint(fields, byRow))
		}
		pairs = append(pairs, e)
		if len(pairs)%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			p.Update("read "+file.name, int64(len(pairs)), 0)
		}
	}
}
