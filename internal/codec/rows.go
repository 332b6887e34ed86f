package codec

import (
	"bytes"
	"errors"
	"os"
	"strings"
)

const (
	// maxDim is the widest row read: it bounds what a caller allocates for one.
	maxDim = 1 << 20
	// blockBytes is how much of a matrix is read at a time; at least one row.
	blockBytes = 256 << 10
	// columnBlockBytes is the same in Fortran order, where a block is gathered from as many places
	// as there are columns.
	columnBlockBytes = 4 << 20
)

// Row is what a file says about an embedding beside its values.
type Row struct {
	Key     string // the node's key, when HasKey
	HasKey  bool
	Tags    []string
	Payload []byte // the caller's own
	// Attributes are values by name: float64, string, bool, time.Time, or a Field or Text. In the
	// header of a table that flashdb wrote, the name ends in a colon and the type.
	Attributes map[string]any
}

// A Field is an attribute as a table has it, which may be of any type.
type Field string

// A Text is an attribute of a format that has strings but no times. It may be either.
type Text string

// An Attribute is a column of attributes to write. Type is number, string, bool or time.
type Attribute struct{ Name, Type string }

// RowReader streams the embeddings of a file in order. It holds one block of rows, or one line,
// whatever the size of the file. One goroutine.
type RowReader interface {
	// Dim is the number of values in every row, at least 1.
	Dim() int
	// Count is the number of rows where the format or the size of the file says it, else -1.
	Count() int64
	// Next decodes the next row into dst[:Dim()]. At the end, which includes the checksum of a
	// compressed file, it returns io.EOF.
	Next(dst []float32) (Row, error)
	// Position says where the row Next returned last stands, for messages: "row 12" (the first
	// is 0) or "line 13" (the first is 1).
	Position() string
	Close() error
}

// RowOptions say what a file of embeddings or its name do not.
type RowOptions struct {
	// Format is the extension of a format without its dot, such as "csv". Empty: that of the file's
	// name.
	Format string
	// Name is the file's for messages. Empty: its path.
	Name string
	// Columns are the columns of a .csv or .tsv file that are no values.
	Columns Columns
}

// Columns name columns by the header of a table. Empty: the defaults of the format.
type Columns struct {
	Key, Tags, Payload string
	// Embedding is the column of lists of a format that has such: not of .csv and .tsv, where every
	// column not named here holds one value.
	Embedding string
	// Attributes are columns of attributes, or in .jsonl fields.
	Attributes []string `json:",omitempty"`
}

// none tells whether nothing is named.
func (c Columns) none() bool {
	return c.Key+c.Tags+c.Payload+c.Embedding == "" && len(c.Attributes) == 0
}

// Formats are the values of RowOptions.Format.
func Formats() []string {
	return []string{"npy", "npz", "safetensors", "pt", "fvecs", "bvecs", "jsonl", "csv", "tsv"}
}

// OpenRows opens the embeddings in a file; see the package comment for the formats. A file of
// several matrices needs the name of one after its path, as in "graph.npz#embeddings". Nil options
// are the defaults.
func OpenRows(path string, opts *RowOptions) (RowReader, error) {
	if opts == nil {
		opts = &RowOptions{}
	}
	file, selected := path, ""
	if at := strings.LastIndexByte(path, '#'); at >= 0 {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			file, selected = path[:at], path[at+1:]
		}
	}
	in, err := openInput(file)
	if err != nil {
		return nil, err
	}
	in.rename(opts.Name, opts.Format)
	r, err := newRows(in, selected, opts.Columns)
	if err != nil {
		return nil, errors.Join(err, in.close())
	}
	return r, nil
}

// ParseRows is OpenRows of the content of a file. The extension of name tells the format, as that
// of a path does. data is not copied and must not change.
func ParseRows(name string, data []byte) (RowReader, error) {
	in, err := newInput(name, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	in.close = func() error { return nil }
	return newRows(in, "", Columns{})
}

func newRows(in *blob, selected string, columns Columns) (RowReader, error) {
	format := in.format()
	switch {
	case columns.none(), format == ".jsonl" && columns.Key+columns.Tags+columns.Payload+columns.Embedding == "":
	case columns.Embedding != "":
		return nil, in.fault(0, "this format has no columns of embeddings")
	case format != ".csv" && format != ".tsv":
		return nil, in.fault(0, "this format has no named columns: only .csv, .tsv and .parquet have")
	}
	switch format {
	case ".fvecs":
		return newVecs(in, f32)
	case ".bvecs":
		return newVecs(in, u8)
	case ".jsonl", ".ndjson":
		return newJSONRows(in, columns.Attributes)
	case ".csv":
		return newCSVRows(in, ',', columns)
	case ".tsv":
		return newCSVRows(in, '\t', columns)
	}
	views, err := listTensors(in)
	if err == errNoTensorFormat {
		return nil, in.fault(0, "not a format of embeddings: want .npy, .npz, .safetensors, .pt, .fvecs, .bvecs, .jsonl, .csv or .tsv")
	}
	if err != nil {
		return nil, err
	}
	v, err := selectMatrix(in, views, selected)
	if err != nil {
		return nil, err
	}
	return newMatrixRows(in, v)
}

// selectMatrix finds the 2-D tensor of the given name, or the only one.
func selectMatrix(in *blob, views []*view, name string) (*view, error) {
	var matrices []*view
	var names []string
	for _, v := range views {
		if len(v.shape) == 2 && (name == "" || v.name == name) {
			matrices = append(matrices, v)
			names = append(names, v.name)
		}
	}
	switch {
	case len(matrices) == 1:
		return matrices[0], nil
	case len(matrices) > 1 && name == "":
		return nil, in.fault(0, "holds %d matrices (%s): name one, as in %s#%s", len(matrices), list(names), in.file, names[0])
	case len(matrices) > 1:
		return nil, in.fault(0, "holds %d matrices named %s", len(matrices), quote(name))
	case name != "":
		return nil, in.fault(0, "holds no matrix named %s", quote(name))
	case len(views) == 1:
		return nil, views[0].fault("shape %v: embeddings are a matrix, nodes x dim", views[0].shape)
	}
	return nil, in.fault(0, "holds no matrix: embeddings are a 2-D array, nodes x dim")
}
