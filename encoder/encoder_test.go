package encoder

import (
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
)

var update = flag.Bool("update", false, "write the golden file of the encoder blob anew")

// tiny returns an encoder of 2 dimensions, 1 feature and 3 hidden values.
func tiny(t testing.TB) *Encoder {
	in := Input{Dim: 2, Center: []float32{1}, Spread: []float32{2}}
	w := Weights{Hidden: make([]float32, 3*in.Width()), HiddenBias: []float32{0.5, -1, 0}, Output: []float32{1, 0, -1, 0.25, 2, 3}, OutputBias: []float32{0, 0.5}}
	for i := range w.Hidden {
		w.Hidden[i] = float32(i%5) - 2
	}
	e, err := New("hops", in, w)
	require.NoError(t, err)
	return e
}

// TestGolden holds the bytes of version 1, and an embedding computed by hand from the formula.
func TestGolden(t *testing.T) {
	const path = "testdata/encoder-v1.hex"
	e := tiny(t)
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
	require.NoError(t, back.Embed(got, Node{To: []float32{1, 3}, From: []float32{2, 0, 4, 2}, Features: []float32{5}}))
	var hidden [3]float64
	for h := range hidden {
		hidden[h] = float64(e.weights.HiddenBias[h])
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
	line(5, `model: 4 bytes, "hops"`)
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

func TestBlob(t *testing.T) {
	e := tiny(t)
	blob, err := e.MarshalBinary()
	require.NoError(t, err)
	var back Encoder
	require.NoError(t, back.UnmarshalBinary(blob))
	n := Node{To: []float32{1, 2, 3, 4}, From: []float32{5, 6}, Features: []float32{7}}
	want, got := make([]float32, 2), make([]float32, 2)
	require.NoError(t, e.Embed(want, n))
	require.NoError(t, back.Embed(got, n))
	assert.Equal(t, want, got)
	assert.Equal(t, "hops", back.Model())
	assert.Equal(t, 1, back.FeatureDim())
	for i := range blob {
		bad := append([]byte(nil), blob...)
		bad[i] ^= 0x10
		require.Error(t, new(Encoder).UnmarshalBinary(bad), "byte %d", i)
		require.Error(t, new(Encoder).UnmarshalBinary(blob[:i]), "cut at %d", i)
	}
}

func TestRefuses(t *testing.T) {
	e := tiny(t)
	dst := make([]float32, 2)
	nan := float32(math.NaN())
	for want, n := range map[string]Node{
		"no rows of 2":   {To: dst[:1]},
		"trained with 1": {Features: dst},
		"without links":  {},
		"value 1 is NaN": {From: []float32{0, nan}},
	} {
		assert.ErrorContains(t, e.Embed(dst, n), want)
	}
	assert.ErrorContains(t, e.Embed(dst[:1], Node{To: dst}), "an embedding has 2 values")

	in := e.in
	w := e.weights
	w.Output = w.Output[1:]
	_, err := New("hops", in, w)
	assert.ErrorContains(t, err, "vector 4 has 5 values, want 6")
	in.Spread = []float32{0}
	_, err = New("hops", in, e.weights)
	assert.ErrorContains(t, err, "the spread of feature 0 is 0")
}

func FuzzEncoder(f *testing.F) {
	blob, err := tiny(f).MarshalBinary()
	require.NoError(f, err)
	f.Add(blob)
	f.Add(blob[:20])
	f.Fuzz(func(t *testing.T, blob []byte) {
		if len(blob) > 4 { // a fuzzer cannot guess a checksum
			body := blob[:len(blob)-4]
			blob = binary.LittleEndian.AppendUint32(append([]byte(nil), body...), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
		}
		var e Encoder
		if e.UnmarshalBinary(blob) != nil {
			return
		}
		again, err := e.MarshalBinary()
		require.NoError(t, err)
		var twice Encoder
		require.NoError(t, twice.UnmarshalBinary(again))
		require.LessOrEqual(t, e.Dim(), decoder.MaxDim)
		dst := make([]float32, e.Dim())
		require.NoError(t, e.Embed(dst, Node{To: make([]float32, 3*e.Dim())}))
	})
}
