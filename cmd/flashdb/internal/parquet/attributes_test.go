package parquet

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/codec"
)

// TestAttributesOfOthers reads columns as other programs write them.
func TestAttributesOfOthers(t *testing.T) {
	type row struct {
		ID        string    `parquet:"id"`
		Embedding []float32 `parquet:"embedding,list"`
		Price     float64   `parquet:"price"`
		Count     int32     `parquet:"count"`
		Large     uint64    `parquet:"large"`
		Sold      *bool     `parquet:"sold"`
		Day       int32     `parquet:"day,date"`
		Milli     time.Time `parquet:"milli,timestamp(millisecond)"`
		Micro     time.Time `parquet:"micro,timestamp(microsecond)"`
		Nano      time.Time `parquet:"nano,timestamp(nanosecond)"`
		Brand     string    `parquet:"brand,dict"`
	}
	at := time.Date(2025, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	yes, no := true, false
	var file bytes.Buffer
	w := parquet.NewGenericWriter[row](&file)
	_, err := w.Write([]row{
		{"a", []float32{1}, 0.1, -3, 1 << 63, &yes, 20_000, at, at, at, "A"},
		{"b", []float32{2}, 7, 0, 5, nil, 0, at, at, at, "B"},
		{"c", []float32{3}, 7, 0, 5, &no, 0, at, at, at, "A"},
	})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	names := []string{"price", "count", "large", "sold", "day", "milli", "micro", "nano", "brand"}
	open := func(names ...string) (*Rows, error) {
		f, err := newFile(bytes.NewReader(file.Bytes()), int64(file.Len()), "x.parquet")
		require.NoError(t, err)
		return newRows(f, codec.Columns{Attributes: names})
	}
	r, err := open(names...)
	require.NoError(t, err)
	dst := make([]float32, 1)
	first, err := r.Next(dst)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"price": 0.1, "count": int64(-3), "large": uint64(1) << 63, "sold": true, "day": time.Date(2024, 10, 4, 0, 0, 0, 0, time.UTC),
		"milli": at, "micro": at, "nano": at, "brand": "A",
	}, first.Attributes)
	second, err := r.Next(dst)
	require.NoError(t, err)
	assert.NotContains(t, second.Attributes, "sold")
	third, err := r.Next(dst)
	require.NoError(t, err)
	assert.Equal(t, false, third.Attributes["sold"])
	_, err = r.Next(dst)
	require.ErrorIs(t, err, io.EOF)
	_, err = open("embedding")
	require.ErrorContains(t, err, "is not a number, string, bool, date or timestamp")
	_, err = open("prise")
	require.ErrorContains(t, err, `no column is named "prise"`)
}

// TestBools: both encodings, and those that end too early.
func TestBools(t *testing.T) {
	c := &cursor{physical: physical{kind: parquet.Boolean}}
	read := func(s source, n int) (bits []int64, err error) {
		for range n {
			var v value
			if err := s.next(&v); err != nil {
				return bits, err
			}
			bits = append(bits, v.whole)
		}
		return bits, nil
	}
	s, err := c.source(parquet.Plain.Encoding(), []byte{0b101}, 3)
	require.NoError(t, err)
	bits, err := read(s, 3)
	require.NoError(t, err)
	assert.Equal(t, []int64{1, 0, 1}, bits)
	_, err = read(s, 6)
	require.ErrorIs(t, err, errEnds)
	s, err = c.source(parquet.RLE.Encoding(), []byte{2, 0, 0, 0, 4 << 1, 1}, 4)
	require.NoError(t, err)
	bits, err = read(s, 4)
	require.NoError(t, err)
	assert.Equal(t, []int64{1, 1, 1, 1}, bits)
	_, err = c.source(parquet.RLE.Encoding(), []byte{9, 0, 0, 0, 1}, 4)
	require.True(t, errors.Is(err, errEnds))
}
