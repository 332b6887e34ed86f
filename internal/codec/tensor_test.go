package codec

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExpectedTensors reads every file PyTorch and NumPy wrote and compares it with the values they
// said were in it.
func TestExpectedTensors(t *testing.T) {
	var files map[string]map[string]struct {
		Shape []int
		Data  []float32
	}
	require.NoError(t, json.Unmarshal(fixture(t, "expected.json"), &files))
	require.Greater(t, len(files), 15)
	for file, want := range files {
		t.Run(file, func(t *testing.T) {
			got, err := ReadTensors(filepath.Join("testdata", file))
			require.NoError(t, err)
			require.Len(t, got, len(want))
			for name, w := range want {
				require.Equal(t, Tensor{Shape: w.Shape, Data: w.Data}, got[name], name)
			}
		})
	}
}

func TestRefusedFixtures(t *testing.T) {
	for file, want := range map[string]string{
		"torch/module.pt":      `refused: the file names "torch.nn.modules.container.Sequential"`,
		"torch/sparse.pt":      `refused: the file names "torch._utils._rebuild_sparse_tensor"`,
		"torch/complex.pt":     `refused: the file names "torch.ComplexFloatStorage"`,
		"torch/evil.pt":        `refused: the file names "posix.system"`,
		"numpy/big_endian.npy": `">f4" is big-endian: save it with .astype('<f4')`,
		"numpy/structured.npy": "structured array",
		"numpy/object.npy":     `npy type "|O" is not supported`,
		"numpy/complex.npy":    `npy type "<c8" is not supported`,
	} {
		t.Run(file, func(t *testing.T) {
			path := filepath.Join("testdata", file)
			_, err := ReadTensors(path)
			requireFault(t, err, path, want)
		})
	}
	require.NoFileExists(t, "executed.txt", "nothing in a file is ever run")
}

// requireFault demands a located, one-line error about file.
func requireFault(t *testing.T, err error, file, want string) *Error {
	t.Helper()
	var located *Error
	require.ErrorAs(t, err, &located)
	require.Equal(t, file, located.File)
	require.GreaterOrEqual(t, located.Offset, int64(0))
	require.ErrorContains(t, err, want)
	require.NotContains(t, err.Error(), "\n")
	require.Less(t, len(err.Error()), 600)
	return located
}

// sameDecoder demands that the formats present beside weights.safetensors hold identical tensors,
// and returns how many there are.
func sameDecoder(t *testing.T, dir string) (compared int) {
	t.Helper()
	want, err := ReadTensors(filepath.Join(dir, "weights.safetensors"))
	require.NoError(t, err)
	for _, file := range []string{"weights.npz", "weights.pt", "nested.pt"} {
		got, err := ReadTensors(filepath.Join(dir, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // large decoders come in one format
		}
		require.NoError(t, err)
		if file == "nested.pt" {
			plain := map[string]Tensor{}
			for name, tensor := range got {
				stem, ok := strings.CutPrefix(name, "predictor.module.")
				require.True(t, ok, name)
				plain[stem] = tensor
			}
			got = plain
		}
		require.Equal(t, want, got, "%s/%s", dir, file)
		compared++
	}
	return compared
}

func TestFormatsAgree(t *testing.T) {
	require.Equal(t, 3, sameDecoder(t, filepath.Join("testdata", "decoders", "bilinear")))
	require.Equal(t, 3, sameDecoder(t, filepath.Join("testdata", "decoders", "hadamard-layernorm")))

	tensors, err := ReadTensors(filepath.Join("testdata", "decoders", "hadamard-layernorm", "nested.pt"))
	require.NoError(t, err)
	require.Contains(t, tensors, "predictor.module.lins.0.weight")
}

func TestAllDecodersAgree(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(bigData(t), "decoders", "*"))
	require.NoError(t, err)
	require.Len(t, dirs, 25)
	compared := 0
	for _, dir := range dirs {
		if filepath.Base(dir) != "dot" { // which has no weights
			compared += sameDecoder(t, dir)
		}
	}
	require.Equal(t, 66, compared)
	for _, graph := range []string{"go-stdlib", "debian", "ddi", "genes"} {
		dir := filepath.Join(bigData(t), graph)
		want, err := ReadTensors(filepath.Join(dir, "decoder.safetensors"))
		require.NoError(t, err)
		for _, file := range []string{"decoder.npz", "decoder.pt"} {
			got, err := ReadTensors(filepath.Join(dir, file))
			require.NoError(t, err)
			require.Equal(t, want, got, "%s/%s", dir, file)
		}
	}
}

func TestCompressedTensors(t *testing.T) {
	for _, file := range []string{"weights.safetensors", "weights.npz", "weights.pt"} {
		data := fixture(t, "decoders", "bilinear", file)
		want, err := ParseTensors(file, data)
		require.NoError(t, err)
		for suffix, packed := range map[string][]byte{".zst": zst(t, data), ".gz": gz(t, data)} {
			for _, name := range []string{file + suffix, "named-otherwise"} {
				got, err := ReadTensors(written(t, name, packed))
				require.NoError(t, err, name)
				require.Equal(t, want, got, name)
			}
			_, err = ParseTensors(file+suffix, packed[:len(packed)*2/3])
			requireFault(t, err, file+suffix, "")
			_, err = ParseTensors(file+suffix, data)
			requireFault(t, err, file+suffix, "")
		}
	}
}

// TestEveryTruncation cuts each format after every byte: an error each time, located in the file,
// and no panic.
func TestEveryTruncation(t *testing.T) {
	for _, file := range []string{"torch/views.pt", "torch/checkpoint.pt", "numpy/types_compressed.npz", "numpy/fortran_f8.npy", "decoders/bilinear/weights.safetensors"} {
		data := fixture(t, file)
		for n := range data {
			_, err := ParseTensors(file, data[:n])
			var located *Error
			require.ErrorAs(t, err, &located, "%s cut to %d bytes", file, n)
			require.Equal(t, file, located.File)
		}
	}
}

// TestEveryFlippedByte damages the archives PyTorch and NumPy wrote: what is still read must be
// what was there, for their checksums cover the data.
func TestEveryFlippedByte(t *testing.T) {
	for _, file := range []string{"torch/protocol4.pt", "numpy/types_compressed.npz"} {
		data := fixture(t, file)
		want, err := ParseTensors(file, data)
		require.NoError(t, err)
		for i := range data {
			damaged := append([]byte(nil), data...)
			damaged[i] ^= 0x11
			got, err := ParseTensors(file, damaged)
			if err != nil {
				continue
			}
			for name, tensor := range got {
				if w, same := want[name]; same {
					assert.Equal(t, w, tensor, "byte %d of %s", i, file)
				}
			}
		}
	}
}

func TestUnreadableFiles(t *testing.T) {
	_, err := ReadTensors(filepath.Join(t.TempDir(), "absent.npz"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = ReadTensors(t.TempDir())
	require.ErrorContains(t, err, "is a directory")
	_, err = OpenRows(t.TempDir(), nil)
	require.ErrorContains(t, err, "is a directory")
	_, err = OpenTable(filepath.Join(t.TempDir(), "absent.tsv"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)

	for name, want := range map[string]string{"empty": "is empty", "a.csv": "is empty", "a.safetensors": "is empty"} {
		_, err = ParseTensors(name, nil)
		requireFault(t, err, name, want)
	}
	_, err = ParseTensors("hello.txt", []byte("hello, this is some text"))
	requireFault(t, err, "hello.txt", "not a file of tensors: want .safetensors, .npz, .npy or a zip .pt or .pth")
	_, err = ParseTensors("empty.npz", zipped(t))
	requireFault(t, err, "empty.npz", "holds no tensors")
	_, err = ParseTensors("empty.safetensors", safetensors(`{}`, nil))
	requireFault(t, err, "empty.safetensors", "holds no tensors")
}
