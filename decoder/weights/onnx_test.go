package weights_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
)

// Files that PyTorch's two exporters wrote, with what PyTorch computes in float64
// (testdata/make.py).
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
		d, err := weights.Read(file, nil)
		require.NoError(t, err)
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".onnx"), "-torchscript")
		if want := shapes[name]; want != "" {
			assert.Equal(t, want, d.String(), file)
		}
		cases, err := weights.ReadCases(strings.TrimSuffix(file, "onnx") + "jsonl")
		require.NoError(t, err)
		assert.NoError(t, weights.SelfCheck(d, cases, 1e-5), file)

		stored, err := decoder.Unmarshal(decoder.Marshal(d))
		require.NoError(t, err)
		assert.NoError(t, weights.SelfCheck(stored, cases, 1e-5), "after the way through a database")
	}
}

// What PyTorch's two exporters make of decoders as they are written in the wild
// (testdata/exports/exports.py).
func TestONNXExports(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "exports", "*.onnx"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 65)
	shapes := map[string]string{
		"edge-index": "hadamard_mlp 4-5-1", "edge-concat": "concat_mlp 8-5-1", "edge-joined": "concat_mlp 8-5-1", "embedding": "hadamard_mlp 4-1",
		"alone": "hadamard_mlp 4-5-1", "layer-norm": "hadamard_mlp 4-5-5-1", "two-classes": "hadamard_mlp 4-5-2",
	}
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		var opts weights.Options
		if strings.HasPrefix(name, "alone") {
			_, err := weights.Read(file, &opts)
			assert.ErrorContains(t, err, "name the kind (--kind), hadamard_mlp if it is the product of two embeddings or concat_mlp", file)
			opts.Kind = decoder.HadamardMLP
		}
		d, err := weights.Read(file, &opts)
		require.NoError(t, err)
		if want := shapes[name]; want != "" {
			assert.Equal(t, want, d.String(), file)
		}
		cases, err := weights.ReadCases(filepath.Join("testdata", "exports", name+".jsonl"))
		require.NoError(t, err)
		assert.NoError(t, weights.SelfCheck(d, cases, 2e-5), file)
	}
}

func TestONNXExportRefusals(t *testing.T) {
	for name, want := range map[string]string{
		"difference": `node 0 (Sub "NAME"): combines the two embeddings in another way than by their product or concatenation`,
		"elu":        `node 2 (Elu "NAME"): this activation is none of relu, leaky_relu`,
		"normalised": `(ReduceL2 "NAME"): works on one embedding alone`,
		"encoder":    `(Gemm "NAME"): works on the embeddings of all nodes, which is for the encoder: export the decoder alone`,
		"bilinear":   `is a bilinear decoder, whose matrix is read from a .pt by the layout bilinear`,
		"dot":        `(ReduceSum "NAME"): a sum of products is an inner product: a dot decoder needs no weights; give its spec, {"kind": "dot"`,
		"chunk":      `(Slice "NAME"): takes a range that is no constant: write x[0] and x[1]`,
		"symmetric":  `(Concat "NAME"): the embeddings are combined twice`,
	} {
		files, err := filepath.Glob(filepath.Join("testdata", "exports", "refused", name+".*.onnx"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			_, err := weights.Read(file, nil)
			require.Error(t, err, file)
			message := regexp.MustCompile(`\((\w+) "[^"]+"\)`).ReplaceAllString(err.Error(), `($1 "NAME")`)
			assert.Contains(t, message, want)
		}
	}
	_, err := weights.Read(filepath.Join("testdata", "exports", "edge-concat.dynamo-18.onnx"), &weights.Options{Kind: decoder.HadamardMLP})
	assert.ErrorContains(t, err, "the graph computes a concat_mlp itself: name no other kind")
}
