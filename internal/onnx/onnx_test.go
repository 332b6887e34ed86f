package onnx_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/flashdb/flashdb/internal/onnx"
)

func blob(b []byte, num protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), content)
}

func number(b []byte, num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}

// tensor begins a TensorProto of the given type and shape, named t.
func tensor(typ uint64, shape ...uint64) []byte {
	var b []byte
	for _, d := range shape {
		b = number(b, 1, d)
	}
	return blob(number(b, 2, typ), 8, []byte("t"))
}

func inGraph(parts ...[]byte) []byte {
	var g []byte
	for _, p := range parts {
		g = blob(g, 5, p)
	}
	return blob(nil, 7, g)
}

func TestTensors(t *testing.T) {
	le := binary.LittleEndian
	floats := func(v ...float32) (b []byte) {
		for _, x := range v {
			b = le.AppendUint32(b, math.Float32bits(x))
		}
		return b
	}
	doubles := func(v ...float64) (b []byte) {
		for _, x := range v {
			b = le.AppendUint64(b, math.Float64bits(x))
		}
		return b
	}
	varints := func(v ...int64) (b []byte) {
		for _, x := range v {
			b = protowire.AppendVarint(b, uint64(x))
		}
		return b
	}
	loose := protowire.AppendTag(tensor(1, 1), 4, protowire.Fixed32Type)
	loose = protowire.AppendFixed32(loose, math.Float32bits(7))
	tests := []struct {
		name string
		b    []byte
		want []float32
	}{
		{"float, raw", blob(tensor(1, 2), 9, floats(1, -2)), []float32{1, -2}},
		{"float, typed", blob(tensor(1, 2), 4, floats(1, -2)), []float32{1, -2}},
		{"float, not packed", loose, []float32{7}},
		{"double, raw", blob(tensor(11, 2), 9, doubles(0.1, 3)), []float32{0.1, 3}},
		{"double, typed", blob(tensor(11, 2), 10, doubles(0.1, 3)), []float32{0.1, 3}},
		{
			"half, raw", blob(tensor(10, 6), 9, []byte{0, 0x3c, 0, 0xc0, 1, 0, 0xff, 0x7b, 0, 0x7c, 0, 0x80}),
			[]float32{1, -2, 1.0 / (1 << 24), 65504, float32(math.Inf(1)), float32(math.Copysign(0, -1))},
		},
		{"half, typed", blob(tensor(10, 1), 5, varints(0x3c00)), []float32{1}},
		{"bfloat16, raw", blob(tensor(16, 1), 9, []byte{0x80, 0x3f}), []float32{1}},
		{"bfloat16, typed", blob(tensor(16, 1), 5, varints(0xbf80)), []float32{-1}},
		{"int64, raw", blob(tensor(7, 1), 9, le.AppendUint64(nil, math.MaxUint64)), []float32{-1}},
		{"int64, typed", blob(tensor(7, 2), 7, varints(-1, 5)), []float32{-1, 5}},
		{"int32, raw", blob(tensor(6, 1), 9, le.AppendUint32(nil, math.MaxUint32)), []float32{-1}},
		{"int8 and bool", blob(tensor(3, 1), 9, []byte{0xff}), []float32{-1}},
		{"scalar", blob(tensor(1), 4, floats(9)), []float32{9}},
		{"empty", tensor(1, 0), []float32{}},
	}
	for _, test := range tests {
		m, err := onnx.Parse(inGraph(test.b), nil)
		require.NoError(t, err, test.name)
		got := m.Tensors["t"]
		require.NotNil(t, got, test.name)
		require.NoError(t, got.Fault)
		assert.Equal(t, len(test.want), len(got.Data), test.name)
		for i, v := range test.want {
			assert.Equal(t, math.Float32bits(v), math.Float32bits(got.Data[i]), "%s: value %d is %v", test.name, i, got.Data[i])
		}
	}
	m, err := onnx.Parse(inGraph(blob(tensor(8, 1), 6, []byte("x"))), nil)
	require.NoError(t, err)
	assert.ErrorContains(t, m.Tensors["t"].Fault, "data type 8 is not supported", "refused where it is used")
}

func TestParseRefuses(t *testing.T) {
	elsewhere := number(tensor(1, 2), 14, 1)
	elsewhere = blob(elsewhere, 13, blob(blob(nil, 1, []byte("location")), 2, []byte("w.bin")))
	offset := blob(elsewhere, 13, blob(blob(nil, 1, []byte("offset")), 2, []byte("-4")))
	length := blob(elsewhere, 13, blob(blob(nil, 1, []byte("length")), 2, []byte("7")))
	tests := []struct {
		name string
		b    []byte
		want string
	}{
		{"nothing", nil, "not an ONNX model"},
		{"text", []byte("hello, world"), "damaged"},
		{"cut", inGraph(tensor(1, 1))[:4], "damaged"},
		{"two graphs", append(inGraph(), inGraph()...), "two graphs"},
		{"few raw bytes", inGraph(blob(tensor(1, 2), 9, []byte{1})), `tensor "t": 1 bytes of values, shape [2] takes 8`},
		{"few values", inGraph(blob(tensor(1, 1<<30), 4, make([]byte, 8))), `2 values, shape [1073741824] takes 1073741824`},
		{"negative shape", inGraph(tensor(1, math.MaxUint64)), "shape [-1] is impossible"},
		{"endless shape", inGraph(tensor(1, 1<<20, 1<<20)), "is impossible"},
		{"rank", inGraph(tensor(1, make([]uint64, 17)...)), "more than 16 dimensions"},
		{"twice", inGraph(tensor(1, 0), tensor(1, 0)), `initializer "t" is there twice`},
		{"elsewhere", inGraph(elsewhere), "its values are in another file"},
		{"offset", inGraph(offset), `offset of its values: "-4" is no number`},
		{"length", inGraph(length), "7 bytes of values in"},
		{"inputs", blob(nil, 7, bytes.Repeat(blob(nil, 11, nil), 1<<16+1)), "more than 65536 inputs"},
		{"sparse", blob(nil, 7, blob(nil, 15, nil)), "sparse"},
		{"wire type", blob(nil, 7, blob(nil, 1, number(nil, 4, 3))), "another type than ONNX gives it"},
	}
	for _, test := range tests {
		external := func(string, int64, int64) ([]byte, error) { return nil, errors.New("opened") }
		if test.name == "elsewhere" {
			_, err := onnx.Parse(test.b, external)
			assert.ErrorContains(t, err, "opened")
			external = nil
		}
		_, err := onnx.Parse(test.b, external)
		assert.ErrorContains(t, err, test.want, test.name)
	}
}

func TestParseFile(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "decoder", "weights", "testdata", "onnx", "refined-gae-torchscript.onnx"))
	require.NoError(t, err)
	m, err := onnx.Parse(data, nil)
	require.NoError(t, err)
	assert.Equal(t, int64(20), m.Opset)
	assert.Equal(t, []onnx.Input{{Name: "source", Type: 1, Shape: []int{-1, 6}}, {Name: "candidate", Type: 1, Shape: []int{-1, 6}}}, m.Inputs)
	require.Len(t, m.Outputs, 1)
	require.Len(t, m.Nodes, 18)
	assert.Equal(t, "Mul", m.Nodes[0].Op)
	assert.Equal(t, []int{6, 6}, m.Tensors["lins.0.weight"].Shape)
	assert.InDelta(t, 1e-5, m.Nodes[1].Attributes["epsilon"].Float, 1e-9)
	for n := range data { // every cut is an error, or a shorter model
		_, _ = onnx.Parse(data[:n], nil)
	}
}

func TestInputs(t *testing.T) {
	input := func(typeProto []byte) []byte {
		return blob(nil, 7, blob(nil, 11, blob(blob(nil, 1, []byte("e")), 2, typeProto)))
	}
	dim := func(content []byte) []byte { return blob(nil, 1, content) }
	shape := append(append(dim(number(nil, 1, 2)), dim(blob(nil, 2, []byte("pairs")))...), dim(number(nil, 1, math.MaxUint64))...)
	m, err := onnx.Parse(input(blob(nil, 1, blob(number(nil, 1, 7), 2, shape))), nil)
	require.NoError(t, err)
	assert.Equal(t, []onnx.Input{{Name: "e", Type: 7, Shape: []int{2, -1, -1}}}, m.Inputs)
	assert.True(t, m.Inputs[0].Type.Integers())
	assert.False(t, m.Inputs[0].Type.Floats())

	m, err = onnx.Parse(input(blob(nil, 4, nil)), nil) // a sequence
	require.NoError(t, err)
	assert.False(t, m.Inputs[0].Type.Floats() || m.Inputs[0].Type.Integers())

	many := bytes.Repeat(dim(nil), 17)
	_, err = onnx.Parse(input(blob(nil, 1, blob(nil, 2, many))), nil)
	assert.ErrorContains(t, err, "more than 16 dimensions")
	_, err = onnx.Parse(input(number(nil, 1, 3)), nil)
	assert.ErrorContains(t, err, "another type than ONNX gives it")
}

func TestInnerGraph(t *testing.T) {
	m, err := onnx.Parse(blob(nil, 7, blob(nil, 1, blob(nil, 5, blob(blob(nil, 1, []byte("then")), 6, nil)))), nil)
	require.NoError(t, err)
	assert.True(t, m.Nodes[0].Attributes["then"].Graph)
}

// Whatever a model repeats, memory follows its bytes: a packed integer of one byte is eight bytes,
// then a float of four.
func TestParseMemory(t *testing.T) {
	const n = 4 << 20
	zeros := make([]byte, n)
	deep := []byte{}
	for range 64 { // graphs within the attribute of a node, and groups, which are skipped
		deep = blob(nil, 7, blob(nil, 1, blob(nil, 5, blob(nil, 6, deep))))
	}
	for name, b := range map[string][]byte{
		"integers":       inGraph(blob(tensor(7, n), 7, zeros)),
		"floats":         inGraph(blob(tensor(1, n/4), 4, zeros)),
		"doubles":        inGraph(blob(tensor(11, n/8), 10, zeros)),
		"dimensions":     inGraph(blob(nil, 1, zeros)),
		"attribute":      blob(nil, 7, blob(nil, 1, blob(nil, 5, blob(nil, 8, zeros)))),
		"inputs":         blob(nil, 7, blob(nil, 1, bytes.Repeat([]byte{1<<3 | 2, 0}, n/2))),
		"nodes":          blob(nil, 7, bytes.Repeat([]byte{1<<3 | 2, 0}, n/2)),
		"external_data":  inGraph(bytes.Repeat([]byte{13<<3 | 2, 0}, n/2)),
		"nested graphs":  deep,
		"nested groups":  bytes.Repeat([]byte{1<<3 | 3}, n),
		"graph is empty": blob(nil, 7, zeros),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := onnx.Parse(b, nil)
		runtime.ReadMemStats(&after)
		t.Logf("%s: %v", name, err)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*len(b)+64<<20), name)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(inGraph(blob(tensor(1, 2), 9, make([]byte, 8))))
	f.Add(inGraph(blob(tensor(10, 1), 5, []byte{1})))
	f.Add(blob(nil, 7, blob(nil, 1, blob(blob(nil, 4, []byte("Relu")), 5, blob(nil, 8, []byte{1, 2})))))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnx.Parse(data, nil)
		if err != nil {
			return
		}
		total := 0
		for _, tensor := range m.Tensors {
			n := 1
			for _, d := range tensor.Shape {
				n *= d
			}
			if tensor.Fault == nil {
				assert.Len(t, tensor.Data, n)
			}
			total += 4 * len(tensor.Data)
		}
		assert.LessOrEqual(t, total, 4*len(data), "values follow the bytes there are")
	})
}
