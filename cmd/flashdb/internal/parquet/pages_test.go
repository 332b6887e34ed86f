package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/codec"
)

// layout is how parquet-go is to write the rows of madeRow.
type layout struct {
	name                   string
	key, number, embedding parquet.Node
	double                 bool
	options                []parquet.WriterOption
}

// layouts are the encodings, compressions and versions of pages that are read.
func layouts() (all []layout) {
	encoded := parquet.Encoded
	float, double := parquet.Leaf(parquet.FloatType), parquet.Leaf(parquet.DoubleType)
	for _, version := range []int{1, 2} {
		for _, l := range []layout{
			{name: "plain", key: parquet.String(), number: parquet.Int(32), embedding: float},
			{name: "dictionary", key: encoded(parquet.String(), &parquet.RLEDictionary), number: encoded(parquet.Int(64), &parquet.RLEDictionary), embedding: encoded(float, &parquet.RLEDictionary)},
			{name: "delta length", key: encoded(parquet.String(), &parquet.DeltaLengthByteArray), number: encoded(parquet.Int(64), &parquet.DeltaBinaryPacked), embedding: encoded(float, &parquet.ByteStreamSplit)},
			{name: "delta", key: encoded(parquet.String(), &parquet.DeltaByteArray), number: encoded(parquet.Int(32), &parquet.DeltaBinaryPacked), embedding: encoded(double, &parquet.ByteStreamSplit), double: true},
		} {
			l.name = fmt.Sprintf("%s, version %d", l.name, version)
			l.options = []parquet.WriterOption{parquet.DataPageVersion(version), parquet.PageBufferSize(700), parquet.MaxRowsPerRowGroup(300)}
			all = append(all, l)
		}
	}
	return all
}

// madeRow is row i of a file of any layout.
func madeRow(i int) (key string, number int64, embedding []float32, payload []byte) {
	random := rand.New(rand.NewPCG(uint64(i), 1))
	key = fmt.Sprintf("%s/%d", "https://example.org/papers/2024"[:random.IntN(31)], i)
	number = int64(int32(random.Uint32()))
	if i%3 == 0 {
		number = int64(i)
	}
	embedding = make([]float32, 5)
	for d := range embedding {
		embedding[d] = float32(random.IntN(9)) - 4.5
	}
	if i%4 > 0 {
		payload = bytes.Repeat([]byte{byte(i)}, i%7)
	}
	return key, number, embedding, payload
}

// made is a file of n rows, by parquet-go.
func made(t testing.TB, l layout, n int) []byte {
	t.Helper()
	schema := parquet.NewSchema("made", parquet.Group{
		"embedding": parquet.List(l.embedding), "key": l.key, "number": l.number, "payload": parquet.Optional(parquet.Leaf(parquet.ByteArrayType)),
	})
	var b bytes.Buffer
	w := parquet.NewGenericWriter[any](&b, append(l.options, schema)...)
	for i := range n {
		key, number, embedding, payload := madeRow(i)
		var row parquet.Row
		for d, v := range embedding {
			value := parquet.FloatValue(v)
			if l.double {
				value = parquet.DoubleValue(float64(v))
			}
			row = append(row, value.Level(min(d, 1), 1, 0))
		}
		row = append(row, parquet.ByteArrayValue([]byte(key)).Level(0, 0, 1))
		if l.number.Type().Kind() == parquet.Int32 {
			row = append(row, parquet.Int32Value(int32(number)).Level(0, 0, 2))
		} else {
			row = append(row, parquet.Int64Value(number).Level(0, 0, 2))
		}
		if payload == nil {
			row = append(row, parquet.NullValue().Level(0, 0, 3))
		} else {
			row = append(row, parquet.ByteArrayValue(payload).Level(0, 1, 3))
		}
		_, err := w.WriteRows([]parquet.Row{row})
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func opened(t testing.TB, data []byte) *file {
	t.Helper()
	f, err := newFile(bytes.NewReader(data), int64(len(data)), "x")
	require.NoError(t, err)
	return f
}

// TestEveryLayout: what parquet-go writes is read as it was given, whatever the encoding, the
// compression and the version of the pages.
func TestEveryLayout(t *testing.T) {
	const n = 700
	codecs := []parquet.WriterOption{
		parquet.Compression(&parquet.Uncompressed), parquet.Compression(&parquet.Snappy), parquet.Compression(&parquet.Gzip),
		parquet.Compression(&parquet.Zstd), parquet.Compression(&parquet.Brotli), parquet.Compression(&parquet.Lz4Raw),
	}
	for i, compression := range codecs {
		for _, l := range layouts() {
			t.Run(fmt.Sprintf("codec %d, %s", i, l.name), func(t *testing.T) {
				l.options = append(l.options, compression)
				data := made(t, l, n)
				r, err := newRows(opened(t, data), codec.Columns{})
				require.NoError(t, err)
				rows := readAll(t, r)
				require.Len(t, rows, n)
				table, err := newTable(opened(t, data), []string{"number", "key"})
				require.NoError(t, err)
				for i, row := range rows {
					key, number, embedding, payload := madeRow(i)
					require.Equal(t, embedding, row.values)
					require.Equal(t, key, row.Key)
					require.Equal(t, payload == nil, row.Payload == nil)
					require.True(t, bytes.Equal(payload, row.Payload))
					fields, _, err := table.Next()
					require.NoError(t, err)
					require.Equal(t, []string{fmt.Sprint(number), key}, fields)
				}
				_, _, err = table.Next()
				require.True(t, errors.Is(err, io.EOF))
			})
		}
	}
}
