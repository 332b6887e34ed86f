package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/codec"
)

func (a *app) importCommand() *cobra.Command {
	var keysFile string
	im := importer{}
	cmd := &cobra.Command{
		Use:   "import DIR COLLECTION FILE [--keys nodes.tsv] [--tag TAG]... [--start I] [--count N]",
		Short: "Store the embeddings of a file",
		Long: `Import stores every row of a file as a node: .npy, .npz, .safetensors, .fvecs, .jsonl
or .csv, each also compressed with zstd or gzip. Of a file with several matrices, name
one: graph.npz#embeddings. All of it is checked before anything is stored; then every
10,000 rows are one atomic act.

A row's key is its name in the --keys file (tab-separated: row number, key; further
columns become the payload), else the key a .jsonl or .csv row has, else its row number
in decimal. Rows are numbered from 0, by the whole file also under --start.`,
		Example: `  flashdb import papers.flash papers embeddings.npy --keys nodes.tsv
  flashdb import papers.flash papers new.jsonl --tag fresh
  flashdb import genes.flash articles embeddings.npy.zst --keys nodes.tsv.zst --start 46898`,
		Args: args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			fs := cmd.Flags()
			if im.start < 0 {
				return fmt.Errorf("--start is %d: rows are numbered from 0", im.start)
			}
			if fs.Changed("count") && im.count < 1 {
				return fmt.Errorf("--count is %d: want a positive number", im.count)
			}
			im.name = args[2]
			im.open = func() (codec.RowReader, error) { return codec.OpenRows(im.name, nil) }
			if keysFile != "" {
				keys := tableAt(keysFile)
				im.keysFile = &keys
			}
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{}, func(_ database, c collection) error {
				start := time.Now()
				rows, err := a.importRows(cmd.Context(), c, &im)
				if err != nil {
					return err
				}
				return a.printImport(c.Name(), rows, time.Since(start))
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&keysFile, "keys", "", "`file` of row numbers, keys and payloads")
	fs.StringArrayVar(&im.tags, "tag", nil, "`tag` of every node; may be repeated")
	fs.Int64Var(&im.start, "start", 0, "first `row` to import")
	fs.Int64Var(&im.count, "count", 0, "`number` of rows to import at most (default to the end)")
	return cmd
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
	_, err := fmt.Fprintf(a.out, "imported %s in %s (%s a second)\n", counted(rows, "row"), took(elapsed), counted(int64(rate), "row"))
	return err
}

// importRows checks the whole file and then stores it, and returns the number
// of rows.
func (a *app) importRows(ctx context.Context, c collection, im *importer) (int64, error) {
	p := newProgress(a.err)
	defer p.clear()
	im.schema = c.Schema()
	if err := im.loadKeys(); err != nil {
		return 0, err
	}
	rows, err := im.check(ctx, p)
	if err != nil || rows == 0 {
		return 0, err
	}
	empty, err := isEmpty(ctx, c)
	if err != nil {
		return 0, err
	}
	firstKey, lastKey, err := im.store(ctx, c, rows, p)
	if err != nil {
		return 0, err
	}
	p.update("number the rows", rows, rows)
	return rows, rememberRows(ctx, c, empty, im.start, rows, firstKey, lastKey)
}

func isEmpty(ctx context.Context, c collection) (bool, error) {
	found := errors.New("a key")
	err := c.Keys(ctx, func(uint32, string) error { return found })
	if errors.Is(err, found) {
		return false, nil
	}
	return true, err
}

// rememberRows keeps in the collection's metadata which rows its ids are, after
// rows of a file from start on were stored in order, the first under firstKey
// and the last under lastKey. What is remembered is forgotten when it does not
// hold any more.
func rememberRows(ctx context.Context, c collection, wasEmpty bool, start, rows int64, firstKey, lastKey string) error {
	first, known, err := rowSpan(ctx, c)
	if err != nil {
		return err
	}
	if !wasEmpty && known == 0 {
		return nil
	}
	firstID, lastID := int64(-1), int64(-1)
	err = c.Keys(ctx, func(id uint32, key string) error {
		if key == firstKey {
			firstID = int64(id)
		}
		if key == lastKey {
			lastID = int64(id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if wasEmpty {
		first, known = start-firstID, firstID // id 0 has row first
	}
	inStep := lastID-firstID == rows-1 && start-firstID == first && firstID <= known
	if !inStep {
		return setRowSpan(ctx, c, 0, 0)
	}
	return setRowSpan(ctx, c, first, max(known, lastID+1))
}
