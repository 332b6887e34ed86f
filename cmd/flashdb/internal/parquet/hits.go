package parquet

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// A Hit is a row of predictions: the target that was predicted for a source at a rank, from 1.
type Hit struct {
	Source             string
	Rank               int
	Target             string
	Score, Probability float32
}

// HitWriter writes predictions, one row per hit.
type HitWriter interface {
	Write(h Hit) error
	// Close writes what is left and the footer. It does not close what it writes to.
	Close() error
}

// NewHitWriter begins a file of predictions. Keys are strings to other readers, or bytes if
// binaryKeys is set.
func NewHitWriter(w io.Writer, binaryKeys bool) HitWriter {
	if binaryKeys {
		return newHitWriter[[]byte](w)
	}
	return newHitWriter[string](w)
}

// A hitRow is a Hit as it is written, its columns in the order of its fields.
type hitRow[K string | []byte] struct {
	Source      K       `parquet:"source,dict"`
	Rank        int32   `parquet:"rank"`
	Target      K       `parquet:"target"`
	Score       float32 `parquet:"score"`
	Probability float32 `parquet:"probability"`
}

type hitWriter[K string | []byte] struct {
	w    *parquet.GenericWriter[hitRow[K]]
	rows []hitRow[K]
}

func newHitWriter[K string | []byte](w io.Writer) *hitWriter[K] {
	schema := parquet.NewSchema("predictions", parquet.SchemaOf(hitRow[K]{}))
	return &hitWriter[K]{w: parquet.NewGenericWriter[hitRow[K]](w, schema, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(1<<20))}
}

func (w *hitWriter[K]) Write(h Hit) error {
	w.rows = append(w.rows, hitRow[K]{K(h.Source), int32(h.Rank), K(h.Target), h.Score, h.Probability})
	if len(w.rows) < rowsBuffered {
		return nil
	}
	return w.flush()
}

func (w *hitWriter[K]) flush() error {
	if _, err := w.w.Write(w.rows); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	w.rows = w.rows[:0]
	return nil
}

func (w *hitWriter[K]) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.w.Close()
}
