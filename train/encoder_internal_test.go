package train

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden file of the encoder blob anew")

// tiny returns an encoder of 2 dimensions, 1 feature and 3 hidden values.
func tiny() *Encoder {
	e := &Encoder{dim: 2, features: 1, hidden: 3, kind: Hops, center: []float32{1}, spread: []float32{2}}
	e.weights = [4][]float32{make([]float32, 3*e.width()), {0.5, -1, 0}, {1, 0, -1, 0.25, 2, 3}, {0, 0.5}}
	for i := range e.weights[0] {
		e.weights[0][i] = float32(i%5) - 2
	}
	e.pack()
	return e
}

// TestEncoderGolden holds the bytes of version 1, and an embedding computed by hand from the
// formula.
func TestEncoderGolden(t *testing.T) {
	const path = "testdata/encoder-v1.hex"
	e := tiny()
	blob, err := e.MarshalBinary()
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(annotate(blob)), 0o600))
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	golden := regexp.MustCompile(`(?m)#.*$|\s`).ReplaceAllString(string(text), "")
	require.Equal(t, golden, hex.EncodeToString(blob))
	var back Encoder
	require.NoError(t, back.UnmarshalBinary(blob))

	// To is one row, (1, 3); From two, (2, 0) and (4, 2): means (1, 3) and (3, 1), counts 1 and 2;
	// the feature is (5-1)/2.
	input := []float64{1, 3, 0.6931472, 3, 1, 1.0986123, 2, 1}
	mean, got := []float64{7. / 3, 5. / 3}, make([]float32, 2)
	require.NoError(t, back.Embed(got, Newcomer{To: []float32{1, 3}, From: []float32{2, 0, 4, 2}, Features: []float32{5}}))
	var hidden [3]float64
	for h := range hidden {
		hidden[h] = float64(e.weights[1][h])
		for k, x := range input {
			hidden[h] += float64((h*len(input)+k)%5-2) * x
		}
		hidden[h] = max(0, hidden[h])
	}
	assert.InDelta(t, mean[0]+hidden[0]-hidden[2], got[0], 1e-5)
	assert.InDelta(t, mean[1]+0.25*hidden[0]+2*hidden[1]+3*hidden[2]+0.5, got[1], 1e-5)
}

// annotate returns a blob of tiny as hex, with what each part is.
func annotate(blob []byte) string {
	var b strings.Builder
	b.WriteString("# MarshalBinary of an encoder of 2 dimensions, 1 feature and 3 hidden values, format version 1\n")
	line := func(n int, what string) {
		fmt.Fprintf(&b, "%-34s# %s\n", hex.EncodeToString(blob[:n]), what)
		blob = blob[n:]
	}
	line(4, `magic "fenc"`)
	line(4, "version 1")
	line(5, `kind: 4 bytes, "hops"`)
	line(1, "dim 2")
	line(1, "1 feature")
	line(1, "3 hidden values")
	line(1, "pooled: no")
	line(4, "center")
	line(4, "spread")
	for h := range 3 {
		line(16, fmt.Sprintf("first layer, output %d: mean and count of To, mean of", h))
		line(16, "From ...; count of From, feature, whether it is known")
	}
	line(12, "its bias")
	line(12, "second layer, output 0")
	line(12, "second layer, output 1")
	line(8, "its bias")
	line(4, "CRC32C of all before")
	return b.String()
}
