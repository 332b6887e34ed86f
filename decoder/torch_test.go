package decoder_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
)

// torchCase is a line of cases.jsonl: what PyTorch computed by float64 autograd.
type torchCase struct {
	Source    []float32 `json:"source"`
	Candidate []float32 `json:"candidate"`
	Logit     float64   `json:"logit"`
	Gradient  []float64 `json:"gradient"`
}

func readTorchCases(t testing.TB, dir string) []torchCase {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "cases.jsonl"))
	require.NoError(t, err)
	var cases []torchCase
	for line := range strings.Lines(string(data)) {
		var c torchCase
		require.NoError(t, json.Unmarshal([]byte(line), &c))
		cases = append(cases, c)
	}
	require.Len(t, cases, 12)
	return cases
}

func readSpec(t testing.TB, dir string) *decoder.Spec {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "spec.json"))
	require.NoError(t, err)
	spec, err := decoder.ParseSpec(data)
	require.NoError(t, err)
	return &spec
}

// torchDirs are the folders of the 28 decoders.
func torchDirs(t testing.TB) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join("weights", "testdata", "decoders", "*"))
	require.NoError(t, err)
	require.Len(t, dirs, 28)
	return dirs
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

func openTorch(t testing.TB, file string) decoder.Decoder {
	t.Helper()
	var spec *decoder.Spec
	if filepath.Ext(file) != ".json" {
		spec = readSpec(t, filepath.Dir(file))
	}
	d, err := weights.Read(file, &weights.Options{Spec: spec})
	require.NoError(t, err)
	return d
}

func TestMatchesPyTorch(t *testing.T) {
	files := 0
	for _, dir := range torchDirs(t) {
		cases := readTorchCases(t, dir)
		for _, file := range weightFiles(t, dir) {
			files++
			t.Run(filepath.Base(dir)+"/"+filepath.Base(file), func(t *testing.T) {
				d := openTorch(t, file)
				var s decoder.Scratch
				var bound decoder.Bound
				logit, grad := make([]float32, 1), make([]float32, d.Dim())
				var worstLogit, worstGradient float64
				for i, c := range cases {
					bound = d.Bind(bound, c.Source)
					bound.Score(&s, logit, c.Candidate)
					requireLogit(t, c.Logit, logit[0], "case %d", i)
					bound.Gradient(&s, grad, c.Candidate, nil)
					assert.Less(t, gradientError(c.Gradient, grad), 1e-4, "case %d, relative to the largest value of the gradient", i)
					worstLogit = max(worstLogit, logitError(c.Logit, logit[0]))
					worstGradient = max(worstGradient, gradientError(c.Gradient, grad))
				}
				t.Logf("worst logit %.1e, worst gradient %.1e", worstLogit, worstGradient)
			})
		}
	}
	assert.Equal(t, 103, files)
}

// In one batch with one source, as the database scores them.
func TestMatchesPyTorchInBatches(t *testing.T) {
	for _, dir := range torchDirs(t) {
		d := openTorch(t, weightFiles(t, dir)[0])
		cases := readTorchCases(t, dir)
		for _, c := range cases {
			rows := slices.Repeat(c.Candidate, 70)
			logits := make([]float32, 70)
			d.Bind(nil, c.Source).Score(new(decoder.Scratch), logits, rows)
			requireLogit(t, c.Logit, logits[69], dir)
			assert.Equal(t, slices.Repeat(logits[:1], 70), logits)
		}
	}
}
