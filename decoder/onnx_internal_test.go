package decoder

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/flashdb/flashdb/internal/onnx"
)

// a matrix of rows x columns, all values the same.
func constant(name string, value float32, shape ...int) *onnx.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	t := &onnx.Tensor{Name: name, Shape: shape, Data: make([]float32, n)}
	for i := range t.Data {
		t.Data[i] = value
	}
	return t
}

func node(op, output string, inputs ...string) onnx.Node {
	return onnx.Node{Op: op, Inputs: inputs, Outputs: []string{output}, Attributes: map[string]onnx.Attribute{}}
}

func with(n onnx.Node, attributes map[string]onnx.Attribute) onnx.Node {
	n.Attributes = attributes
	return n
}

// graph is a model of inputs x and y and of output s, with weights W (3 x 4), S (4 x 4), V (4 x 1), c (4), d (1), half and mean.
func graph(nodes ...onnx.Node) *onnx.Model {
	m := &onnx.Model{Nodes: nodes, Inputs: []string{"x", "y"}, Outputs: []string{"s"}, Tensors: map[string]*onnx.Tensor{}}
	for _, t := range []*onnx.Tensor{
		constant("W", 0.5, 3, 4), constant("S", 0.25, 4, 4), constant("V", 1, 4, 1), constant("T", 1, 1, 4), constant("c", 1, 4), constant("d", 2, 1),
		constant("half", 0.5), constant("three", 3),
		{Name: "text", Fault: assert.AnError},
	} {
		m.Tensors[t.Name] = t
	}
	return m
}

func TestONNXGraphs(t *testing.T) {
	mul, concat := node("Mul", "z", "x", "y"), with(node("Concat", "z", "x", "y"), map[string]onnx.Attribute{"axis": {Int: 1}})
	last := node("MatMul", "s", "h", "V")
	tests := []struct {
		name  string
		model *onnx.Model
		want  float64 // logit of x = (1, 2, 3), y = (1, 1, -1): x*y sums to 0
		kind  Kind
	}{
		{"matmul, bias first", graph(mul, node("MatMul", "a", "z", "W"), node("Add", "b", "c", "a"), node("Relu", "h", "b"), last), 4, HadamardMLP},
		{"clipped below is relu", graph(mul, node("MatMul", "a", "z", "W"), node("Add", "b", "a", "c"), node("Clip", "h", "b", "zero"), last), 4, HadamardMLP},
		{"max with 0 is relu", graph(mul, node("MatMul", "a", "z", "W"), node("Add", "b", "a", "c"), node("Max", "h", "zero", "b"), last), 4, HadamardMLP},
		{"negated twice", graph(mul, node("MatMul", "a", "z", "W"), node("Add", "b", "a", "c"), node("Neg", "n", "b"), node("Neg", "h", "n"), last), 4, HadamardMLP},
		{"transposed constant", graph(mul, node("MatMul", "h", "z", "W"), node("Transpose", "v", "T"), node("MatMul", "u", "h", "v"), node("Add", "s", "u", "d")), 2, HadamardMLP},
		{"silu", graph(mul, node("MatMul", "a", "z", "W"), node("Add", "b", "a", "c"), node("Sigmoid", "g", "b"), node("Mul", "h", "g", "b"), last), 4 * silu(1), HadamardMLP},
		{"final relu", graph(mul, node("MatMul", "h", "z", "W"), node("MatMul", "u", "h", "V"), node("Relu", "s", "u")), 0, HadamardMLP},
		{"constant node", graph(mul, with(node("Constant", "K"), map[string]onnx.Attribute{"value": {Tensor: constant("", 1, 3, 1)}}), node("MatMul", "u", "z", "K"),
			node("Add", "s", "u", "half")), 0.5, HadamardMLP},
		{"gemm scaled", graph(mul, with(node("Gemm", "s", "z", "R", "d"), map[string]onnx.Attribute{"alpha": {Float: 3}, "beta": {Float: 0.5}, "transB": {Int: 1}})), 1, HadamardMLP},
		{"concatenated", graph(concat, with(node("Gemm", "h", "z", "C"), nil), last), 4 * 7, ConcatMLP},
	}
	x, y := []float32{1, 2, 3}, []float32{1, 1, -1}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, extra := range []*onnx.Tensor{constant("zero", 0), constant("R", 1, 1, 3), constant("C", 1, 6, 4)} {
				test.model.Tensors[extra.Name] = extra
			}
			d, err := fromONNX(test.model, "")
			require.NoError(t, err)
			assert.Equal(t, test.kind, d.Kind())
			got := make([]float32, 1)
			d.Bind(nil, x).Score(new(Scratch), got, y)
			assert.InDelta(t, test.want, got[0], 1e-5)
		})
	}
}

func TestONNXGraphRefusals(t *testing.T) {
	mul := node("Mul", "z", "x", "y")
	a, last := node("MatMul", "a", "z", "W"), node("MatMul", "s", "h", "V")
	tests := []struct {
		name  string
		model *onnx.Model
		want  string
	}{
		{"operator", graph(mul, node("Softmax", "s", "z")), `node 1 (Softmax, output "s"): this operator is not served`},
		{"domain", graph(mul, onnx.Node{Op: "Gelu", Domain: "com.microsoft", Outputs: []string{"s"}}), `operators of domain "com.microsoft"`},
		{"branch", graph(mul, a, node("Relu", "h", "a"), node("MatMul", "b", "h", "S"), node("MatMul", "s", "a", "V")), "branches"},
		{"one embedding", graph(node("MatMul", "a", "x", "W"), mul), "works on one embedding alone"},
		{"the same embedding twice", graph(node("Mul", "z", "x", "x")), "neither the two embeddings nor parts"},
		{"twice combined", graph(mul, node("Mul", "w", "x", "y")), "combined twice"},
		{"order", graph(with(node("Concat", "z", "y", "x"), map[string]onnx.Attribute{"axis": {Int: 1}})), "the second input comes first"},
		{"axis", graph(node("Concat", "z", "x", "y")), "axis is 0"},
		{"three in one", graph(node("Concat", "z", "x", "y", "x")), "not the two embeddings alone"},
		{"residual after the activation", graph(mul, a, node("Relu", "h", "a"), node("MatMul", "b", "h", "S"), node("Relu", "e", "b"), node("Add", "f", "e", "h")), "neither a bias nor a residual"},
		{"activation", graph(mul, a, node("Exp", "h", "a"), last), "the activation with values 0.3679 at -1, 1 at 0"},
		{"relu6", graph(mul, a, with(node("Clip", "h", "a"), map[string]onnx.Attribute{"min": {}, "max": {Float: 6}}), last), "is none of relu"},
		{"activation of z", graph(mul, node("Relu", "r", "z"), node("MatMul", "s", "r", "W")), "an activation of the product"},
		{"sum", graph(mul, node("ReduceSum", "s", "z")), "a dot decoder needs no weights"},
		{"width", graph(mul, a, node("MatMul", "s", "a", "W")), `its matrix "W" takes 3 values, the value before it has 4`},
		{"many outputs", graph(mul, node("MatMul", "s", "z", "W")), "the last layer has 4 outputs"},
		{"no layer", graph(mul, node("Identity", "s", "z")), "no layer"},
		{"constant output", graph(node("Identity", "s", "c")), "has a constant"},
		{"no node of the output", graph(mul), `no node computes the output "s"`},
		{"unknown input", graph(node("Relu", "s", "q")), `input "q" is computed nowhere`},
		{"type", graph(mul, node("MatMul", "s", "z", "text")), assert.AnError.Error()},
		{"vector", graph(mul, node("MatMul", "s", "z", "c")), "not a constant matrix"},
		{"scaled", graph(mul, a, node("Mul", "s", "a", "c")), "neither the two embeddings nor parts"},
		{"training", graph(mul, a, with(node("BatchNormalization", "s", "a", "c", "c", "c", "c"), map[string]onnx.Attribute{"training_mode": {Int: 1}})), "after eval()"},
		{"two norms", graph(mul, a, node("LayerNormalization", "b", "a", "c"), node("LayerNormalization", "s", "b", "c")), "two norms"},
		{"norm of another width", graph(mul, a, node("LayerNormalization", "h", "a", "d"), last), "layers[0].norm.weight"},
		{"reshaped", graph(mul, node("Reshape", "s", "z", "c")), "changes the shape"},
		{"few inputs", graph(node("Mul", "z", "x")), "1 inputs, want 2"},
		{"no output", graph(onnx.Node{Op: "Mul", Inputs: []string{"x", "y"}}), "has no output"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := fromONNX(test.model, "")
			assert.ErrorContains(t, err, test.want)
		})
	}
	one := graph(node("MatMul", "h", "x", "W"), last)
	one.Inputs = one.Inputs[:1]
	_, err := fromONNX(one, "")
	assert.ErrorContains(t, err, "name the kind")
	d, err := fromONNX(one, HadamardMLP)
	require.NoError(t, err, "a network exported alone")
	assert.Equal(t, "hadamard_mlp 3-4-1", d.String())
	one.Inputs = []string{"x", "y", "edges"}
	_, err = fromONNX(one, "")
	assert.ErrorContains(t, err, `the inputs "x", "y", "edges": want two`)
}

func TestRecognise(t *testing.T) {
	// GELU as exporters wrote it before there was an operator: with constants rounded to float32.
	root := float64(float32(math.Sqrt2))
	name, _, err := recognise(func(x float64) float64 { return x * (1 + math.Erf(x/root)) * 0.5 })
	require.NoError(t, err)
	assert.Equal(t, GELU, name)
	name, slope, err := recognise(func(x float64) float64 { return max(x, 0.125*x) })
	require.NoError(t, err)
	assert.Equal(t, LeakyReLU, name)
	assert.Equal(t, 0.125, *slope)
}

// Values beside the model: only below its folder, and no byte is read twice.
func TestONNXExternalValues(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w"), []byte("0123456789"), 0o600))
	b := besides{dir: dir, left: map[string]int64{}}
	for location, want := range map[string]string{
		"../w": "not below the folder", "/etc/hostname": "not below the folder", "": "not below the folder", "none": "no such file", ".": "which has",
	} {
		_, err := b.read(location, 0, 4)
		assert.ErrorContains(t, err, want, location)
	}
	_, err := b.read("w", 8, 4)
	assert.ErrorContains(t, err, "bytes 8 to 12 of \"w\", which has 10")
	got, err := b.read("w", 2, 6)
	require.NoError(t, err)
	assert.Equal(t, "234567", string(got))
	_, err = b.read("w", 0, 6)
	assert.Error(t, err, "12 bytes of a file of 10")
}

func TestONNXFileRefusals(t *testing.T) {
	write := func(b []byte) string {
		path := filepath.Join(t.TempDir(), "m.onnx")
		require.NoError(t, os.WriteFile(path, b, 0o600))
		return path
	}
	_, err := ReadFile(write(nil), nil)
	assert.ErrorContains(t, err, "m.onnx: ONNX: not an ONNX model")
	_, err = ReadFile(write(protowire.AppendTag(nil, 7, protowire.BytesType)), nil)
	assert.ErrorContains(t, err, "damaged")
	_, err = ReadFile(write(nil), &Spec{Kind: Dot, Dim: 3})
	assert.ErrorContains(t, err, "an ONNX graph says itself")
	_, err = ReadFile(filepath.Join(t.TempDir(), "none.onnx"), nil)
	assert.ErrorContains(t, err, "none.onnx")
}

func FuzzONNX(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "onnx", "*.onnx"))
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnx.Parse(data, nil)
		if err != nil {
			return
		}
		d, err := fromONNX(m, HadamardMLP)
		if err != nil {
			return
		}
		x := make([]float32, d.Dim())
		d.Bind(nil, x).Score(new(Scratch), make([]float32, 1), x)
	})
}
