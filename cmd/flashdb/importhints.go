package main

import (
	"os"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/internal/codec"
)

// edgeColumns is how many columns a list of edges has at most: source, target and a weight or a
// time.
const edgeColumns = 3

// widthHint says what a file may be whose rows have another width than the collection's, or
// nothing.
func (im *importer) widthHint(r codec.RowReader) string {
	format := extension(im.name)
	if im.file != nil && im.file.format != "" {
		format = im.file.format
	}
	dim := im.schema.Dim
	switch {
	case (format == formatTSV || format == formatCSV) && r.Dim() <= edgeColumns && dim > edgeColumns:
		return ": if these are edges, `flashdb link` records them; a list of row numbers and keys is given as --keys"
	case r.Dim() == 2 && dim > edgeColumns && format != formatJSONLines:
		return ": if these are edges, `flashdb train` reads them"
	case r.Count() == int64(dim):
		return ": it looks transposed, as it has as many rows: save it with a row for each node, such as z.T of NumPy"
	}
	return ""
}

// openHint says what a file may be that is no file of embeddings.
func openHint(err error) string {
	if strings.Contains(err.Error(), " matrices (") && strings.Contains(err.Error(), `.weight"`) {
		return ": the weights of a decoder are added by `flashdb decoder add`"
	}
	return ""
}

// embeddingFormats are those of files that hold no decoder and no edges.
var embeddingFormats = []string{"npy", "fvecs", "bvecs", "jsonl"}

// notWeights says what to do with a file of embeddings where weights are wanted.
func notWeights(path string) string {
	path, _, _ = strings.Cut(path, "#")
	if slices.Contains(embeddingFormats, extension(path)) || slices.Contains([]string{formatTSV, formatCSV, formatParquet}, extension(path)) {
		return ": embeddings are stored by `flashdb import`"
	}
	return ""
}

// columnsHint says how a line of edges may be meant that has not two columns.
func columnsHint(path string, fields []string) string {
	switch {
	case notEdges(path) != "":
		return notEdges(path)
	case len(fields) == 3:
		return ": of triples of source, relation and target, say --triples; of a file with a header, --source-column and --target-column name the two"
	case len(fields) > 2:
		return ": of a file with a header, --source-column and --target-column name the two"
	case strings.Contains(fields[0], ","):
		return ": they are separated by commas: say --format csv"
	case strings.Contains(fields[0], " "):
		return ": they are separated by a tab, or in a .csv by a comma"
	}
	return ""
}

// notEdges says what to do with a file of embeddings where edges are wanted.
func notEdges(path string) string {
	if slices.Contains(embeddingFormats, extension(path)) {
		return ": embeddings are stored by `flashdb import`; edges come as .tsv, .csv or .parquet"
	}
	return ""
}

// typedFile asks for the sign that a file needs, if a text is the name of one.
func typedFile(arg string) string {
	if strings.Contains(arg, ";") {
		return ": numbers are separated by commas or blanks"
	}
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
		return ": to read the file, say @" + arg
	}
	return ""
}
