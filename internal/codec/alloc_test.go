package codec

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// allocated is what f allocates in all, freed or not.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// everyReader runs all readers over data, to the end or the first error.
func everyReader(name string, data []byte) (errs []error) {
	_, err := ParseTensors(name, data)
	errs = append(errs, err)
	r, err := ParseRows(name, data)
	if err == nil {
		dst := make([]float32, r.Dim())
		for range 100 {
			if _, err = r.Next(dst); err != nil {
				break
			}
		}
	}
	errs = append(errs, err)
	table, err := ParseTable(name, data)
	for range 100 {
		if err != nil {
			break
		}
		_, _, err = table.Next()
	}
	return append(errs, err)
}

// TestFalseSizesCostNothing: a small file that declares huge sizes is refused without memory for
// them.
func TestFalseSizesCostNothing(t *testing.T) {
	const limit = 4 << 20 // buffers of constant size: blocks, decompressors
	huge := npy(npyHeaderText("<f4", false, "(1000000, 1000)"), f32Bytes(1))
	hugeFortran := npy(npyHeaderText("<f4", true, "(1000000, 1000)"), f32Bytes(1))
	bigHeader := append([]byte("\x00\xe1\xf5\x05\x00\x00\x00\x00"), `{"w":`...)
	shape := "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x01\x85"
	emptyLists := strings.Repeat("]", 1<<16)
	for name, data := range map[string][]byte{
		"a.npy":                  huge,
		"b.npy":                  hugeFortran,
		"c.npy.zst":              zst(t, huge),
		"d.npy.zst":              zst(t, hugeFortran),
		"e.npz":                  zipped(t, entryOf{"w.npy", zip.Store, huge}),
		"f.npz":                  zipped(t, entryOf{"w.npy", zip.Deflate, huge}),
		"g.npy":                  append([]byte(npyMagic), 2, 0, 255, 255, 15, 0, '{'),
		"h.safetensors":          bigHeader,
		"i.safetensors.zst":      zst(t, bigHeader),
		"j.safetensors":          safetensors(`{"w":{"dtype":"F32","shape":[1000000000],"data_offsets":[0,4000000000]}}`, f32Bytes(1)),
		"k.safetensors.zst":      zst(t, safetensors(`{"w":{"dtype":"F32","shape":[1000000,1000],"data_offsets":[0,4000000000]}}`, f32Bytes(1))),
		"l.pt":                   torchFile(t, pickledTensor(shape+"K\x01\x85")+".", f32Bytes(1, 2, 3, 4)),
		"expanded.pt":            torchFile(t, pickledTensor(shape+"K\x00\x85")+".", f32Bytes(1, 2, 3, 4)),
		"text.pt":                torchFile(t, "X\xff\xff\xff\x7fabc"),
		"long.pt":                torchFile(t, "\x8b\xff\xff\xff\x7fabc"),
		"m.fvecs":                {0, 0, 16, 0, 1, 2},
		"n.bvecs":                {0, 0, 16, 0, 1, 2},
		"window.npy.zst":         {0x28, 0xb5, 0x2f, 0xfd, 0x00, 17 << 3, 0x21, 0, 0, 1, 2, 3, 4},
		"single-segment.npy.zst": {0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40, 0x21, 0, 0, 1, 2, 3, 4},
		"directory.npz":          []byte("PK\x05\x06\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\x7f\x00\x00\x00\x00\x00\x00"),
		"lists.pt":               torchFile(t, emptyLists+"."),
	} {
		t.Run(name, func(t *testing.T) {
			bound := int64(limit + 200*len(data))
			got := allocated(func() {
				errs := everyReader(name, data)
				if !strings.HasPrefix(name, "window") && !strings.HasPrefix(name, "lists") {
					require.Error(t, errs[0])
					require.Error(t, errs[1])
				}
			})
			require.Less(t, got, bound, "bytes allocated")
		})
	}
}

// TestBombs: what does expand is stopped at the documented bound, and streams are read within their
// block.
func TestBombs(t *testing.T) {
	zeros := make([]byte, 20<<20)
	header := npyHeaderText("<f4", false, "(5120, 1024)")
	matrix := append(npy(header, nil), zeros...)
	// A growing buffer allocates some four times what it ends up holding; decompressors have their
	// windows.
	bound := func(data []byte) int64 { return 4*(holdBase+holdRatio*int64(len(data))) + 32<<20 }

	for name, data := range map[string][]byte{
		"zeros.npy.zst":     zst(t, matrix),
		"zeros.npy.gz.zst":  zst(t, gz(t, matrix)),
		"zeros.npz":         zipped(t, entryOf{"w.npy", zip.Deflate, matrix}),
		"zeros.npz.zst":     zst(t, zipped(t, entryOf{"w.npy", zip.Store, matrix})),
		"pickle.pt":         zipped(t, entryOf{"x/data.pkl", zip.Deflate, bytes.Repeat([]byte("]"), 2<<20)}),
		"views.pt":          zipped(t, entryOf{"data.pkl", zip.Deflate, []byte("]" + strings.Repeat(pickledTensor("\x8a\x03\x00\x00\x10\x85K\x00\x85")+"a", 100) + ".")}, entryOf{"data/0", zip.Store, make([]byte, 16)}),
		"directory.npz.zst": zst(t, manyEntries()),
	} {
		t.Run(name, func(t *testing.T) {
			got := allocated(func() {
				_, err := ParseTensors(name, data)
				switch {
				case strings.HasPrefix(name, "pickle"), strings.HasPrefix(name, "directory"):
					requireFault(t, err, name, "nested values take more than")
				case name != "zeros.npy.gz.zst": // one compression is taken off, the other is unknown data
					requireFault(t, err, name, "decompression bomb")
				}
			})
			require.Less(t, got, bound(data), "bytes allocated for %d", len(data))
		})
	}

	t.Run("rows are streamed", func(t *testing.T) {
		data := gz(t, matrix) // its window is small; zstd's takes a few MiB
		rows := 0
		got := allocated(func() {
			r, err := ParseRows("zeros.npy.gz", data)
			require.NoError(t, err)
			dst := make([]float32, r.Dim())
			for ; err == nil; rows++ {
				_, err = r.Next(dst)
			}
			require.Equal(t, io.EOF, err)
		})
		require.Equal(t, 5120, rows-1)
		require.Less(t, got, int64(2<<20))
	})
	t.Run("lines are bounded", func(t *testing.T) {
		data := zst(t, bytes.Repeat([]byte(","), 16<<20))
		for _, name := range []string{"x.csv", "x.jsonl"} {
			got := allocated(func() {
				_, err := ParseRows(name, data)
				requireFault(t, err, name, "line 1: longer than")
			})
			require.Less(t, got, int64(48<<20))
		}
	})
}

// manyEntries is a zip directory of 100,000 empty entries.
func manyEntries() []byte {
	const n = 100_000
	record := make([]byte, 46)
	copy(record, "PK\x01\x02")
	b := bytes.Repeat(record, n)
	size := len(b)
	end := make([]byte, 22)
	copy(end, "PK\x05\x06")
	binary.LittleEndian.PutUint16(end[8:], uint16(n%65536))
	binary.LittleEndian.PutUint16(end[10:], uint16(n%65536))
	binary.LittleEndian.PutUint32(end[12:], uint32(size))
	return append([]byte("PK\x03\x04"), append(b, end...)...)
}
