package codec

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var exported = []Row{
	{Key: "plain", HasKey: true},
	{Key: `a "b", c`, HasKey: true, Tags: []string{"x", "y z"}, Payload: []byte("one, two")},
	{Key: " spaced ", HasKey: true, Tags: []string{"p;q", "[r", "tab\tand\nline"}, Payload: []byte(`"`)},
	{Key: "é\u2028<&>", HasKey: true, Payload: []byte("{}")},
	{Key: "7", HasKey: true, Payload: []byte{0xff, 'x'}},
	{Key: "\xff\x00\xfe", HasKey: true, Tags: []string{"t"}},
}

func exportedValues(i int) []float32 { return []float32{float32(i), -0.1, 1e-42, 16777217} }

// What is written is read as it was, of every format that holds it.
func TestRowWriterRoundTrip(t *testing.T) {
	for _, format := range WriteFormats() {
		for _, suffix := range []string{"", ".zst", ".gz"} {
			name := "x." + format + suffix
			b := new(bytes.Buffer)
			packed, err := NewCompressor(b, name)
			require.NoError(t, err)
			w, err := NewRowWriter(packed, format, 4, int64(len(exported)))
			require.NoError(t, err)
			for i, row := range exported {
				require.NoError(t, w.Write(exportedValues(i), row), format)
			}
			require.NoError(t, w.Close())
			require.NoError(t, packed.Close())

			r, err := ParseRows(name, b.Bytes())
			require.NoError(t, err, name)
			require.Equal(t, 4, r.Dim())
			for i, want := range exported {
				dst := make([]float32, 4)
				got, err := r.Next(dst)
				require.NoError(t, err, name)
				require.Equal(t, exportedValues(i), dst)
				if !HasKeys(format) {
					want = Row{}
				}
				assert.Equal(t, want.Key, got.Key, name)
				assert.Equal(t, want.Tags, got.Tags, name)
				assert.Equal(t, string(want.Payload), string(got.Payload), name)
			}
			_, err = r.Next(make([]float32, 4))
			require.Equal(t, io.EOF, err)
		}
	}
}

func TestRowWriterRefuses(t *testing.T) {
	begin := func(format string, rows int64) RowWriter {
		w, err := NewRowWriter(io.Discard, format, 1, rows)
		require.NoError(t, err)
		return w
	}
	_, err := NewRowWriter(io.Discard, "pt", 1, 1)
	require.ErrorContains(t, err, `format "pt" is not written; want one of npy`)
	require.ErrorContains(t, begin("npy", 2).Close(), "2 rows fewer")
	require.ErrorContains(t, begin("npy", 0).Write([]float32{1}, Row{}), "more rows")
	require.ErrorContains(t, begin("csv", 1).Write([]float32{1}, Row{Key: "a\nb"}), "its key holds a line end")
	require.ErrorContains(t, begin("csv", 1).Write([]float32{1}, Row{Key: "a", Payload: []byte("\r")}), "its payload holds a line end")
	require.ErrorContains(t, begin("tsv", 1).Write([]float32{1}, Row{Key: "a\tb"}), "its key holds a tab")
	for _, format := range []string{"csv", "tsv", "jsonl"} {
		require.ErrorContains(t, begin(format, 1).Write([]float32{1}, Row{Key: "a", Payload: bytes.Repeat([]byte("x"), maxLine)}), "write .parquet")
	}
}

func TestWriteTensors(t *testing.T) {
	tensors := map[string]Tensor{
		"b.weight": {Shape: []int{2, 3}, Data: []float32{1, 2, 3, 4, 5, 6}}, "a": {Shape: []int{1}, Data: []float32{7}}, "s": {Shape: []int{}, Data: []float32{8}},
		"none": {Shape: []int{0, 4}, Data: []float32{}},
	}
	for ext, write := range map[string]func(io.Writer, map[string]Tensor) error{".safetensors": WriteSafetensors, ".npz": WriteNPZ} {
		b := new(bytes.Buffer)
		require.NoError(t, write(b, tensors), ext)
		back, err := ParseTensors("x"+ext, b.Bytes())
		require.NoError(t, err, ext)
		assert.Equal(t, tensors, back, ext)
	}
}

func TestTableWriter(t *testing.T) {
	lines := [][]string{{"a", "b"}, {`q"r`, "c,d"}, {"", "x"}}
	for _, format := range []string{"tsv", "csv"} {
		b := new(bytes.Buffer)
		w, err := NewTableWriter(b, format)
		require.NoError(t, err)
		for _, fields := range lines {
			require.NoError(t, w.Write(fields...))
		}
		require.Error(t, w.Write("a\nb", "c"))
		require.Error(t, w.Write(" "))
		require.NoError(t, w.Close())
		table, err := OpenTable(written(t, "x."+format, b.Bytes()), nil)
		require.NoError(t, err)
		for i, want := range lines {
			got, _, err := table.Next()
			require.NoError(t, err)
			assert.Equal(t, want, got, fmt.Sprint(format, i))
		}
		require.NoError(t, table.Close())
	}
	_, err := NewTableWriter(io.Discard, filepath.Ext("x.npy"))
	require.Error(t, err)
}
