package decoder_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
)

// mixtures are the folders of the mixtures among torchDirs.
var mixtures = []string{"mol", "mol-deep", "mol-slices"}

func openMixture(t testing.TB, name string) decoder.Decoder {
	return openTorch(t, filepath.Join("weights", "testdata", "decoders", name, "weights.safetensors"))
}

// picking returns a mixture of linear networks without cosines, of 3 x 2 components of 4 values,
// whose gate puts all weight on one logit.
func picking(t testing.TB, logit int) (decoder.Decoder, *builder) {
	b := newBuilder(9, decoder.MoL, 6)
	bias := decoder.Tensor{Shape: []int{6}, Data: make([]float32, 6)}
	bias.Data[logit] = 1e4
	b.tensors["pick"] = bias
	side := func(n int) decoder.SideSpec {
		return decoder.SideSpec{Components: n, Layers: []decoder.LayerSpec{{Weight: b.tensor(0, 1, 4*n, 6)}}}
	}
	half := 0.5
	candidate := side(2)
	candidate.Layers = append([]decoder.LayerSpec{
		{Weight: b.tensor(0, 1, 6, 6), Residual: decoder.ResidualInput, Activation: decoder.Identity},
		{Weight: b.tensor(0, 1, 6, 6), Residual: decoder.ResidualZ, Activation: decoder.Identity},
	}, candidate.Layers...)
	b.spec.Mixture = &decoder.MixtureSpec{
		Source: side(3), Candidate: candidate, Temperature: &half,
		Gate: decoder.GateSpec{Combine: decoder.CombineSum, Source: []decoder.LayerSpec{{Weight: b.tensor(0, .1, 6, 6), Bias: "pick"}}},
	}
	d, err := decoder.New(b.spec, b.tensors)
	require.NoError(t, err)
	return d, b
}

// Where the gate picks one logit of linear components, the score is the inner product with the
// query of that logit.
func TestLogitQueryIsTheLogit(t *testing.T) {
	for logit := range 6 {
		d, b := picking(t, logit)
		var s decoder.Scratch
		bound := d.Bind(nil, b.vector())
		mixture := bound.(decoder.Mixture)
		source, candidate := mixture.Components()
		require.Equal(t, []int{3, 2}, []int{source, candidate})
		query, gradient, row := make([]float32, 6), make([]float32, 6), b.vector()
		mixture.LogitQuery(&s, query, logit/2, logit%2)
		score := make([]float32, 1)
		bound.Score(&s, score, row)
		want := 0.0
		for k := range query {
			want += float64(query[k]) * float64(row[k])
		}
		requireLogit(t, want, score[0], "logit %d", logit)
		bound.Gradient(&s, gradient, row, nil)
		assert.Less(t, gradientError(widen(query), gradient), 1e-5, "logit %d", logit)
	}
}

func TestOnesIsMeanOfLogitQueries(t *testing.T) {
	for _, name := range mixtures {
		d := openMixture(t, name)
		bound := d.Bind(nil, readTorchCases(t, filepath.Join("weights", "testdata", "decoders", name))[0].Source)
		mixture := bound.(decoder.Mixture)
		var s decoder.Scratch
		mean, query := make([]float64, d.Dim()), make([]float32, d.Dim())
		source, candidate := mixture.Components()
		for l := range source * candidate {
			mixture.LogitQuery(&s, query, l/candidate, l%candidate)
			for k, q := range query {
				mean[k] += float64(q) / float64(source*candidate)
			}
		}
		ones := make([]float32, d.Dim())
		bound.Ones(ones)
		assert.Less(t, gradientError(mean, ones), 1e-5, name)
		assert.False(t, bound.Linear())
	}
}

// A gradient of many rows is the weighted sum of those of each, over tiles of rows.
func TestMixtureGradientOfBatch(t *testing.T) {
	for _, name := range mixtures {
		d, b := openMixture(t, name), newBuilder(4, decoder.MoL, 12)
		const n = 131
		rows, weights, bound := b.rows(n), make([]float32, n), d.Bind(nil, b.vector())
		var s decoder.Scratch
		want, one := make([]float64, 12), make([]float32, 12)
		for i := range weights {
			weights[i] = float32(b.rng.NormFloat64())
			bound.Gradient(&s, one, rows[i*12:(i+1)*12], nil)
			for k, g := range one {
				want[k] += float64(weights[i]) * float64(g)
			}
		}
		got := make([]float32, 12)
		bound.Gradient(&s, got, rows, weights)
		assert.Less(t, gradientError(want, got), 1e-4, name)

		separable := bound.(decoder.Separable)
		clear(want)
		for i := range weights {
			separable.GradientZ(&s, one, rows[i*12:(i+1)*12], nil)
			for k, g := range one {
				want[k] += float64(weights[i]) * float64(g)
			}
		}
		separable.GradientZ(&s, got, rows, weights)
		assert.Less(t, gradientError(want, got), 1e-4, name)
	}
}

// The gradient with respect to z is the weight of each logit's query: a mixture that picks one
// logit has a weight of 1 there, over the length of the candidate's component.
func TestMixtureGradientZ(t *testing.T) {
	for _, cosine := range []bool{false, true} {
		d, b := picking(t, 3)
		spec := d.Spec()
		mixture := *spec.Mixture
		mixture.Cosine, spec.Mixture = cosine, &mixture
		d, err := decoder.New(spec, d.Tensors())
		require.NoError(t, err)
		source, row := b.vector(), b.vector()
		bound := d.Bind(nil, source)
		var s decoder.Scratch
		score, query := make([]float32, 1), make([]float32, 6)
		z, back := make([]float32, 6), make([]float32, 6)
		bound.Score(&s, score, row)
		bound.(decoder.Mixture).LogitQuery(&s, query, 1, 1)
		bound.(decoder.Separable).GradientZ(&s, z, row, nil)
		bound.(decoder.Separable).FromZ(back, z)
		along := 0.0
		for k := range row {
			along += float64(back[k]) * float64(row[k])
			if k != 3 {
				assert.Zero(t, z[k])
			}
		}
		requireLogit(t, along, score[0], "cosine %v", cosine) // without biases the logit is linear but for the length
		for k := range query {
			assert.InDelta(t, z[3]*query[k], back[k], 1e-6)
		}
		bound.(decoder.Separable).FromZ(z, z)
		assert.Equal(t, back, z, "in place")
	}
}

// With more pairs of components than values of a row, z is the row.
func TestMixtureOfManyPairs(t *testing.T) {
	b := newBuilder(8, decoder.MoL, 4)
	b.spec.Mixture = &decoder.MixtureSpec{
		Source: decoder.SideSpec{Components: 4}, Candidate: decoder.SideSpec{Components: 4},
		Gate: decoder.GateSpec{Combine: decoder.CombineSum, Logits: []decoder.LayerSpec{{Weight: b.tensor(0, 1, 16, 16)}}},
	}
	d, err := decoder.New(b.spec, b.tensors)
	require.NoError(t, err)
	bound, row := d.Bind(nil, b.vector()), b.vector()
	var s decoder.Scratch
	gradient, z := make([]float32, 4), make([]float32, 4)
	bound.Gradient(&s, gradient, row, nil)
	bound.(decoder.Separable).GradientZ(&s, z, row, nil)
	bound.(decoder.Separable).FromZ(z, z)
	assert.Equal(t, gradient, z)
}

// A component of a length below eps is divided by eps: its gradient is finite, at zero too.
func TestMixtureShortComponents(t *testing.T) {
	d, b := openMixture(t, "mol-slices"), newBuilder(5, decoder.MoL, 12)
	spec := d.Spec()
	mixture := *spec.Mixture
	mixture.Cosine, spec.Mixture = true, &mixture
	d, err := decoder.New(spec, d.Tensors())
	require.NoError(t, err)
	bound := d.Bind(nil, b.vector())
	var s decoder.Scratch
	score, gradient := make([]float32, 1), make([]float32, 12)
	for _, size := range []float32{0, 1e-30, 1e-9, 4.5e-7} { // of length 9e-7 the last
		row := slices.Repeat([]float32{size}, 12)
		bound.Score(&s, score, row)
		bound.Gradient(&s, gradient, row, nil)
		for _, x := range append(gradient, score...) {
			assert.False(t, math.IsNaN(float64(x)) || math.IsInf(float64(x), 0), "rows of %v: %v", size, x)
		}
		// Below eps the logits are linear in the row, without a constant: at a row so short that
		// the weights of the gate are those of zero, the gradient gives the score.
		if along := float64(size) * sum(gradient); size < 1e-8 {
			assert.InDelta(t, along, score[0], 1e-4*math.Abs(along))
		}
		up, down := make([]float32, 1), make([]float32, 1)
		bound.Score(&s, up, slices.Repeat([]float32{1.05 * size}, 12))
		bound.Score(&s, down, slices.Repeat([]float32{.95 * size}, 12))
		slope := float64(up[0]-down[0]) / .1
		assert.InDelta(t, slope, float64(size)*sum(gradient), 1e-2*math.Abs(slope))
	}
}

func sum(v []float32) (total float64) {
	for _, x := range v {
		total += float64(x)
	}
	return total
}

// Scoring again does not allocate, nor does binding again.
func TestMixtureDoesNotAllocate(t *testing.T) {
	for _, name := range mixtures {
		d, b := openMixture(t, name), newBuilder(6, decoder.MoL, 12)
		source, rows, scores, gradient := b.vector(), b.rows(70), make([]float32, 70), make([]float32, 12)
		var s decoder.Scratch
		bound := d.Bind(nil, source)
		ask := func() {
			bound = d.Bind(bound, source)
			bound.Score(&s, scores, rows)
			bound.Gradient(&s, gradient, rows, nil)
			bound.Ones(gradient)
		}
		ask()
		ask()
		assert.Zero(t, testing.AllocsPerRun(10, ask), name)
	}
}

// What an earlier source left behind does not show.
func TestMixtureBindReusesMemory(t *testing.T) {
	for _, name := range mixtures {
		d, b := openMixture(t, name), newBuilder(7, decoder.MoL, 12)
		first, second, row := b.vector(), b.vector(), b.vector()
		var s decoder.Scratch
		again, fresh := make([]float32, 1), make([]float32, 1)
		d.Bind(d.Bind(nil, first), second).Score(&s, again, row)
		d.Bind(nil, second).Score(&s, fresh, row)
		assert.Equal(t, fresh, again, name)
	}
}

func TestMixtureString(t *testing.T) {
	assert.Equal(t, "mol 12, 4 x 2 components of 5", fmt.Sprint(openMixture(t, "mol")))
	assert.Equal(t, "mol 12, 3 x 3 components of 4", fmt.Sprint(openMixture(t, "mol-slices")))
}

func TestMixtureSpecRefuses(t *testing.T) {
	spec := func(mixture string) string { return `{"kind": "mol", "dim": 12, "mixture": ` + mixture + `}` }
	const gate = `"gate": {"combine": "sum", "logits": [{"weight": "w"}]}`
	sides := func(source, candidate string) string {
		return `{"source": {"components": ` + source + `}, "candidate": {"components": ` + candidate + `}, `
	}
	for _, test := range []struct{ name, spec, want string }{
		{"no mixture", `{"kind": "mol", "dim": 12}`, "mixture is missing"},
		{"mixture of another kind", `{"kind": "dot", "dim": 12, "mixture": {}}`, "mixture is out of place: it belongs to kind mol"},
		{"layers of its own", `{"kind": "mol", "dim": 12, "layers": [{"weight": "w"}]}`, "kind mol has no layers"},
		{"components", spec(sides("0", "65") + gate + `}`), "mixture.source.components is 0; want 1 to 64; (2) mixture.candidate.components is 65"},
		{"slices", spec(sides("3", "5") + gate + `}`), "mixture.candidate.components is 5: without layers they are slices of the row, whose 12 values"},
		{"temperature", spec(sides("3", "3") + `"temperature": 0, ` + gate + `}`), "mixture.temperature is 0; want a positive number"},
		{"eps", spec(sides("3", "3") + `"cosine": true, "eps": -1, ` + gate + `}`), "mixture.eps is -1; want a positive number"},
		{"eps without cosine", spec(sides("3", "3") + `"eps": 1e-6, ` + gate + `}`), "with cosine only"},
		{"no combine", spec(sides("3", "3") + `"gate": {"logits": [{"weight": "w"}]}}`), "mixture.gate.combine is missing"},
		{"combine", spec(sides("3", "3") + `"gate": {"combine": "max", "logits": [{"weight": "w"}]}}`), `mixture.gate.combine is "max"; want one of glu_silu, sum`},
		{"glu", spec(sides("3", "3") + `"gate": {"combine": "glu_silu", "source": [{"weight": "w"}]}}`), "multiplies the parts of source and candidate; give both"},
		{"no gate", spec(sides("3", "3") + `"gate": {"combine": "sum"}}`), "mixture.gate has no part"},
		{"layer", spec(sides("3", "3") + `"gate": {"combine": "sum", "logits": [{"weight": "w"}, {"weight": "v"}]}}`), "mixture.gate.logits[0].activation is missing"},
		{"unit of a candidate", spec(sides("3", `3, "layers": [{"weight": "w", "activation": "silu", "glu": true}]`) + gate + `}`), "mixture.candidate.layers[0].glu is out of place: only layers of mixture.source and mixture.gate.source"},
		{"unit of the logits", spec(sides("3", "3") + `"gate": {"combine": "sum", "logits": [{"weight": "w", "activation": "silu", "glu": true}]}}`), "mixture.gate.logits[0].glu is out of place"},
		{"unit without activation", spec(sides(`3, "layers": [{"weight": "w", "glu": true}]`, "3") + gate + `}`), "activation is missing; want that of the first half"},
		{"unit with a residual", spec(sides(`3, "layers": [{"weight": "w", "activation": "silu", "glu": true, "residual": "input"}]`, "3") + gate + `}`), "has neither norm nor residual here"},
		{"unit and z", spec(sides(`3, "layers": [{"weight": "w", "activation": "silu", "glu": true}, {"weight": "w", "residual": "z"}]`, "3") + gate + `}`), "residual z has no place in a network with a gated linear unit"},
		{"unit of a network", `{"kind": "hadamard_mlp", "dim": 4, "layers": [{"weight": "w", "activation": "silu", "glu": true}]}`, "layers[0].glu is out of place"},
		{"field", spec(sides("3", "3") + `"tau": 1, ` + gate + `}`), `unknown field "mixture.tau"; want one of source, candidate, cosine`},
		{"field of a side", spec(`{"source": {"components": 3, "p": 1}, "candidate": {"components": 3}, ` + gate + `}`), `unknown field "mixture.source.p"`},
		{"field of a layer", spec(sides("3", "3") + `"gate": {"combine": "sum", "logits": [{"weight": "w", "norn": {}}]}}`), `unknown field "mixture.gate.logits[0].norn"`},
	} {
		_, err := decoder.ParseSpec([]byte(test.spec))
		assert.ErrorContains(t, err, test.want, test.name)
	}
}

func TestMixtureWeightsRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(spec *decoder.Spec, tensors map[string]decoder.Tensor)
		want   string
	}{
		{"components", func(s *decoder.Spec, _ map[string]decoder.Tensor) { s.Mixture.Source.Components = 5 }, "mixture.source.layers: 12 outputs are not 5 components of one width"},
		{"widths", func(s *decoder.Spec, _ map[string]decoder.Tensor) { s.Mixture.Source.Components = 2 }, "components of the source have 6 values, those of the candidate 4"},
		{"gate", func(s *decoder.Spec, _ map[string]decoder.Tensor) {
			s.Mixture.Gate.Source[0] = decoder.LayerSpec{Weight: s.Mixture.Source.Layers[0].Weight}
		}, "mixture.gate.source has 12 outputs; want 6, one for each pair of components"},
		{"input", func(s *decoder.Spec, tensors map[string]decoder.Tensor) {
			tensors["wide"] = decoder.Tensor{Shape: []int{8, 7}, Data: make([]float32, 56)}
			s.Mixture.Candidate.Layers[0].Weight = "wide"
		}, `mixture.candidate.layers[0].weight "wide" has shape [8 7]; want [any 6] (the row)`},
		{"odd unit", func(s *decoder.Spec, tensors map[string]decoder.Tensor) {
			tensors["odd"] = decoder.Tensor{Shape: []int{7, 6}, Data: make([]float32, 42)}
			s.Mixture.Gate.Source = []decoder.LayerSpec{{Weight: "odd", Activation: decoder.SiLU, GLU: true}}
		}, `mixture.gate.source[0].weight "odd" has 7 outputs; a gated linear unit needs an even number`},
		{"missing", func(s *decoder.Spec, _ map[string]decoder.Tensor) { s.Mixture.Candidate.Layers[0].Weight = "none" }, `mixture.candidate.layers[0].weight: no tensor "none"`},
	} {
		_, b := picking(t, 0)
		test.change(&b.spec, b.tensors)
		_, err := decoder.New(b.spec, b.tensors)
		assert.ErrorContains(t, err, test.want, test.name)
	}
}
