package parquet

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/flashdb/flashdb/internal/codec"
)

// rowsBuffered is how many rows are handed to parquet-go at a time; groupBytes bounds the
// embeddings of a row group, which is held until it is written.
const (
	rowsBuffered = 512
	groupBytes   = 32 << 20
)

// Writer writes embeddings, with their keys, tags and payloads.
type Writer struct {
	w      *parquet.GenericWriter[any]
	schema *parquet.Schema
	rows   []parquet.Row
	inRow  int // rows of the row group so far
	group  int // rows it may have

	attributes []codec.Attribute // by name
}

// NewWriter begins a file of embeddings of dim values. Keys are strings to other readers, or bytes
// if binaryKeys is set. Attributes are by name.
func NewWriter(w io.Writer, dim int, binaryKeys bool, attributes ...codec.Attribute) *Writer {
	group := parquet.Group{
		"key":       keyNode(binaryKeys),
		"embedding": parquet.List(parquet.Leaf(parquet.FloatType)),
		"payload":   parquet.Optional(parquet.Leaf(parquet.ByteArrayType)),
		"tags":      parquet.List(parquet.String()),
	}
	if len(attributes) > 0 {
		group[attributesGroup] = attributeNodes(attributes)
	}
	schema := parquet.NewSchema("embeddings", group)
	return &Writer{
		w:          parquet.NewGenericWriter[any](w, schema, parquet.Compression(&parquet.Zstd), parquet.DataPageStatistics(false)),
		schema:     schema,
		attributes: attributes,
		group:      min(max(groupBytes/(4*max(dim, 1)), rowsBuffered), 128<<10),
	}
}

// Columns of the schema, which orders them by name, behind those of the attributes.
const (
	columnEmbedding = iota
	columnKey
	columnPayload
	columnTags
)

// Write adds a row. Nothing of it is retained but until the next Flush of the buffered rows.
func (w *Writer) Write(embedding []float32, row codec.Row) error {
	values := make(parquet.Row, 0, len(embedding)+len(row.Tags)+3)
	if len(embedding) == 0 {
		return errors.New("an embedding without values")
	}
	for i, a := range w.attributes {
		x := attributeValue(row.Attributes[a.Name])
		def := 1
		if x.IsNull() {
			def = 0
		}
		values = append(values, x.Level(0, def, i))
	}
	first := len(w.attributes)
	for i, v := range embedding {
		values = append(values, parquet.FloatValue(v).Level(min(i, 1), 1, first+columnEmbedding))
	}
	values = append(values, parquet.ByteArrayValue([]byte(row.Key)).Level(0, 0, first+columnKey))
	if row.Payload == nil {
		values = append(values, parquet.NullValue().Level(0, 0, first+columnPayload))
	} else {
		values = append(values, parquet.ByteArrayValue(row.Payload).Level(0, 1, first+columnPayload))
	}
	for i, tag := range row.Tags {
		values = append(values, parquet.ByteArrayValue([]byte(tag)).Level(min(i, 1), 1, first+columnTags))
	}
	if len(row.Tags) == 0 {
		values = append(values, parquet.NullValue().Level(0, 0, first+columnTags))
	}
	if w.rows = append(w.rows, values); len(w.rows) < rowsBuffered {
		return nil
	}
	return w.flush()
}

func (w *Writer) flush() error {
	if _, err := w.w.WriteRows(w.rows); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	w.inRow += len(w.rows)
	w.rows = w.rows[:0]
	if w.inRow < w.group {
		return nil
	}
	w.inRow = 0
	return w.w.Flush()
}

// Close writes what is left and the footer. It does not close what it writes to.
func (w *Writer) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.w.Close()
}
