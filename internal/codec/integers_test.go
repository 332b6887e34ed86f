package codec

import (
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadIntegers(t *testing.T) {
	at := func(name string) string { return filepath.Join("testdata", name) }
	got, err := ReadIntegers(at("torch/split.pt"))
	require.NoError(t, err)
	require.Equal(t, []Integers{
		{"edge", []int{3, 2}, []int64{0, 1, 2, 3, -4, 1 << 40}},
		{"edge_neg", []int{2, 2}, []int64{5, 6, 7, 8}}, // in Fortran order
	}, got, "weight holds no integers")

	got, err = ReadIntegers(at("numpy/scalar_i8.npy"))
	require.NoError(t, err)
	require.Equal(t, []Integers{{"", []int{}, []int64{-3}}}, got)

	got, err = ReadIntegers(at("torch/signed.pt"))
	require.NoError(t, err)
	require.Len(t, got, 4)
	for _, a := range got {
		require.Equal(t, []int64{-1, -128, 64}, a.Data, a.Name)
	}
	got, err = ReadIntegers(at("numpy/types.npz"))
	require.NoError(t, err)
	require.Len(t, got, 8)
	for _, a := range got {
		require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, a.Data, a.Name)
	}

	path := at("numpy/c_f4.npy")
	_, err = ReadIntegers(path)
	requireFault(t, err, path, "holds no array of integers")
}

// A value beyond 2^24 is no longer what a float32 holds.
func TestIntegersAreExact(t *testing.T) {
	file := npyFile("'<u8'", "(2,)", binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 1<<24+1), 1<<62+1))
	got, err := ParseIntegers("x.npy", file)
	require.NoError(t, err)
	require.Equal(t, []int64{1<<24 + 1, 1<<62 + 1}, got[0].Data)

	file = npyFile("'<u8'", "(1,)", binary.LittleEndian.AppendUint64(nil, 1<<63))
	_, err = ParseIntegers("x.npy", file)
	requireFault(t, err, "x.npy", "too large for an int64")
}

func npyFile(descr, shape string, data []byte) []byte {
	header := "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + "}"
	p := append([]byte(npyMagic), 1, 0)
	p = binary.LittleEndian.AppendUint16(p, uint16(len(header)))
	return append(append(p, header...), data...)
}

// What the old format may lie about.
func TestLegacyRefused(t *testing.T) {
	sound := string(fixture(t, "torch/legacy.pt"))
	arrays := string(fixture(t, "torch/split.pt"))
	for name, c := range map[string]struct{ file, want string }{
		"storage cut":      {sound[:len(sound)-1], "a storage reaches past the end"},
		"storage size":     {strings.Replace(sound, "\x18\x00\x00\x00\x00\x00\x00\x00", "\xff\xff\xff\xff\xff\xff\xff\xff", 1), "a storage reaches past the end"},
		"bytes follow":     {sound + "x", "bytes follow the last storage"},
		"no keys":          {legacyMagic + strings.Repeat("\x80\x02N.", 4), "the keys of the storages are not a list"},
		"unknown storage":  {legacyMagic + strings.Repeat("\x80\x02N.", 3) + "\x80\x02](X\x01\x00\x00\x00ae.", "a storage that no tensor names"},
		"array cut":        {strings.Replace(arrays, "K\x03K\x02\x86", "K\x04K\x02\x86", 1), "a NumPy array of shape [4 2] has 48 bytes"},
		"array of objects": {strings.Replace(arrays, "\x02\x00\x00\x00i8", "\x02\x00\x00\x00O8", 1), `a NumPy array of type "O8" is not supported`},
		"big-endian":       {strings.Replace(arrays, "\x01\x00\x00\x00<", "\x01\x00\x00\x00>", 1), "big-endian"},
		"other function":   {strings.Replace(arrays, "c_codecs\nencode\n", "c_codecs\nunsafe\n", 1), `refused: the file names "_codecs.unsafe"`},
		"not latin1":       {legacyMagic + strings.Repeat("\x80\x02N.", 2) + "\x80\x02c_codecs\nencode\nX\x02\x00\x00\x00\xc4\x80X\x06\x00\x00\x00latin1\x86R.", "latin1 has not"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseIntegers("x.pt", []byte(c.file))
			requireFault(t, err, "x.pt", c.want)
		})
	}
}

func FuzzParseIntegers(f *testing.F) {
	addFiles(f, "torch/*.pt", "numpy/*.np?")
	f.Fuzz(func(t *testing.T, data []byte) {
		arrays, err := ParseIntegers("x.pt", data)
		checkError(t, "x.pt", err)
		total := int64(0)
		for _, a := range arrays {
			n := 1
			for _, dim := range a.Shape {
				n *= dim
			}
			require.Len(t, a.Data, n)
			total += 8 * int64(n)
		}
		require.LessOrEqual(t, total, allow(int64(len(data))).limit)
	})
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\tb\n\n\"x,y\",z\r\n"))
	f.Add([]byte("\xff\xfea"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := ParseLines("x.txt", data)
		checkError(t, "x.txt", err)
		if err != nil {
			return
		}
		read, last := 0, 0
		for {
			text, number, err := l.Next()
			if err != nil {
				break
			}
			require.Greater(t, number, last)
			last = number
			read += len(text)
			_, err = l.Split(nil, text, ',')
			checkError(t, "x.txt", err)
		}
		require.LessOrEqual(t, read, len(data))
		require.NoError(t, l.Close())
	})
}
