package codec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSafetensors(t *testing.T) {
	header := `{"__metadata__":{"format":"pt"},
		"b":{"dtype":"BF16","shape":[2],"data_offsets":[16,20]},
		"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},
		"none":{"dtype":"F32","shape":[0,3],"data_offsets":[16,16]},
		"flag":{"dtype":"BOOL","shape":[],"data_offsets":[20,21]}}   `
	data := append(f32Bytes(1, 2, 3, 4), 0x80, 0x3f, 0x00, 0xc0, 1)
	got, err := ParseTensors("x", safetensors(header, data))
	require.NoError(t, err)
	require.Equal(t, map[string]Tensor{
		"a":    {Shape: []int{2, 2}, Data: []float32{1, 2, 3, 4}},
		"b":    {Shape: []int{2}, Data: []float32{1, -2}},
		"none": {Shape: []int{0, 3}, Data: []float32{}},
		"flag": {Shape: []int{}, Data: []float32{1}},
	}, got)
}

func TestSafetensorsRefused(t *testing.T) {
	four := f32Bytes(1)
	entry := func(body string) []byte { return safetensors(`{"w":{`+body+`}}`, four) }
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"no length", []byte("1234567"), "truncated: safetensors header length"},
		{"header beyond the file", safetensors("{}", nil)[:9], "truncated: safetensors header needs 2 bytes, 1 are left"},
		{"huge header", []byte("\xff\xff\xff\xff\xff\xff\xff\xff{"), "the format allows 100000000"},
		{"not JSON", safetensors("{nonsense", nil), "safetensors header"},
		{"JSON cut short", safetensors(`{"w":`, nil), "safetensors header"},
		{"two values", safetensors(`{} {}`, nil), "more than one JSON value"},
		{"metadata is not text", safetensors(`{"__metadata__":{"a":1}}`, nil), "__metadata__"},
		{"unknown dtype", entry(`"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,4]`), `dtype "F8_E4M3" is not supported: convert it to F32`},
		{"no shape", entry(`"dtype":"F32","data_offsets":[0,4]`), "want dtype, shape and two data_offsets"},
		{"one offset", entry(`"dtype":"F32","shape":[1],"data_offsets":[0]`), "want dtype, shape and two data_offsets"},
		{"negative dimension", entry(`"dtype":"F32","shape":[-1],"data_offsets":[0,4]`), "does not fill"},
		{"product overflows to 1", entry(`"dtype":"F32","shape":[4294967296,4294967296,1],"data_offsets":[0,4]`), "does not fill"},
		{"fractional dimension", entry(`"dtype":"F32","shape":[1.5],"data_offsets":[0,4]`), `tensor "w"`},
		{"offsets backwards", entry(`"dtype":"F32","shape":[0],"data_offsets":[4,0]`), "impossible"},
		{"offsets beyond int64", entry(`"dtype":"F32","shape":[1],"data_offsets":[9223372036854775804,9223372036854775807]`), "impossible"},
		{"shape does not fill", entry(`"dtype":"F32","shape":[2],"data_offsets":[0,4]`), "does not fill data_offsets [0 4]"},
		{"beyond the file", entry(`"dtype":"F32","shape":[2],"data_offsets":[0,8]`), "truncated: shape [2] needs 8 bytes, 4 are left"},
		{"gap before", entry(`"dtype":"I8","shape":[1],"data_offsets":[3,4]`), "the tensor before it ends at"},
		{"bytes after", entry(`"dtype":"I8","shape":[1],"data_offsets":[0,1]`), "3 bytes follow the data"},
		{"overlap", safetensors(`{"v":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, four), "the tensor before it ends at"},
		{"name twice", safetensors(`{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}}`, four), "used twice"},
		{"long name", safetensors(`{"`+strings.Repeat("n\\n", 5000)+`":{"dtype":"X","shape":[1],"data_offsets":[0,4]}}`, four), "is not supported"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseTensors("x.safetensors", tt.data)
			requireFault(t, err, "x.safetensors", tt.want)
		})
	}
	_, err := ParseTensors("x.safetensors", entry(`"dtype":"F32","shape":[1,1],"data_offsets":[0,8]`))
	require.EqualError(t, err, `x.safetensors: byte 12: tensor "w": shape [1 1] of F32 does not fill data_offsets [0 8]`)
}
