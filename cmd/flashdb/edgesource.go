package main

import (
	"cmp"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/parquet"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/train/graph"
)

// An edgeSource is a file of edges whose layout is found out, and what flags say of it.
type edgeSource struct {
	file, format string
	columns      graph.Columns
}

func (s *edgeSource) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&s.format, "format", "", "`format` of the edges: tsv, csv, jsonl, parquet, npy or pt (default by the name)")
	fs.StringVar(&s.columns.Source, "source-column", "", "`column` of sources, by the header or by its number")
	fs.StringVar(&s.columns.Target, "target-column", "", "`column` of targets")
	fs.StringVar(&s.columns.Relation, "relation-column", "", "`column` of relations")
	fs.StringVar(&s.columns.Time, "time-column", "", "`column` of times: numbers or dates")
	completeWords(cmd, "format", formatTSV, formatCSV, "jsonl", formatParquet, "npy", "npz", "pt")
}

// name is what messages call the file.
func (s edgeSource) name() string {
	if s.file == standardInput {
		return "standard input"
	}
	return show.Text(s.file)
}

// open opens the file, or another with the same columns. The caller calls remove when all is read.
func (a *app) openEdgeSource(s edgeSource, times bool) (r *graph.Reader, remove func() error, err error) {
	format := s.format
	if s.file == standardInput {
		format = cmp.Or(s.format, formatTSV)
	}
	file, err := a.openInput(s.file, format)
	if err != nil {
		return nil, nil, err
	}
	opts := graph.ReadOptions{Name: file.name, Format: s.format, Columns: s.columns, Times: times}
	if file.isParquet() {
		r, err = openParquetEdges(file, &opts)
	} else {
		r, err = graph.Open(file.path, &opts)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.remove())
	}
	return r, file.remove, nil
}

func openParquetEdges(file *inputFile, opts *graph.ReadOptions) (*graph.Reader, error) {
	columns, err := parquet.Columns(file.path, file.name)
	if err != nil {
		return nil, err
	}
	table, err := parquet.OpenTable(file.path, file.name, columns)
	if err != nil {
		return nil, err
	}
	r, err := graph.FromTable(table, "row", columns, opts)
	if err != nil {
		return nil, errors.Join(err, table.Close())
	}
	return r, nil
}

// isNumbered tells whether a file holds edges by row number alone.
func (s edgeSource) isNumbered() bool {
	file, _, _ := strings.Cut(s.file, "#")
	switch cmp.Or(s.format, extension(file)) {
	case "npy", "npz", "pt", "pth", "safetensors":
		return true
	}
	return false
}
