package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

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
	sourceCollection          string // of the sources; empty: that of the targets
}

func (f *edgeFlags) add(cmd *cobra.Command, undirected string) {
	cmd.Flags().BoolVar(&f.byRow, "ids", false, "the columns are row numbers of the imported file, not keys")
	cmd.Flags().BoolVar(&f.undirected, "undirected", false, undirected)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "check the whole file and say what would happen, but change nothing")
	cmd.Flags().StringVar(&f.format, "format", "", "`format` of the file: tsv, csv or parquet (default by its name)")
	cmd.Flags().StringVar(&f.source, "source-column", "", "`column` of sources, by the header")
	cmd.Flags().StringVar(&f.target, "target-column", "", "`column` of targets, by the header")
	cmd.Flags().StringVar(&f.sourceCollection, "source-collection", "", "the sources are nodes of this `collection`")
	completeWords(cmd, "format", formatTSV, formatCSV, formatParquet)
}

// withEdges runs fn with what a file of edges makes: DIR COLLECTION EDGES are the arguments.
func (a *app) withEdges(ctx context.Context, args []string, flags edgeFlags, fn func(context.Context, *fileLinks) error) error {
	if flags.undirected && flags.sourceCollection != "" && flags.sourceCollection != args[1] {
		return fmt.Errorf("--undirected and --source-collection exclude each other: links lead from %s to %s", show.Text(flags.sourceCollection), show.Text(args[1]))
	}
	return a.withCollection(ctx, args[0], args[1], flashdb.Options{ReadOnly: flags.dryRun}, func(db database, c collection) (err error) {
		from, err := sourceCollectionOf(ctx, db, c, flags.sourceCollection)
		if err != nil {
			return err
		}
		file, table, err := a.openEdges(args[2], flags.format, flags.source, flags.target)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.remove()) }()
		links, err := a.readLinks(ctx, from, c, table, flags)
		if err != nil {
			return err
		}
		return fn(ctx, links)
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
	name             string
	edges            int      // of the file
	pairs            []idPair // in order, so that the links of a source fall into one batch
	into             collection
	sources, targets *nodeIndex // the same where they are of one collection
	began            time.Time
}

// sourceCollection names the collection of the sources; empty is that of the targets.
func (l *fileLinks) sourceCollection() string {
	if l.sources == l.targets {
		return ""
	}
	return l.sources.collection
}

type idPair struct{ source, target uint32 }

// readLinks reads and resolves a whole file of links from one collection to another, or to itself.
func (a *app) readLinks(ctx context.Context, from, into collection, file tableFile, flags edgeFlags) (*fileLinks, error) {
	began, p := time.Now(), terminal.NewProgress(a.err)
	defer p.Clear()
	targets, err := newNodeIndex(ctx, into)
	if err != nil {
		return nil, err
	}
	sources := targets
	if from.Name() != into.Name() {
		if sources, err = newNodeIndex(ctx, from); err != nil {
			return nil, err
		}
	}
	pairs, err := readEdges(ctx, file, sources, targets, flags.byRow, p)
	if err != nil {
		return nil, err
	}
	edges := len(pairs)
	if flags.undirected {
		for _, e := range pairs[:edges] {
			pairs = append(pairs, idPair{e.target, e.source})
		}
	}
	slices.SortFunc(pairs, func(x, y idPair) int {
		return cmp.Or(cmp.Compare(x.source, y.source), cmp.Compare(x.target, y.target))
	})
	return &fileLinks{name: file.name, edges: edges, pairs: slices.Compact(pairs), into: into, sources: sources, targets: targets, began: began}, nil
}

// inBatches hands the links to do, as many as one batch holds at a time.
func (a *app) inBatches(ctx context.Context, verb string, links *fileLinks, do func(context.Context, ...flashdb.Edge) error) error {
	p := terminal.NewProgress(a.err)
	defer p.Clear()
	done, from, sources, targets := 0, links.sourceCollection(), links.sources.keys, links.targets.keys
	batch := make([]flashdb.Edge, 0, batchEdges)
	for pairs := range slices.Chunk(links.pairs, batchEdges) {
		batch = batch[:0]
		for _, e := range pairs {
			batch = append(batch, flashdb.Edge{SourceCollection: from, Source: sources[e.source], Target: targets[e.target]})
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
func (a *app) countKnown(ctx context.Context, links *fileLinks) (known int, err error) {
	p := terminal.NewProgress(a.err)
	defer p.Clear()
	pairs, keys := links.pairs, links.targets.keys
	opts := flashdb.LinkedOptions{SourceCollection: links.sourceCollection()}
	for i := 0; i < len(pairs); {
		source := pairs[i].source
		targets, err := links.into.Linked(ctx, links.sources.keys[source], &opts)
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
func edgeHint(sources, targets *nodeIndex, fields []string, byRow bool) string {
	if byRow {
		if _, err := parseRow(fields[0]); err != nil {
			return ": without --ids the columns are keys"
		}
		return ""
	}
	numbers := true
	for i, x := range []*nodeIndex{sources, targets} {
		row, err := parseRow(fields[i])
		numbers = numbers && err == nil && row < int64(len(x.keys))
	}
	if numbers {
		return ": if these are row numbers of the imported file, say --ids"
	}
	if strings.EqualFold(fields[0], "source") || strings.EqualFold(fields[1], "target") {
		return fmt.Sprintf(": if this line is the header, say --source-column %s --target-column %s", show.Text(fields[0]), show.Text(fields[1]))
	}
	if sources != targets && targets.has(fields[0]) && sources.has(fields[1]) {
		return fmt.Sprintf(": the columns may be swapped: sources are nodes of %s, targets of %s", sources.collection, targets.collection)
	}
	for i, x := range []*nodeIndex{sources, targets} {
		if x.has(fields[i]) {
			continue
		}
		if near := show.Nearest(fields[i], x.keys, 2); len(near) > 0 {
			return ": " + show.DidYouMean(near)
		}
	}
	return ""
}

// readEdges reads and resolves every edge of the file.
func readEdges(ctx context.Context, file tableFile, sources, targets *nodeIndex, byRow bool, p *terminal.Progress) (pairs []idPair, err error) {
	table, err := file.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
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
		if e.source, err = sources.find(fields[0], byRow); err == nil {
			e.target, err = targets.find(fields[1], byRow)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s %d: %w%s", file.name, file.unit, line, err, edgeHint(sources, targets, fields, byRow))
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
