package decoder

import (
	"bytes"
	"os"
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
			assert.Negative(t, firstBad(c.Source))
			assert.Negative(t, firstBad(c.Candidate))
			assert.True(t, isFinite(c.Logit))
		}
	})
}
