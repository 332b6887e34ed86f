package weights_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
)

// What a self-check is for: specs whose tensors fit and that are wrong all the same.
func TestSelfCheckRefusesWrongSpecs(t *testing.T) {
	tests := []struct {
		name   string
		change func(*decoder.Spec)
	}{
		{"hadamard-relu", func(s *decoder.Spec) { s.Layers[0].Activation = decoder.GELU }},
		{"hadamard-gelu", func(s *decoder.Spec) { s.Layers[1].Activation = decoder.GELUTanh }},
		{"hadamard-leaky-relu", func(s *decoder.Spec) { s.Layers[0].Slope = nil }},
		{"hadamard-batchnorm", func(s *decoder.Spec) { s.Layers[1].NormPosition = "after_activation" }},
		{"hadamard-layernorm", func(s *decoder.Spec) { s.Layers[0].Norm = nil }},
		{"hadamard-residual-input", func(s *decoder.Spec) { s.Layers[1].Residual = "z" }},
		{"hadamard-two-outputs", func(s *decoder.Spec) { s.OutputColumn = 0 }},
	}
	for _, test := range tests {
		dir := filepath.Join("testdata", "decoders", test.name)
		spec := readSpec(t, dir)
		test.change(spec)
		d, err := weights.Read(filepath.Join(dir, "weights.safetensors"), &weights.Options{Spec: spec})
		require.NoError(t, err)
		cases, err := weights.ReadCases(filepath.Join(dir, "cases.jsonl"))
		require.NoError(t, err)
		assert.ErrorContains(t, weights.SelfCheck(d, cases, 0), "self-check: case ", test.name)
	}
}

func TestSelfCheck(t *testing.T) {
	d, err := decoder.NewDot(2)
	require.NoError(t, err)
	good := weights.Case{Source: []float32{1, 2}, Candidate: []float32{3, 4}, Logit: 11}
	near := weights.Case{Source: []float32{1, 2}, Candidate: []float32{3, 4}, Logit: 11.0009}
	bad := weights.Case{Source: []float32{1, 2}, Candidate: []float32{3, 4}, Logit: 11.0125}
	zero := weights.Case{Source: []float32{1, 1}, Candidate: []float32{1, -0.999995}, Logit: 0}
	short := weights.Case{Source: []float32{1, 2}, Candidate: []float32{3}, Logit: 3}

	assert.NoError(t, weights.SelfCheck(d, []weights.Case{good, near, zero}, 0))
	assert.ErrorContains(t, weights.SelfCheck(d, []weights.Case{good, near}, 1e-6), "case 2 of 2")
	assert.ErrorContains(t, weights.SelfCheck(d, []weights.Case{good, bad, bad}, 0),
		"case 2 of 3: the logit is 11 here and 11.0125 expected, a relative difference of 0.0011 (at most 0.0001 allowed)")
	assert.ErrorContains(t, weights.SelfCheck(d, []weights.Case{short}, 0), "case 1 of 1 has a source of 2 values and a candidate of 1; the decoder's dim is 2")
	assert.ErrorContains(t, weights.SelfCheck(d, nil, 0), "no cases")
}

func TestReadCasesRefuses(t *testing.T) {
	const good = `{"source": [1, 2], "candidate": [3, 4], "logit": 11, "gradient": [1, 2]}` + "\n"
	for content, want := range map[string]string{
		"":                                  "no cases; want lines",
		"\n\n":                              "no cases",
		good + "{":                          "line 2: no valid JSON",
		good + "\n[1]":                      "line 3: the document is a JSON array",
		`{"source": [1], "logit":1}`:        `line 1: want an object with "source", "candidate" and "logit"`,
		`{"source": [1], "candidate": [1]}`: "line 1: want an object",
		`{"source": ["a"], "candidate": [1], "logit": 1}`:           "line 1: source is a JSON string; want a number",
		`{"source": [1e99], "candidate": [1], "logit": 1}`:          "line 1: source is a JSON number 1e99",
		good + `{"source": "` + strings.Repeat("x", 8<<20+1) + `"}`: "line 2: longer than 8388608 bytes",
	} {
		path := filepath.Join(t.TempDir(), "cases.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := weights.ReadCases(path)
		require.Error(t, err)
		assert.Contains(t, err.Error(), want)
		assert.Contains(t, err.Error(), path)
	}
	_, err := weights.ReadCases(filepath.Join(t.TempDir(), "none.jsonl"))
	assert.ErrorContains(t, err, "none.jsonl")
}

func TestSelfCheckAcceptsPyTorch(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join("testdata", "decoders", "*"))
	require.NoError(t, err)
	require.Len(t, dirs, 28)
	for _, dir := range dirs {
		cases, err := weights.ReadCases(filepath.Join(dir, "cases.jsonl"))
		require.NoError(t, err)
		assert.Len(t, cases, 12)
		var opts weights.Options
		file := weightFiles(t, dir)[0]
		if filepath.Ext(file) != ".json" {
			opts.Spec = readSpec(t, dir)
		}
		d, err := weights.Read(file, &opts)
		require.NoError(t, err)
		assert.NoError(t, weights.SelfCheck(d, cases, 1e-5), dir)
	}
}
