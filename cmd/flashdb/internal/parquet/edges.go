package parquet

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// EdgeWriter writes pairs of keys as the columns source and target, or triples as source, relation
// and target.
type EdgeWriter struct {
	w       *parquet.GenericWriter[any]
	fieldOf []int // per column, in the order of their names: which field of Write it holds
	rows    []parquet.Row
}

// NewEdgeWriter begins a file of edges. Keys are strings to other readers, or bytes if binaryKeys
// is set; relations are as keys are.
func NewEdgeWriter(w io.Writer, binaryKeys, related bool) *EdgeWriter {
	key := keyNode(binaryKeys)
	columns, fieldOf := parquet.Group{"source": key, "target": key}, []int{0, 1}
	if related {
		columns["relation"], fieldOf = key, []int{1, 0, 2}
	}
	schema := parquet.NewSchema("edges", columns)
	return &EdgeWriter{fieldOf: fieldOf, w: parquet.NewGenericWriter[any](w, schema, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(1<<20))}
}

// Write adds an edge: its source, its relation where the file has them, and its target.
func (w *EdgeWriter) Write(fields ...string) error {
	row := make(parquet.Row, len(w.fieldOf))
	for column, i := range w.fieldOf {
		row[column] = parquet.ByteArrayValue([]byte(fields[i])).Level(0, 0, column)
	}
	if w.rows = append(w.rows, row); len(w.rows) < rowsBuffered {
		return nil
	}
	return w.flush()
}

func (w *EdgeWriter) flush() error {
	if _, err := w.w.WriteRows(w.rows); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	w.rows = w.rows[:0]
	return nil
}

// Close writes what is left and the footer. It does not close what it writes to.
func (w *EdgeWriter) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.w.Close()
}

// keyNode is the type of a column of keys.
func keyNode(binary bool) parquet.Node {
	if binary {
		return parquet.Leaf(parquet.ByteArrayType)
	}
	return parquet.String()
}
