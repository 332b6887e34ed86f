package main

import (
	"io"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/internal/codec"
)

// A nameWriter writes the lines of a --keys file: rows without embeddings.
type nameWriter interface {
	Write(embedding []float32, row codec.Row) error
	Close() error
}

// newNameWriter begins a --keys file. Tags and attributes need a header. Without any there is none,
// and each line begins with the number of its row.
func newNameWriter(w io.Writer, e exported) (nameWriter, error) {
	format := formatTSV
	if extension(e.keysFile) == formatCSV {
		format = formatCSV
	}
	if !e.plain {
		return codec.NewRowWriter(w, format, 0, -1, e.attributes...)
	}
	names, err := codec.NewTableWriter(w, format)
	return &plainNames{to: names}, err
}

// plainNames writes row numbers, keys and payloads. The tabs of a payload are columns to import.
type plainNames struct {
	to   *codec.TableWriter
	rows int64
}

func (p *plainNames) Write(_ []float32, row codec.Row) error {
	fields := []string{strconv.FormatInt(p.rows, 10), row.Key}
	if len(row.Payload) > 0 {
		fields = append(fields, strings.Split(string(row.Payload), "\t")...)
	}
	p.rows++
	return p.to.Write(fields...)
}

func (p *plainNames) Close() error { return p.to.Close() }
