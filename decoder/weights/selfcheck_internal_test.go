package weights

import (
	"bytes"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func FuzzParseCases(f *testing.F) {
	data, err := os.ReadFile("testdata/decoders/dot/cases.jsonl")
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`{"source": [1], "candidate": [2], "logit": 2}` + "\n\n[]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		cases, err := parseCases(bytes.NewReader(data))
		if err != nil {
			assert.NotContains(t, err.Error(), "\n")
			return
		}
		assert.NotEmpty(t, cases)
		for _, c := range cases {
			for _, v := range slices.Concat(c.Source, c.Candidate) {
				assert.False(t, math.IsNaN(float64(v)) || math.IsInf(float64(v), 0))
			}
			assert.False(t, math.IsNaN(c.Logit) || math.IsInf(c.Logit, 0))
		}
	})
}
