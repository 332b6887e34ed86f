package weights_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
)

// TestPyKEEN: the layout is told by its keys, the kind and the names of the relations are given.
func TestPyKEEN(t *testing.T) {
	names := []string{"treats", "causes", "is part of"}
	for name, o := range map[string]weights.Options{
		"pykeen-complex":  {Kind: decoder.ComplEx, Relations: names},
		"pykeen-inverses": {Kind: decoder.DistMult, Relations: names, Layout: "pykeen"},
	} {
		dir := filepath.Join("testdata", "relations", name)
		d, err := weights.Read(filepath.Join(dir, "weights.pt"), &o)
		require.NoError(t, err)
		cases, err := weights.ReadCases(filepath.Join(dir, "cases.jsonl"))
		require.NoError(t, err)
		assert.NoError(t, weights.SelfCheck(d, cases, 1e-5), name)
	}
}

func TestPyKEENRefuses(t *testing.T) {
	file := filepath.Join("testdata", "relations", "pykeen-complex", "weights.pt")
	for _, c := range []struct {
		o    weights.Options
		want string
	}{
		{weights.Options{}, "is of a PyKEEN model, of which no key says the kind: name it, distmult or complex"},
		{weights.Options{Kind: decoder.ComplEx}, "the names of the 3 relations are missing"},
		{weights.Options{Kind: decoder.ComplEx, Relations: []string{"a", "b"}}, "has shape [3 6]; want [2 6] (2 relations, dim is 6)"},
		{weights.Options{Spec: &decoder.Spec{Kind: decoder.Dot, Dim: 6}, Relations: []string{"a"}}, "relations are out of place"},
	} {
		_, err := weights.Read(file, &c.o)
		assert.ErrorContains(t, err, c.want)
	}
	ogb := filepath.Join("testdata", "decoders", "hadamard-relu", "weights.safetensors")
	_, err := weights.Read(ogb, &weights.Options{Relations: []string{"a"}})
	assert.ErrorContains(t, err, "names of 1 relations for a decoder of kind hadamard_mlp, which has none")
	_, err = weights.Read(filepath.Join("testdata", "relations", "distmult", "weights.npz"), nil)
	assert.ErrorContains(t, err, "relation")
}

// A case of a decoder with relations names one that there is.
func TestSelfCheckRelation(t *testing.T) {
	d, err := decoder.NewRelations(decoder.DistMult, 1, []string{"a"}, []float32{2})
	require.NoError(t, err)
	c := weights.Case{Source: []float32{1}, Candidate: []float32{3}, Relation: "a", Logit: 6}
	assert.NoError(t, weights.SelfCheck(d, []weights.Case{c}, 0))
	c.Relation = "b"
	assert.EqualError(t, weights.SelfCheck(d, []weights.Case{c}, 0), `self-check: case 1 of 1: relation "b" is not known: the decoder has 1, such as "a"`)
}
