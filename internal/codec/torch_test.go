package codec

import (
	"archive/zip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Pickle fragments, in protocol 2.
const (
	pickleStorage = "(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
	// A tensor of shape and strides given as the code of two tuples.
	pickleTensor = "ctorch._utils\n_rebuild_tensor_v2\n(" + pickleStorage + "K\x00" + "%shape" + "\x89)tR"
)

func pickledTensor(shapeAndStrides string) string {
	return strings.ReplaceAll(pickleTensor, "%shape", shapeAndStrides)
}

// vector is a tensor of all four elements of storage 0.
var vector = pickledTensor("K\x04\x85K\x01\x85")

func text(s string) string { return "X" + string(rune(len(s))) + "\x00\x00\x00" + s }

func TestTorchNames(t *testing.T) {
	four := f32Bytes(1, 2, 3, 4)
	tests := []struct {
		name, pickle string
		want         []string
	}{
		{"bare tensor", vector, []string{""}},
		{"dict", "}" + text("w") + vector + "s", []string{"w"}},
		{"nested", "}" + text("a") + "}" + text("b.c") + vector + "ss", []string{"a.b.c"}},
		{"integer keys, lists, tuples", "}K\x07]" + vector + "a" + vector + "\x85as", []string{"7.0", "7.1.0"}},
		{"Python 2 OrderedDict", "ccollections\nOrderedDict\n](](U\x01w" + vector + "eU\x01v" + vector + "\x86e\x85R", []string{"w", "v"}},
		{"other keys without tensors", "}N}s" + text("w") + vector + "s", []string{"w"}},
		{"memo shares one tensor", "}(" + text("a") + vector + "q\x05" + text("b") + "h\x05u", []string{"a", "b"}},
		{"attributes are dropped", "ccollections\nOrderedDict\n)R" + text("w") + vector + "s}" + text("x") + vector + "sb", []string{"w"}},
		{"everything inert", "}(" + text("w") + vector + text("n") + "N" + text("b") + "\x88" + text("f") + "G\x3f\xf0\x00\x00\x00\x00\x00\x00" +
			text("i") + "J\xff\xff\xff\xff" + text("l") + "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01" + text("m") + "\x8a\x02\x00\xff" +
			text("y") + "C\x02ab" + text("s") + "\x8f(K\x01\x90" + text("z") + "(K\x02\x91" + text("u") + "ctorch\nFloatStorage\nu", []string{"w"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseTensors("x.pt", torchFile(t, "\x80\x02"+tt.pickle+".", four))
			require.NoError(t, err)
			require.Len(t, got, len(tt.want))
			for _, name := range tt.want {
				require.Equal(t, Tensor{Shape: []int{4}, Data: []float32{1, 2, 3, 4}}, got[name], name)
			}
		})
	}
}

// TestTorchOwnsItsData: tensors that share storage in the file do not share memory.
func TestTorchOwnsItsData(t *testing.T) {
	got, err := ParseTensors("x.pt", fixture(t, "torch", "parameters.pt"))
	require.NoError(t, err)
	got["tied"].Data[0] = 1e9
	require.NotEqual(t, got["tied"].Data[0], got["again"].Data[0])
}

func TestTorchRefused(t *testing.T) {
	tests := []struct {
		name, pickle, want string
	}{
		{"global", "cos\nsystem\n.", `refused: the file names "os.system"`},
		{"global near an allowed one", "ctorch._utils\n_rebuild_tensor_v3\n.", `refused: the file names "torch._utils._rebuild_tensor_v3"`},
		{"global by the stack", text("builtins") + text("eval") + "\x93.", `refused: the file names "builtins.eval"`},
		{"global named by a number", "K\x01K\x02\x93.", "the name of a global is not text"},
		{"global without an end", "cos\nsystem", "truncated: the name of a global does not end"},
		{"global over two lines", "cos\x1b[0m\nsys\ttem\n.", `"os\x1b[0m.sys\ttem"`},
		{"inst", "(ios\nsystem\n.", "opcode 0x69: refused"},
		{"obj", "(o.", "opcode 0x6f: refused"},
		{"newobj", "ccollections\nOrderedDict\n)\x81.", "opcode 0x81: refused"},
		{"extension registry", "\x82\x01.", "opcode 0x82: refused"},
		{"out of band buffer", "\x97.", "opcode 0x97: refused"},
		{"call of a value", "K\x01)R.", "refused: calls something that is not a function"},
		{"call of a storage type", "ctorch\nFloatStorage\n)R.", "refused: calls something that is not a function"},
		{"call without a tuple", "ccollections\nOrderedDict\nK\x01R.", "without a tuple"},
		{"OrderedDict of a number", "ccollections\nOrderedDict\nK\x01\x85R.", "list of pairs"},
		{"attributes of a tensor", vector + "}b.", "refused: sets attributes"},
		{"parameter of a number", "ctorch._utils\n_rebuild_parameter\nK\x01\x85R.", "_rebuild_parameter wants a tensor"},
		{"persistent id of text", "X\x01\x00\x00\x00xQ.", "not a storage"},
		{"protocol", "\x80\x09.", "pickle protocol 9 is not known"},
		{"empty", "", "truncated"},
		{"no value", ".", "the stack is empty"},
		{"value is a mark", "(.", "a mark where a value should be"},
		{"no mark", "K\x01t.", "no mark"},
		{"mark in a list", "](a.", "a mark where a value should be"},
		{"key without value", "}(K\x01u.", "a dict key without a value"},
		{"items of a number", "K\x01K\x02a.", "not a list or a dict"},
		{"pairs into a list", "]K\x01K\x02s.", "not a list or a dict"},
		{"memo not set", "h\x07.", "memo 7 is not set"},
		{"memo of nothing", "q\x00.", "nothing on the stack"},
		{"text beyond the end", "X\xff\xff\xff\xffabc", "truncated: wants 4294967295 bytes"},
		{"text far beyond the end", "\x8d\xff\xff\xff\xff\xff\xff\xff\xffabc", "truncated: wants 18446744073709551615 bytes"},
		{"more elements than stored", pickledTensor("K\x05\x85K\x01\x85") + ".", "truncated: shape [5] needs 20 bytes, 16 are left"},
		{"strides reach beyond", pickledTensor("K\x02K\x02\x86K\x04K\x01\x86") + ".", "truncated: shape [2 2]"},
		{"negative stride", pickledTensor("K\x04\x85J\xff\xff\xff\xff\x85") + ".", "strides [-1] are impossible"},
		{"too few strides", pickledTensor("K\x02K\x02\x86K\x01\x85") + ".", "strides [1] are impossible"},
		{"shape of text", pickledTensor("U\x01a\x85K\x01\x85") + ".", "_rebuild_tensor_v2 wants"},
		{"shape overflows", pickledTensor("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40K\x08\x86K\x00K\x00\x86") + ".", "is impossible"},
		{"storage absent", strings.Replace(vector, "X\x01\x00\x00\x000", "X\x01\x00\x00\x009", 1) + ".", `the file has no storage "9"`},
		{"storage smaller than it says", strings.Replace(vector, "cpuK\x04", "cpuK\x05", 1) + ".", "truncated: tensor \"\" wants a storage of 5 elements"},
		{"untyped storage", strings.Replace(vector, "ctorch\nFloatStorage", "ctorch.storage\nUntypedStorage", 1) + ".", "untyped storage"},
		{"tensor under None", "}N" + vector + "s.", "neither text nor an integer"},
		{"two tensors of one name", "}(" + text("a.b") + vector + text("a") + "}" + text("b") + vector + "su.", "the name is used twice"},
		{"nothing in it", "}.", "holds no tensors"},
		{"list within itself", "]q\x00h\x00a.", "nested more than 64 deep"},
		{"sixty-four doublings", "]q\x00" + strings.Repeat("](h\x00h\x00eq\x00", 60) + ".", "nested values take more than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseTensors("x.pt", torchFile(t, tt.pickle, f32Bytes(1, 2, 3, 4)))
			requireFault(t, err, "x.pt", tt.want)
		})
	}
	_, err := ParseTensors("x.pt", torchFile(t, "\x80\x02}"+text("w")+"cos\nsystem\n."))
	at := requireFault(t, err, "x.pt", "os.system")
	require.Equal(t, `entry "x/data.pkl"`, at.Section)
	require.EqualValues(t, 9, at.Offset)
}

func TestTorchByteOrder(t *testing.T) {
	pickle := entryOf{"data.pkl", zip.Store, []byte(vector + ".")}
	storage := entryOf{"data/0", zip.Deflate, f32Bytes(1, 2, 3, 4)}
	got, err := ParseTensors("x.pt", zipped(t, pickle, storage, entryOf{"byteorder", zip.Store, []byte("little")}))
	require.NoError(t, err)
	require.Equal(t, []float32{1, 2, 3, 4}, got[""].Data)

	_, err = ParseTensors("x.pt", zipped(t, pickle, storage, entryOf{"byteorder", zip.Store, []byte("big")}))
	requireFault(t, err, "x.pt", `byte order "big": save it on a little-endian machine`)
}
