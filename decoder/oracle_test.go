package decoder_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
	"github.com/flashdb/flashdb/internal/codec"
)

// The trained decoders of the large graphs give the logits PyTorch gives, from each of their weight
// files.
func TestMatchesOracle(t *testing.T) {
	data := os.Getenv("FLASHDB_DATA")
	if data == "" {
		t.Skip("FLASHDB_DATA is not set: trained decoders are not compared with the oracles of the large graphs")
	}
	const sources = 20
	for _, graph := range []string{"go-stdlib", "debian", "ddi"} {
		dir := filepath.Join(data, graph)
		embeddings, err := codec.ReadTensors(filepath.Join(dir, "embeddings.npy"))
		require.NoError(t, err)
		rows, dim := embeddings[""].Data, embeddings[""].Shape[1]
		row := func(i int) []float32 { return rows[i*dim : (i+1)*dim] }
		text, err := os.ReadFile(filepath.Join(dir, "decoder.json"))
		require.NoError(t, err)
		spec, err := decoder.ParseSpec(text)
		require.NoError(t, err)
		answers := readOracle(t, filepath.Join(dir, "oracle.jsonl.zst"), sources)
		for _, file := range []string{"decoder.safetensors", "decoder.npz", "decoder.pt"} {
			for _, s := range []*decoder.Spec{&spec, nil} {
				d, err := weights.Read(filepath.Join(dir, file), &weights.Options{Spec: s})
				require.NoError(t, err)
				var scratch decoder.Scratch
				var bound decoder.Bound
				worst := 0.0
				for _, a := range answers {
					var candidates []float32
					for _, c := range a.Top {
						candidates = append(candidates, row(c)...)
					}
					logits := make([]float32, len(a.Top))
					bound = d.Bind(bound, row(a.Source))
					bound.Score(&scratch, logits, candidates)
					for i, want := range a.Logit {
						worst = max(worst, logitError(want, logits[i]))
					}
				}
				assert.Less(t, worst, 1e-4)
				t.Logf("%s %s, %v: worst logit %.1e", graph, file, d, worst)
			}
		}
	}
}

// answer is a line of an oracle: the best candidates of a source and their logits.
type answer struct {
	Source int       `json:"source"`
	Top    []int     `json:"top"`
	Logit  []float64 `json:"logit"`
}

// readOracle reads the first n lines of a compressed oracle. A line of JSON is a table line of one
// field.
func readOracle(t *testing.T, path string, n int) []answer {
	t.Helper()
	table, err := codec.OpenTable(path, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close()) }()
	var answers []answer
	for len(answers) < n {
		fields, _, err := table.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		var a answer
		require.NoError(t, json.Unmarshal([]byte(fields[0]), &a))
		answers = append(answers, a)
	}
	require.NotEmpty(t, answers)
	return answers
}
