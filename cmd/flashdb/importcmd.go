package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
	"github.com/flashdb/flashdb/internal/attr"
	"github.com/flashdb/flashdb/internal/codec"
)

func (a *app) importCommand() *cobra.Command {
	var flags importFlags
	var dryRun bool
	im := &flags.im
	cmd := &cobra.Command{
		Use:        "import DIR COLLECTION FILE [--keys nodes.tsv] [--tag TAG]... [--dry-run]",
		SuggestFor: []string{"load", "ingest"},
		Short:      "Store the embeddings of a file",
		Long: `Import stores every row of a file as a node: .npy, .npz, .safetensors, .pt, .fvecs,
.bvecs, .jsonl, .csv, .tsv or .parquet. Each may be compressed with zstd or gzip; - is
standard input, with --format. Of a file with several matrices, name one:
graph.npz#embeddings. The whole file is checked before anything is stored; then every 10,000
rows are one atomic batch. The same command continues an import that was interrupted.

A row's key is the one in the --keys file, else the key a .jsonl, .csv, .tsv or .parquet row
has, else its row number in decimal. Rows are numbered from 0, by the whole file also under
--start. The --keys file is a table with a header, or without one of row number, key and, as
the payload, further columns. Columns of tables are found by name: key, id or name; tags;
payload; the --...-column flags name others. --attributes names columns of attributes, which
filters compare; a type follows a colon, or is what the file says or all values look like.
docs/import.md has the details of every format.`,
		Example: `  flashdb import papers.flash papers embeddings.npy --keys nodes.tsv
  flashdb import papers.flash papers new.jsonl --tag fresh --dry-run
  flashdb import papers.flash papers rows.parquet --embedding-column vec --tags-column labels
  flashdb import shop.flash items items.csv --attributes price,brand,released:time
  flashdb import shop.flash items items.npy --keys items.parquet --attributes price,brand
  zcat rows.csv.gz | flashdb import papers.flash papers - --format csv
  flashdb import genes.flash articles embeddings.npy.zst --keys nodes.tsv.zst --start 46898`,
		Args: usage.Args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.validate(cmd); err != nil {
				return err
			}
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{ReadOnly: dryRun, FlushBytes: importFlushBytes}, func(db database, c collection) (err error) {
				if err := flags.open(cmd.Context(), a, db, c.Name(), args[2]); err != nil {
					return err
				}
				defer func() { err = errors.Join(err, im.file.remove()) }()
				if dryRun {
					return a.dryImport(cmd.Context(), c, im)
				}
				start := time.Now()
				rows, err := a.importRows(cmd.Context(), c, im)
				if err != nil {
					return goesOn(err)
				}
				if err := a.printImport(c.Name(), rows, time.Since(start)); err != nil {
					return err
				}
				return a.remarkOnIndex(cmd.Context(), db, c)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "check the whole file and print what would happen, but store nothing")
	return cmd
}

// importFlags say what a file of embeddings is.
type importFlags struct {
	keysFile, format string
	im               importer
}

func (f *importFlags) add(cmd *cobra.Command) {
	fs, im := cmd.Flags(), &f.im
	fs.StringVar(&f.keysFile, "keys", "", "`file` of keys, tags, attributes and payloads")
	fs.StringArrayVar(&im.tags, "tag", nil, "`tag` of every node; may be repeated")
	fs.Int64Var(&im.start, "start", 0, "first `row` to import")
	fs.Int64Var(&im.count, "count", 0, "`number` of rows to import at most (default to the end)")
	fs.StringVar(&f.format, "format", "", "`format` of the file (default by its name)")
	fs.StringVar(&im.columns.Embedding, "embedding-column", "", "`column` of embeddings, of .parquet")
	im.registerColumns(cmd)
	completeWords(cmd, "format", formats()...)
}

// columnFlags are the flags of registerColumns.
var columnFlags = []string{"key-column", "tags-column", "payload-column", "attributes"}

// registerColumns adds the flags that say where a table has what belongs to a node.
func (im *importer) registerColumns(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&im.columns.Key, "key-column", "", "`column` of keys, of .csv, .tsv and .parquet")
	fs.StringVar(&im.columns.Tags, "tags-column", "", "`column` of tags: a list, or separated by semicolons")
	fs.StringVar(&im.columns.Payload, "payload-column", "", "`column` of payloads")
	fs.StringSliceVar(&im.attrFlags, "attributes", nil, "`columns` of attributes, each perhaps with a type: price,brand,code:string")
}

func (f *importFlags) validate(cmd *cobra.Command) error {
	if f.im.start < 0 {
		return fmt.Errorf("--start is %d: rows are numbered from 0", f.im.start)
	}
	if cmd.Flags().Changed("count") && f.im.count < 1 {
		return fmt.Errorf("--count is %d: want a positive number", f.im.count)
	}
	return nil
}

// open makes the importer ready to read a file for a collection. Its input must be removed after
// that.
func (f *importFlags) open(ctx context.Context, a *app, db database, collection, file string) (err error) {
	f.im.types.lookUp = func() (map[string]attr.Kind, error) { return kindsOf(ctx, db, collection) }
	if f.im.file, err = a.openInput(file, f.format); err != nil {
		return err
	}
	if err := f.im.use(f.keysFile, a.err); err != nil {
		return errors.Join(err, f.im.file.remove())
	}
	return nil
}

// use sets what the importer reads.
func (im *importer) use(keysFile string, notes io.Writer) error {
	im.name = im.file.name
	im.notes = notes
	var err error
	if im.columns.Attributes, err = im.types.ask(im.attrFlags); err != nil {
		return err
	}
	im.open = func() (codec.RowReader, error) { return im.file.rows(im.columns) }
	if keysFile == "" {
		return nil
	}
	if im.file.hasColumns() && im.columns.Key != "" {
		return errors.New("--keys and --key-column both name the keys: give one")
	}
	if !im.file.hasColumns() { // the columns named are those of the other file
		im.keyColumns, im.columns = im.columns, codec.Columns{Embedding: im.columns.Embedding}
		im.keyColumns.Embedding = ""
	}
	keys := tableAt(keysFile)
	im.keysFile = &keys
	if info, err := os.Stat(keysFile); err == nil {
		im.keysIdentity = fmt.Sprintf("%d bytes of %s", info.Size(), info.ModTime().UTC())
	}
	return nil
}

func (a *app) printImport(collection string, rows int64, elapsed time.Duration) error {
	rate := float64(rows) / max(elapsed.Seconds(), 1e-9)
	if a.json {
		return a.emit(struct {
			Collection    string  `json:"collection"`
			Rows          int64   `json:"rows"`
			Seconds       float64 `json:"seconds"`
			RowsPerSecond float64 `json:"rows_per_second"`
		}{collection, rows, elapsed.Seconds(), rate})
	}
	_, err := fmt.Fprintf(a.out, "imported %s in %s (%s per second)\n", show.Count(rows, "row"), show.Duration(elapsed), show.Count(int64(rate), "row"))
	return err
}

// importRows checks the whole file and then stores it, and returns the number of rows.
func (a *app) importRows(ctx context.Context, c collection, im *importer) (int64, error) {
	p := terminal.NewProgress(a.err)
	defer p.Clear()
	im.schema = c.Schema()
	if err := im.loadKeys(); err != nil {
		return 0, err
	}
	rows, err := im.check(ctx, p, nil)
	if err != nil || rows == 0 {
		return 0, err
	}
	im.end = im.start + rows
	if err := im.resume(ctx, c); err != nil {
		return 0, err
	}
	if im.state.Stored > 0 {
		p.Clear()
		fmt.Fprintf(a.err, "continuing after %s that an earlier run stored\n", show.Count(im.state.Stored, "row"))
	} else if im.state.WasEmpty, err = isEmpty(ctx, c); err != nil {
		return 0, err
	}
	firstKey, lastKey, err := im.store(ctx, c, rows, p)
	if err != nil {
		return 0, err
	}
	p.Update("number the rows", rows, rows)
	if err := rememberRows(ctx, c, im.state.WasEmpty, im.start, rows, firstKey, lastKey); err != nil {
		return 0, err
	}
	return rows, im.finished(ctx, c)
}

// dryImport is importRows without its writes: it says how many nodes would be new.
func (a *app) dryImport(ctx context.Context, c collection, im *importer) error {
	p := terminal.NewProgress(a.err)
	defer p.Clear()
	im.schema = c.Schema()
	if err := im.loadKeys(); err != nil {
		return err
	}
	nodes, err := newNodeIndex(ctx, c)
	if err != nil {
		return err
	}
	var added, replaced int64
	rows, err := im.check(ctx, p, func(n flashdb.Node) {
		if _, err := nodes.byKey(n.Key); err != nil {
			added++
		} else {
			replaced++
		}
	})
	if err != nil {
		return err
	}
	p.Clear()
	if a.json {
		return a.emit(struct {
			Collection string `json:"collection"`
			DryRun     bool   `json:"dry_run"`
			Rows       int64  `json:"rows"`
			New        int64  `json:"new"`
			Replaced   int64  `json:"replaced"`
		}{c.Name(), true, rows, added, replaced})
	}
	_, err = fmt.Fprintf(a.out, "would import %s: %s new, %s replaced; nothing was stored\n", show.Count(rows, "row"), show.Number(added), show.Number(replaced))
	return err
}

func isEmpty(ctx context.Context, c collection) (bool, error) {
	for _, err := range c.Keys(ctx) {
		return false, err
	}
	return true, nil
}

// rememberRows keeps in the collection's metadata which rows its ids are, after rows of a file from
// start on were stored in order, the first under firstKey and the last under lastKey. What is
// remembered is forgotten when it does not hold any more.
func rememberRows(ctx context.Context, c collection, wasEmpty bool, start, rows int64, firstKey, lastKey string) error {
	first, known, err := rowSpan(ctx, c)
	if err != nil {
		return err
	}
	if !wasEmpty && known == 0 {
		return nil
	}
	firstID, err := rowOf(ctx, c, firstKey)
	if err != nil {
		return err
	}
	lastID := firstID + rows - 1 // if they are in step
	at, err := c.RowKeys(ctx, uint32(lastID), 1)
	if err != nil {
		return err
	}
	if wasEmpty {
		first, known = start-firstID, firstID // id 0 has row first
	}
	inStep := firstID >= 0 && len(at) == 1 && at[0] == lastKey && start-firstID == first && firstID <= known
	if !inStep {
		return setRowSpan(ctx, c, 0, 0)
	}
	return setRowSpan(ctx, c, first, max(known, lastID+1))
}
