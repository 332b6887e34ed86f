package codec

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/attempts"
)

// partsBound is what reading the parts of a file of n bytes may allocate: arrays that grow are
// allocated up to four times over, and a pickle is copied once.
func partsBound(n int) int64 { return 4*(partsBase+partsRatio*int64(n)) + 8<<20 }

// bytes4 is n as a pickle's LONG_BINPUT and BINUNICODE write it.
func bytes4(n int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }

// TestHostilePickles: what a pickle builds takes memory in proportion to its file, whatever its
// opcodes.
func TestHostilePickles(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes: nothing for the race detector")
	}
	const n = 2 << 20
	many := func(opcodes string, times int) string { return strings.Repeat(opcodes, times) }
	ones := "(" + many("K\x01", 50_000) + "t"
	pairs := "](" + many("K\x01N\x86", 50_000) + "e\x85q\x01" + "ccollections\nOrderedDict\nq\x02]"
	args := strings.Replace(pickledTensor("%K\x01\x85"), "tR", "tq\x01", 1)
	args = strings.Replace(args, "ctorch._utils\n_rebuild_tensor_v2\n", "ctorch._utils\n_rebuild_tensor_v2\nq\x020", 1)
	const parts = "names, shapes and nested values take more than"
	tests := []struct{ name, pickle, want string }{
		{"lists within lists", many("]", 10<<20) + many("a", 10<<20-1), parts},
		{"lists in a list", "](" + many("]", n) + "e", parts},
		{"tuples within tuples", ")" + many("\x85", n), parts},
		{"dicts in a dict", "}(" + many("}}", n/2) + "u", parts},
		{"integers", "](" + many("M\xff\xff", n) + "e", parts},
		{"text", "](" + many("U\x00", n) + "e", parts},
		{"marks", many("(", n), parts},
		{"a memo of everything", "N" + many("\x94", n), parts},
		{"a memo far away", "Nr\xff\xff\xff\x7f", parts},
		{"one list in the memo many times", "]q\x00(" + many("h\x00", n/2) + "e", parts},
		{"one list of pairs as many dicts", pairs + many("h\x02h\x01Ra", 10_000), parts},
		{"one long shape of many tensors", strings.Replace(args, "%", ones, 1) + "]" + many("h\x02h\x01Ra", 10_000), "50000 dimensions: at most 64"},
		{"long strides of tensors without a shape", strings.Replace(args, "%K\x01\x85", ")("+many("K\x01", 64)+"t", 1) + "]" + many("h\x02h\x01Ra", 200_000), "are impossible for shape []"},
		{"doublings with a tensor inside", "]" + vector + "aq\x00" + many("](h\x00h\x00eq\x00", 60), parts},
		{"a long path", "}X" + bytes4(1<<20) + many("k", 1<<20) + "q\x01" + many("}h\x01", 60) + "]" + many("s", 61), parts},
		{"an integer of megabytes", "\x8b" + bytes4(4<<20) + many("\xff", 4<<20), "holds no tensors"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			attempts.Count(t, 1, "files")
			data := torchFile(t, tt.pickle+".", f32Bytes(1, 2, 3, 4))
			start := time.Now()
			got := allocated(func() {
				_, err := ParseTensors("x.pt", data)
				requireFault(t, err, "x.pt", tt.want)
			})
			require.LessOrEqual(t, got, partsBound(len(data)), "bytes allocated for a file of %d", len(data))
			t.Logf("file %d, allocated %d, %v", len(data), got, time.Since(start))
		})
	}
}

// TestNamesWithTensors: what a checkpoint holds beside its tensors is no reason to refuse it.
func TestNamesWithTensors(t *testing.T) {
	const n = 200_000
	var names strings.Builder
	for i := range n {
		fmt.Fprintf(&names, "X\x0a\x00\x00\x00paper%05dr%s", i%100_000, bytes4(i))
	}
	pickle := "}" + text("w") + vector + "s" + text("names") + "](" + names.String() + "es" + text("labels") + "](" + strings.Repeat("K\x07", n) + "es."
	got, err := ParseTensors("x.pt", torchFile(t, pickle, f32Bytes(1, 2, 3, 4)))
	require.NoError(t, err)
	require.Equal(t, []float32{1, 2, 3, 4}, got["w"].Data)
}

// TestHostileArchives: directories and headers that cost their reader more than their writer.
func TestHostileArchives(t *testing.T) {
	data := npy(npyHeaderText("<f4", false, "(1024, 256)"), make([]byte, 1<<20))
	shape := strings.TrimSuffix(strings.Repeat("0,", 30_000), ",")
	var wide []entryOf
	for i := range 50 {
		wide = append(wide, entryOf{fmt.Sprintf("w%d.npy", i), zip.Deflate, npy(npyHeaderText("<f4", false, "("+shape+")"), nil)})
	}
	longer := func(size uint64) []byte {
		b := zipped(t, entryOf{"w.npy", zip.Deflate, data})
		at := bytes.Index(b, []byte("PK\x01\x02")) + 24
		binary.LittleEndian.PutUint32(b[at:], uint32(size))
		return b
	}
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"many entries", manyEntries(), "names, shapes and nested values take more than"},
		{"entries over one another", overlapping(t, data, 200), "the entries overlap, or reach past the end of the file"},
		{"wide shapes", zipped(t, wide...), "more than 64 dimensions"},
		{"declares more than it holds", longer(2 << 20), "bytes follow the data"},
		{"declares less than it holds", longer(1 << 20), "truncated: shape"},
		{"declares gigabytes", longer(3 << 30), "expands to more than"},
		{"paths as names", zipped(t, entryOf{"../../w.npy", zip.Store, data[:50]}), "truncated"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			attempts.Count(t, 1, "files")
			got := allocated(func() {
				_, err := ParseTensors("x.npz", tt.data)
				requireFault(t, err, "x.npz", tt.want)
			})
			require.LessOrEqual(t, got, partsBound(len(tt.data)), "bytes allocated for a file of %d", len(tt.data))
		})
	}
}

// overlapping is a zip whose n entries all lie at the bytes of the first, so that verifying each
// reads them again.
func overlapping(t *testing.T, data []byte, n int) []byte {
	one := zipped(t, entryOf{"w000.npy", zip.Store, data})
	start := bytes.LastIndex(one, []byte("PK\x01\x02"))
	end := bytes.LastIndex(one, []byte("PK\x05\x06"))
	record, tail := one[start:end], bytes.Clone(one[end:])
	b := bytes.Clone(one[:start])
	for i := range n {
		entry := bytes.Clone(record)
		copy(entry[46:], fmt.Sprintf("w%03d.npy", i))
		b = append(b, entry...)
	}
	binary.LittleEndian.PutUint16(tail[8:], uint16(n))
	binary.LittleEndian.PutUint16(tail[10:], uint16(n))
	binary.LittleEndian.PutUint32(tail[12:], uint32(n*len(record)))
	return append(b, tail...)
}

// TestPassesAreBounded: a stream that expands beyond all use is refused before it is read where its
// size is declared, and at the bound where it is not.
func TestPassesAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes: nothing for the race detector")
	}
	const size = 400 << 20
	compressors := map[string]func(io.Writer) io.WriteCloser{
		".gz": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		".zst": func(w io.Writer) io.WriteCloser {
			enc, err := zstd.NewWriter(w)
			require.NoError(t, err)
			return enc
		},
		".npz": func(w io.Writer) io.WriteCloser { return newEntryWriter(w) },
	}
	declared := npy(npyHeaderText("<f4", false, "(819200, 128)"), nil)
	undeclared := make([]byte, 1<<20) // a row
	binary.LittleEndian.PutUint32(undeclared, 1<<20-4)
	for suffix, compress := range compressors {
		for _, tt := range []struct {
			name        string
			head, block []byte
			declared    bool
		}{
			{"x.npy", declared, make([]byte, 1<<20), true},
			{"x.bvecs", nil, undeclared, false},
		} {
			if suffix == ".npz" && !tt.declared {
				continue
			}
			name := strings.Replace(tt.name+suffix, ".npy.npz", ".npz", 1)
			t.Run(name, func(t *testing.T) {
				var b bytes.Buffer
				w := compress(&b)
				_, err := w.Write(tt.head)
				require.NoError(t, err)
				for range size >> 20 {
					_, err := w.Write(tt.block)
					require.NoError(t, err)
				}
				require.NoError(t, w.Close())

				limit := allow(int64(b.Len())).pass
				require.Less(t, limit, int64(size), "the file is a bomb of %d bytes", b.Len())
				passed := int64(0)
				got := allocated(func() {
					r, err := ParseRows(name, b.Bytes())
					if tt.declared {
						requireFault(t, err, name, "expands to more than")
						return
					}
					require.NoError(t, err)
					for dst := make([]float32, r.Dim()); err == nil; passed += 1 << 20 {
						_, err = r.Next(dst)
					}
					requireFault(t, err, name, "expands to more than")
				})
				require.LessOrEqual(t, passed, limit+2<<20, "of the last two rows one failed")
				require.Less(t, got, int64(32<<20), "bytes allocated")
			})
		}
	}
}

// entryWriter writes the one entry of an .npz.
type entryWriter struct {
	zip   *zip.Writer
	entry io.Writer
}

// newEntryWriter deflates by a faster implementation than archive/zip's own.
func newEntryWriter(w io.Writer) *entryWriter {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.DefaultCompression) })
	return &entryWriter{zip: z}
}

func (w *entryWriter) Write(p []byte) (n int, err error) {
	if w.entry == nil {
		if w.entry, err = w.zip.Create("w.npy"); err != nil {
			return 0, err
		}
	}
	return w.entry.Write(p)
}

func (w *entryWriter) Close() error { return w.zip.Close() }

// TestSparseFeaturesPass: one value in two hundred of a matrix of 320 MiB is not zero, as in a bag
// of words; gzip makes a hundredth of it.
func TestSparseFeaturesPass(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes: nothing for the race detector")
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(npy(npyHeaderText("<f4", false, "(81920, 1024)"), nil))
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	row := make([]byte, 4096)
	for range 81920 {
		clear(row)
		for range 5 {
			binary.LittleEndian.PutUint32(row[4*random.IntN(1024):], math.Float32bits(1))
		}
		_, err := w.Write(row)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	r, err := ParseRows("x.npy.gz", b.Bytes())
	require.NoError(t, err)
	rows := 0
	for dst := make([]float32, r.Dim()); err == nil; rows++ {
		_, err = r.Next(dst)
	}
	require.Equal(t, io.EOF, err)
	require.Equal(t, 81920, rows-1)
	t.Logf("%d bytes of 320 MiB", b.Len())
}

// TestOddText: text that is not what it should be is told by its line, or read.
func TestOddText(t *testing.T) {
	deep := strings.Repeat("[", 20_000)
	for _, tt := range []struct{ name, text, want string }{
		{"x.csv", "\xff\xfe1\x00,\x002\x00", "text in UTF-16: save it as UTF-8"},
		{"x.jsonl", "\xfe\xff\x00{", "text in UTF-16: save it as UTF-8"},
		{"x.csv", "1,2\n3,1e999\n", `line 2: byte 4: field 2: "1e999" is not a float32`},
		{"x.csv", "1,2\n3,\x004\n", `line 2: byte 4: field 2: "\x004" is not a float32`},
		{"x.csv", "1,2\n3\n", "line 2: byte 4: 1 values, the first row has 2"},
		{"x.csv", "\xef\xbb\xbf1,2\r\n3,4\r\n", ""},
		{"x.jsonl", "\xef\xbb\xbf{\"embedding\":[1]}\r\n", ""},
		{"x.jsonl", `{"embedding":[1]}` + "\n" + `{"embedding":[1e999]}`, "line 2: "},
		{"x.jsonl", `{"embedding":[NaN]}`, "line 1: byte 15: invalid character 'N'"},
		{"x.jsonl", `{"embedding":["NaN"]}`, "is not a float32"},
		{"x.jsonl", `{"embedding":` + deep, "exceeded max depth"},
		{"x.jsonl", `{"embedding":[1],"payload":` + deep, "exceeded max depth"},
		{"x.jsonl", "{\"embedding\":[1],\"key\":\"\xff\"}", "line 1: not UTF-8"},
		{"x.jsonl", "{\"embedding\":[1],\"key\":\"\x00\"}", "line 1: "},
		{"x.jsonl", `{"key":"a","key":"b","embedding":[1],"embedding":[2]}`, ""},
	} {
		r, err := ParseRows(tt.name, []byte(tt.text))
		for err == nil {
			_, err = r.Next(make([]float32, r.Dim()))
		}
		if tt.want == "" {
			require.Equal(t, io.EOF, err, "%q", tt.text)
		} else {
			requireFault(t, err, tt.name, tt.want)
		}
	}
}
