package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/codec"
)

func at(name string) string { return filepath.Join("testdata", name+".parquet") }

// gridRow is row i of every file of testdata/make.py.
func gridRow(i int) []float32 { return []float32{float32(i), float32(i) + 0.5, float32(-i)} }

type row struct {
	values []float32
	codec.Row
}

func readAll(t testing.TB, r *Rows) (rows []row) {
	t.Helper()
	for {
		dst := make([]float32, r.Dim())
		meta, err := r.Next(dst)
		if err == io.EOF {
			_, again := r.Next(dst)
			require.Equal(t, io.EOF, again)
			require.NoError(t, r.Close())
			return rows
		}
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("row %d", len(rows)), r.Position())
		rows = append(rows, row{dst, meta})
	}
}

func TestRowsOfOtherWriters(t *testing.T) {
	for name, n := range map[string]int{"float": 4, "double": 4, "fixed": 4, "half": 4, "large": 4, "pages": 200, "pages-v2": 200, "gzip": 200} {
		r, err := OpenRows(at(name), "", codec.Columns{})
		require.NoError(t, err, name)
		assert.Equal(t, int64(n), r.Count())
		rows := readAll(t, r)
		require.Len(t, rows, n, name)
		for i, row := range rows {
			assert.Equal(t, gridRow(i), row.values, "%s: row %d", name, i)
			assert.True(t, row.HasKey)
			assert.Equal(t, fmt.Sprintf("n%d", i), row.Key, name)
		}
	}
}

func TestNamedColumns(t *testing.T) {
	r, err := OpenRows(at("full"), "", codec.Columns{Embedding: "vec", Key: "node", Tags: "labels", Payload: "title"})
	require.NoError(t, err)
	rows := readAll(t, r)
	require.Len(t, rows, 4)
	assert.Equal(t, codec.Row{Key: "10", HasKey: true, Tags: []string{"a", "b"}, Payload: []byte("zero")}, rows[0].Row)
	assert.Equal(t, codec.Row{Key: "11", HasKey: true}, rows[1].Row, "no tags, and a null payload")
	assert.Equal(t, codec.Row{Key: "12", HasKey: true, Payload: []byte("two")}, rows[2].Row, "null tags")
	assert.Equal(t, codec.Row{Key: "13", HasKey: true, Tags: []string{"c"}, Payload: []byte("")}, rows[3].Row)

	r, err = OpenRows(at("full"), "", codec.Columns{Embedding: "vec", Tags: "joined"})
	require.NoError(t, err)
	rows = readAll(t, r)
	assert.False(t, rows[0].HasKey)
	assert.Equal(t, []string{"a", "b"}, rows[0].Tags)
	assert.Empty(t, rows[1].Tags)
	assert.Equal(t, []string{"x;y"}, rows[3].Tags)
}

func TestRowsRefused(t *testing.T) {
	tests := []struct {
		file    string
		columns codec.Columns
		want    string
	}{
		{"full", codec.Columns{}, `columns "vec" and "other" are both lists of numbers: name the embedding`},
		{"full", codec.Columns{Embedding: "none"}, `no column is named "none"; the file has "title", "vec"`},
		{"full", codec.Columns{Embedding: "title"}, `column "title"`},
		{"full", codec.Columns{Embedding: "vec", Key: "labels"}, "is not a string, bytes or an integer"},
		{"full", codec.Columns{Embedding: "vec", Payload: "node"}, "is not a string or bytes"},
		{"full", codec.Columns{Embedding: "vec", Tags: "node"}, "is not a string or a list of strings"},
		{"scalars", codec.Columns{}, `no column is a list of float, double or float16; the file has "x", "key"`},
		{"empty", codec.Columns{}, "holds no rows"},
		{"none", codec.Columns{}, "none.parquet"},
	}
	for _, test := range tests {
		_, err := OpenRows(at(test.file), "", test.columns)
		assert.ErrorContains(t, err, test.want)
	}
	late := map[string]string{
		"ragged": "row 1: 1 values, the first row has 2", "nulls": "row 1: the key is null",
		"null-value": `row 1: column "embedding": value 1 is null`, "null-row": `row 1: column "embedding": value 0 is null`,
	}
	for file, want := range late {
		r, err := OpenRows(at(file), "", codec.Columns{})
		require.NoError(t, err, file)
		dst := make([]float32, r.Dim())
		_, err = r.Next(dst)
		require.NoError(t, err, file)
		_, err = r.Next(dst)
		assert.ErrorContains(t, err, at(file)+": "+want)
		_, again := r.Next(dst)
		assert.Equal(t, err, again)
		require.NoError(t, r.Close())
	}
}

func TestTable(t *testing.T) {
	read := func(columns ...string) (all []string, err error) {
		table, err := OpenTable(at("edges"), "", columns)
		if err != nil {
			return nil, err
		}
		defer func() { require.NoError(t, table.Close()) }()
		for {
			fields, row, err := table.Next()
			if err == io.EOF {
				return all, nil
			}
			require.NoError(t, err)
			all = append(all, fmt.Sprint(row, fields))
		}
	}
	got, err := read("source", "target")
	require.NoError(t, err)
	assert.Equal(t, []string{"1 [n0 n1]", "2 [n1 n2]", "3 [n1 n3]"}, got)
	_, err = read()
	assert.ErrorContains(t, err, `column "weight"`)
	_, err = read("source", "dest")
	assert.ErrorContains(t, err, `no column is named "dest"`)
}

// TestEdgeWriterRoundTrip writes edges from one slice again and again: it stays as it is.
func TestEdgeWriterRoundTrip(t *testing.T) {
	for _, columns := range [][]string{{"source", "target"}, {"source", "relation", "target"}} {
		var b bytes.Buffer
		w := NewEdgeWriter(&b, false, len(columns) == 3)
		for range 3 {
			require.NoError(t, w.Write(columns...))
		}
		require.NoError(t, w.Close())
		f, err := newFile(bytes.NewReader(b.Bytes()), int64(b.Len()), "x")
		require.NoError(t, err)
		table, err := newTable(f, columns)
		require.NoError(t, err)
		for range 3 {
			fields, _, err := table.Next()
			require.NoError(t, err)
			assert.Equal(t, columns, fields, "every field under its own name")
		}
	}
}

// written is a file of n rows of dim values by Writer.
func written(t testing.TB, n, dim int, binary bool) []byte {
	var b bytes.Buffer
	w := NewWriter(&b, dim, binary)
	for i := range n {
		require.NoError(t, w.Write(embeddingOf(i, dim), metaOf(i)))
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func embeddingOf(i, dim int) []float32 {
	values := make([]float32, dim)
	for d := range values {
		values[d] = float32(i) + float32(d)/8
	}
	return values
}

func metaOf(i int) codec.Row {
	r := codec.Row{Key: fmt.Sprintf("key %d", i), HasKey: true}
	switch i % 3 {
	case 1:
		r.Tags, r.Payload = []string{"odd;tag", "b"}, []byte{0, 0xff, byte(i)}
	case 2:
		r.Tags, r.Payload = []string{"c"}, []byte{}
	}
	return r
}

func TestWriterRoundTrip(t *testing.T) {
	for _, shape := range [][2]int{{1, 1}, {5, 3}, {1300, 700}, {2000, 5}} {
		data := written(t, shape[0], shape[1], shape[0] == 5)
		f, err := newFile(bytes.NewReader(data), int64(len(data)), "x")
		require.NoError(t, err)
		r, err := newRows(f, codec.Columns{})
		require.NoError(t, err)
		rows := readAll(t, r)
		require.Len(t, rows, shape[0])
		for i, row := range rows {
			require.Equal(t, embeddingOf(i, shape[1]), row.values)
			require.Equal(t, metaOf(i), row.Row)
		}
	}
}

func TestDamage(t *testing.T) {
	data := written(t, 10, 4, false)
	drain := func(data []byte) error {
		f, err := newFile(bytes.NewReader(data), int64(len(data)), "x")
		if err != nil {
			return err
		}
		r, err := newRows(f, codec.Columns{})
		for err == nil {
			_, err = r.Next(make([]float32, r.Dim()))
		}
		if err == io.EOF {
			return nil
		}
		return err
	}
	require.NoError(t, drain(data))
	for n := range data {
		assert.Error(t, drain(data[:n]), "cut to %d bytes", n)
	}
	found := 0
	for i := range data { // no byte is left out; what a flip in a value does, no checksum tells
		flipped := bytes.Clone(data)
		flipped[i] ^= 0x55
		if err := drain(flipped); err != nil {
			assert.True(t, strings.HasPrefix(err.Error(), "x: "), "%v", err)
			found++
		}
	}
	assert.Greater(t, found, len(data)/2)

	long := bytes.Clone(data)
	copy(long[len(long)-8:], "\xff\xff\xff\x7f")
	assert.ErrorContains(t, drain(long), "damaged: a footer of 2147483647 bytes")
	assert.ErrorContains(t, drain([]byte("PAR1")), "too short")
	assert.ErrorContains(t, drain([]byte("this is no such file at all")), "does not end with PAR1")
}

func TestPageHeaderLimits(t *testing.T) {
	// A struct with field 2 = 1 << 30 bytes, field 3 = 4 bytes, field 5 a struct with field 1 = 7
	// values.
	header := []byte{0x25, 0x80, 0x80, 0x80, 0x80, 0x08, 0x15, 0x08, 0x2c, 0x15, 0x0e, 0x00, 0x00}
	p, err := readPageHeader(append(header, 9, 9))
	require.NoError(t, err)
	assert.Equal(t, pageHeader{header: len(header), uncompressed: 1 << 30, compressed: 4, values: 7, isCompressed: true}, p)
	for n := range header {
		_, err := readPageHeader(header[:n])
		assert.ErrorIs(t, err, errThrift, "cut to %d bytes", n)
	}
	for name, b := range map[string][]byte{
		"binary":      {0x18, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00},
		"list":        {0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00},
		"map":         {0x1b, 0xff, 0xff, 0x03, 0x55, 0x00},
		"type":        {0x1e, 0x00},
		"nested deep": bytes.Repeat([]byte{0x1c}, 100),
	} {
		_, err := readPageHeader(b)
		assert.ErrorIs(t, err, errThrift, name)
	}
}

func FuzzRows(f *testing.F) {
	for _, name := range []string{"float", "half", "full", "gzip", "pages-v2", "null-row"} {
		data, err := os.ReadFile(at(name))
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add(written(f, 5, 3, true))
	for _, l := range layouts() {
		f.Add(made(f, l, 5))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := newFile(bytes.NewReader(data), int64(len(data)), "x")
		if err != nil {
			return
		}
		for _, columns := range []codec.Columns{{}, {Embedding: "vec", Tags: "joined"}} {
			r, err := newRows(file, columns)
			for n := 0; err == nil && n < 10_000; n++ {
				_, err = r.Next(make([]float32, r.Dim()))
			}
		}
		names, err := newNames(file, codec.Columns{})
		for n := 0; err == nil && n < 10_000; n++ {
			_, _, err = names.Next()
		}
		table, err := newTable(file, nil)
		for n := 0; err == nil && n < 10_000; n++ {
			_, _, err = table.Next()
		}
	})
}

// FuzzPages fuzzes what stands in the header and the bytes of a page of strings behind a
// dictionary, within a sound file.
func FuzzPages(f *testing.F) {
	both := append(append(deltas(3, 0, 2), deltas(3, 2, 0)...), "abcdef"...)
	f.Add(uint8(0), uint8(format.Plain), uint8(0), int64(2), int64(10), plain("b"), plain("a", "b"))
	f.Add(uint8(3), uint8(format.RLEDictionary), uint8(0), int64(9), int64(4), plain("a", "b"), []byte{1, 3, 0x55, 2, 1})
	f.Add(uint8(0), uint8(format.DeltaByteArray), uint8(0), int64(3), int64(len(both)), []byte(nil), both)
	f.Add(uint8(0), uint8(format.DeltaLengthByteArray), uint8(0), int64(3), int64(16), []byte(nil), append(deltas(3, 2, 0), "abcdef"...))
	f.Add(uint8(0), uint8(format.Plain), uint8(format.Snappy), int64(1), int64(5), []byte(nil), snappy.Encode(nil, plain("a")))
	f.Add(uint8(0), uint8(format.Plain), uint8(format.Lz4Raw), int64(1), int64(5), []byte(nil), append([]byte{0x50}, plain("a")...))
	f.Fuzz(func(t *testing.T, typ, encoding, compression uint8, values, uncompressed int64, dict, body []byte) {
		header := object{}.i32(1, values).i32(2, int64(encoding)).i32(3, 3).i32(4, 3)
		field := 5
		if typ == pageDataV2 {
			header, field = object{}.i32(1, values).i32(2, 0).i32(3, values).i32(4, int64(encoding)).i32(5, 0).i32(6, 0), 8
		}
		var pages [][]byte
		if dict != nil {
			pages = append(pages, dictionaryOf(2, int64(len(dict)), dict))
		}
		pages = append(pages, pageOf(int64(typ), uncompressed, body, field, header))
		data := single(format.CompressionCodec(compression), values, pages...)
		if _, err := drained(data); err != nil {
			assert.Regexp(t, "^x: ", err.Error())
			assert.NotContains(t, err.Error(), "runtime error", "bounds are checked, not recovered from")
		}
	})
}

// FuzzFooter fuzzes the footer of a file of sound pages.
func FuzzFooter(f *testing.F) {
	add := func(data []byte) {
		end := len(data) - 8
		start := end - int(binary.LittleEndian.Uint32(data[end:]))
		f.Add(bytes.Clone(data[start:end]), bytes.Clone(data[4:start]))
	}
	add(written(f, 3, 2, false))
	add(made(f, layouts()[1], 3))
	add(single(format.Uncompressed, 2, dataV1(format.Plain, 2, 10, plain("a", "b"))))
	f.Fuzz(func(t *testing.T, footer, pages []byte) {
		data := append(append([]byte("PAR1"), pages...), footer...)
		data = append(binary.LittleEndian.AppendUint32(data, uint32(len(footer))), "PAR1"...)
		file, err := newFile(bytes.NewReader(data), int64(len(data)), "x")
		if err != nil {
			return
		}
		r, err := newRows(file, codec.Columns{})
		for n := 0; err == nil && n < 10_000; n++ {
			_, err = r.Next(make([]float32, r.Dim()))
		}
		_, _ = drained(data)
	})
}
