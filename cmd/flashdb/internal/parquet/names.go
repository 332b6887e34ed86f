package parquet

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/flashdb/flashdb/internal/codec"
)

// rowColumn is the column of row numbers, as names of a matrix have it.
const rowColumn = "row"

// Names streams the keys, tags, payloads and attributes of rows whose embeddings are in another
// file.
type Names struct {
	rows   Rows
	number *cursor // of rows; nil: the names are in the order of the rows
}

// OpenNames opens a file of names. Columns have their usual names as in OpenRows, and the column
// row holds row numbers.
func OpenNames(path string, columns codec.Columns) (*Names, error) {
	f, err := open(path, "")
	if err != nil {
		return nil, err
	}
	n, err := newNames(f, columns)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return n, nil
}

func newNames(f *file, columns codec.Columns) (names *Names, err error) {
	defer f.guard(&err)
	n := &Names{rows: Rows{file: f}}
	if err := n.rows.chooseTexts(columns); err != nil {
		return nil, f.fault(err)
	}
	if n.rows.key == nil {
		return nil, f.fault(fmt.Errorf("no column is named key, id or name; the file has %s: name the column of keys", f.columns()))
	}
	if leaf := f.byName(isWhole, rowColumn); leaf != nil {
		n.number = newCursor(f, leaf)
	}
	return n, nil
}

func isWhole(c *parquet.Column) bool {
	kind := c.Type().Kind()
	return c.MaxRepetitionLevel() == 0 && (kind == parquet.Int32 || kind == parquet.Int64)
}

// Next returns the number of the next row and what the file says of it. At the end it returns
// io.EOF.
func (n *Names) Next() (number int64, row codec.Row, err error) {
	r := &n.rows
	if r.err != nil {
		return 0, codec.Row{}, r.err
	}
	defer func() { r.err = err }()
	defer r.file.guard(&err)
	if r.row == r.Count() {
		return 0, codec.Row{}, io.EOF
	}
	if number, err = n.next(); err == nil {
		row, err = r.meta()
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("truncated: the footer says %d rows", r.Count())
	}
	if err != nil {
		return 0, codec.Row{}, r.file.fault(fmt.Errorf("row %d: %w", r.row, err))
	}
	r.row++
	return number, row, nil
}

// next returns the number of the next row.
func (n *Names) next() (int64, error) {
	if n.number == nil {
		return n.rows.row, nil
	}
	values, err := n.number.next(1)
	switch {
	case err != nil:
		return 0, err
	case values[0].null || values[0].whole < 0:
		return 0, fmt.Errorf("column %s holds no row number", rowColumn)
	}
	return values[0].whole, nil
}

// Attributes are the names of the attributes.
func (n *Names) Attributes() (names []string) {
	for _, a := range n.rows.attributes {
		names = append(names, a.attributeName)
	}
	return names
}

// Position names the row returned last.
func (n *Names) Position() string { return n.rows.Position() }

// Close closes the file.
func (n *Names) Close() error {
	n.number.close()
	return n.rows.Close()
}
