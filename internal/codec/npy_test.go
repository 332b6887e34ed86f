package codec

import (
	"archive/zip"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNPYHeader(t *testing.T) {
	for name, text := range map[string]string{
		"as NumPy writes it":  "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      \n",
		"other order, quotes": `{"shape":(2,3),"fortran_order":False,"descr":"<f4"}`,
		"Python 2":            "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }",
	} {
		got, err := parseNPYHeader(text)
		require.NoError(t, err, name)
		require.Equal(t, npyHeader{descr: "<f4", shape: []int64{2, 3}}, got, name)
	}
	one, err := parseNPYHeader("{'descr': '|u1', 'fortran_order': True, 'shape': (5,)}")
	require.NoError(t, err)
	require.Equal(t, npyHeader{descr: "|u1", fortran: true, shape: []int64{5}}, one)
}

func TestNPYRefused(t *testing.T) {
	twelve := f32Bytes(1, 2, 3)
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"magic only", []byte(npyMagic), "truncated: npy header"},
		{"version", append([]byte(npyMagic), 9, 0, 0, 0), "npy version 9 is not known"},
		{"header beyond the file", npy("{", nil)[:10], "truncated: npy header"},
		{"huge header", append([]byte(npyMagic), 2, 0, 255, 255, 255, 255), "npy header of 4294967295 bytes"},
		{"empty header", npy("", nil), "want '{'"},
		{"cut short", npy("{'descr': '<f4'", nil), "want ',' or '}'"},
		{"no shape", npy("{'descr': '<f4', 'fortran_order': False}", nil), "want descr, fortran_order and shape"},
		{"key twice", npy("{'descr': '<f4', 'descr': '<f4'}", nil), "is there twice"},
		{"key unknown", npy("{'color': 'red'}", nil), `key "color" is not known`},
		{"a call", npy("{'descr': __import__('os')}", nil), "want a string"},
		{"an escape", npy(`{'descr': '<f\x34'}`, nil), "escape"},
		{"text after", npy(npyHeaderText("<f4", false, "(3,)")+"x", twelve), "text after the dict"},
		{"negative", npy(npyHeaderText("<f4", false, "(-3,)"), twelve), "want a dimension"},
		{"too large a number", npy(npyHeaderText("<f4", false, "(99999999999999999999,)"), twelve), "want a dimension"},
		{"product overflows", npy(npyHeaderText("<f4", false, "(4294967296, 4294967296)"), twelve), "is impossible"},
		{"product overflows with 0", npy(npyHeaderText("<f4", true, "(4294967296, 4294967296, 0)"), nil), "is impossible"},
		{"bfloat16", npy(npyHeaderText("<V2", false, "(6,)"), twelve), `npy type "<V2" is not supported`},
		{"too few bytes", npy(npyHeaderText("<f4", false, "(4,)"), twelve), "truncated: shape [4] needs 16 bytes, 12 are left"},
		{"too many bytes", npy(npyHeaderText("<f4", false, "(2,)"), twelve), "4 bytes follow the data"},
		{"too many bytes, Fortran", npy(npyHeaderText("<f4", true, "(1, 2)"), twelve), "4 bytes follow the data"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseTensors("x.npy", tt.data)
			requireFault(t, err, "x.npy", tt.want)
		})
	}
}

func TestArchiveRefused(t *testing.T) {
	sound := npy(npyHeaderText("<f4", false, "(3,)"), f32Bytes(1, 2, 3))
	stored := zipped(t, entryOf{"w.npy", zip.Store, sound})
	// The sizes of the one entry stand at the same distance from the end in its directory.
	directory := len(stored) - 22 - 46 - len("w.npy")
	patched := func(at int, value uint32) []byte {
		b := append([]byte(nil), stored...)
		binary.LittleEndian.PutUint32(b[directory+at:], value)
		return b
	}
	flipped := append([]byte(nil), stored...)
	flipped[30+5+len(sound)-1] ^= 1
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"not an archive", []byte("PK\x03\x04 and nothing more"), "zip archive, truncated or damaged"},
		{"entry twice", zipped(t, entryOf{"w.npy", zip.Store, sound}, entryOf{"w.npy", zip.Store, sound}), `entry "w.npy" is there twice`},
		{"damaged value", flipped, `entry "w.npy": the checksum is`},
		{"sizes differ", patched(24, 1<<20), "its two sizes differ"},
		{"beyond the file", func() []byte {
			b := patched(24, 1<<20)
			binary.LittleEndian.PutUint32(b[directory+20:], 1<<20)
			return b
		}(), "reaches past the end"},
		{"method", patched(10, 99), "compression method 99 is not supported"},
		{"encrypted", patched(8, 1), "encrypted"},
		{"not an array", zipped(t, entryOf{"w.npy", zip.Deflate, []byte("hello, hello, hello")}), `entry "w.npy": not a .npy array`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseTensors("x.npz", tt.data)
			requireFault(t, err, "x.npz", tt.want)
		})
	}
}
