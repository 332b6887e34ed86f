package codec

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkTensors demands of any input: a located error, or tensors whose shapes and values agree,
// within the documented memory.
func checkTensors(t *testing.T, name string, data []byte) {
	t.Helper()
	tensors, err := ParseTensors(name, data)
	checkError(t, name, err)
	total := int64(0)
	for name, tensor := range tensors {
		n := 1
		for _, dim := range tensor.Shape {
			n *= dim
		}
		require.Len(t, tensor.Data, n, name)
		total += 4 * int64(n)
	}
	require.LessOrEqual(t, total, allow(int64(len(data))).limit)
}

func checkError(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var located *Error
	require.ErrorAs(t, err, &located)
	require.Equal(t, name, located.File)
	require.GreaterOrEqual(t, located.Offset, int64(0))
	require.NotContains(t, err.Error(), "\n")
}

// checkRows reads rows to the end or the first error. Small files can declare many rows only if
// something is stored for each, unless compressed.
func checkRows(t *testing.T, name string, data []byte) {
	t.Helper()
	r, err := ParseRows(name, data)
	checkError(t, name, err)
	if err != nil {
		return
	}
	require.Positive(t, r.Dim())
	require.LessOrEqual(t, r.Dim(), maxDim+1)
	dst := make([]float32, r.Dim()+1)
	dst[r.Dim()] = math.MaxFloat32
	rows := int64(0)
	for rows < 1<<16 {
		if _, err = r.Next(dst); err != nil {
			break
		}
		rows++
	}
	require.EqualValues(t, math.MaxFloat32, dst[r.Dim()], "wrote beyond the row")
	if errors.Is(err, io.EOF) {
		if r.Count() >= 0 {
			require.Equal(t, r.Count(), rows)
		}
	} else {
		checkError(t, name, err)
	}
	require.NoError(t, r.Close())
}

// addFiles seeds f with the fixtures that match.
func addFiles(f *testing.F, patterns ...string) {
	f.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join("testdata", pattern))
		require.NoError(f, err)
		require.NotEmpty(f, files)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(data)
		}
	}
}

func FuzzSafetensors(f *testing.F) {
	addFiles(f, "decoders/bilinear/*.safetensors")
	f.Add(safetensors(`{"w":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]},"__metadata__":{"a":"b"}}`, f32Bytes(1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkTensors(t, "x.safetensors", data)
		checkRows(t, "x.safetensors", data)
	})
}

func FuzzNPY(f *testing.F) {
	addFiles(f, "numpy/*.npy")
	f.Add(zst(f, fixture(f, "numpy", "c_f4.npy")))
	f.Add(gz(f, fixture(f, "numpy", "fortran_f2.npy")))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkTensors(t, "x.npy", data)
		checkRows(t, "x.npy", data)
	})
}

// FuzzNPYHeader fuzzes the literal alone, which FuzzNPY reaches only under a valid length.
func FuzzNPYHeader(f *testing.F) {
	f.Add(npyHeaderText("<f4", true, "(3L, 4)"), 48)
	f.Add(`{"shape":(),"fortran_order":False,"descr":"|u1"}`, 1)
	f.Fuzz(func(t *testing.T, header string, size int) {
		data := npy(header, make([]byte, size&0xfff))
		checkTensors(t, "x.npy", data)
		checkRows(t, "x.npy", data)
	})
}

func FuzzNPZ(f *testing.F) {
	addFiles(f, "numpy/*.npz", "decoders/bilinear/*.npz")
	f.Fuzz(func(t *testing.T, data []byte) {
		checkTensors(t, "x.npz", data)
		checkRows(t, "x.npz", data)
	})
}

func FuzzTorch(f *testing.F) {
	addFiles(f, "torch/*.pt", "decoders/bilinear/*.pt")
	f.Fuzz(func(t *testing.T, data []byte) {
		checkTensors(t, "x.pt", data)
		checkRows(t, "x.pt", data)
	})
}

// FuzzPickle fuzzes the pickle inside a sound archive with one storage.
func FuzzPickle(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "torch", "*.pt"))
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		in, err := newInput(file, bytes.NewReader(data), int64(len(data)))
		require.NoError(f, err)
		a, err := openArchive(in)
		if err != nil {
			continue // the legacy format
		}
		for _, name := range a.names {
			if filepath.Base(name) == "data.pkl" {
				entry := a.entries[name]
				pickle, err := entry.first(int(entry.size))
				require.NoError(f, err)
				f.Add(pickle)
			}
		}
	}
	f.Add([]byte(vector + "."))
	storage := f32Bytes(make([]float32, 16)...)
	f.Fuzz(func(t *testing.T, pickle []byte) {
		data := zipped(t, entryOf{"data.pkl", zip.Store, pickle}, entryOf{"data/0", zip.Store, storage})
		checkTensors(t, "x.pt", data)
		checkRows(t, "x.pt", data)
	})
}

func FuzzVecs(f *testing.F) {
	f.Add(fvecs(grid...))
	f.Add([]byte{2, 0, 0, 0, 7, 255, 2, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		checkRows(t, "x.fvecs", data)
		checkRows(t, "x.bvecs", data)
	})
}

func FuzzJSONL(f *testing.F) {
	f.Add([]byte(`{"key":"a","embedding":[1,-2.5e3],"tags":["x"],"payload":{"n":1}}` + "\n\n" + `{"embedding":[3,4],"key":7,"payload":"p"}`))
	f.Fuzz(func(t *testing.T, data []byte) { checkRows(t, "x.jsonl", data) })
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("key,v0,v1\r\n\"a\"\"b,\",1,2\n\nc,3,\"4\"\n"))
	f.Add([]byte("1\t2\n3\t4"))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkRows(t, "x.csv", data)
		checkRows(t, "x.tsv", data)
	})
}

func FuzzTable(f *testing.F) {
	f.Add([]byte("a\tb\r\n\nc\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := ParseTable("x", data)
		checkError(t, "x", err)
		last := 0
		for err == nil {
			var fields []string
			var line int
			fields, line, err = table.Next()
			if err == nil {
				require.NotEmpty(t, fields)
				require.Greater(t, line, last)
				last = line
			}
		}
		if !errors.Is(err, io.EOF) {
			checkError(t, "x", err)
		}
	})
}
