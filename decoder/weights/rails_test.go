package weights_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
)

// A railsModel is a state dict with the names and shapes of RAILS, and what its modules compute.
type railsModel struct {
	dim, width, sources, items, hidden int
	unit                               bool // a gated linear unit of the sources
	item                               string
	at                                 tensors
}

const railsPrefix = "model_state_dict.module._ndp_module."

func newRails(unit bool, item string) *railsModel {
	m := &railsModel{dim: 6, width: 3, sources: 4, items: 2, hidden: 5, unit: unit, item: item, at: tensors{}}
	rng := rand.New(rand.NewPCG(1, 2))
	add := func(key string, shape ...int) {
		t := zeros(shape...)
		for i := range t.Data {
			t.Data[i] = float32(rng.NormFloat64()) / 2
		}
		m.at[key] = t
	}
	const query = "_query_embeddings_fn._query_emb_proj_module."
	if unit {
		add(query+"1._w", m.dim, 2*m.hidden)
		add(query+"1._b", 1, 2*m.hidden)
		add(query+"2.weight", m.sources*m.width, m.hidden)
		add(query+"2.bias", m.sources*m.width)
	} else {
		add(query+"1.weight", m.sources*m.width, m.dim)
		add(query+"1.bias", m.sources*m.width)
	}
	add(item+"1.weight", m.items*m.width, m.dim)
	add(item+"1.bias", m.items*m.width)
	logits := m.sources * m.items
	add("_gating_fn._query_only_partial_module.0.weight", 7, m.dim)
	add("_gating_fn._query_only_partial_module.0.bias", 7)
	add("_gating_fn._query_only_partial_module.2.weight", logits, 7)
	add("_gating_fn._item_only_partial_module.1.weight", 7, m.dim)
	add("_gating_fn._item_only_partial_module.1.bias", 7)
	add("_gating_fn._item_only_partial_module.3.weight", logits, 7)
	add("_gating_fn._qi_partial_module.1.weight", 9, logits)
	add("_gating_fn._qi_partial_module.1.bias", 9)
	add("_gating_fn._qi_partial_module.3.weight", logits, 9)
	add("_gating_fn._qi_partial_module.3.bias", logits)
	return m
}

// file writes the state dict as a part of a checkpoint.
func (m *railsModel) file(t *testing.T) string {
	all := tensors{"model_state_dict.module._embedding_module._item_emb.weight": zeros(3, m.dim)}
	for key, tensor := range m.at {
		all[railsPrefix+key] = tensor
	}
	return writeSafetensors(t, all)
}

// linear is a Linear of PyTorch: its weight is outputs x inputs.
func (m *railsModel) linear(key string, x []float64) []float64 {
	w, b := m.at[key+".weight"], m.at[key+".bias"]
	out := make([]float64, w.Shape[0])
	for o := range out {
		if b.Data != nil {
			out[o] = float64(b.Data[o])
		}
		for k, v := range x {
			out[o] += float64(w.Data[o*len(x)+k]) * v
		}
	}
	return out
}

func silu(x float64) float64 { return x / (1 + math.Exp(-x)) }
func gelu(x float64) float64 { return x * (1 + math.Erf(x/math.Sqrt2)) / 2 }

// mlp is two Linears with SiLU between them.
func (m *railsModel) mlp(first, second string, x []float64) []float64 {
	h := m.linear(first, x)
	for i := range h {
		h[i] = silu(h[i])
	}
	return m.linear(second, h)
}

// score is the similarity of two rows, in float64.
func (m *railsModel) score(x, y []float64, unit func(float64) float64, temperature float64) float64 {
	const query = "_query_embeddings_fn._query_emb_proj_module."
	var from []float64
	if m.unit {
		w, b := m.at[query+"1._w"].Data, m.at[query+"1._b"].Data
		wide := make([]float64, 2*m.hidden)
		for j := range wide {
			wide[j] = float64(b[j])
			for k, v := range x {
				wide[j] += v * float64(w[k*2*m.hidden+j])
			}
		}
		h := make([]float64, m.hidden)
		for j := range h {
			h[j] = unit(wide[j]) * wide[m.hidden+j]
		}
		from = m.linear(query+"2", h)
	} else {
		from = m.linear(query+"1", x)
	}
	to := m.linear(m.item+"1", y)
	var logits []float64
	for i := range m.sources {
		for j := range m.items {
			a, b := from[i*m.width:(i+1)*m.width], to[j*m.width:(j+1)*m.width]
			var dot, aa, bb float64
			for k := range a {
				dot, aa, bb = dot+a[k]*b[k], aa+a[k]*a[k], bb+b[k]*b[k]
			}
			logits = append(logits, dot/math.Sqrt(aa*bb)/temperature)
		}
	}
	s := m.mlp("_gating_fn._query_only_partial_module.0", "_gating_fn._query_only_partial_module.2", x)
	c := m.mlp("_gating_fn._item_only_partial_module.1", "_gating_fn._item_only_partial_module.3", y)
	l := m.mlp("_gating_fn._qi_partial_module.1", "_gating_fn._qi_partial_module.3", logits)
	var sum, weighed float64
	for k := range logits {
		e := math.Exp(silu(s[k]*c[k] + l[k]))
		sum, weighed = sum+e, weighed+e*logits[k]
	}
	return weighed / sum
}

// TestRAILS reads state dicts with the names of RAILS and compares scores with what its modules
// compute.
func TestRAILS(t *testing.T) {
	const item, old = "_item_embeddings_fn._item_emb_proj_module.", "_item_proj_module."
	for name, c := range map[string]struct {
		m    *railsModel
		o    weights.Options
		unit func(float64) float64
	}{
		"GeGLU":         {newRails(true, item), weights.Options{Activation: decoder.GELU}, gelu},
		"SwiGLU, named": {newRails(true, old), weights.Options{Activation: decoder.SiLU, Layout: "rails"}, silu},
		"a prefix":      {newRails(true, old), weights.Options{Activation: decoder.SiLU, Prefix: railsPrefix}, silu},
		"no unit":       {newRails(false, item), weights.Options{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Temperature = 0.2
			d, err := weights.Read(c.m.file(t), &c.o)
			require.NoError(t, err)
			assert.Equal(t, "mol 6, 4 x 2 components of 3", d.String())
			again, err := decoder.Unmarshal(decoder.Marshal(d))
			require.NoError(t, err)
			rng := rand.New(rand.NewPCG(5, 5))
			var cases []weights.Case
			for range 8 {
				var k weights.Case
				wide := [2][]float64{}
				for i, row := range []*[]float32{&k.Source, &k.Candidate} {
					for range c.m.dim {
						v := float32(rng.NormFloat64())
						*row, wide[i] = append(*row, v), append(wide[i], float64(v))
					}
				}
				k.Logit = c.m.score(wide[0], wide[1], c.unit, 0.2)
				cases = append(cases, k)
			}
			require.NoError(t, weights.SelfCheck(d, cases, 1e-4))
			require.NoError(t, weights.SelfCheck(again, cases, 1e-4))
		})
	}
}

// TestRAILSRefuses: each model that cannot be brought is refused with the reason.
func TestRAILSRefuses(t *testing.T) {
	const item = "_item_embeddings_fn._item_emb_proj_module."
	good := weights.Options{Temperature: 0.05, Activation: decoder.GELU}
	for want, c := range map[string]struct {
		change func(ts tensors)
		o      weights.Options
	}{
		"no key says what the logits are divided by":             {nil, weights.Options{Activation: decoder.GELU}},
		"give the activation, gelu of GeGLU or silu of SwiGLU":   {nil, weights.Options{Temperature: 0.05}},
		"temperature is -1; want a positive number":              {nil, weights.Options{Temperature: -1}},
		"components that are looked up by the id of a user":      {func(ts tensors) { ts["_query_embeddings_fn._uid_embeddings_0.weight"] = zeros(9, 3) }, good},
		"is a gated linear unit of the items":                    {func(ts tensors) { ts[item+"1._w"] = zeros(6, 10) }, good},
		"mixes the tokens of a text":                             {func(ts tensors) { ts["_query_embeddings_fn._mixing_weights.0.weight"] = zeros(9, 3) }, good},
		"the first component is a part of the embedding":         {func(ts tensors) { ts[item+"_proj_mlp.1.weight"] = zeros(9, 3) }, good},
		"12 and 9 values of components do not make the 8 logits": {func(ts tensors) { ts[item+"1.weight"], ts[item+"1.bias"] = zeros(9, 6), zeros(9) }, good},
		"no matrix below": {func(ts tensors) {
			delete(ts, "_gating_fn._qi_partial_module.1.weight")
			delete(ts, "_gating_fn._qi_partial_module.3.weight")
		}, good},
		"want a matrix and a value for each of its columns": {func(ts tensors) { ts["_query_embeddings_fn._query_emb_proj_module.1._b"] = zeros(3) }, good},
	} {
		t.Run(want, func(t *testing.T) {
			m := newRails(true, item)
			m.at = maps.Clone(m.at)
			if c.change != nil {
				c.change(m.at)
			}
			_, err := weights.Read(m.file(t), &c.o)
			require.ErrorContains(t, err, want)
			assert.NotContains(t, fmt.Sprint(err), "\n")
		})
	}
	plain := newRails(false, item)
	_, err := weights.Read(plain.file(t), &good)
	require.ErrorContains(t, err, "there is no activation to choose")
	_, err = weights.Read(writeSafetensors(t, tensors{"lins.0.weight": zeros(1, 4)}), &weights.Options{Temperature: 1})
	require.ErrorContains(t, err, "a temperature for a decoder of kind hadamard_mlp")
}

// TestRAILSOfAnyShape: no tensor that is missing or has another shape makes the reader panic, or
// gives a decoder.
func TestRAILSOfAnyShape(t *testing.T) {
	o := weights.Options{Temperature: 0.05, Activation: decoder.GELU, Layout: "rails", Prefix: railsPrefix}
	m := newRails(true, "_item_proj_module.")
	for key := range m.at {
		for _, shape := range [][]int{nil, {0}, {1}, {0, 0}, {3, 0}, {0, 6}, {1, 1}, {2, 2, 2}, {8, 6, 1}} {
			changed := *m
			changed.at = maps.Clone(m.at)
			if shape == nil {
				delete(changed.at, key)
			} else {
				changed.at[key] = zeros(shape...)
			}
			_, err := weights.Read(changed.file(t), &o)
			if shape == nil && len(key) > 5 && key[len(key)-5:] == ".bias" {
				assert.NoError(t, err, "%s may be missing", key)
				continue
			}
			assert.Error(t, err, "%s of shape %v", key, shape)
		}
	}
}
