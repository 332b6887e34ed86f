package decoder_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
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

// small is a spec of two layers, 4-8-1, with a norm of each kind, and tensors that fit it.
func small() (decoder.Spec, tensors) {
	spec := decoder.Spec{
		Kind: decoder.HadamardMLP, Dim: 4,
		InputNorm: &decoder.NormSpec{Kind: "layer_norm", Weight: "lnx.weight", Bias: "lnx.bias"},
		Layers: []decoder.LayerSpec{
			{
				Weight: "lins.0.weight", Bias: "lins.0.bias", Activation: decoder.ReLU,
				Norm: &decoder.NormSpec{Kind: "batch_norm", Weight: "bn.weight", Mean: "bn.mean", Var: "bn.var"},
			},
			{Weight: "lins.1.weight", Bias: "lins.1.bias"},
		},
	}
	return spec, tensors{
		"lnx.weight": zeros(4), "lnx.bias": zeros(4),
		"lins.0.weight": zeros(8, 4), "lins.0.bias": zeros(8), "bn.weight": zeros(8), "bn.mean": zeros(8), "bn.var": zeros(8),
		"lins.1.weight": zeros(1, 8), "lins.1.bias": zeros(1),
	}
}

// Every refusal names the key, what was found and what was wanted.
func TestNewRefuses(t *testing.T) {
	tests := []struct {
		name   string
		change func(*decoder.Spec, tensors)
		want   []string
	}{
		{
			"missing tensor", func(_ *decoder.Spec, ts tensors) { delete(ts, "lins.1.bias") },
			[]string{`layers[1].bias: no tensor "lins.1.bias"`, `the weights have "bn.mean"`},
		},
		{
			"two missing tensors", func(_ *decoder.Spec, ts tensors) { delete(ts, "lins.1.bias"); delete(ts, "bn.var") },
			[]string{"2 faults", `layers[0].norm.var: no tensor "bn.var"`, `layers[1].bias: no tensor "lins.1.bias"`},
		},
		{
			"transposed weight", func(_ *decoder.Spec, ts tensors) { ts["lins.0.weight"] = zeros(4, 8) },
			[]string{`layers[0].weight "lins.0.weight" has shape [4 8]; want [any 4]`},
		},
		{
			"dim of another model", func(s *decoder.Spec, _ tensors) { s.Dim = 5 },
			[]string{`input_norm.weight "lnx.weight" has shape [4]; want [5]`, `layers[0].weight "lins.0.weight" has shape [8 4]; want [any 5] (source * candidate of dim 5`},
		},
		{
			"concat taken for hadamard", func(_ *decoder.Spec, ts tensors) { ts["lins.0.weight"] = zeros(8, 8) },
			[]string{`has shape [8 8]; want [any 4]`, "twice as wide is kind concat_mlp"},
		},
		{
			"layers that do not meet", func(_ *decoder.Spec, ts tensors) { ts["lins.1.weight"] = zeros(1, 9) },
			[]string{`layers[1].weight "lins.1.weight" has shape [1 9]; want [any 8] (the outputs of layers[0])`},
		},
		{
			"weight of one dimension", func(_ *decoder.Spec, ts tensors) { ts["lins.1.weight"] = zeros(8) },
			[]string{`layers[1].weight "lins.1.weight" has shape [8]; want [any 8]`},
		},
		{
			"weight of three dimensions", func(_ *decoder.Spec, ts tensors) { ts["lins.0.weight"] = zeros(2, 4, 4) },
			[]string{`"lins.0.weight" has shape [2 4 4]; want [any 4]`},
		},
		{
			"empty weight", func(_ *decoder.Spec, ts tensors) { ts["lins.0.weight"] = zeros(0, 4) },
			[]string{`"lins.0.weight" has shape [0 4]; want [any 4]`},
		},
		{
			"bias", func(_ *decoder.Spec, ts tensors) { ts["lins.0.bias"] = zeros(4) },
			[]string{`layers[0].bias "lins.0.bias" has shape [4]; want [8] (the layer's outputs)`},
		},
		{
			"norm", func(_ *decoder.Spec, ts tensors) { ts["bn.weight"], ts["bn.var"] = zeros(4), zeros(7) },
			[]string{`layers[0].norm.weight "bn.weight" has shape [4]; want [8]`, `layers[0].norm.var "bn.var" has shape [7]; want [8]`},
		},
		{"data", func(_ *decoder.Spec, ts tensors) {
			ts["lins.0.bias"] = decoder.Tensor{Shape: []int{8}, Data: make([]float32, 7)}
		}, []string{`layers[0].bias "lins.0.bias" has shape [8] and 7 values`}},
		{"overflowing shape", func(_ *decoder.Spec, ts tensors) {
			ts["lins.0.bias"] = decoder.Tensor{Shape: []int{math.MaxInt, 8}}
		}, []string{`"lins.0.bias" has shape [9223372036854775807 8] and 0 values`}},
		{
			"NaN", func(_ *decoder.Spec, ts tensors) { ts["lins.0.weight"].Data[5] = float32(math.NaN()) },
			[]string{`layers[0].weight "lins.0.weight": value 5 is NaN; want finite numbers`},
		},
		{
			"infinity", func(_ *decoder.Spec, ts tensors) { ts["lins.1.bias"].Data[0] = float32(math.Inf(-1)) },
			[]string{`layers[1].bias "lins.1.bias": value 0 is -Inf`},
		},
		{
			"negative variance", func(_ *decoder.Spec, ts tensors) { ts["bn.var"].Data[3] = -1 },
			[]string{`layers[0].norm.var "bn.var": value 3 is -1; want a variance`},
		},
		{"overflow", func(_ *decoder.Spec, ts tensors) {
			ts["bn.weight"].Data[3], ts["lins.0.weight"].Data[12] = 1e30, 1e30
		}, []string{"layers[0] overflows float32"}},
		{"overflow of the input norm", func(s *decoder.Spec, ts tensors) {
			s.InputNorm = &decoder.NormSpec{Kind: "batch_norm", Weight: "lnx.weight", Mean: "lnx.bias", Var: "lnx.bias", Eps: new(1e-10)}
			s.Layers = []decoder.LayerSpec{s.Layers[0], {Weight: "w", Activation: decoder.Tanh, Residual: "z"}}
			ts["w"], ts["lnx.weight"].Data[0] = zeros(4, 8), 3e38
		}, []string{"input_norm overflows float32"}},
		{"overflow of an affine network", func(s *decoder.Spec, ts tensors) {
			s.Layers[0].Activation = decoder.Identity
			s.InputNorm = nil
			ts["lins.0.weight"].Data[0], ts["lins.1.weight"].Data[0], ts["bn.weight"].Data[0] = 1e30, 1e30, 1
		}, []string{"the product of the layers overflows float32"}},
		{
			"output column", func(s *decoder.Spec, _ tensors) { s.OutputColumn = 1 },
			[]string{`output_column is 1; the last layer's weight "lins.1.weight" has 1 outputs`},
		},
		{
			"residual of the input", func(s *decoder.Spec, _ tensors) { s.Layers[0].Residual = "input" },
			[]string{`layers[0].weight "lins.0.weight" has 8 outputs; residual "input" needs 4`},
		},
		{
			"residual of z", func(s *decoder.Spec, _ tensors) { s.Layers[1].Residual = "z" },
			[]string{`layers[1].weight "lins.1.weight" has 1 outputs; residual "z" needs 4`},
		},
		{
			"shapes", func(s *decoder.Spec, _ tensors) { s.Shapes = [][]int{{16, 4}, {1, 8}} },
			[]string{`layers[0].weight "lins.0.weight" has shape [8 4]; shapes[0] of the spec is [16 4]`},
		},
		{"faulty spec", func(s *decoder.Spec, _ tensors) { s.Layers[0].Activation = "rleu" }, []string{"decoder spec: layers[0].activation"}},
		{"all at once", func(s *decoder.Spec, ts tensors) {
			ts["lins.0.bias"], ts["lins.1.bias"], s.OutputColumn = zeros(3), zeros(3), 2
		}, []string{"3 faults", "lins.0.bias", "lins.1.bias", "output_column"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec, ts := small()
			test.change(&spec, ts)
			_, err := decoder.New(spec, ts)
			require.Error(t, err)
			for _, want := range test.want {
				assert.Contains(t, err.Error(), want)
			}
			assert.NotContains(t, err.Error(), "\n")
		})
	}
	spec, ts := small()
	spec.Shapes = [][]int{{8, 4}, {1, 8}}
	_, err := decoder.New(spec, ts)
	require.NoError(t, err, "the unchanged spec")
}

func TestNewRefusesLinear(t *testing.T) {
	_, err := decoder.New(decoder.Spec{Kind: decoder.Bilinear, Dim: 4, Weight: "W"}, tensors{"W": zeros(4, 5)})
	assert.EqualError(t, err, `decoder weights: weight "W" has shape [4 5]; want [4 4] (dim is 4)`)
	_, err = decoder.New(decoder.Spec{Kind: decoder.DistMult, Dim: 4, Relation: "r"}, tensors{"r": zeros(9, 4)})
	assert.EqualError(t, err, `decoder weights: relation "r" has shape [9 4]; want [4] (dim is 4)`)
	_, err = decoder.New(decoder.Spec{Kind: decoder.DistMult, Dim: 4, Relation: "r"}, nil)
	assert.EqualError(t, err, `decoder weights: relation: no tensor "r"; the weights have no tensors`)
}

// A leading dimension of one is how PyTorch stores a single relation and the weight of
// nn.Bilinear(d, d, 1).
func TestNewDropsLeadingOnes(t *testing.T) {
	d, err := decoder.New(decoder.Spec{Kind: decoder.Bilinear, Dim: 2, Weight: "W"},
		tensors{"W": {Shape: []int{1, 2, 2}, Data: []float32{1, 2, 3, 4}}})
	require.NoError(t, err)
	assert.Equal(t, []float32{13, 20}, bindOnes(d, []float32{4, 3}), "4*(1 2) + 3*(3 4)")
	_, err = decoder.New(decoder.Spec{Kind: decoder.DistMult, Dim: 4, Relation: "r"}, tensors{"r": zeros(1, 4)})
	require.NoError(t, err)
}

func prefixed(prefix string, ts tensors) tensors {
	out := tensors{}
	for k, t := range ts {
		out[prefix+k] = t
	}
	return out
}

func TestPrefix(t *testing.T) {
	spec, ts := small()

	nested := prefixed("predictor.module.", ts)
	nested["encoder.lins.0.weight"] = zeros(3, 3)
	nested["predictor.step"] = zeros()
	d, err := decoder.New(spec, nested)
	require.NoError(t, err)
	assert.ElementsMatch(t, slices.Collect(maps.Keys(ts)), slices.Collect(maps.Keys(d.Tensors())), "kept by the spec's keys, the rest dropped")

	maps.Copy(nested, prefixed("ema.", ts))
	_, err = decoder.New(spec, nested)
	assert.EqualError(t, err, `decoder weights: key "lnx.weight" is ambiguous: all keys of the spec are found under each of the prefixes `+
		`"ema.", "predictor.module."; write the full keys in the spec`)

	maps.Copy(nested, ts)
	_, err = decoder.New(spec, nested)
	assert.NoError(t, err, "keys found as they are win")

	_, err = decoder.New(spec, prefixed("my", ts))
	assert.ErrorContains(t, err, `no tensor "lins.0.weight"`, "a prefix ends with a dot")
}

// prefixedSpec is the spec of small with longer keys.
func prefixedSpec(prefix string, spec decoder.Spec) decoder.Spec {
	in, bn := *spec.InputNorm, *spec.Layers[0].Norm
	first, last := spec.Layers[0], spec.Layers[1]
	for _, key := range []*string{&in.Weight, &in.Bias, &bn.Weight, &bn.Mean, &bn.Var, &first.Weight, &first.Bias, &last.Weight, &last.Bias} {
		*key = prefix + *key
	}
	spec.InputNorm, first.Norm = &in, &bn
	spec.Layers = []decoder.LayerSpec{first, last}
	return spec
}

func TestPairStructureModelsAreRefused(t *testing.T) {
	spec, ts := small()
	for method, keys := range map[string][]string{
		"SEAL":  {"z_embedding.weight"},
		"NCN":   {"xcnlin.0.weight"},
		"BUDDY": {"label_lin_layer.bias"},
		"SUREL": {"trainable_embedding.0.weight", "affinity_score.fc1.weight"},
	} {
		found := tensors{}
		for _, k := range keys {
			found["model."+k] = zeros(2, 2)
		}
		_, err := decoder.New(spec, found)
		assert.ErrorContains(t, err, `key "model.`+keys[0]+`" is of a `+method+" model", "instead of missing keys")
		assert.ErrorContains(t, err, "common neighbourhood of the pair")

		inside := prefixed("model.", ts)
		maps.Copy(inside, found)
		_, err = decoder.New(spec, inside)
		assert.ErrorContains(t, err, method, "beside the decoder's layers")
		_, err = decoder.New(prefixedSpec("model.", spec), inside)
		assert.ErrorContains(t, err, method, "the same, by full keys")

		beside := prefixed("predictor.", ts)
		maps.Copy(beside, found)
		_, err = decoder.New(spec, beside)
		assert.NoError(t, err, "another model in the same file")
		_, err = decoder.New(prefixedSpec("predictor.", spec), beside)
		assert.NoError(t, err, "the same, by full keys")
	}
	spec.Kind = "ncn"
	_, err := decoder.New(spec, ts)
	assert.ErrorContains(t, err, "NCN is not supported")
}
