package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
	"github.com/flashdb/flashdb/internal/codec"
)

// withDraft adds to the error about weights of no known layout a spec to begin with, made of their
// names and shapes. What these do not tell, the activations first, is guessed: the user is to look
// at it.
func (a *app) withDraft(ctx context.Context, args []string, prefix string, err error) error {
	if !strings.Contains(err.Error(), "a spec or the name of a layout") {
		return err
	}
	read, terr := codec.ReadTensors(args[3])
	if terr != nil {
		return err
	}
	if prefix != "" {
		prefix = strings.TrimSuffix(prefix, ".") + "."
	}
	tensors := map[string]decoder.Tensor{}
	for key, t := range read {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			tensors[rest] = decoder.Tensor(t)
		}
	}
	dim := 0
	_ = a.withCollection(ctx, args[0], args[1], flashdb.Options{ReadOnly: true}, func(_ database, c collection) error {
		dim = c.Schema().Dim
		return nil
	})
	spec, ok := draftSpec(tensors, dim)
	if !ok {
		return err
	}
	text, jerr := json.Marshal(spec)
	if jerr != nil {
		return err
	}
	return errors.Join(err, errors.New("a draft of --spec from names and shapes, whose activations are guessed: "+string(text)))
}

// draftSpec puts together the decoder of embeddings of so many values (0: nobody knows) that
// tensors may be, or false.
func draftSpec(tensors map[string]decoder.Tensor, dim int) (decoder.Spec, bool) {
	keys := slices.SortedFunc(maps.Keys(tensors), compareNumbered)
	var matrices []string
	for _, key := range keys {
		if len(tensors[key].Shape) == 2 {
			matrices = append(matrices, key)
		}
	}
	spec, ok := decoder.Spec{}, false
	for i, key := range matrices {
		if tensors[key].Shape[0] == 1 {
			spec, ok = draftNetwork(tensors, keys, matrices[:i+1], dim), true
		}
	}
	if !ok && len(matrices) == 1 && len(tensors) == 1 {
		shape := tensors[matrices[0]].Shape
		ok = shape[0] == shape[1] && (dim == 0 || dim == shape[0])
		spec = decoder.Spec{Kind: decoder.Bilinear, Dim: shape[0], Weight: matrices[0]}
	}
	if !ok {
		return spec, false
	}
	_, err := decoder.New(spec, tensors)
	return spec, err == nil
}

// draftNetwork makes layers of the matrices that lead to the last one: as many as begin with one
// that takes embeddings of so many values.
func draftNetwork(tensors map[string]decoder.Tensor, keys, matrices []string, dim int) decoder.Spec {
	last := len(matrices) - 1
	chain := []string{matrices[last]}
	wide := tensors[matrices[last]].Shape[1]
	for i := last - 1; i >= 0; i-- {
		if shape := tensors[matrices[i]].Shape; shape[0] == wide {
			chain = append(chain, matrices[i])
			wide = shape[1]
		}
	}
	for n := len(chain); n > 0 && dim > 0; n-- {
		if in := tensors[chain[n-1]].Shape[1]; in == dim || in == 2*dim {
			chain, wide = chain[:n], in
			break
		}
	}
	slices.Reverse(chain)
	spec := decoder.Spec{Kind: decoder.HadamardMLP, Dim: wide}
	if dim > 0 && wide == 2*dim {
		spec.Kind, spec.Dim = decoder.ConcatMLP, dim
	}
	used := map[string]bool{}
	for i, key := range chain {
		l := decoder.LayerSpec{Weight: key, Activation: decoder.ReLU}
		module := strings.TrimSuffix(key, "weight")
		if bias := module + "bias"; bias != key && len(tensors[bias].Shape) == 1 {
			l.Bias = bias
		}
		if i == len(chain)-1 {
			l.Activation = decoder.Identity
		} else {
			l.Norm = draftNorm(tensors, keys, tensors[key].Shape[0], used)
		}
		spec.Layers = append(spec.Layers, l)
	}
	return spec
}

// draftNorm takes the next norm of so many values that no layer before has.
func draftNorm(tensors map[string]decoder.Tensor, keys []string, width int, used map[string]bool) *decoder.NormSpec {
	for _, key := range keys {
		module, ok := strings.CutSuffix(key, "weight")
		if !ok || used[key] || !slices.Equal(tensors[key].Shape, []int{width}) {
			continue
		}
		used[key] = true
		n := decoder.NormSpec{Kind: "layer_norm", Weight: key}
		if _, ok := tensors[module+"bias"]; ok {
			n.Bias = module + "bias"
		}
		if _, ok := tensors[module+"running_mean"]; ok {
			n.Kind, n.Mean, n.Var = "batch_norm", module+"running_mean", module+"running_var"
		}
		return &n
	}
	return nil
}

// compareNumbered orders keys as people do: fc2 comes before fc10.
func compareNumbered(x, y string) int {
	for x != "" && y != "" {
		nx, ny := len(x)-len(strings.TrimLeft(x, "0123456789")), len(y)-len(strings.TrimLeft(y, "0123456789"))
		if nx > 0 && ny > 0 {
			i, _ := strconv.ParseUint(x[:nx], 10, 64)
			j, _ := strconv.ParseUint(y[:ny], 10, 64)
			if i != j {
				if i < j {
					return -1
				}
				return 1
			}
			x, y = x[nx:], y[ny:]
			continue
		}
		if x[0] != y[0] {
			return int(x[0]) - int(y[0])
		}
		x, y = x[1:], y[1:]
	}
	return len(x) - len(y)
}

// probabilityHint says that the cases of --check hold probabilities where logits are wanted, if
// they may: all between 0 and 1, and equal to the decoder's or not.
func probabilityHint(d decoder.Decoder, cases []weights.Case) string {
	const close = 1e-3
	same := true
	var bound decoder.Bound
	var scratch decoder.Scratch
	score := make([]float32, 1)
	for _, c := range cases {
		if !(c.Logit >= 0 && c.Logit <= 1) || len(c.Source) != d.Dim() || len(c.Candidate) != d.Dim() {
			return ""
		}
		bound = d.Bind(bound, c.Source)
		bound.Score(&scratch, score, c.Candidate)
		off := float64(decoder.Probability(score[0])) - c.Logit
		same = same && off < close && -off < close
	}
	if same {
		return "the cases hold probabilities, and the decoder gives the same: write the logits to the file, before the sigmoid"
	}
	return "all logits of the file lie between 0 and 1: if they are probabilities, write the logits, before the sigmoid"
}
