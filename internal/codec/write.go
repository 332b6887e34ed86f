package codec

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// RowWriter writes the rows of a file of embeddings. One goroutine.
type RowWriter interface {
	// Write adds a row; it retains nothing of it. A row that the format cannot hold is an error.
	// Formats without keys drop them, and tags and payload.
	Write(embedding []float32, row Row) error
	// Close writes what is left. It does not close what is written to.
	Close() error
}

// WriteFormats are the formats of NewRowWriter.
func WriteFormats() []string {
	return []string{"npy", "npz", "safetensors", "fvecs", "jsonl", "csv", "tsv"}
}

// HasKeys tells whether a format holds keys, tags and payloads.
func HasKeys(format string) bool { return format == "jsonl" || format == "csv" || format == "tsv" }

// NewRowWriter begins a file of rows embeddings of dim values. As many must be written: .npy, .npz
// and .safetensors say how many there are in front.
func NewRowWriter(w io.Writer, format string, dim int, rows int64, attributes ...Attribute) (RowWriter, error) {
	b := bufio.NewWriterSize(w, 1<<16)
	values := &valueWriter{w: b, left: rows}
	switch format {
	case "npy":
		_, err := b.Write(npyHeaderOf(rows, int64(dim)))
		return values, err
	case "npz":
		archive := zip.NewWriter(b)
		entry, err := archive.CreateHeader(&zip.FileHeader{Name: "embeddings.npy", Method: zip.Store})
		if err != nil {
			return nil, err
		}
		_, err = entry.Write(npyHeaderOf(rows, int64(dim)))
		return &valueWriter{w: b, entry: entry, archive: archive, left: rows}, err
	case "safetensors":
		header, err := safetensorsHeader(map[string][]int64{"embeddings": {rows, int64(dim)}})
		if err != nil {
			return nil, err
		}
		_, err = b.Write(header)
		return values, err
	case "fvecs":
		values.width = true
		return values, nil
	case "jsonl":
		return &jsonWriter{w: b}, nil
	case "csv":
		return newCSVWriter(b, ',', dim, attributes)
	case "tsv":
		return newCSVWriter(b, '\t', dim, attributes)
	}
	return nil, fmt.Errorf("format %s is not written; want one of %s", quote(format), strings.Join(WriteFormats(), ", "))
}

// valueWriter writes rows as float32, little-endian, one behind the other.
type valueWriter struct {
	w       *bufio.Writer
	entry   io.Writer // of archive; nil without one
	archive *zip.Writer
	width   bool  // each row is preceded by the number of its values
	left    int64 // rows to come
	buf     []byte
}

func (v *valueWriter) Write(embedding []float32, _ Row) error {
	if v.left--; v.left < 0 {
		return errors.New("more rows than there were at first")
	}
	v.buf = v.buf[:0]
	if v.width {
		v.buf = binary.LittleEndian.AppendUint32(v.buf, uint32(len(embedding)))
	}
	v.buf = appendFloats(v.buf, embedding)
	out := io.Writer(v.w)
	if v.entry != nil {
		out = v.entry
	}
	_, err := out.Write(v.buf)
	return err
}

func (v *valueWriter) Close() error {
	if v.left > 0 {
		return fmt.Errorf("%d rows fewer than there were at first", v.left)
	}
	var err error
	if v.archive != nil {
		err = v.archive.Close()
	}
	return errors.Join(err, v.w.Flush())
}

func appendFloats(b []byte, values []float32) []byte {
	for _, x := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// npyHeaderOf is a header of version 1, padded so that the data is aligned to 64 bytes.
func npyHeaderOf(shape ...int64) []byte {
	var dims strings.Builder
	for i, d := range shape {
		if i > 0 {
			dims.WriteByte(' ')
		}
		fmt.Fprintf(&dims, "%d,", d)
	}
	tuple := dims.String()
	if len(shape) > 1 {
		tuple = strings.TrimSuffix(tuple, ",") // only (7,) needs it
	}
	text := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", tuple)
	const before, end = 10, 1
	pad := (64 - (before+len(text)+end)%64) % 64
	text += strings.Repeat(" ", pad) + "\n"
	b := append([]byte(npyMagic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)
}

// safetensorsHeader is the length and the header of float32 tensors of these shapes, in the order
// of their names.
func safetensorsHeader(shapes map[string][]int64) ([]byte, error) {
	type entry struct {
		Type    string  `json:"dtype"`
		Shape   []int64 `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	entries := map[string]entry{}
	at := int64(0)
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		n, ok := product(shapes[name])
		if !ok || name == "__metadata__" {
			return nil, fmt.Errorf("tensor %s: shape %s cannot be written", quote(name), shapeText(shapes[name]))
		}
		entries[name] = entry{"F32", append([]int64{}, shapes[name]...), []int64{at, at + 4*n}}
		at += 4 * n
	}
	text, err := json.Marshal(entries)
	if err != nil {
		return nil, err
	}
	text = append(text, strings.Repeat(" ", (8-len(text)%8)%8)...)
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), nil
}

// WriteNPZ writes tensors to w, as numpy.savez does.
func WriteNPZ(w io.Writer, tensors map[string]Tensor) error {
	archive := zip.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		shape := make([]int64, len(tensors[name].Shape))
		for i, d := range tensors[name].Shape {
			shape[i] = int64(d)
		}
		entry, err := archive.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
		if err == nil {
			_, err = entry.Write(appendFloats(npyHeaderOf(shape...), tensors[name].Data))
		}
		if err != nil {
			return err
		}
	}
	return archive.Close()
}

// WriteSafetensors writes tensors to w. Names must be UTF-8.
func WriteSafetensors(w io.Writer, tensors map[string]Tensor) error {
	shapes := map[string][]int64{}
	for name, t := range tensors {
		shapes[name] = []int64{}
		for _, d := range t.Shape {
			shapes[name] = append(shapes[name], int64(d))
		}
	}
	header, err := safetensorsHeader(shapes)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 1<<16)
	if _, err := b.Write(header); err != nil {
		return err
	}
	var buf []byte
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		buf = appendFloats(buf[:0], tensors[name].Data)
		if _, err := b.Write(buf); err != nil {
			return err
		}
	}
	return b.Flush()
}

// NewCompressor compresses what is written to it as the extension of name asks for: .zst, .gz or,
// by any other, not at all. Close ends the compressed data and does not close w.
func NewCompressor(w io.Writer, name string) (io.WriteCloser, error) {
	switch lower := strings.ToLower(name); {
	case strings.HasSuffix(lower, ".zst"):
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
	case strings.HasSuffix(lower, ".gz"):
		return gzip.NewWriter(w), nil
	}
	return plainWriter{w}, nil
}

type plainWriter struct{ io.Writer }

func (plainWriter) Close() error { return nil }
