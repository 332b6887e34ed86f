package decoder_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
)

func TestParseSpecRefuses(t *testing.T) {
	const relu = `{"weight": "w", "activation": "relu"}`
	mlp := func(layer string) string {
		return `{"kind": "hadamard_mlp", "dim": 4, "layers": [` + layer + `, {"weight": "v", "bias": "c"}]}`
	}
	tests := []struct {
		name, spec string
		want       []string // all in the one message
	}{
		{"no JSON", `kind: dot`, []string{"decoder spec: no valid JSON", "byte 1"}},
		{"two documents", `{"kind": "dot", "dim": 4} {}`, []string{"no valid JSON", "byte 27"}},
		{"array", `[]`, []string{"the document is a JSON array; want an object"}},
		{"null", `null`, []string{`kind is ""`}},
		{"type of dim", `{"kind": "dot", "dim": "24"}`, []string{"dim is a JSON string; want a whole number"}},
		{"type of layers", `{"kind": "hadamard_mlp", "dim": 4, "layers": 3}`, []string{"layers is a JSON number; want an array"}},
		{"unknown kind", `{"kind": "transformer", "dim": 4}`, []string{`kind is "transformer"; want one of hadamard_mlp, concat_mlp, mol, bilinear, distmult, complex, dot`}},
		{"seal", `{"kind": "SEAL"}`, []string{"SEAL is not supported", "common neighbourhood"}},
		{"ncn", `{"kind": "ncnc"}`, []string{"NCN is not supported", "common neighbourhood"}},
		{"buddy", `{"kind": "BUDDY"}`, []string{"BUDDY is not supported", "common neighbourhood"}},
		{"surel", `{"kind": "surel+"}`, []string{"SUREL is not supported", "common neighbourhood"}},
		{"neo-gnn", `{"kind": "Neo-GNN"}`, []string{"Neo-GNN is not supported"}},
		{"no dim", `{"kind": "dot"}`, []string{"dim is 0; want 1 to 65536"}},
		{"huge dim", `{"kind": "dot", "dim": 65537}`, []string{"dim is 65537"}},
		{"layers of dot", `{"kind": "dot", "dim": 4, "layers": [` + relu + `]}`, []string{"kind dot has no layers"}},
		{"weight of dot", `{"kind": "dot", "dim": 4, "weight": "w"}`, []string{`weight "w" is out of place: it belongs to kind bilinear`}},
		{"bilinear without weight", `{"kind": "bilinear", "dim": 4}`, []string{"weight is missing"}},
		{"distmult without relation", `{"kind": "distmult", "dim": 4}`, []string{"relation is missing"}},
		{"no layers", `{"kind": "concat_mlp", "dim": 4}`, []string{"layers: 0 of them; want 1 to 64"}},
		{"65 layers", `{"kind": "concat_mlp", "dim": 4, "layers": [` + strings.Repeat(relu+",", 64) + relu + `]}`, []string{"layers: 65 of them"}},
		{"layer without weight", mlp(`{"activation": "relu"}`), []string{"layers[0].weight is missing"}},
		{"no activation", mlp(`{"weight": "w"}`), []string{"layers[0].activation is missing"}},
		{"unknown activation", mlp(`{"weight": "w", "activation": "rleu"}`), []string{`layers[0].activation is "rleu"; want one of relu, leaky_relu`}},
		{"slope of relu", mlp(`{"weight": "w", "activation": "relu", "slope": 0.1}`), []string{"layers[0].slope 0.1", "leaky_relu only"}},
		{"residual", mlp(`{"weight": "w", "activation": "relu", "residual": "skip"}`), []string{`layers[0].residual is "skip"; want one of input, z`}},
		{"norm position", mlp(`{"weight": "w", "activation": "relu", "norm_position": "pre"}`), []string{`layers[0].norm_position is "pre"`}},
		{"norm kind", mlp(`{"weight": "w", "activation": "relu", "norm": {"kind": "group_norm"}}`), []string{`layers[0].norm.kind is "group_norm"; want layer_norm or batch_norm`}},
		{"batch norm without statistics", mlp(`{"weight": "w", "activation": "relu", "norm": {"kind": "batch_norm"}}`), []string{"layers[0].norm.mean is missing", "layers[0].norm.var is missing"}},
		{"layer norm with statistics", mlp(`{"weight": "w", "activation": "relu", "norm": {"kind": "layer_norm", "mean": "m"}}`), []string{`layers[0].norm.mean "m" is out of place`}},
		{"eps", mlp(`{"weight": "w", "activation": "relu", "norm": {"kind": "layer_norm", "eps": -1}}`), []string{"layers[0].norm.eps is -1"}},
		{"eps 0", mlp(`{"weight": "w", "activation": "relu", "norm": {"kind": "layer_norm", "eps": 0}}`), []string{"layers[0].norm.eps is 0"}},
		{"output", `{"kind": "dot", "dim": 4, "output": "softmax"}`, []string{`output is "softmax"; want one of none, sigmoid, relu`}},
		{"output column", `{"kind": "concat_mlp", "dim": 4, "output_column": -1, "layers": [` + relu + `]}`, []string{"output_column is -1"}},
		{"shapes", `{"kind": "concat_mlp", "dim": 4, "shapes": [[1, 8], [1, 1]], "layers": [` + relu + `]}`, []string{"shapes: 2 of them for 1 layers"}},
		{"misspelt field", mlp(`{"weight": "w", "activation": "relu", "nrom": {"kind": "layer_norm"}}`), []string{`unknown field "layers[0].nrom"; want one of weight, bias`}},
		{"everything at once", `{"kind": "hadamard_mlp", "dim": -1, "colour": 1, "output": "x",
			"input_norm": {"kind": "batch_norm", "epsilon": 1}, "layers": [{"activation": "rleu"}, {"weight": "w"}, {"weight": "v"}]}`, []string{
			"decoder spec: 9 faults; (1) unknown field \"colour\"", "input_norm.epsilon", "dim is -1", "output is",
			"input_norm.mean", "input_norm.var", "layers[0].weight", "layers[0].activation", "(9) layers[1].activation",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := decoder.ParseSpec([]byte(test.spec))
			require.Error(t, err)
			for _, want := range test.want {
				assert.Contains(t, err.Error(), want)
			}
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestParseSpecAccepts(t *testing.T) {
	for name, spec := range map[string]string{
		"dot":                       `{"kind": "dot", "dim": 24, "output": "none"}`,
		"ignored fields":            `{"kind": "hadamard_mlp", "dim": 4, "comment": "from run 7", "layers": [{"weight": "w", "dropout": 0.5}]}`,
		"nulls":                     `{"kind": "hadamard_mlp", "dim": 4, "input_norm": null, "layers": [{"weight": "w", "bias": null, "norm": null, "slope": null}]}`,
		"position without norm":     `{"kind": "hadamard_mlp", "dim": 4, "layers": [{"weight": "w", "norm_position": "after_activation"}]}`,
		"batch norm without eps":    `{"kind": "concat_mlp", "dim": 4, "layers": [{"weight": "w", "norm": {"kind": "batch_norm", "mean": "m", "var": "v", "eps": 0}}]}`,
		"explicit default of slope": `{"kind": "concat_mlp", "dim": 4, "layers": [{"weight": "w", "activation": "leaky_relu", "slope": 0.01}]}`,
	} {
		_, err := decoder.ParseSpec([]byte(spec))
		assert.NoError(t, err, name)
	}
}

// A spec survives its own JSON form.
func TestSpecRoundTrip(t *testing.T) {
	for _, dir := range torchDirs(t) {
		spec := readSpec(t, dir)
		data, err := json.Marshal(spec)
		require.NoError(t, err)
		again, err := decoder.ParseSpec(data)
		require.NoError(t, err)
		assert.Equal(t, *spec, again)
	}
}

func TestFaultsUnwrap(t *testing.T) {
	err := decoder.Spec{Kind: decoder.Dot, Dim: 0, Weight: "w", Output: "x"}.Validate()
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	assert.Len(t, joined.Unwrap(), 3)
	many := decoder.Spec{Kind: decoder.HadamardMLP, Dim: 4, Layers: make([]decoder.LayerSpec, 20)}.Validate()
	assert.ErrorContains(t, many, "39 faults")
	assert.ErrorContains(t, many, "and 27 more")
}

func FuzzParseSpec(f *testing.F) {
	for _, dir := range torchDirs(f) {
		data, err := os.ReadFile(filepath.Join(dir, "spec.json"))
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`{"kind": "hadamard_mlp", "layers": [{"norm": {"kind": {}}}, [], null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, err := decoder.ParseSpec(data)
		if err != nil {
			assert.NotContains(t, err.Error(), "\n")
			return
		}
		encoded, err := json.Marshal(spec)
		require.NoError(t, err)
		again, err := decoder.ParseSpec(encoded)
		require.NoError(t, err)
		assert.Equal(t, spec, again)
	})
}
