package codec

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// Writers of small files in each format, sound or not.

func f32Bytes(values ...float32) []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, values)
	return b
}

func safetensors(header string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func npy(header string, data []byte) []byte {
	b := append([]byte(npyMagic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	return append(append(b, header...), data...)
}

func npyHeaderText(descr string, fortran bool, shape string) string {
	order := "False"
	if fortran {
		order = "True"
	}
	return fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", descr, order, shape)
}

// entryOf is a file of a zip archive.
type entryOf struct {
	name    string
	method  uint16
	content []byte
}

func zipped(t testing.TB, entries ...entryOf) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, e := range entries {
		w, err := z.CreateHeader(&zip.FileHeader{Name: e.name, Method: e.method})
		require.NoError(t, err)
		_, err = w.Write(e.content)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return buf.Bytes()
}

// torchFile wraps a pickle and storages "0", "1", ... in an archive.
func torchFile(t testing.TB, pickle string, storages ...[]byte) []byte {
	t.Helper()
	entries := []entryOf{{"x/data.pkl", zip.Store, []byte(pickle)}}
	for i, s := range storages {
		entries = append(entries, entryOf{fmt.Sprintf("x/data/%d", i), zip.Store, s})
	}
	return zipped(t, entries...)
}

func fvecs(rows ...[]float32) []byte {
	var b []byte
	for _, row := range rows {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(row)))
		b = append(b, f32Bytes(row...)...)
	}
	return b
}

func zst(t testing.TB, data []byte) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, enc.Close()) }()
	return enc.EncodeAll(data, nil)
}

func gz(t testing.TB, data []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return buf.Bytes()
}

// written puts data in a file of a folder of the test's own.
func written(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

func fixture(t testing.TB, parts ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, parts...)...))
	require.NoError(t, err)
	return data
}

// bigData is the folder of real graphs and decoders, which not every machine has.
func bigData(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("FLASHDB_DATA")
	if dir == "" {
		t.Skip("FLASHDB_DATA is not set: real embeddings and the full set of decoders are not checked")
	}
	return dir
}

// readAll drains and closes r.
func readAll(t testing.TB, r RowReader) (values [][]float32, rows []Row) {
	t.Helper()
	for {
		dst := make([]float32, r.Dim())
		row, err := r.Next(dst)
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		values = append(values, dst)
		rows = append(rows, row)
	}
	_, err := r.Next(make([]float32, r.Dim()))
	require.ErrorIs(t, err, io.EOF, "the end stays the end")
	require.NoError(t, r.Close())
	return values, rows
}
