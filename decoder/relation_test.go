package decoder_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
)

// relationDirs are the folders of the decoders with relations whose logits PyTorch computed.
func relationDirs(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("weights", "testdata", "relations", "*", "spec.json"))
	require.NoError(t, err)
	require.Len(t, files, 5)
	for i := range files {
		files[i] = filepath.Dir(files[i])
	}
	return files
}

func openRelations(t testing.TB, dir string) (decoder.Decoder, []weights.Case) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "weights.*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	d, err := weights.Read(files[0], &weights.Options{Spec: readSpec(t, dir)})
	require.NoError(t, err)
	cases, err := weights.ReadCases(filepath.Join(dir, "cases.jsonl"))
	require.NoError(t, err)
	require.Len(t, cases, 12)
	return d, cases
}

func TestRelationsMatchPyTorch(t *testing.T) {
	for _, dir := range relationDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			d, cases := openRelations(t, dir)
			assert.NoError(t, weights.SelfCheck(d, cases, 1e-5))
			again, err := decoder.Unmarshal(decoder.Marshal(d))
			require.NoError(t, err)
			assert.NoError(t, weights.SelfCheck(again, cases, 1e-5), "through a blob")
			assert.Equal(t, d.Spec(), again.Spec())
			for _, c := range cases {
				one, err := decoder.ForRelation(d, c.Relation, c.Reverse)
				require.NoError(t, err)
				alone, err := decoder.Unmarshal(decoder.Marshal(one))
				require.NoError(t, err)
				assert.Empty(t, alone.Spec().Relations)
				of := c
				of.Relation, of.Reverse = "", false
				assert.NoError(t, weights.SelfCheck(alone, []weights.Case{of}, 1e-5), "one relation alone")

				// The gradient of a linear decoder is its query.
				gradient, score := make([]float32, d.Dim()), make([]float32, 1)
				bound := one.Bind(nil, c.Source)
				bound.Gradient(nil, gradient, c.Candidate, nil)
				bound.Score(nil, score, c.Candidate)
				var product float64
				for k, q := range gradient {
					product += float64(q) * float64(c.Candidate[k])
				}
				assert.InDelta(t, product, score[0], 1e-5)
				assert.True(t, bound.Linear())
			}
		})
	}
}

// A wrong reading of the weights is found by the cases.
func TestRelationsCasesTell(t *testing.T) {
	for name, wrong := range map[string]func(*decoder.Spec){
		"dglke-complex":  func(s *decoder.Spec) { s.Complex = decoder.ComplexPairs },
		"pykeen-complex": func(s *decoder.Spec) { s.Complex = decoder.ComplexHalves },
		"pbg-complex":    func(s *decoder.Spec) { s.Conjugate = false },
	} {
		dir := filepath.Join("weights", "testdata", "relations", name)
		d, cases := openRelations(t, dir)
		spec := d.Spec()
		wrong(&spec)
		other, err := decoder.New(spec, d.Tensors())
		require.NoError(t, err)
		assert.Error(t, weights.SelfCheck(other, cases, 0), name)
	}
}

// Score(y, x) in reverse is Score(x, y).
func TestReverse(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	random := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	for _, kind := range []decoder.Kind{decoder.DistMult, decoder.ComplEx} {
		d, err := decoder.NewRelations(kind, 8, []string{"a", "b"}, random(16))
		require.NoError(t, err)
		forward, err := decoder.ForRelation(d, "b", false)
		require.NoError(t, err)
		backward, err := decoder.ForRelation(d, "b", true)
		require.NoError(t, err)
		again, err := decoder.ForRelation(d, "b", true)
		require.NoError(t, err)
		assert.Same(t, backward, again, "a query reuses what it bound")
		differ := false
		for range 20 {
			x, y := random(8), random(8)
			var there, back, same [1]float32
			bound := forward.Bind(nil, x)
			bound.Score(nil, there[:], y)
			backward.Bind(bound, y).Score(nil, back[:], x)
			assert.InDelta(t, there[0], back[0], 1e-5)
			forward.Bind(nil, y).Score(nil, same[:], x)
			differ = differ || math.Abs(float64(same[0]-there[0])) > 1e-3
		}
		assert.Equal(t, kind == decoder.ComplEx, differ, "%s: only a symmetric score is the same both ways", kind)
	}
}

func TestForRelation(t *testing.T) {
	few, err := decoder.NewRelations(decoder.DistMult, 2, []string{"treats", "causes"}, make([]float32, 4))
	require.NoError(t, err)
	assert.Equal(t, "distmult 2, 2 relations", few.String())
	names := make([]string, 300)
	for i := range names {
		names[i] = "relation number " + strconv.Itoa(i)
	}
	names[17] = "treats"
	many, err := decoder.NewRelations(decoder.ComplEx, 2, names, make([]float32, 600))
	require.NoError(t, err)
	plain, err := decoder.NewDistMult([]float32{1, 2})
	require.NoError(t, err)

	for _, c := range []struct {
		d    decoder.Decoder
		name string
		want string
	}{
		{few, "", `it has 2 relations and none was named: name one, such as "treats", "causes"`},
		{few, "treat", `relation "treat" is not known: the decoder has 2, such as "treats", "causes"`},
		{many, "treets", `relation "treets" is not known: did you mean "treats"?`},
		{many, "xyz", `relation "xyz" is not known: the decoder has 300, such as "relation number 0", "relation number 1", ` +
			`"relation number 2", "relation number 3", "relation number 4"`},
		{plain, "treats", `relation "treats": this distmult decoder has no relations: leave the relation out`},
	} {
		_, err := decoder.ForRelation(c.d, c.name, false)
		assert.EqualError(t, err, c.want)
	}
	same, err := decoder.ForRelation(plain, "", false)
	require.NoError(t, err)
	assert.Same(t, plain, same)
	_, err = decoder.ForRelation(plain, "", true)
	assert.Error(t, err, "there is no other direction without a relation")
	one, err := decoder.ForRelation(many, "treats", false)
	require.NoError(t, err)
	assert.Equal(t, "complex 2", one.String())
	assert.PanicsWithValue(t, "decoder: a decoder of several relations cannot be bound: take one by ForRelation", func() {
		few.Bind(nil, []float32{1, 2})
	})
	assert.Panics(t, func() { one.Bind(nil, []float32{1}) }, "of another width")
}

func TestRelationSpecRefuses(t *testing.T) {
	long, err := json.Marshal(strings.Repeat("x", 1025))
	require.NoError(t, err)
	for spec, want := range map[string]string{
		`{"kind": "distmult", "dim": 4, "relation": "r", "relations": ["a", "b", "a"]}`:          `relations[2] is "a", as relations[0] is`,
		`{"kind": "distmult", "dim": 4, "relation": "r", "relations": ["a", ""]}`:                "relations[1] has 0 bytes",
		`{"kind": "distmult", "dim": 4, "relation": "r", "relations": [` + string(long) + `]}`:   "relations[0] has 1025 bytes; want a name of 1 to 1024 bytes",
		`{"kind": "distmult", "dim": 4, "relations": ["a"]}`:                                     "relation is missing",
		`{"kind": "dot", "dim": 4, "relations": ["a"]}`:                                          "relations are out of place: they belong to kinds distmult and complex",
		`{"kind": "dot", "dim": 4, "relation": "r"}`:                                             `relation "r" is out of place: it belongs to kinds distmult and complex`,
		`{"kind": "complex", "dim": 5, "relation": "r"}`:                                         "dim is 5; want an even number",
		`{"kind": "complex", "dim": 4, "relation": "r", "complex": "polar"}`:                     `complex is "polar"; want one of halves, pairs`,
		`{"kind": "distmult", "dim": 4, "relation": "r", "conjugate": true}`:                     "imaginary, complex and conjugate are out of place: they belong to kind complex",
		`{"kind": "distmult", "dim": 4, "relation": "r", "relations": ["` + "a\xff" + `", "b"]}`: "",
	} {
		_, err := decoder.ParseSpec([]byte(spec))
		if want == "" {
			assert.NoError(t, err, "JSON makes valid UTF-8 of it")
			continue
		}
		assert.ErrorContains(t, err, want)
	}
	_, err = decoder.NewRelations(decoder.DistMult, 2, []string{"a\xff"}, make([]float32, 2))
	assert.ErrorContains(t, err, "want a name of 1 to 1024 bytes of UTF-8")
	_, err = decoder.NewRelations(decoder.DistMult, 2, []string{"a", "b"}, make([]float32, 2))
	assert.ErrorContains(t, err, `relation "relations" has shape [2 2] and 2 values`)
	_, err = decoder.New(decoder.Spec{Kind: decoder.DistMult, Dim: 2, Relation: "r", Relations: []string{"a", "b"}},
		map[string]decoder.Tensor{"r": {Shape: []int{3, 2}, Data: make([]float32, 6)}})
	assert.ErrorContains(t, err, `relation "r" has shape [3 2]; want [2 2] (2 relations, dim is 2)`)
	_, err = decoder.New(decoder.Spec{Kind: decoder.ComplEx, Dim: 4, Relation: "r", Imaginary: "i", Relations: []string{"a", "b"}},
		map[string]decoder.Tensor{"r": {Shape: []int{2, 2}, Data: make([]float32, 4)}, "i": {Shape: []int{2, 3}, Data: make([]float32, 6)}})
	assert.ErrorContains(t, err, `imaginary "i" has shape [2 3]; want [2 2]`)
	_, err = decoder.New(decoder.Spec{Kind: decoder.DistMult, Dim: 1, Relation: "r", Relations: make([]string, decoder.MaxRelations+1)}, nil)
	assert.ErrorContains(t, err, "65537 relations; want at most 65536")
}

// The blob of a decoder with relations states version 3; older programs refuse it by that.
func TestRelationBlobGolden(t *testing.T) {
	d, err := decoder.NewRelations(decoder.ComplEx, 2, []string{"treats", "é"}, []float32{1, 2, 3, -4})
	require.NoError(t, err)
	checkGolden(t, "blob-v3.hex", d)
}
