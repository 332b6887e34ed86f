package weights_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
)

// State dicts as models in use keep them, with what PyTorch computes (testdata/make.py).
func TestLayouts(t *testing.T) {
	tests := []struct {
		file string
		opts weights.Options
		want string // String of the decoder
	}{
		{"ogb", weights.Options{}, "hadamard_mlp 6-8-8-1"},
		{"ogb", weights.Options{Layout: "ogb"}, "hadamard_mlp 6-8-8-1"},
		{"pyg-batch-norm", weights.Options{}, "hadamard_mlp 6-8-8-1"},
		{"pyg-batch-norm", weights.Options{Layout: "pyg", Prefix: "mlp"}, "hadamard_mlp 6-8-8-1"},
		{"pyg-plain", weights.Options{Activation: decoder.GELU}, "hadamard_mlp 6-8-1"},
		{"gigl", weights.Options{}, "hadamard_mlp 6-8-1"},
		{"gigl", weights.Options{Layout: "gigl"}, "hadamard_mlp 6-8-1"},
		{"ncn", weights.Options{}, "hadamard_mlp 6-8-8-1"},
		{"ncn-layer-norm", weights.Options{}, "hadamard_mlp 6-8-8-1"},
		{"ncn-layer-norm", weights.Options{Layout: "ncn"}, "hadamard_mlp 6-8-8-1"},
		{"ncn-layer-norm", weights.Options{Layout: "sequential", Prefix: "lins."}, "hadamard_mlp 6-8-8-1"},
		{"dgl", weights.Options{}, "concat_mlp 12-6-1"},
		{"dgl", weights.Options{Layout: "dgl"}, "concat_mlp 12-6-1"},
		{"dgl-hadamard", weights.Options{}, "hadamard_mlp 6-6-1"},
		{"refined-gae", weights.Options{Layout: "refined-gae", Residual: "z", Activation: decoder.SiLU}, "hadamard_mlp 6-6-6-6-1"},
		{"refined-gae-plain", weights.Options{Layout: "refined-gae", Residual: "none"}, "hadamard_mlp 6-6-6-1"},
		{"sequential", weights.Options{Layout: "sequential", Activation: decoder.Tanh}, "hadamard_mlp 6-8-1"},
		{"sequential", weights.Options{Layout: "sequential", Activation: decoder.Tanh, Prefix: "mlp."}, "hadamard_mlp 6-8-1"},
		{"bilinear", weights.Options{Layout: "bilinear"}, "bilinear 6"},
		{"pyg-plain-batch-norm", weights.Options{}, "hadamard_mlp 6-8-8-1"},
		{"pyg-no-plain-last", weights.Options{}, "hadamard_mlp 6-8-1"},
		{"pyg-layer-norm-node", weights.Options{Layout: "refined-gae", Residual: "none"}, "hadamard_mlp 6-8-1"},
		{"dgl-user-guide", weights.Options{Layout: "dgl"}, "concat_mlp 12-1"},
		{"ncn-one-layer", weights.Options{Layout: "ncn"}, "hadamard_mlp 6-1"},
		{"checkpoint", weights.Options{}, "hadamard_mlp 6-8-1"},
		{"checkpoint", weights.Options{Layout: "ogb", Prefix: "model_state_dict.predictor"}, "hadamard_mlp 6-8-1"},
		{"two", weights.Options{Prefix: "model"}, "hadamard_mlp 6-8-1"},
	}
	for _, test := range tests {
		at := filepath.Join("testdata", "layouts", test.file)
		d, err := weights.Read(at+".pt", &test.opts)
		require.NoError(t, err, "%s %+v", test.file, test.opts)
		cases, err := weights.ReadCases(at + ".jsonl")
		require.NoError(t, err)
		err = weights.SelfCheck(d, cases, 1e-5)
		assert.NoError(t, err, "%s %+v", test.file, test.opts)
		assert.Equal(t, test.want, d.String())
		if file := test.file; file != "two" && file != "checkpoint" {
			blob, err := decoder.Unmarshal(decoder.Marshal(d))
			require.NoError(t, err)
			assert.NoError(t, weights.SelfCheck(blob, cases, 1e-5))
		}
	}
}

func TestLayoutRefusals(t *testing.T) {
	square, wide, column := zeros(4, 4), zeros(3, 8), zeros(1, 4)
	bias := zeros(1)
	bias.Data[0] = 0.5
	tests := []struct {
		name    string
		tensors tensors
		opts    weights.Options
		want    string
	}{
		{"unknown", tensors{"lins.0.weight": column}, weights.Options{Layout: "gnn"}, `layout "gnn" is not known; want one of gigl, ogb`},
		{"spec and layout", tensors{"lins.0.weight": column}, weights.Options{Layout: "ogb", Spec: &decoder.Spec{}}, "a spec says it all"},
		{"kind", tensors{"lins.0.weight": column}, weights.Options{Kind: decoder.Dot}, `kind is "dot"; want one of hadamard_mlp, concat_mlp`},
		{"prefix", tensors{"lins.0.weight": column}, weights.Options{Prefix: "model"}, `no key begins with the prefix "model."; the weights have "lins.0.weight"`},
		{"several", tensors{"a.lins.0.weight": column, "ema.lins.0.weight": column}, weights.Options{}, `under each of the prefixes "a.", "ema.": name one`},
		{"norms of ogb", tensors{"lins.0.weight": square, "norms.0.weight": zeros(4)}, weights.Options{Layout: "ogb"}, `layout ogb: key "norms.0.weight" looks like a norm`},
		{"layer norm of pyg", tensors{"lins.0.weight": square, "lins.1.weight": column, "norms.0.weight": zeros(4)}, weights.Options{Layout: "pyg"}, `normalises all rows of a batch together`},
		{"residual of refined-gae", tensors{"lins.0.weight": column}, weights.Options{Layout: "refined-gae"}, "give the residual, z or none"},
		{"shape of dgl", tensors{"W1.weight": wide, "W2.weight": zeros(1, 3)}, weights.Options{}, `"W1.weight" has shape [3 8]: neither twice as wide as high`},
		{"dgl without W2", tensors{"p.W1.weight": square}, weights.Options{Layout: "dgl"}, `want matrices "p.W1.weight" and "p.W2.weight"`},
		{"odd concatenation", tensors{"lins.0.weight": zeros(1, 5)}, weights.Options{Kind: decoder.ConcatMLP}, `"lins.0.weight" has shape [1 5]: a concat_mlp takes two`},
		{"stray norm", tensors{"0.weight": square, "2.weight": zeros(4), "4.weight": column}, weights.Options{Layout: "sequential"}, `key "2.weight" has shape [4] and stands behind no layer`},
		{"nothing", tensors{"conv.weight": square}, weights.Options{Layout: "sequential"}, `no matrix "0.weight"; the weights have "conv.weight"`},
		{"wide bilinear", tensors{"weight": zeros(2, 4, 4)}, weights.Options{Layout: "bilinear"}, `"weight" has shape [2 4 4]; want [1 dim dim]`},
		{"bilinear bias", tensors{"weight": zeros(1, 4, 4), "bias": bias}, weights.Options{Layout: "bilinear"}, `"bias" is [0.5]`},
		{"common neighbours", tensors{"model.xijlin.0.weight": square, "model.xcnlin.0.weight": square}, weights.Options{Layout: "sequential"}, `is of a NCN model`},
		{"a part of it", tensors{"model.xijlin.0.weight": square, "model.xijlin.2.weight": column}, weights.Options{Layout: "sequential", Prefix: "model.xijlin."}, `is of a NCN model`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := weights.Read(writeSafetensors(t, test.tensors), &test.opts)
			assert.ErrorContains(t, err, test.want)
		})
	}
}
