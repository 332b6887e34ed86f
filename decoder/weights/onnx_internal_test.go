package weights

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/internal/smooth"
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

// graph is a model of inputs x and y and of output s, with weights W (3 x 4), S (4 x 4), V (4 x 1),
// c (4), d (1), half and mean.
func graph(nodes ...onnx.Node) *onnx.Model {
	m := &onnx.Model{Nodes: nodes, Inputs: []onnx.Input{{Name: "x"}, {Name: "y"}}, Outputs: []string{"s"}, Tensors: map[string]*onnx.Tensor{}}
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
		kind  decoder.Kind
	}{
		{"matmul, bias first", graph(mul, node("MatMul", "a", "z", "W"), node("Add", "b", "c", "a"), node("Relu", "h", "b"), last), 4, decoder.HadamardMLP},
		{"clipped below is relu", graph(mul, node("MatMul", "a", "z", "W"), node("Add", "b", "a", "c"), node("Clip", "h", "b", "zero"), last), 4, decoder.HadamardMLP},
		{"max with 0 is relu", graph(mul, node("MatMul", "a", "z", "W"), node("Add", "b", "a", "c"), node("Max", "h", "zero", "b"), last), 4, decoder.HadamardMLP},
		{"negated twice", graph(mul, node("MatMul", "a", "z", "W"), node("Add", "b", "a", "c"), node("Neg", "n", "b"), node("Neg", "h", "n"), last), 4, decoder.HadamardMLP},
		{"transposed constant", graph(mul, node("MatMul", "h", "z", "W"), node("Transpose", "v", "T"), node("MatMul", "u", "h", "v"), node("Add", "s", "u", "d")), 2, decoder.HadamardMLP},
		{"silu", graph(mul, node("MatMul", "a", "z", "W"), node("Add", "b", "a", "c"), node("Sigmoid", "g", "b"), node("Mul", "h", "g", "b"), last), 4 * smooth.SiLU(1), decoder.HadamardMLP},
		{"final relu", graph(mul, node("MatMul", "h", "z", "W"), node("MatMul", "u", "h", "V"), node("Relu", "s", "u")), 0, decoder.HadamardMLP},
		{"temperature and offset", graph(mul, node("MatMul", "h", "z", "W"), node("MatMul", "u", "h", "V"), node("Mul", "w", "u", "three"), node("Add", "s", "w", "half")), 0.5, decoder.HadamardMLP},
		{"constant node", graph(mul, with(node("Constant", "K"), map[string]onnx.Attribute{"value": {Tensor: constant("", 1, 3, 1)}}), node("MatMul", "u", "z", "K"),
			node("Add", "s", "u", "half")), 0.5, decoder.HadamardMLP},
		{"gemm scaled", graph(mul, with(node("Gemm", "s", "z", "R", "d"), map[string]onnx.Attribute{"alpha": {Float: 3}, "beta": {Float: 0.5}, "transB": {Int: 1}})), 1, decoder.HadamardMLP},
		{"concatenated", graph(concat, with(node("Gemm", "h", "z", "C"), nil), last), 4 * 7, decoder.ConcatMLP},
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
			d.Bind(nil, x).Score(new(decoder.Scratch), got, y)
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
		{"operator", graph(mul, node("Einsum", "s", "z")), `node 1 (Einsum, output "s"): this operator is not served`},
		{"activation of ONNX", graph(mul, onnx.Node{Name: "act", Op: "Softmax", Inputs: []string{"z"}, Outputs: []string{"s"}}), `node 1 (Softmax "act"): this activation is none of relu`},
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
		{"reshaped", graph(mul, a, node("Reshape", "s", "a", "c")), "changes the shape"},
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
	d, err := fromONNX(one, decoder.HadamardMLP)
	require.NoError(t, err, "a network exported alone")
	assert.Equal(t, "hadamard_mlp 3-4-1", d.String())
	one.Inputs = []onnx.Input{{Name: "x"}, {Name: "y"}, {Name: "edges"}}
	_, err = fromONNX(one, "")
	assert.ErrorContains(t, err, `the inputs "x", "y", "edges": want two`)
}

// edges is a graph of the embeddings z of all nodes, pairs e of node numbers (2 x pairs), and the
// weights of graph.
func edges(nodes ...onnx.Node) *onnx.Model {
	m := graph(nodes...)
	m.Inputs = []onnx.Input{{Name: "z", Type: 1, Shape: []int{-1, 3}}, {Name: "e", Type: 7, Shape: []int{2, -1}}}
	for i, name := range []string{"0", "1", "2"} {
		m.Tensors[name] = constant(name, float32(i))
	}
	m.Tensors["01"] = &onnx.Tensor{Name: "01", Shape: []int{2}, Data: []float32{0, 1}}
	m.Tensors["W6"] = constant("W6", 1, 6, 1)
	return m
}

func axis(n onnx.Node, axis int64) onnx.Node {
	n.Attributes["axis"] = onnx.Attribute{Int: axis}
	return n
}

func TestONNXPairRefusals(t *testing.T) {
	source, candidate := node("Gather", "i", "e", "0"), node("Gather", "j", "e", "1")
	x, y := node("Gather", "x", "z", "i"), node("Gather", "y", "z", "j")
	_, err := fromONNX(edges(source, candidate, x, y, node("Mul", "p", "x", "y"), node("MatMul", "h", "p", "W"), node("MatMul", "s", "h", "V")), "")
	require.NoError(t, err)
	tests := []struct {
		name  string
		model *onnx.Model
		want  string
	}{
		{"both ends the same", edges(source, x, node("Mul", "s", "x", "x")), "neither the two embeddings nor parts"},
		{"numbers multiplied", edges(source, candidate, node("Mul", "s", "i", "j")), "neither the two embeddings nor parts"},
		{"a third of the pair", edges(node("Gather", "s", "e", "2")), "takes number 2 of each pair: want 0, the source, or 1"},
		{"one pair of all", edges(axis(node("Gather", "s", "e", "0"), 1)), "takes along dimension 1: source and candidate lie along 0"},
		{"beyond the dimensions", edges(axis(node("Gather", "s", "e", "0"), 2)), "takes along dimension 2 of 2"},
		{"an end of an end", edges(source, node("Gather", "s", "i", "0")), "one end of the pairs already"},
		{"two at once", edges(node("Gather", "s", "e", "01")), "takes more than one number"},
		{"one node", edges(node("Gather", "s", "z", "0")), "takes one node by a constant"},
		{"columns", edges(source, axis(node("Gather", "s", "z", "i"), 1)), "takes embeddings along dimension 1"},
		{"by embeddings", edges(node("Gather", "s", "z", "z")), "takes by embeddings in place of node numbers"},
		{"of a vector", edges(source, node("Gather", "s", "c", "i")), "from what is no matrix of embeddings"},
		{"no column", edges(source, node("GatherND", "s", "z", "i")), "no column of node numbers"},
		{"joined across pairs", edges(node("Gather", "p", "z", "e"), axis(node("Flatten", "s", "p"), 1)), "joins the embeddings of different pairs"},
		{"numbers joined", edges(axis(node("Flatten", "s", "e"), 1)), "changes the shape"},
		{"the second first", edges(source, candidate, x, y, axis(node("Concat", "s", "y", "x"), 1)), "the second input comes first"},
		{"pairs after pairs", edges(source, candidate, x, y, axis(node("Concat", "s", "x", "y"), 0)), "axis is 0: want the last"},
		{"neighbours", edges(node("ScatterElements", "s", "z", "e", "z")), "which is for the encoder"},
		{"arithmetic of numbers", edges(node("Add", "s", "e", "0")), "works on the numbers of the nodes"},
		{"numbers to reals", edges(with(node("Cast", "s", "e"), map[string]onnx.Attribute{"to": {Int: 1}})), "changes the values: to data type 1"},
		{"score to whole", graph(node("Mul", "z", "x", "y"), with(node("Cast", "s", "z"), map[string]onnx.Attribute{"to": {Int: 7}})), "changes the values"},
		{"dropout in training", graph(node("Mul", "z", "x", "y"), node("Dropout", "s", "z", "half", "three")), "training mode"},
		{"a loop", graph(onnx.Node{Op: "If", Outputs: []string{"s"}, Attributes: map[string]onnx.Attribute{"then_branch": {Graph: true}}}), "chooses between graphs"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := fromONNX(test.model, "")
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestONNXInputRefusals(t *testing.T) {
	whole := onnx.Input{Name: "e", Type: 7, Shape: []int{2, -1}}
	for _, in := range [][]onnx.Input{
		nil,
		{{Name: "x"}, {Name: "y"}, {Name: "w"}},
		{{Name: "z"}, {Name: "b", Type: 9}},
		{{Name: "z"}, whole, {Name: "n", Type: 7, Shape: []int{2, -1}}},
		{{Name: "z"}, {Name: "e", Type: 7, Shape: []int{-1}}},
	} {
		m := graph()
		m.Inputs = in
		_, err := fromONNX(m, "")
		assert.ErrorContains(t, err, "want two, the embeddings of source and candidate; or the embeddings of all nodes", "%v", in)
	}
	m := graph()
	m.Inputs[1].Name = "x"
	_, err := fromONNX(m, "")
	assert.ErrorContains(t, err, `two inputs have the name "x"`)
	m = graph(node("Mul", "s", "x", "y"))
	m.Inputs = []onnx.Input{{Name: "x", Shape: []int{-1, 3}}, {Name: "y", Shape: []int{-1, 4}}}
	_, err = fromONNX(m, "")
	assert.ErrorContains(t, err, "have 3 and 4 values")
}

// A layer norm in primitives, broken at each of its places.
func TestONNXMomentRefusals(t *testing.T) {
	mean := func(n onnx.Node) onnx.Node {
		return with(n, map[string]onnx.Attribute{"axes": {Ints: []int64{-1}}})
	}
	steps := []onnx.Node{
		node("Mul", "z", "x", "y"), node("MatMul", "a", "z", "W"), mean(node("ReduceMean", "m", "a")), node("Sub", "d", "a", "m"),
		node("Mul", "q", "d", "d"), mean(node("ReduceMean", "v", "q")), node("Add", "e", "half", "v"), node("Sqrt", "r", "e"), node("Div", "h", "d", "r"),
		node("MatMul", "s", "h", "V"),
	}
	d, err := fromONNX(graph(steps...), "")
	require.NoError(t, err)
	assert.Equal(t, 0.5, *d.Spec().Layers[0].Norm.Eps)
	for at, step := range map[int]onnx.Node{
		2: with(node("ReduceMean", "m", "a"), map[string]onnx.Attribute{"axes": {Ints: []int64{0}}}), 3: node("Sub", "d", "m", "a"), 4: node("Mul", "q", "d", "a"),
		5: mean(node("ReduceMean", "v", "d")), 6: node("Add", "e", "c", "v"), 7: node("Relu", "r", "e"), 8: node("Div", "h", "a", "r"), 9: node("MatMul", "s", "d", "V"),
	} {
		broken := slices.Clone(steps)
		broken[at] = step
		_, err := fromONNX(graph(broken...), "")
		assert.Error(t, err, "step %d: %s", at, step.Op)
	}
}

// What a small file may ask for is bounded: calls of an activation double with every product, and
// turned matrices would each be a copy.
func TestONNXBombs(t *testing.T) {
	nodes := []onnx.Node{node("Mul", "z", "x", "y"), node("MatMul", "a", "z", "W"), node("Mul", "p0", "a", "a")}
	for i := range 60 {
		last := fmt.Sprintf("p%d", i)
		nodes = append(nodes, node("Mul", fmt.Sprintf("p%d", i+1), last, last))
	}
	_, err := fromONNX(graph(append(nodes, node("MatMul", "s", "p60", "V"))...), "")
	assert.ErrorContains(t, err, "more than 256 steps between two layers")

	nodes = []onnx.Node{node("Mul", "z", "x", "y"), node("MatMul", "a", "z", "W"), node("Neg", "p0", "a")}
	for i := range 300 {
		nodes = append(nodes, node("Neg", fmt.Sprintf("p%d", i+1), fmt.Sprintf("p%d", i)))
	}
	_, err = fromONNX(graph(append(nodes, node("MatMul", "s", "p300", "V"))...), "")
	assert.ErrorContains(t, err, "more than 256 steps between two layers")

	m := graph()
	m.Tensors["big"] = constant("big", 1, 1000, 1000)
	for range 10_000 {
		m.Nodes = append(m.Nodes, node("Transpose", fmt.Sprintf("t%d", len(m.Nodes)), "big"))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = fromONNX(m, "")
	runtime.ReadMemStats(&after)
	assert.ErrorContains(t, err, `no node computes the output "s"`)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
}

func TestRecognise(t *testing.T) {
	// GELU as exporters wrote it before there was an operator: with constants rounded to float32.
	root := float64(float32(math.Sqrt2))
	name, _, err := recognise(func(x float64) float64 { return x * (1 + math.Erf(x/root)) * 0.5 })
	require.NoError(t, err)
	assert.Equal(t, decoder.GELU, name)
	name, slope, err := recognise(func(x float64) float64 { return max(x, 0.125*x) })
	require.NoError(t, err)
	assert.Equal(t, decoder.LeakyReLU, name)
	assert.Equal(t, 0.125, *slope)
}

// Values beside the model: only below its folder, and no byte is read twice.
func TestONNXExternalValues(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w"), []byte("0123456789"), 0o600))
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("0123456789"), 0o600))
	links := linked(t, dir, map[string]string{"out": outside})
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	b := besides{root: root}
	for location, want := range map[string]string{
		"../w": "not below the folder", "/etc/hostname": "not below the folder", "": "not below the folder", "none": "no such file", ".": "not a regular file",
	} {
		_, err := b.read(location, 0, 4)
		assert.ErrorContains(t, err, want, location)
	}
	if links {
		_, err := b.read("out", 0, 4)
		assert.ErrorContains(t, err, "escapes", "a link out of the folder is not followed")
	}
	_, err = b.read("w", 8, 4)
	assert.ErrorContains(t, err, "bytes 8 to 12 of \"w\", which has 10")
	got, err := b.read("w", 2, 6)
	require.NoError(t, err)
	assert.Equal(t, "234567", string(got))
	for _, same := range []string{"w", "./w", "x/../w"} {
		_, err = b.read(same, 0, 6)
		assert.Error(t, err, "12 bytes of a file of 10")
	}
}

// TestONNXExternalValuesOfOneFile: however many names a file has, no more is read of it than it
// has.
func TestONNXExternalValuesOfOneFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "below"), 0o700))
	for _, name := range []string{"w", "other"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("0123456789"), 0o600))
	}
	names := []string{"w", "hard"}
	require.NoError(t, os.Link(filepath.Join(dir, "w"), filepath.Join(dir, "hard")))
	if linked(t, dir, map[string]string{"soft": "w", filepath.Join("below", "soft"): filepath.Join("..", "w")}) {
		names = append(names, "soft", "below/soft")
	}
	if _, err := os.Stat(filepath.Join(dir, "W")); err == nil { // where case makes no difference
		names = append(names, "W")
	}
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	for _, first := range names {
		b := besides{root: root}
		_, err := b.read(first, 0, 6)
		require.NoError(t, err, first)
		for _, second := range names {
			_, err = b.read(second, 0, 6)
			assert.ErrorContains(t, err, "bytes 0 to 6", "12 bytes of a file of 10, first as %s and then as %s", first, second)
		}
		_, err = b.read("other", 0, 10)
		assert.NoError(t, err, "a file of its own")
		_, err = b.read(names[len(names)-1], 6, 4)
		assert.NoError(t, err, "the rest")
	}
}

// linked makes symbolic links, by name, in a folder. It returns false where Windows does not allow
// them.
func linked(t *testing.T, dir string, targets map[string]string) bool {
	t.Helper()
	for name, target := range targets {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			if runtime.GOOS != "windows" {
				require.NoError(t, err)
			}
			t.Logf("no symbolic links here: %v", err)
			return false
		}
	}
	return true
}

// Dimensions are computed before inputs are counted.
func TestSizesOfTooFewInputs(t *testing.T) {
	for _, op := range sizeOps {
		v := computeSizes(&onnx.Node{Op: op}, []onnxValue{{sizes: &onnxSizes{dims: []int64{3}}}})
		assert.NotNil(t, v.sizes, op)
	}
}

func TestONNXFileRefusals(t *testing.T) {
	write := func(b []byte) string {
		path := filepath.Join(t.TempDir(), "m.onnx")
		require.NoError(t, os.WriteFile(path, b, 0o600))
		return path
	}
	_, err := Read(write(nil), nil)
	assert.ErrorContains(t, err, "m.onnx: ONNX: not an ONNX model")
	_, err = Read(write(protowire.AppendTag(nil, 7, protowire.BytesType)), nil)
	assert.ErrorContains(t, err, "damaged")
	_, err = Read(write(nil), &Options{Spec: &decoder.Spec{Kind: decoder.Dot, Dim: 3}})
	assert.ErrorContains(t, err, "an ONNX graph says itself")
	_, err = Read(filepath.Join(t.TempDir(), "none.onnx"), nil)
	assert.ErrorContains(t, err, "none.onnx")
}

func FuzzONNX(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "onnx", "*.onnx"))
	require.NoError(f, err)
	exports, err := filepath.Glob(filepath.Join("testdata", "exports", "*.onnx"))
	require.NoError(f, err)
	for _, file := range append(files, exports...) {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnx.Parse(data, nil)
		if err != nil {
			return
		}
		d, err := fromONNX(m, "")
		if err != nil {
			d, err = fromONNX(m, decoder.HadamardMLP)
		}
		if err != nil {
			return
		}
		x := make([]float32, d.Dim())
		d.Bind(nil, x).Score(new(decoder.Scratch), make([]float32, 1), x)
	})
}
