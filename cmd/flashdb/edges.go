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
	"github.com/flashdb/flashdb/cmd/flashdb/internal/parquet"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/internal/nearest"
)

// batchEdges is how many edges one atomic batch records or forgets.
const batchEdges = 10_000

// edgeFlags say what a file of edges is, and what is to be done with it.
type edgeFlags struct {
	byRow, undirected, dryRun bool
	format                    string
	source, target            string // columns
	sourceCollection          string // of the sources; empty: that of the targets
	relation                  string // of every edge
	triples                   bool   // the columns are source, relation and target
	relationColumn            string
}

func (f *edgeFlags) add(cmd *cobra.Command, undirected string) {
	cmd.Flags().BoolVar(&f.byRow, "ids", false, "the columns are row numbers of the imported file, not keys")
	cmd.Flags().BoolVar(&f.undirected, "undirected", false, undirected)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "check the whole file and say what would happen, but change nothing")
	cmd.Flags().StringVar(&f.format, "format", "", "`format` of the file: tsv, csv or parquet (default by its name)")
	cmd.Flags().StringVar(&f.source, "source-column", "", "`column` of sources, by the header")
	cmd.Flags().StringVar(&f.target, "target-column", "", "`column` of targets, by the header")
	cmd.Flags().StringVar(&f.sourceCollection, "source-collection", "", "the sources are nodes of this `collection`")
	cmd.Flags().StringVar(&f.relation, "relation", "", "`name` of the relation that all of the links have")
	cmd.Flags().BoolVar(&f.triples, "triples", false, "the file has three columns: source, relation and target")
	cmd.Flags().StringVar(&f.relationColumn, "relation-column", "", "`column` of relations, by the header")
	completeWords(cmd, "format", formatTSV, formatCSV, formatParquet)
}

// related tells whether every edge has its own relation.
func (f *edgeFlags) related() bool { return f.triples || f.relationColumn != "" }

// columns returns those to read by the header, nil where there is none: source, relation where it
// is read, and target.
func (f *edgeFlags) columns(parquet bool) ([]string, error) {
	switch {
	case f.relation != "" && f.related():
		return nil, errors.New("--relation is that of every edge, and --triples and --relation-column read one for each: they exclude each other")
	case (f.source == "") != (f.target == ""):
		return nil, errors.New("--source-column and --target-column go together: give both")
	case f.relationColumn != "" && f.source == "" && !parquet:
		return nil, errors.New("--relation-column goes with --source-column and --target-column")
	case f.source == "" && !parquet:
		return nil, nil
	}
	columns := []string{cmp.Or(f.source, "source"), cmp.Or(f.target, "target")}
	if f.related() {
		columns = slices.Insert(columns, 1, cmp.Or(f.relationColumn, "relation"))
	}
	return columns, nil
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
		file, table, err := a.openEdges(args[2], flags)
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

// openEdges finds a file of edges and its columns.
func (a *app) openEdges(arg string, flags edgeFlags) (*inputFile, tableFile, error) {
	format := flags.format
	if arg == standardInput {
		format = cmp.Or(format, formatTSV)
	}
	file, err := a.openInput(arg, format)
	if err != nil {
		return nil, tableFile{}, err
	}
	columns, err := flags.columns(file.isParquet())
	var table tableFile
	if err == nil {
		err = relationLost(file, flags)
	}
	if err == nil {
		table, err = file.table(columns)
	}
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
	relations        []string // that pairs have, by number; the first is none
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

// An idPair is an edge by ids, and the number of its relation.
type idPair struct{ source, target, relation uint32 }

// compare orders by source, so that its links are side by side.
func (e idPair) compare(o idPair) int {
	return cmp.Or(cmp.Compare(e.source, o.source), cmp.Compare(e.relation, o.relation), cmp.Compare(e.target, o.target))
}

// relationLost refuses a file whose relations would not be read.
func relationLost(file *inputFile, flags edgeFlags) error {
	if !file.isParquet() || flags.related() || flags.source != "" {
		return nil
	}
	columns, err := parquet.Columns(file.path, file.name)
	if err == nil && slices.Contains(columns, "relation") {
		err = fmt.Errorf("%s has a column relation: read it with --triples, or leave it out with --source-column source --target-column target", file.name)
	}
	return err
}

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
	links := &fileLinks{name: file.name, into: into, sources: sources, targets: targets, began: began}
	pairs, err := links.read(ctx, file, flags, p)
	if err != nil {
		return nil, err
	}
	edges := len(pairs)
	if flags.undirected {
		for _, e := range pairs[:edges] {
			pairs = append(pairs, idPair{e.target, e.source, e.relation})
		}
	}
	slices.SortFunc(pairs, idPair.compare)
	links.edges, links.pairs = edges, slices.Compact(pairs)
	return links, nil
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
			batch = append(batch, flashdb.Edge{
				SourceCollection: from, Source: sources[e.source], Target: targets[e.target], Relation: links.relations[e.relation],
			})
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
	numbers := map[string]uint32{}
	for n, name := range links.relations {
		numbers[name] = uint32(n)
	}
	from, read := links.sourceCollection(), int64(0)
	for e, err := range links.into.Links(ctx) {
		if err != nil {
			return 0, err
		}
		if read++; read%4096 == 0 {
			p.Update("check "+links.name, read, 0)
		}
		relation, ok := numbers[e.Relation]
		if e.SourceCollection != from || !ok {
			continue
		}
		source, unknown := links.sources.byKey(e.Source)
		target, missing := links.targets.byKey(e.Target)
		if unknown != nil || missing != nil {
			continue // newer than the keys
		}
		if _, found := slices.BinarySearchFunc(links.pairs, idPair{source, target, relation}, idPair.compare); found {
			known++
		}
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
		if near := nearest.Among(fields[i], x.keys, 2); len(near) > 0 {
			return ": " + show.DidYouMean(near)
		}
	}
	return ""
}

// read reads and resolves every edge of the file.
func (l *fileLinks) read(ctx context.Context, file tableFile, flags edgeFlags, p *terminal.Progress) (pairs []idPair, err error) {
	table, err := file.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	width, want := 2, "two: source and target"
	if flags.related() {
		width, want = 3, "three: source, relation and target"
	}
	l.relations = []string{flags.relation}
	numbers := map[string]uint32{flags.relation: 0}
	for {
		fields, line, err := table.Next()
		if errors.Is(err, io.EOF) {
			return pairs, nil
		}
		if err != nil {
			return nil, err
		}
		if len(fields) != width {
			return nil, fmt.Errorf("%s: %s %d: %s, want %s%s", file.name, file.unit, line, show.Count(len(fields), "column"), want, columnsHint(file.name, fields))
		}
		e := idPair{}
		ends := []string{fields[0], fields[width-1]}
		if e.source, err = l.sources.find(ends[0], flags.byRow); err == nil {
			e.target, err = l.targets.find(ends[1], flags.byRow)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s %d: %w%s", file.name, file.unit, line, err, edgeHint(l.sources, l.targets, ends, flags.byRow))
		}
		if flags.related() {
			n, ok := numbers[fields[1]]
			if !ok {
				name := strings.Clone(fields[1])
				n = uint32(len(l.relations))
				numbers[name], l.relations = n, append(l.relations, name)
			}
			e.relation = n
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
