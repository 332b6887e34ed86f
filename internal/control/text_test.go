package control

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// everything has a field of each kind that requests and results have.
type everything struct {
	Text    string
	Named   kind
	Texts   []string
	Table   map[string]string
	Nodes   []Node
	Pointer *string
	Score   float32
	Ratio   float64
	Count   uint32
	Bytes   []byte
	IDs     []uint32
	In
	Hook func() `json:"-"`
}

type kind string

func drawEverything(t *rapid.T) everything {
	text := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "base64:", "base64:AA=="}).Draw(t, "prefix") + string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
	})
	finite := rapid.Float32Range(-math.MaxFloat32, math.MaxFloat32)
	e := everything{
		Text:  text.Draw(t, "text"),
		Named: kind(text.Draw(t, "named")),
		Texts: rapid.SliceOf(text).Draw(t, "texts"),
		Table: rapid.MapOf(text, text).Draw(t, "table"),
		Score: finite.Draw(t, "score"),
		Ratio: float64(finite.Draw(t, "ratio")),
		Count: rapid.Uint32().Draw(t, "count"),
		Bytes: rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"),
		IDs:   rapid.SliceOf(rapid.Uint32()).Draw(t, "ids"),
		In:    In{Collection: text.Draw(t, "collection")},
	}
	if s := text.Draw(t, "pointed"); s != "" {
		e.Pointer = &s
	}
	e.Nodes = []Node{{Key: text.Draw(t, "key"), Embedding: rapid.SliceOf(finite).Draw(t, "embedding")}}
	return e
}

func TestEveryByteSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawEverything(t)
		b, err := encode(want)
		require.NoError(t, err)
		var got everything
		require.NoError(t, decode(b, &got, true))
		require.Equal(t, want, got)
	})
}

func TestEncodeLeavesItsArgumentAlone(t *testing.T) {
	key := "\xff"
	v := everything{Texts: []string{key}, Table: map[string]string{key: key}, Pointer: &key, Hook: func() {}}
	_, err := encode(&v)
	require.NoError(t, err)
	assert.Equal(t, []string{"\xff"}, v.Texts)
	assert.Equal(t, map[string]string{"\xff": "\xff"}, v.Table)
	assert.Equal(t, "\xff", key)
}

func TestInfinitiesAreBounded(t *testing.T) {
	b, err := encode(everything{Score: float32(math.Inf(1)), Ratio: math.Inf(-1)})
	require.NoError(t, err)
	var got everything
	require.NoError(t, decode(b, &got, true))
	assert.Equal(t, float32(math.MaxFloat32), got.Score)
	assert.Equal(t, -math.MaxFloat64, got.Ratio)
}

func TestVector(t *testing.T) {
	for _, c := range []struct {
		name, json string
		want       Vector
		err        string
	}{
		{"numbers", `[1, -0.5]`, Vector{1, -.5}, ""},
		{"base64", `"AACAPwAAAL8="`, Vector{1, -.5}, ""},
		{"null", `null`, nil, ""},
		{"empty", `""`, Vector{}, ""},
		{"not base64", `"?"`, nil, "illegal base64"},
		{"part of a value", `"AAA="`, nil, "a vector of 2 bytes"},
		{"no vector", `{}`, nil, "cannot unmarshal object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got Vector
			err := json.Unmarshal([]byte(c.json), &got)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct{ name, json, err string }{
		{"an unknown field", `{"keyz": 1}`, `unknown field "keyz"`},
		{"more than one object", `{} {}`, "more after the JSON object"},
		{"bad base64 text", `{"keys": ["base64:?"]}`, "illegal base64"},
		{"no JSON", `keys`, "invalid character"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var n Nodes
			require.ErrorContains(t, decode([]byte(c.json), &n, true), c.err)
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"collection": "c", "keys": ["a", "base64:/w=="], "k": 5}`,
		`{"collection": "c", "vector": "AACAPw==", "k": 1, "options": {"Texts": null}}`,
		`{"collection": "c", "vector": [1, 2e39], "k": 1}`,
		`[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Predict[everything]
		if decode(b, &r, true) != nil {
			return
		}
		again, err := encode(r)
		require.NoError(t, err)
		var back Predict[everything]
		require.NoError(t, decode(again, &back, true))
		require.Equal(t, r, back)
	})
}
