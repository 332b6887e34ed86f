package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
	"github.com/flashdb/flashdb/internal/codec"
)

func zeros(shape ...int) decoder.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return decoder.Tensor{Shape: shape, Data: make([]float32, n)}
}

func TestDraftSpec(t *testing.T) {
	for _, c := range []struct {
		name    string
		tensors map[string]decoder.Tensor
		dim     int
		want    string
	}{
		{"two layers", map[string]decoder.Tensor{
			"fc1.weight": zeros(8, 4), "fc1.bias": zeros(8), "out.weight": zeros(1, 8), "out.bias": zeros(1),
		}, 4, `{"kind":"hadamard_mlp","dim":4,"layers":[{"weight":"fc1.weight","bias":"fc1.bias","activation":"relu"},{"weight":"out.weight","bias":"out.bias","activation":"identity"}]}`},
		{"concatenated, and an encoder before it", map[string]decoder.Tensor{
			"enc.weight": zeros(8, 9), "fc1.weight": zeros(6, 8), "fc2.weight": zeros(1, 6),
		}, 4, `{"kind":"concat_mlp","dim":4,"layers":[{"weight":"fc1.weight","activation":"relu"},{"weight":"fc2.weight","activation":"identity"}]}`},
		{"norms, and ten layers' order", map[string]decoder.Tensor{
			"l.2.weight": zeros(5, 4), "l.10.weight": zeros(1, 5), "bn.weight": zeros(5), "bn.bias": zeros(5), "bn.running_mean": zeros(5), "bn.running_var": zeros(5),
		}, 0, `{"kind":"hadamard_mlp","dim":4,"layers":[{"weight":"l.2.weight","norm":{"kind":"batch_norm","weight":"bn.weight","bias":"bn.bias","mean":"bn.running_mean","var":"bn.running_var"},"activation":"relu"},{"weight":"l.10.weight","activation":"identity"}]}`},
		{"one square matrix", map[string]decoder.Tensor{"W": zeros(4, 4)}, 4, `{"kind":"bilinear","dim":4,"weight":"W"}`},
		{"one of another width", map[string]decoder.Tensor{"W": zeros(4, 4)}, 5, ""},
		{"no logit", map[string]decoder.Tensor{"fc1.weight": zeros(8, 4), "fc2.weight": zeros(3, 8)}, 4, ""},
		{"nothing", nil, 4, ""},
	} {
		spec, ok := draftSpec(c.tensors, c.dim)
		require.Equal(t, c.want != "", ok, c.name)
		if ok {
			text, err := json.Marshal(spec)
			require.NoError(t, err)
			assert.JSONEq(t, c.want, string(text), c.name)
		}
	}
}

// TestDraftIsPrinted reads it from the error and adds the decoder by it.
func TestDraftIsPrinted(t *testing.T) {
	base := t.TempDir()
	dir, file := filepath.Join(base, "db"), filepath.Join(base, "mlp.npz")
	code, _, errOut := runLine("create", dir, "c", "--dim", "4")
	require.Zero(t, code, errOut)
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, codec.WriteNPZ(f, map[string]codec.Tensor{
		"m.fc1.weight": codec.Tensor(zeros(8, 8)), "m.fc1.bias": codec.Tensor(zeros(8)), "m.fc2.weight": codec.Tensor(zeros(1, 8)),
	}))
	require.NoError(t, f.Close())
	for _, prefix := range []string{"", "m"} {
		code, _, errOut = runLine("decoder", "add", dir, "c", "mlp", file, "--prefix", prefix)
		assert.Equal(t, exitFailed, code)
		_, draft, found := cutAfter(errOut, "activations are guessed: ")
		require.True(t, found, errOut)
		require.NoError(t, os.WriteFile(filepath.Join(base, "spec.json"), []byte(draft), 0o600))
		code, out, errOut := runLine("decoder", "add", dir, "c", "mlp", file, "--prefix", prefix, "--spec", filepath.Join(base, "spec.json"))
		require.Zero(t, code, errOut)
		assert.Contains(t, out, "concat_mlp 8-8-1")
	}
}

func TestProbabilitiesAreNoLogits(t *testing.T) {
	d, err := decoder.NewDot(2)
	require.NoError(t, err)
	at := func(x float32, logit float64) weights.Case {
		return weights.Case{Source: []float32{1, 0}, Candidate: []float32{x, 0}, Logit: logit}
	}
	assert.Contains(t, probabilityHint(d, []weights.Case{at(0, .5), at(2, .880797)}), "and the decoder gives the same")
	assert.Contains(t, probabilityHint(d, []weights.Case{at(0, .5), at(2, .1)}), "if they are probabilities")
	assert.Empty(t, probabilityHint(d, []weights.Case{at(0, .5), at(2, -2)}))
}

func cutAfter(text, mark string) (before, after string, found bool) {
	return strings.Cut(strings.TrimSpace(text), mark)
}
