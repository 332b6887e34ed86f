package wire

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
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
	Nodes   []node
	Numbers map[uint32]string
	Pointer *string
	Score   float32
	Ratio   float64
	Count   uint32
	Bytes   []byte
	IDs     []uint32
	in
	Hook func()
}

type kind string

type node struct {
	Key       string
	Embedding Vector
}

// in is embedded.
type in struct {
	Collection string `json:"collection,omitempty"`
}

// keys and question are requests.
type keys struct {
	in
	Keys []string `json:"keys"`
}

type question struct {
	keys
	Vector  Vector      `json:"vector,omitempty"`
	K       int         `json:"k"`
	Options *everything `json:"options,omitempty"`
}

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

		Numbers: rapid.MapOf(rapid.Uint32(), text).Draw(t, "numbers"),
		in:      in{Collection: text.Draw(t, "collection")},
	}
	if s := text.Draw(t, "pointed"); s != "" {
		e.Pointer = &s
	}
	e.Nodes = []node{{Key: text.Draw(t, "key"), Embedding: rapid.SliceOf(finite).Draw(t, "embedding")}}
	return e
}

func TestEveryByteSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawEverything(t)
		b, err := Encode(want)
		require.NoError(t, err)
		var got everything
		require.NoError(t, Decode(b, &got, true))
		require.Equal(t, want, got)
	})
}

func TestEncodeLeavesItsArgumentAlone(t *testing.T) {
	key := "\xff"
	v := everything{Texts: []string{key}, Table: map[string]string{key: key}, Pointer: &key, Hook: func() {}}
	_, err := Encode(&v)
	require.NoError(t, err)
	require.Error(t, Decode([]byte(`{"Hook": 1}`), &v, true), "functions do not travel")
	assert.Equal(t, []string{"\xff"}, v.Texts)
	assert.Equal(t, map[string]string{"\xff": "\xff"}, v.Table)
	assert.Equal(t, "\xff", key)
}

// Floats that JSON has no number for travel as words, wherever they are; the same words elsewhere
// stay text.
func TestEveryFloatSurvives(t *testing.T) {
	type Embedded everything
	type scored struct {
		Embedded
		Inner   *everything `json:"inner"`
		List    []everything
		ByName  map[string]float64
		Any     any
		Pointed *float32
		Omitted *float32 `json:",omitempty"`
	}
	for word, f := range map[string]float64{
		"Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "NaN": math.NaN(), "0.5": .5, "3.4028235e+38": math.MaxFloat32,
	} {
		narrow := float32(f)
		want := scored{
			Embedded: Embedded{Text: word, Score: narrow, Ratio: f},
			Inner:    &everything{Text: "NaN", Score: narrow},
			List:     []everything{{Score: 1}, {Ratio: f}},
			ByName:   map[string]float64{"\xff": f, "a": 2},
			Any:      []float32{narrow},
			Pointed:  &narrow,
		}
		b, err := Encode(want)
		require.NoError(t, err)
		if f != .5 && word[0] != '3' {
			assert.Contains(t, string(b), `"Score":"`+word+`"`)
			assert.Contains(t, string(b), `"Any":["`+word+`"]`)
		}
		var got scored
		require.NoError(t, Decode(b, &got, true))
		got.Any = want.Any // it is decoded to whatever JSON has
		assert.Equal(t, fmt.Sprintf("%+v", []any{want.Embedded, *want.Inner, want.List, want.ByName, *want.Pointed}),
			fmt.Sprintf("%+v", []any{got.Embedded, *got.Inner, got.List, got.ByName, *got.Pointed}))
		assert.Nil(t, got.Omitted)
	}
	var n keys
	require.ErrorContains(t, Decode([]byte(`{"keyz": "NaN"}`), &n, true), `unknown field "keyz"`)
	require.ErrorContains(t, Decode([]byte(`{} "NaN"`), &n, true), "more after the JSON object")
	require.ErrorContains(t, Decode([]byte(`{"keys": ["NaN"`), &n, true), "unexpected EOF")
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
			var n keys
			require.ErrorContains(t, Decode([]byte(c.json), &n, true), c.err)
		})
	}
}

// same compares values, where a NaN is the same as another, and none the same as an empty list or
// table.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Float32, reflect.Float64:
		return a.Float() == b.Float() || math.IsNaN(a.Float()) && math.IsNaN(b.Float())
	case reflect.Pointer:
		return a.IsNil() == b.IsNil() && (a.IsNil() || same(a.Elem(), b.Elem()))
	case reflect.Struct:
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() {
			return false
		}
		for _, key := range a.MapKeys() {
			if in := b.MapIndex(key); !in.IsValid() || !same(a.MapIndex(key), in) {
				return false
			}
		}
		return true
	case reflect.Func: // does not travel
		return true
	}
	return a.Interface() == b.Interface()
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"collection": "c", "keys": ["a", "base64:/w=="], "k": 5}`,
		`{"collection": "c", "vector": "AACAPw==", "k": 1, "options": {"Texts": null}}`,
		`{"collection": "c", "vector": [1, 2e39], "k": 1}`,
		`{"collection": "NaN", "k": 1, "options": {"Score": "-Infinity", "Ratio": "NaN", "Table": {"NaN": "Infinity"}}}`,
		`{"collection": "c", "vector": "AADAfw==", "k": 1, "options": {"Score": 1.5, "Ratio": -0.25, "Pointer": "base64:/w=="}}`,
		`[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r question
		if Decode(b, &r, true) != nil {
			return
		}
		again, err := Encode(r)
		require.NoError(t, err)
		var back question
		require.NoError(t, Decode(again, &back, true))
		require.True(t, same(reflect.ValueOf(r), reflect.ValueOf(back)), "%+v comes back as %+v", r, back)
		twice, err := Encode(back)
		require.NoError(t, err)
		require.Equal(t, string(again), string(twice))
	})
}
