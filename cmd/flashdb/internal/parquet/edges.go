package parquet

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// EdgeWriter writes pairs of keys as the columns source and target.
type EdgeWriter struct {
	w    *parquet.GenericWriter[any]
	rows []parquet.Row
}

// NewEdgeWriter begins a file of edges. Keys are strings to other readers, or bytes if binaryKeys
// is set.
func NewEdgeWriter(w io.Writer, binaryKeys bool) *EdgeWriter {
	key := keyNode(binaryKeys)
	schema := parquet.NewSchema("edges", parquet.Group{"source": key, "target": key})
	return &EdgeWriter{w: parquet.NewGenericWriter[any](w, schema, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(1<<20))}
}

// Write adds an edge: its source and its target.
func (w *EdgeWriter) Write(keys ...string) error {
	row := make(parquet.Row, len(keys))
	for i, key := range keys {
		row[i] = parquet.ByteArrayValue([]byte(key)).Level(0, 0, i)
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
