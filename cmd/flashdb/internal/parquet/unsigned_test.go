package parquet

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/codec"
)

// TestUnsignedKeys: keys of unsigned columns are not negative, whatever the encoding.
func TestUnsignedKeys(t *testing.T) {
	for _, bits := range []int{8, 16, 32, 64} {
		for name, encoding := range map[string]func(parquet.Node) parquet.Node{
			"plain":      func(n parquet.Node) parquet.Node { return n },
			"dictionary": func(n parquet.Node) parquet.Node { return parquet.Encoded(n, &parquet.RLEDictionary) },
			"delta":      func(n parquet.Node) parquet.Node { return parquet.Encoded(n, &parquet.DeltaBinaryPacked) },
		} {
			t.Run(strconv.Itoa(bits)+" bits, "+name, func(t *testing.T) {
				most := uint64(math.MaxUint64) >> (64 - bits)
				keys := []uint64{0, 1, most/2 + 1, most - 1, most}
				schema := parquet.NewSchema("made", parquet.Group{"embedding": parquet.List(parquet.Leaf(parquet.FloatType)), "key": encoding(parquet.Uint(bits))})
				var b bytes.Buffer
				w := parquet.NewGenericWriter[any](&b, schema)
				for _, key := range keys {
					value := parquet.Int64Value(int64(key))
					if bits < 64 {
						value = parquet.Int32Value(int32(uint32(key)))
					}
					_, err := w.WriteRows([]parquet.Row{{parquet.FloatValue(1).Level(0, 1, 0), value.Level(0, 0, 1)}})
					require.NoError(t, err)
				}
				require.NoError(t, w.Close())

				r, err := newRows(opened(t, b.Bytes()), codec.Columns{})
				require.NoError(t, err)
				rows := readAll(t, r)
				require.Len(t, rows, len(keys))
				table, err := newTable(opened(t, b.Bytes()), []string{"key"})
				require.NoError(t, err)
				for i, key := range keys {
					want := strconv.FormatUint(key, 10)
					require.Equal(t, want, rows[i].Key)
					fields, _, err := table.Next()
					require.NoError(t, err)
					require.Equal(t, []string{want}, fields)
				}
				_, _, err = table.Next()
				require.True(t, errors.Is(err, io.EOF))
			})
		}
	}
}
