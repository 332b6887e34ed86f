package decoder_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
)

// Files that PyTorch's two exporters wrote, with what PyTorch computes in float64 (testdata/make.py).
func TestONNX(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "onnx", "*.onnx"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 17)
	shapes := map[string]string{
		"ogb": "hadamard_mlp 6-8-8-1", "pyg-batch-norm": "hadamard_mlp 6-8-8-1", "refined-gae": "hadamard_mlp 6-6-6-6-1",
		"recommender": "concat_mlp 12-8-4-1", "gelu-residual": "hadamard_mlp 6-6-6-1", "gelu-opset17": "hadamard_mlp 6-6-6-1",
		"external": "hadamard_mlp 6-32-1",
	}
	for _, file := range files {
		d, err := decoder.ReadFile(file, nil)
		require.NoError(t, err)
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".onnx"), "-torchscript")
		if want := shapes[name]; want != "" {
			assert.Equal(t, want, d.String(), file)
		}
		cases, err := decoder.ReadCases(strings.TrimSuffix(file, "onnx") + "jsonl")
		require.NoError(t, err)
		assert.NoError(t, decoder.SelfCheck(d, cases, 1e-5), file)

		stored, err := decoder.Unmarshal(decoder.Marshal(d))
		require.NoError(t, err)
		assert.NoError(t, decoder.SelfCheck(stored, cases, 1e-5), "after the way through a database")
	}
}
