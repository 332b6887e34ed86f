package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/parquet"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/codec"
)

func (a *app) exportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write embeddings, links or a decoder to files",
		Long: `Export writes embeddings, links or a decoder to files. Predictions are written by
predict --all --out FILE.`,
		Args: usage.NoCommand,
		RunE: help,
	}
	cmd.AddCommand(a.exportRowsCommand(), a.exportLinksCommand(), a.exportDecoderCommand())
	return cmd
}

// rowFormats are the formats export rows writes.
func rowFormats() []string { return append(codec.WriteFormats(), formatParquet) }

func (a *app) exportRowsCommand() *cobra.Command {
	var format, keysFile string
	cmd := &cobra.Command{
		Use:   "rows DIR COLLECTION FILE [--keys nodes.tsv]",
		Short: "Write the nodes of a collection to a file",
		Long: `Rows writes every node, in the order in which they were inserted, to a file of embeddings
that import reads: .jsonl, .csv, .tsv or .parquet with keys, tags, attributes and payloads; .npy,
.npz, .safetensors or .fvecs with the embeddings alone, and the rest in the --keys file, a .tsv or
.csv. A name that ends in .zst or .gz is compressed; - is standard output, with
--format. The file must not exist yet; it appears when it is complete.`,
		Example: `  flashdb export rows papers.flash papers papers.parquet
  flashdb export rows papers.flash papers embeddings.npy --keys nodes.tsv
  flashdb export rows papers.flash papers - --format jsonl | jq .key`,
		Args: usage.Args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, err := formatOf(args[2], format, rowFormats())
			if err != nil {
				return err
			}
			if keysFile != "" && (codec.HasKeys(kind) || kind == formatParquet) {
				return fmt.Errorf("--keys is for formats without keys: .%s holds them itself", kind)
			}
			if extension(keysFile) == formatParquet {
				return fmt.Errorf("--keys %s: keys are not written as .parquet here; want .tsv or .csv", keysFile)
			}
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{ReadOnly: true}, func(db database, c collection) error {
				start := time.Now()
				of, err := statsOf(cmd.Context(), db, c.Name())
				if err != nil {
					return err
				}
				attributes := attributesOf(of)
				plain := len(attributes)+len(of.Tags) == 0
				rows, err := a.exportRows(cmd.Context(), c, exported{kind, args[2], keysFile, attributes, plain})
				if err != nil {
					return err
				}
				if keysFile == "" && !codec.HasKeys(kind) && kind != formatParquet {
					what := "keys, tags and payloads"
					if len(attributes) > 0 {
						what = "keys, tags, attributes and payloads"
					}
					fmt.Fprintf(a.err, "%s are not in a .%s; --keys FILE keeps them\n", what, kind)
				}
				return a.printExport(args[2], "row", rows, time.Since(start))
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "`format` of the file (default by its name)")
	cmd.Flags().StringVar(&keysFile, "keys", "", "`file` for keys, tags, attributes and payloads: .tsv or .csv")
	completeWords(cmd, "format", rowFormats()...)
	return cmd
}

// formatOf is the format of a file to write.
func formatOf(name, format string, known []string) (string, error) {
	kind := cmp.Or(format, extension(name))
	if name == standardInput && format == "" {
		return "", fmt.Errorf("standard output has no name to tell its format: give --format, one of %s", strings.Join(known, ", "))
	}
	if !slices.Contains(known, kind) {
		if name != "" {
			name += ": "
		}
		return "", fmt.Errorf("%sformat %q is not written here; want one of %s", name, kind, strings.Join(known, ", "))
	}
	return kind, nil
}

func (a *app) printExport(file, noun string, n int64, elapsed time.Duration) error {
	out := a.out
	if file == standardInput {
		out = a.err // the data went to standard output
	}
	if a.json && file != standardInput {
		return a.emit(struct {
			File    string  `json:"file"`
			Count   int64   `json:"count"`
			Seconds float64 `json:"seconds"`
		}{show.JSON(file), n, elapsed.Seconds()})
	}
	_, err := fmt.Fprintf(out, "exported %s in %s\n", show.Count(n, noun), show.Duration(elapsed))
	return err
}

// A keyCensus is what an export must know of a collection before it begins.
type keyCensus struct {
	nodes  int64
	rows   uint32 // deleted ones included
	binary bool   // a key is not UTF-8

	attributes []codec.Attribute // by name
}

func takeCensus(ctx context.Context, c collection) (census keyCensus, err error) {
	for {
		page, err := c.RowKeys(ctx, census.rows, rowsPerPage)
		if err != nil {
			return census, err
		}
		for _, key := range page {
			if key != "" {
				census.nodes++
				census.binary = census.binary || !utf8.ValidString(key)
			}
		}
		if census.rows += uint32(len(page)); len(page) < rowsPerPage {
			return census, nil
		}
	}
}

// eachKey calls fn for every node that the census counted and that is not deleted since, in the
// order in which they were inserted.
func eachKey(ctx context.Context, c collection, census keyCensus, fn func(key string) error) error {
	for from := uint32(0); from < census.rows; from += rowsPerPage {
		page, err := c.RowKeys(ctx, from, int(min(rowsPerPage, census.rows-from)))
		if err != nil {
			return err
		}
		for _, key := range page {
			if key == "" {
				continue
			}
			if err := fn(key); err != nil {
				return err
			}
		}
	}
	return nil
}

// exported is what an export of rows writes.
type exported struct {
	format, file, keysFile string

	attributes []codec.Attribute
	plain      bool // no node has a tag or an attribute
}

func (a *app) exportRows(ctx context.Context, c collection, e exported) (rows int64, err error) {
	census, err := takeCensus(ctx, c)
	if err != nil {
		return 0, err
	}
	census.attributes = e.attributes
	err = a.writeFile(e.file, func(w io.Writer) error {
		out, err := newRowWriter(w, e.format, c.Schema().Dim, census)
		if err != nil {
			return err
		}
		if e.keysFile == "" {
			rows, err = a.writeRows(ctx, c, census, out, nil)
		} else {
			err = a.writeFile(e.keysFile, func(w io.Writer) error {
				names, err := newNameWriter(w, e)
				if err != nil {
					return err
				}
				rows, err = a.writeRows(ctx, c, census, out, names)
				return errors.Join(err, names.Close())
			})
		}
		if err != nil {
			return err
		}
		return out.Close()
	})
	return rows, err
}

func newRowWriter(w io.Writer, format string, dim int, census keyCensus) (codec.RowWriter, error) {
	if format == formatParquet {
		return parquet.NewWriter(w, dim, census.binary, census.attributes...), nil
	}
	return codec.NewRowWriter(w, format, dim, census.nodes, census.attributes...)
}

// writeRows writes every node to out, and what is not its embedding to names unless that is nil.
func (a *app) writeRows(ctx context.Context, c collection, census keyCensus, out codec.RowWriter, names nameWriter) (rows int64, err error) {
	p := terminal.NewProgress(a.err)
	defer p.Clear()
	without := 0
	defer func() {
		if p.Clear(); without > 0 && err == nil {
			a.remark("%s left out: the live release has no embedding of them", show.Count(without, "node"))
		}
	}()
	err = eachKey(ctx, c, census, func(key string) error {
		n, err := c.Get(ctx, key)
		if errors.Is(err, flashdb.ErrNotFound) {
			return nil // deleted meanwhile
		}
		if err == nil && len(n.Embedding) == 0 {
			without++
			return nil
		}
		row := codec.Row{Key: key, HasKey: true, Tags: n.Tags, Payload: n.Payload, Attributes: n.Attributes}
		if err == nil {
			err = out.Write(n.Embedding, row)
		}
		if err == nil && names != nil {
			err = names.Write(nil, row)
		}
		if err != nil {
			return fmt.Errorf("node %s: %w", strconv.Quote(show.Clip(key, 60)), err)
		}
		if rows++; rows%1024 == 0 {
			p.Update("export", rows, census.nodes)
		}
		return nil
	})
	return rows, err
}

func (a *app) exportDecoderCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "decoder DIR COLLECTION NAME FILE",
		Short: "Write a decoder to .safetensors or .npz and its spec to .json",
		Long: `Decoder writes the weights of a stored decoder to FILE, which ends in .safetensors or
.npz, and its spec beside it, to the same name with .json. A dot decoder has no weights:
FILE ends in .json. decoder add reads both again. The files must not exist yet.`,
		Example: `  flashdb export decoder papers.flash papers cites cites.safetensors`,
		Args:    usage.Args(4, 4),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{ReadOnly: true}, func(_ database, c collection) error {
				d, err := c.Decoder(cmd.Context(), args[2])
				if err != nil {
					return err
				}
				file, spec := args[3], strings.TrimSuffix(args[3], filepath.Ext(args[3]))+".json"
				if err := a.exportDecoder(d, file, spec); err != nil {
					return err
				}
				if a.json {
					return a.emit(map[string]string{"done": "export", "decoder": show.JSON(args[2]), "file": show.JSON(file), "spec": show.JSON(spec)})
				}
				_, err = fmt.Fprintf(a.out, "exported decoder %s: %s, spec in %s\n", show.Text(args[2]), d, spec)
				return err
			})
		},
	}
}

// exportDecoder writes both files or none.
func (a *app) exportDecoder(d decoder.Decoder, file, spec string) error {
	tensors := map[string]codec.Tensor{}
	for key, t := range d.Tensors() {
		tensors[key] = codec.Tensor(t)
	}
	write := map[string]func(io.Writer, map[string]codec.Tensor) error{".safetensors": codec.WriteSafetensors, ".npz": codec.WriteNPZ}[filepath.Ext(file)]
	switch {
	case len(tensors) == 0 && file != spec:
		return fmt.Errorf("%s: the name of this decoder's file must end in .json", file)
	case len(tensors) > 0 && write == nil:
		return fmt.Errorf("%s: the name of this decoder's file must end in .safetensors or .npz", file)
	}
	return a.writeFile(spec, func(w io.Writer) error {
		if err := writeSpec(w, d.Spec()); err != nil || len(tensors) == 0 {
			return err
		}
		return a.writeFile(file, func(w io.Writer) error { return write(w, tensors) })
	})
}
