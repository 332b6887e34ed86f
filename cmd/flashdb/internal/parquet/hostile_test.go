package parquet

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"runtime"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/attempts"
	"github.com/flashdb/flashdb/internal/codec"
)

// object writes a struct of Thrift's compact protocol.
type object struct {
	b    []byte
	last int
}

func (o object) head(id int, typ byte) object {
	o.b = append(o.b, byte(id-o.last)<<4|typ)
	o.last = id
	return o
}

// i32 adds an integer; zigzag writes i64 alike.
func (o object) i32(id int, v int64) object {
	o = o.head(id, thriftI32)
	o.b = binary.AppendVarint(o.b, v)
	return o
}

func (o object) i64(id int, v int64) object {
	o = o.head(id, thriftI64)
	o.b = binary.AppendVarint(o.b, v)
	return o
}

func (o object) text(id int, s string) object {
	o = o.head(id, thriftBinary)
	o.b = append(binary.AppendUvarint(o.b, uint64(len(s))), s...)
	return o
}

func (o object) boolean(id int, v bool) object {
	return o.head(id, map[bool]byte{true: thriftTrue, false: thriftFalse}[v])
}

func (o object) inner(id int, in object) object {
	o = o.head(id, thriftStruct)
	o.b = append(append(o.b, in.b...), 0)
	return o
}

func (o object) list(id int, typ byte, elements ...[]byte) object {
	o = o.head(id, thriftList)
	o.b = append(o.b, 0xf0|typ)
	o.b = binary.AppendUvarint(o.b, uint64(len(elements)))
	for _, e := range elements {
		o.b = append(o.b, e...)
	}
	return o
}

func (o object) end() []byte { return append(bytes.Clone(o.b), 0) }

// column describes a schema element: a string, or a group of so many columns.
func column(name string, repetition, children int) []byte {
	o := object{}
	if children == 0 {
		o = o.i32(1, 6)
	}
	o = o.i32(3, int64(repetition)).text(4, name)
	if children > 0 {
		o = o.i32(5, int64(children))
	}
	return o.end()
}

// chunkAt describes the pages of the column name.
func chunkAt(codec, values, size, data, dictionary int64) []byte {
	meta := object{}.i32(1, 6).list(2, thriftI32, []byte{0}).list(3, thriftBinary, []byte("\x01s")).i32(4, codec).
		i64(5, values).i64(6, size).i64(7, size).i64(9, data)
	if dictionary != 0 {
		meta = meta.i64(11, dictionary)
	}
	return object{}.i64(2, data).inner(3, meta).end()
}

func group(rows, size int64, chunks ...[]byte) []byte {
	return object{}.list(1, thriftStruct, chunks...).i64(2, size).i64(3, rows).end()
}

// assembled is a file of pages, schema and row groups.
func assembled(pages []byte, rows int64, schema, groups [][]byte) []byte {
	footer := object{}.i32(1, 1).list(2, thriftStruct, schema...).i64(3, rows).list(4, thriftStruct, groups...).end()
	b := append([]byte("PAR1"), pages...)
	b = append(b, footer...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(footer)))
	return append(b, "PAR1"...)
}

// single is a file of one required column s of strings.
func single(codec format.CompressionCodec, values int64, pages ...[]byte) []byte {
	all := bytes.Join(pages, nil)
	return assembled(all, values, [][]byte{column("root", 0, 1), column("s", 0, 0)},
		[][]byte{group(values, int64(len(all)), chunkAt(int64(codec), values, int64(len(all)), 4, 0))})
}

// dataV1 is a data page of version 1 without levels.
func dataV1(encoding format.Encoding, values, uncompressed int64, body []byte) []byte {
	return pageOf(0, uncompressed, body, 5, object{}.i32(1, values).i32(2, int64(encoding)).i32(3, 3).i32(4, 3))
}

func dictionaryOf(values, uncompressed int64, body []byte) []byte {
	return pageOf(2, uncompressed, body, 7, object{}.i32(1, values).i32(2, 0))
}

func pageOf(typ, uncompressed int64, body []byte, field int, in object) []byte {
	return append(object{}.i32(1, typ).i32(2, uncompressed).i32(3, int64(len(body))).inner(field, in).end(), body...)
}

// plain is strings as they are stored.
func plain(strings ...string) (b []byte) {
	for _, s := range strings {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	return b
}

// deltas are n integers with one difference between them, in long blocks of no bits.
func deltas(n, first, difference int64) []byte {
	const block = 1 << 15
	b := binary.AppendUvarint(nil, block)
	b = binary.AppendUvarint(b, 1)
	b = binary.AppendUvarint(b, uint64(n))
	b = binary.AppendVarint(b, first)
	for left := n - 1; left > 0; left -= block {
		b = append(binary.AppendVarint(b, difference), 0)
	}
	return b
}

// drained reads the column s to its end, or some million values where a file has more, so that no
// test hangs. It returns the first strings.
func drained(data []byte) (all []string, err error) {
	f, err := newFile(bytes.NewReader(data), int64(len(data)), "x")
	if err != nil {
		return nil, err
	}
	table, err := newTable(f, []string{"s"})
	for n := 0; err == nil && n < 4<<20; n++ {
		var fields []string
		if fields, _, err = table.Next(); err == nil && len(all) < 4 {
			all = append(all, fields...)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return all, err
}

// TestAssembled: the writer of this file writes what is read.
func TestAssembled(t *testing.T) {
	got, err := drained(single(format.Uncompressed, 2, dataV1(format.Plain, 2, 11, plain("abc", ""))))
	require.NoError(t, err)
	require.Equal(t, []string{"abc", ""}, got)
	index := []byte{1, 4 << 1, 1} // four times value 1
	got, err = drained(single(format.Uncompressed, 4, dictionaryOf(2, 10, plain("a", "b")), dataV1(format.RLEDictionary, 4, 3, index)))
	require.NoError(t, err)
	require.Equal(t, []string{"b", "b", "b", "b"}, got)
	body := append(append(deltas(3, 0, 2), deltas(3, 2, 0)...), "abcdef"...)
	got, err = drained(single(format.Uncompressed, 3, dataV1(format.DeltaByteArray, 3, int64(len(body)), body)))
	require.NoError(t, err)
	require.Equal(t, []string{"ab", "abcd", "abcdef"}, got)
}

// TestHostilePages: pages, dictionaries and levels that lie take bounded memory, and the error says
// which column they are of.
func TestHostilePages(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes: nothing for the race detector")
	}
	const most = 64 << 20
	zeros := make([]byte, 128<<20)
	compressed := func(w io.WriteCloser, b *bytes.Buffer) []byte {
		_, err := w.Write(zeros)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return b.Bytes()
	}
	var zs, gz, br bytes.Buffer
	enc, err := zstd.NewWriter(&zs)
	require.NoError(t, err)
	long := string(make([]byte, 1<<20))
	prefixes := append(append(deltas(1<<16, 0, 1), deltas(1<<16, 1, 0)...), long...)
	ahead := append(append(deltas(1, 1, 0), deltas(1, 1, 0)...), "ab"...)
	damaged := bytes.Repeat([]byte{0xff}, 100)
	v2 := func(reps, defs int64, body []byte) []byte {
		return pageOf(3, int64(len(body)), body, 8, object{}.i32(1, 2).i32(2, 0).i32(3, 2).i32(4, 0).i32(5, defs).i32(6, reps).boolean(7, false))
	}
	wide := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 17 << 3, 5<<3 | 1, 0, 0}, plain("a")...) // a window of 128 MiB, one block of 5 bytes
	const impossible = "damaged: its header declares "
	endless := append([]byte{0}, binary.AppendUvarint(nil, 1<<62)...) // a run of as many as one has, of no bits
	const lying = "the page does not expand to what its header declares"
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"zstd that lies":         {single(format.Zstd, 1, dataV1(format.Plain, 1, 100, compressed(enc, &zs))), lying},
		"gzip that lies":         {single(format.Gzip, 1, dataV1(format.Plain, 1, 100, compressed(gzip.NewWriter(&gz), &gz))), lying},
		"brotli that lies":       {single(format.Brotli, 1, dataV1(format.Plain, 1, 100, compressed(brotli.NewWriter(&br), &br))), lying},
		"snappy that lies":       {single(format.Snappy, 1, dataV1(format.Plain, 1, 100, snappy.Encode(nil, zeros))), lying},
		"lz4 that is damaged":    {single(format.Lz4Raw, 1, dataV1(format.Plain, 1, 100, damaged)), lying},
		"lz4 of nothing":         {single(format.Lz4Raw, 1, dataV1(format.Plain, 1, 100, nil)), lying},
		"zstd that is damaged":   {single(format.Zstd, 1, dataV1(format.Plain, 1, 100, damaged)), "ZSTD: "},
		"zstd, a wide window":    {single(format.Zstd, 1, dataV1(format.Plain, 1, 5, wide)), "the window is too large for a file of this size"},
		"declares too much":      {single(format.Zstd, 1, dataV1(format.Plain, 1, 1<<30, damaged)), "decompression bomb"},
		"negative size":          {single(format.Zstd, 1, dataV1(format.Plain, 1, -1, damaged)), impossible},
		"negative values":        {single(format.Uncompressed, 1, dataV1(format.Plain, -1, 7, plain("abc"))), impossible},
		"values of 64 bits":      {single(format.Uncompressed, 1<<61, dictionaryOf(1, 4, plain("")), dataV1(format.RLEDictionary, 1<<61, int64(len(endless)), endless)), impossible},
		"levels of 64 bits":      {single(format.Uncompressed, 2, v2(math.MaxInt64, math.MaxInt64, plain("a", "b"))), impossible},
		"values without bytes":   {single(format.Uncompressed, 1<<30, dataV1(format.Plain, 1<<30, 7, plain("abc"))), "decompression bomb"},
		"a string of 2 GB":       {single(format.Uncompressed, 1, dataV1(format.Plain, 1, 5, []byte{0xff, 0xff, 0xff, 0x7f, 'a'})), "the page ends too early"},
		"runs of a billion":      {single(format.Uncompressed, 2, dictionaryOf(1, 5, plain("a")), dataV1(format.RLEDictionary, 2, 14, []byte{1, 0xfe, 0xff, 0xff, 0xff, 7, 0, 0xfe, 0xff, 0xff, 0xff, 7, 0, 0})), ""},
		"index out of range":     {single(format.Uncompressed, 2, dictionaryOf(1, 5, plain("a")), dataV1(format.RLEDictionary, 2, 3, []byte{8, 4, 9})), "value 9 of a dictionary of 1"},
		"indexes of 77 bits":     {single(format.Uncompressed, 2, dictionaryOf(1, 5, plain("a")), dataV1(format.RLEDictionary, 2, 3, []byte{77, 4, 9})), "indexes of 77 bits"},
		"no dictionary":          {single(format.Uncompressed, 2, dataV1(format.RLEDictionary, 2, 3, []byte{1, 4, 0})), "needs a dictionary"},
		"dictionary of a lie":    {single(format.Uncompressed, 2, dictionaryOf(1<<25, 5, plain("a")), dataV1(format.RLEDictionary, 2, 3, []byte{1, 4, 1})), "value 1 of a dictionary of 1"},
		"two dictionaries":       {single(format.Uncompressed, 2, dictionaryOf(1, 5, plain("a")), dictionaryOf(1, 5, plain("a"))), "a second dictionary"},
		"one string a million":   {single(format.Uncompressed, 1<<20, dictionaryOf(1, 4+1<<20, plain(long)), dataV1(format.RLEDictionary, 1<<20, 5, []byte{1, 0x80, 0x80, 0x80, 1, 0}[:5])), "page ends too early"},
		"one string a thousand":  {single(format.Uncompressed, 1000, dictionaryOf(1, 4+1<<20, plain(long)), dataV1(format.RLEDictionary, 1000, 4, []byte{1, 0xd0, 0x0f, 0})), "the file expands to more than"},
		"prefixes of prefixes":   {single(format.Uncompressed, 1<<16, dataV1(format.DeltaByteArray, 1<<16, int64(len(prefixes)), prefixes)), "the file expands to more than"},
		"a prefix of nothing":    {single(format.Uncompressed, 1, dataV1(format.DeltaByteArray, 1, int64(len(ahead)), ahead)), "damaged, or a string of more than"},
		"two billion lengths":    {single(format.Uncompressed, 2, dataV1(format.DeltaLengthByteArray, 2, 10, deltas(1<<31, 0, 0)[:10])), "more than the page has values"},
		"levels beyond the page": {single(format.Uncompressed, 2, v2(0, 1<<30, plain("a", "b"))), "levels longer than the page"},
		"negative levels":        {single(format.Uncompressed, 2, v2(-5, 5, plain("a", "b"))), impossible},
		"a page of another type": {single(format.Uncompressed, 1, pageOf(9, 3, []byte("abc"), 5, object{}.i32(1, 1))), "a page of type 9"},
		"values left out":        {single(format.Uncompressed, 3, dataV1(format.Plain, 2, 10, plain("a", "b"))), "1 values are missing"},
		"an unknown compression": {single(5, 1, dataV1(format.Plain, 1, 5, plain("a"))), "is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			allocated, err := refused(t, tt.data, tt.want)
			if tt.want != "" {
				require.ErrorContains(t, err, `row group 0, column "s": `)
			}
			if name != "prefixes of prefixes" && name != "one string a thousand" { // one string at a time is held
				require.Less(t, allocated, uint64(most))
			}
		})
	}
}

// refused reads a file that fails with want, or does not if that is empty, and returns how many
// bytes that allocated.
func refused(t *testing.T, data []byte, want string) (allocated uint64, err error) {
	t.Helper()
	attempts.Count(t, 1, "files")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = drained(data)
	runtime.ReadMemStats(&after)
	if want == "" {
		require.NoError(t, err)
	} else {
		require.ErrorContains(t, err, want)
	}
	return after.TotalAlloc - before.TotalAlloc, err
}

// TestHostileFooters: trees and lists that take far more memory than their bytes.
func TestHostileFooters(t *testing.T) {
	deep := [][]byte{column("root", 0, 1)}
	for range 20_000 {
		deep = append(deep, column("g", 1, 1))
	}
	deep = append(deep, column("s", 0, 0))
	columns := [][]byte{column("root", 0, 1), column("s", 0, 0)}
	empty := make([][]byte, 1<<20)
	for i := range empty {
		empty[i] = []byte{0}
	}
	page := dataV1(format.Plain, 1, 5, plain("a"))
	size := int64(len(page))
	bomb := dataV1(format.Plain, 1, 4+15<<20, snappy.Encode(nil, plain(string(make([]byte, 15<<20)))))
	var again [][]byte
	for range 1000 {
		again = append(again, group(1, int64(len(bomb)), chunkAt(int64(format.Snappy), 1, int64(len(bomb)), 4, 0)))
	}
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"deep":                    {assembled(page, 1, deep, nil), "columns nested more than 64 deep"},
		"many schema elements":    {assembled(page, 1, empty, nil), "belongs to no group"},
		"a negative group":        {assembled(page, 1, [][]byte{column("root", 0, 1), object{}.text(4, "x").i32(5, -3).end()}, nil), "-3 columns in a group"},
		"many row groups":         {assembled(page, 1, columns, empty), "its lists take"},
		"many chunks":             {assembled(page, 1, columns, [][]byte{object{}.list(1, thriftStruct, empty...).end()}), "its lists take"},
		"chunk behind the end":    {assembled(page, 1, columns, [][]byte{group(1, size, chunkAt(0, 1, 1<<40, 4, 0))}), "damaged: pages of 1099511627776 bytes at byte 4"},
		"chunk before the start":  {assembled(page, 1, columns, [][]byte{group(1, size, chunkAt(0, 1, size, -4, 0))}), "damaged: pages of"},
		"a negative chunk":        {assembled(page, 1, columns, [][]byte{group(1, size, chunkAt(0, 1, -size, 4, 0))}), "damaged: pages of"},
		"dictionary behind it":    {assembled(page, 1, columns, [][]byte{group(1, size, chunkAt(0, 1, size, 4, 1<<40))}), ""},
		"one page as many groups": {assembled(bomb, 1000, columns, again), "the file expands to more than"},
		"more rows than values":   {assembled(page, 2, columns, [][]byte{group(2, size, chunkAt(0, 1, size, 4, 0))}), "row 2: truncated: the footer says 2 rows"},
	} {
		t.Run(name, func(t *testing.T) {
			allocated, _ := refused(t, tt.data, tt.want)
			if name != "one page as many groups" { // one at a time is held
				require.Less(t, allocated, uint64(64<<20))
			}
		})
	}
}

// TestTagsOfARow: a row may not repeat one long string of its dictionary without end.
func TestTagsOfARow(t *testing.T) {
	_, err := newRows(opened(t, made(t, layouts()[0], 3)), codec.Columns{Tags: "key"})
	require.NoError(t, err)
	long := string(make([]byte, 1<<20))
	body := []byte{6, 0, 0, 0, 2, 0, 0xfe, 0xff, 0x03, 1} // repetition: a run of one 0, a run of 1s
	body = append(body, 4, 0, 0, 0, 0x80, 0x80, 0x04, 1)  // definition: a run of 1s
	body = append(body, 1, 0x80, 0x80, 0x04, 0)           // a run of value 0 of the dictionary
	pages := append(dictionaryOf(1, 4+1<<20, plain(long)), dataV1(format.RLEDictionary, 1<<15, int64(len(body)), body)...)
	data := assembled(pages, 1, [][]byte{column("root", 0, 1), column("s", 2, 0)},
		[][]byte{group(1, int64(len(pages)), chunkAt(0, 1<<15, int64(len(pages)), 4, 0))})
	f := opened(t, data)
	c := newCursor(f, f.leaves[0])
	_, err = c.next(maxDim)
	require.ErrorContains(t, err, `column "s": more than 33554432 bytes in one row`)
}
