package decoder_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
	"github.com/flashdb/flashdb/internal/format"
)

func TestBlobRoundTrip(t *testing.T) {
	for _, dir := range torchDirs(t) {
		d := openTorch(t, weightFiles(t, dir)[0])
		blob := decoder.Marshal(d)
		again, err := decoder.Unmarshal(blob)
		require.NoError(t, err, dir)
		assert.Equal(t, d.Spec(), again.Spec())
		assert.Equal(t, len(d.Tensors()), len(again.Tensors()))
		assert.Equal(t, blob, decoder.Marshal(again))
		cases, err := weights.ReadCases(filepath.Join(dir, "cases.jsonl"))
		require.NoError(t, err)
		assert.NoError(t, weights.SelfCheck(again, cases, 1e-5))
	}
}

// The blobs of these decoders are written out by hand in testdata: a change of layout is a new
// version.
func TestBlobGolden(t *testing.T) {
	d, err := decoder.NewHadamardMLP(2,
		decoder.Layer{Weight: []float32{1, 2, 3, 4, 5, 6}, Bias: []float32{0.5, -1, 0}, Activation: decoder.GELU},
		decoder.Layer{Weight: []float32{1, -1, 0.25}})
	require.NoError(t, err)
	checkGolden(t, "blob-v1.hex", d)
	mixture := decoder.MixtureSpec{
		Source: decoder.SideSpec{Components: 2}, Candidate: decoder.SideSpec{Components: 1, Layers: []decoder.LayerSpec{{Weight: "g"}}},
		Gate: decoder.GateSpec{Combine: decoder.CombineSum, Logits: []decoder.LayerSpec{{Weight: "l"}}},
	}
	d, err = decoder.New(decoder.Spec{Kind: decoder.MoL, Dim: 2, Mixture: &mixture}, map[string]decoder.Tensor{
		"g": {Shape: []int{1, 2}, Data: []float32{1, -1}}, "l": {Shape: []int{2, 2}, Data: []float32{1, 2, 3, 4}},
	})
	require.NoError(t, err)
	checkGolden(t, "blob-v2.hex", d)
	mixture.Source.Layers = []decoder.LayerSpec{{Weight: "f", Activation: decoder.SiLU, GLU: true}}
	d, err = decoder.New(decoder.Spec{Kind: decoder.MoL, Dim: 2, Mixture: &mixture}, map[string]decoder.Tensor{
		"f": {Shape: []int{4, 2}, Data: []float32{1, 2, 3, 4, 5, 6, 7, 8}},
		"g": {Shape: []int{1, 2}, Data: []float32{1, -1}}, "l": {Shape: []int{2, 2}, Data: []float32{1, 2, 3, 4}},
	})
	require.NoError(t, err)
	checkGolden(t, "blob-v4.hex", d)
}

// checkGolden compares the blob of a decoder with a file of testdata, and reads it.
func checkGolden(t *testing.T, file string, d decoder.Decoder) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	blob := fromHex(t, string(text))
	assert.Equal(t, blob, decoder.Marshal(d))
	again, err := decoder.Unmarshal(blob)
	require.NoError(t, err)
	assert.Equal(t, d.Spec(), again.Spec())
	assert.Equal(t, d.Tensors(), again.Tensors())
}

// fromHex returns the bytes of annotated hex.
func fromHex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(regexp.MustCompile(`(?m)#.*$|\s`).ReplaceAllString(text, ""))
	require.NoError(t, err)
	return b
}

// resealed gives a changed blob the CRC that fits it.
func resealed(blob []byte) []byte {
	body := blob[:len(blob)-4]
	return binary.LittleEndian.AppendUint32(body[:len(body):len(body)], format.CRC(body))
}

func TestUnmarshalRefuses(t *testing.T) {
	d, err := decoder.NewDistMult([]float32{1, 2, 3})
	require.NoError(t, err)
	blob := decoder.Marshal(d)
	text := string(blob)
	reword := func(old, replacement string) []byte {
		require.Contains(t, text, old)
		return resealed([]byte(strings.Replace(text, old, replacement, 1)))
	}
	tests := []struct {
		name string
		blob []byte
		want string
	}{
		{"empty", nil, "corrupt data: decoder at offset 0: no decoder"},
		{"another file", []byte("PK\x03\x04............"), "no decoder"},
		{"checksum", append(append([]byte(nil), blob[:len(blob)-1]...), blob[len(blob)-1]+1), "checksum is"},
		{"bytes too many", resealed(append(append([]byte(nil), blob[:len(blob)-4]...), make([]byte, 9)...)), "5 bytes too many"},
		{"bytes missing", resealed(append(append([]byte(nil), blob[:len(blob)-8]...), 0, 0, 0, 0)), "more values than there are bytes"},
		{"faulty spec", reword(`"kind":"distmult"`, `"kind":"distmolt"`), `decoder spec: kind is "distmolt"`},
		{"spec that does not fit", reword(`"dim":3`, `"dim":4`), `relation "relation" has shape [3]; want [4]`},
		{"infinite value", reword("\x00\x00\x80\x3f", "\x00\x00\x80\x7f"), `relation "relation": value 0 is +Inf`},
		{"huge shape", reword("relation\x01\x03", "relation\x01\x7f"), "more values than there are bytes"},
	}
	for _, test := range tests {
		_, err := decoder.Unmarshal(test.blob)
		assert.ErrorIs(t, err, format.ErrCorrupt, test.name)
		assert.ErrorContains(t, err, test.want, test.name)
	}
	newer := append([]byte(nil), blob...)
	newer[4] = 5
	_, err = decoder.Unmarshal(resealed(newer))
	assert.ErrorIs(t, err, format.ErrVersion)
	assert.EqualError(t, err, "decoder has format version 5, this program reads up to version 4: use a newer program")
}

func TestUnmarshalFindsAnyDamage(t *testing.T) {
	d, err := decoder.NewDistMult([]float32{1, 2, 3})
	require.NoError(t, err)
	blob := decoder.Marshal(d)
	for i := range blob {
		_, err := decoder.Unmarshal(blob[:i])
		assert.Error(t, err, "cut at %d", i)
		changed := append([]byte(nil), blob...)
		changed[i] ^= 0x10
		_, err = decoder.Unmarshal(changed)
		assert.Error(t, err, "changed at %d", i)
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, test := range networks {
		_, d := buildNetwork(f, test.name)
		f.Add(decoder.Marshal(d))
	}
	d, err := decoder.NewDistMult([]float32{1, 2, 3})
	require.NoError(f, err)
	f.Add(decoder.Marshal(d))
	for _, name := range mixtures {
		f.Add(decoder.Marshal(openMixture(f, name)))
	}
	for _, dir := range relationDirs(f) {
		d, _ := openRelations(f, dir)
		f.Add(decoder.Marshal(d))
	}
	f.Fuzz(func(t *testing.T, blob []byte) {
		if len(blob) < 4 {
			return
		}
		d, err := decoder.Unmarshal(resealed(blob)) // a fuzzer cannot guess a checksum
		if err != nil {
			assert.NotContains(t, err.Error(), "\n")
			return
		}
		again, err := decoder.Unmarshal(decoder.Marshal(d))
		require.NoError(t, err)
		assert.Equal(t, d.Spec(), again.Spec())
		if names := d.Spec().Relations; len(names) > 0 {
			d, err = decoder.ForRelation(d, names[len(names)-1], len(blob)%2 == 0)
			require.NoError(t, err)
		}
		var s decoder.Scratch
		source := make([]float32, d.Dim())
		bound := d.Bind(nil, source)
		bound.Score(&s, make([]float32, 1), source)
		bound.Gradient(&s, make([]float32, d.Dim()), source, nil)
	})
}

// A count of tensors that are not there takes no memory for them.
func TestUnmarshalFalseCount(t *testing.T) {
	w := format.NewWriter(nil)
	w.Bytes([]byte("fdec"))
	w.Uint32(1)
	w.Blob([]byte(`{"kind":"dot","dim":1}`))
	w.Uvarint(1 << 20)
	w.Bytes(bytes.Repeat([]byte{0xff}, 2<<20))
	w.CRC(0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := decoder.Unmarshal(w.Data())
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, format.ErrCorrupt)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(len(w.Data())))
}
