package weights_test

import (
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
	"github.com/flashdb/flashdb/internal/format"
)

type tensors = map[string]decoder.Tensor

// zeros is a tensor of the given shape.
func zeros(shape ...int) decoder.Tensor {
	n := 1
	for _, size := range shape {
		n *= size
	}
	return decoder.Tensor{Shape: shape, Data: make([]float32, n)}
}

// writeSafetensors writes tensors to a new .safetensors file.
func writeSafetensors(t *testing.T, ts tensors) string {
	t.Helper()
	type entry struct {
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	header := map[string]entry{}
	var data []byte
	for key, tensor := range ts {
		start := len(data)
		data = append(data, format.Float32Bytes(tensor.Data)...)
		header[key] = entry{"F32", tensor.Shape, [2]int{start, len(data)}}
	}
	encoded, err := json.Marshal(header)
	require.NoError(t, err)
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(encoded)))
	path := filepath.Join(t.TempDir(), "weights.safetensors")
	require.NoError(t, os.WriteFile(path, append(append(file, encoded...), data...), 0o600))
	return path
}

func readSpec(t testing.TB, dir string) *decoder.Spec {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "spec.json"))
	require.NoError(t, err)
	spec, err := decoder.ParseSpec(data)
	require.NoError(t, err)
	return &spec
}

// weightFiles are the weight files of one decoder; a Dot decoder has its spec alone.
func weightFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(f string) bool {
		return filepath.Base(f) == "cases.jsonl" || filepath.Base(f) == "spec.json"
	})
	if len(files) == 0 {
		return []string{filepath.Join(dir, "spec.json")}
	}
	return files
}

// OGB's layout needs no spec: every decoder stored in it that is a plain ReLU network imports the
// same without.
func TestReadRecognisesOGB(t *testing.T) {
	for _, name := range []string{"hadamard-relu", "hadamard-ogb-3x256", "hadamard-ogb-ddi", "hadamard-nobias-final-relu"} {
		dir := filepath.Join("testdata", "decoders", name)
		for _, file := range weightFiles(t, dir) {
			d, err := weights.Read(file, nil)
			require.NoError(t, err, file)
			assert.Equal(t, decoder.HadamardMLP, d.Kind())
			assert.Equal(t, "sigmoid", d.Spec().Output)
			cases, err := weights.ReadCases(filepath.Join(dir, "cases.jsonl"))
			require.NoError(t, err)
			assert.NoError(t, weights.SelfCheck(d, cases, 1e-5), file)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	at := func(name, file string) string { return filepath.Join("testdata", "decoders", name, file) }
	dot := &decoder.Spec{Kind: decoder.Dot, Dim: 4}
	tests := []struct {
		name, path string
		spec       *decoder.Spec
		want       string
	}{
		{"no file", filepath.Join(dir, "none.pt"), nil, "none.pt"},
		{"no spec, norms", at("hadamard-layernorm", "weights.npz"), nil, `key "norms.0.bias" looks like a norm beside the layers "lins"`},
		{"no spec, nested norms", at("hadamard-refined-gae-8", "nested.pt"), nil, `key "predictor.module.lnx.bias" looks like a norm beside the layers "predictor.module.lins"`},
		{"no spec, other layout", at("distmult", "weights.safetensors"), nil, `must say what these weights are; they have "r"`},
		{"spec of another model", at("hadamard-relu", "weights.pt"), readSpec(t, at("hadamard-silu", "")), ""},
		{"spec of another width", at("hadamard-relu", "weights.pt"), readSpec(t, at("hadamard-odd-dims", "")), "has shape [32 24]; want [any 37]"},
		{"spec in place of weights", at("hadamard-relu", "spec.json"), nil, "give the .safetensors, .npz or .pt file and pass this one as its spec"},
		{"spec twice", at("dot", "spec.json"), dot, "this is no file of weights"},
		{"broken spec", write("broken.json", "{"), nil, "broken.json: decoder spec: no valid JSON"},
		{"endless spec", write("endless.json", strings.Repeat(" ", 1<<20+1)), nil, "at most 1048576 are read"},
		{"no spec file", filepath.Join(dir, "none.json"), nil, "none.json"},
		{"truncated", write("short.safetensors", "\x40\x00\x00\x00\x00\x00\x00\x00{"), nil, "short.safetensors"},
		{"empty", write("empty.pt", ""), nil, "empty.pt"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := weights.Read(test.path, &weights.Options{Spec: test.spec})
			if test.want == "" {
				require.NoError(t, err, "the tensors fit: only a self-check can tell")
				return
			}
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.want)
			assert.Equal(t, 1, strings.Count(err.Error(), filepath.Base(test.path)), "names the file once: %v", err)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

// A file that is not there is told from one that is no decoder, of every format.
func TestReadOfNoFile(t *testing.T) {
	for _, name := range []string{"none.pt", "none.safetensors", "none.npz", "none.onnx", "none.json"} {
		_, err := weights.Read(filepath.Join(t.TempDir(), name), nil)
		assert.ErrorIs(t, err, fs.ErrNotExist, name)
	}
}

// The options are the caller's: a prefix without its dot stays as it is.
func TestReadKeepsOptions(t *testing.T) {
	opts := weights.Options{Prefix: "m"}
	_, err := weights.Read(writeSafetensors(t, tensors{"m.lins.0.weight": zeros(1, 4)}), &opts)
	require.NoError(t, err)
	assert.Equal(t, weights.Options{Prefix: "m"}, opts)
}

// Shapes of OGB's layout that must not be guessed at.
func TestOGBLayoutRefusals(t *testing.T) {
	tests := []struct {
		name    string
		tensors tensors
		want    string
	}{
		{"two of them", tensors{"a.lins.0.weight": zeros(1, 4), "b.lins.0.weight": zeros(1, 4)}, `under each of the prefixes "a.", "b."`},
		{"gap", tensors{"lins.0.weight": zeros(4, 4), "lins.2.weight": zeros(1, 4)}, `no tensor "lins.1.weight": the 2 weights of "lins" are not numbered from 0`},
		{"convolution", tensors{"lins.0.weight": zeros(4, 4, 3)}, `"lins.0.weight" has shape [4 4 3]; want [any dim]`},
		{"batch norm", tensors{"lins.0.weight": zeros(4, 4), "lins.1.weight": zeros(1, 4), "bns.0.running_mean": zeros(4)}, `"bns.0.running_mean" looks like a norm`},
		{"common neighbours", tensors{"lins.0.weight": zeros(4, 4), "xijlin.0.weight": zeros(4, 4)}, "NCN"},
	}
	for _, test := range tests {
		_, err := weights.Read(writeSafetensors(t, test.tensors), nil)
		assert.ErrorContains(t, err, test.want, test.name)
	}
	d, err := weights.Read(writeSafetensors(t, tensors{
		"m.lins.0.weight": zeros(8, 4), "m.lins.1.weight": zeros(1, 8), "norm.weight": zeros(4), "seal.z_embedding.weight": zeros(4),
	}), nil)
	require.NoError(t, err, "norms and telltales elsewhere are another model's")
	assert.Equal(t, "hadamard_mlp 4-8-1", d.String())
}
