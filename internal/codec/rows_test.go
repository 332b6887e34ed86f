package codec

import (
	"archive/zip"
	"encoding/binary"
	"io"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// grid is 5 x 3 in row-major order; every value is exact in half precision.
var grid = [][]float32{{0, 1, 2}, {3, 4, 5}, {-6, 7, 8.5}, {9, 10, 11}, {12, 13, 14}}

func columns(rows [][]float32) (flat []float32) {
	for j := range rows[0] {
		for i := range rows {
			flat = append(flat, rows[i][j])
		}
	}
	return flat
}

func flatten(rows [][]float32) (flat []float32) {
	for _, row := range rows {
		flat = append(flat, row...)
	}
	return flat
}

func f64Bytes(values []float32) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(v)))
	}
	return b
}

func TestRowsOfEveryFormat(t *testing.T) {
	cOrder := npy(npyHeaderText("<f4", false, "(5, 3)"), f32Bytes(flatten(grid)...))
	fortran := npy(npyHeaderText("<f8", true, "(5, 3)"), f64Bytes(columns(grid)))
	bias := npy(npyHeaderText("<f4", false, "(3,)"), f32Bytes(1, 2, 3))
	tests := []struct {
		name  string
		data  []byte
		count int64 // where it is known when the file is compressed too
	}{
		{"c.npy", cOrder, 5},
		{"fortran.npy", fortran, 5},
		{"stored.npz", zipped(t, entryOf{"bias.npy", zip.Store, bias}, entryOf{"x.npy", zip.Store, cOrder}), 5},
		{"deflated.npz", zipped(t, entryOf{"x.npy", zip.Deflate, cOrder}, entryOf{"bias.npy", zip.Deflate, bias}), 5},
		{"fortran-stored.npz", zipped(t, entryOf{"x.npy", zip.Store, fortran}), 5},
		{"fortran-deflated.npz", zipped(t, entryOf{"x.npy", zip.Deflate, fortran}), 5},
		{"x.safetensors", safetensors(`{"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"x":{"dtype":"F32","shape":[5,3],"data_offsets":[12,72]},"z":{"dtype":"U8","shape":[2],"data_offsets":[72,74]}}`,
			append(f32Bytes(append([]float32{1, 2, 3}, flatten(grid)...)...), 1, 2)), 5},
		{"x.fvecs", fvecs(grid...), -1},
		{"x.csv", []byte("0,1,2\n3,4,5\n-6,7,8.5\n9,10,11\n12,13,14"), -1},
		{"x.tsv", []byte("0\t1\t2\r\n3\t4\t5\r\n\r\n-6\t7\t8.5\r\n9\t10\t11\r\n12\t13\t14\r\n"), -1},
		{"x.jsonl", []byte("{\"embedding\":[0,1,2]}\n\n{\"embedding\":[ 3 , 4,5 ]}\n{\"embedding\":[-6,7.0,85e-1]}\n{\"embedding\":[9,10,11]}\n{\"embedding\":[12,13,14]}"), -1},
	}
	for _, tt := range tests {
		for suffix, data := range map[string][]byte{"": tt.data, ".zst": zst(t, tt.data), ".gz": gz(t, tt.data)} {
			t.Run(tt.name+suffix, func(t *testing.T) {
				r, err := OpenRows(written(t, tt.name+suffix, data), nil)
				require.NoError(t, err)
				require.Equal(t, 3, r.Dim())
				if want := tt.count; want >= 0 || suffix != "" {
					require.Equal(t, want, r.Count())
				}
				values, rows := readAll(t, r)
				require.Equal(t, grid, values)
				for _, row := range rows {
					require.Equal(t, Row{}, row)
				}
			})
		}
	}
}

func TestRowsCountAndPosition(t *testing.T) {
	r, err := ParseRows("x.fvecs", fvecs(grid...))
	require.NoError(t, err)
	require.EqualValues(t, 5, r.Count())
	dst := make([]float32, 3)
	for i, want := range []string{"row 0", "row 1", "row 2"} {
		_, err := r.Next(dst)
		require.NoError(t, err)
		require.Equal(t, want, r.Position())
		require.Equal(t, grid[i], dst)
	}
	require.NoError(t, r.Close())

	b, err := ParseRows("x.bvecs", []byte{2, 0, 0, 0, 7, 255, 2, 0, 0, 0, 0, 1})
	require.NoError(t, err)
	require.EqualValues(t, 2, b.Count())
	values, _ := readAll(t, b)
	require.Equal(t, [][]float32{{7, 255}, {0, 1}}, values)

	m, err := ParseRows("c_f4.npy", fixture(t, "numpy", "c_f4.npy"))
	require.NoError(t, err)
	_, err = m.Next(make([]float32, 4))
	require.NoError(t, err)
	require.Equal(t, "row 0", m.Position())
}

// TestRowsAcrossBlocks reads matrices of several blocks in both orders, with a last block that is
// not full.
func TestRowsAcrossBlocks(t *testing.T) {
	const n, dim = 2500, 700
	at := func(i, j int) float32 { return float32(i%1000) + float32(j)/1024 }
	c, fortran := make([]float32, 0, n*dim), make([]float32, 0, n*dim)
	for i := range n {
		for j := range dim {
			c = append(c, at(i, j))
		}
	}
	for j := range dim {
		for i := range n {
			fortran = append(fortran, at(i, j))
		}
	}
	for name, data := range map[string][]byte{
		"c.npy":       npy(npyHeaderText("<f4", false, "(2500, 700)"), f32Bytes(c...)),
		"fortran.npy": npy(npyHeaderText("<f4", true, "(2500, 700)"), f32Bytes(fortran...)),
	} {
		r, err := ParseRows(name, data)
		require.NoError(t, err)
		values, _ := readAll(t, r)
		require.Len(t, values, n, name)
		for i, row := range values {
			for j, v := range row {
				if v != at(i, j) {
					t.Fatalf("%s[%d, %d] = %v, want %v", name, i, j, v, at(i, j))
				}
			}
		}
	}
}

// TestRowsOfTorch streams views of a storage, contiguous and not.
func TestRowsOfTorch(t *testing.T) {
	storage := f32Bytes(0, 1, 2, 3, 4, 5)
	six := func(code string) []byte {
		return torchFile(t, "}"+text("emb")+pickleSix(code)+"s.", storage)
	}
	for name, tt := range map[string]struct {
		code string
		want [][]float32
	}{
		"contiguous":     {"K\x02K\x03\x86K\x03K\x01\x86", [][]float32{{0, 1, 2}, {3, 4, 5}}},
		"transposed":     {"K\x03K\x02\x86K\x01K\x03\x86", [][]float32{{0, 3}, {1, 4}, {2, 5}}},
		"columns 0 to 1": {"K\x02K\x02\x86K\x03K\x01\x86", [][]float32{{0, 1}, {3, 4}}},
	} {
		r, err := ParseRows("x.pt", six(tt.code))
		require.NoError(t, err, name)
		values, _ := readAll(t, r)
		require.Equal(t, tt.want, values, name)
	}
	_, err := ParseRows("x.pt", six("K\x02K\x02\x86K\x02K\x02\x86"))
	requireFault(t, err, "x.pt", "save it with .contiguous()")
	_, err = ParseRows("x.pt", six("\x8a\x04\x00\x00\x00\x40K\x03\x86K\x00K\x01\x86"))
	requireFault(t, err, "x.pt", "rows overlap")
}

// pickleSix is a tensor over a storage of six elements.
func pickleSix(shapeAndStrides string) string {
	p := pickledTensor(shapeAndStrides)
	const four, six = "cpuK\x04", "cpuK\x06"
	for i := range p {
		if len(p)-i > len(four) && p[i:i+len(four)] == four {
			return p[:i] + six + p[i+len(four):]
		}
	}
	return p
}

func TestRowsByName(t *testing.T) {
	matrix := func(v float32) []byte { return npy(npyHeaderText("<f4", false, "(1, 2)"), f32Bytes(v, v)) }
	path := written(t, "two.npz", zipped(t, entryOf{"users.npy", zip.Store, matrix(1)}, entryOf{"items.npy", zip.Deflate, matrix(2)},
		entryOf{"cube.npy", zip.Store, npy(npyHeaderText("<f4", false, "(1, 1, 1)"), f32Bytes(3))}))
	for name, want := range map[string]float32{"users": 1, "items": 2} {
		r, err := OpenRows(path+"#"+name, nil)
		require.NoError(t, err)
		values, _ := readAll(t, r)
		require.Equal(t, [][]float32{{want, want}}, values)
	}
	_, err := OpenRows(path, nil)
	requireFault(t, err, path, `holds 2 matrices ("users", "items"): name one, as in `+path+`#users`)
	_, err = OpenRows(path+"#absent", nil)
	requireFault(t, err, path, `holds no matrix named "absent"`)
	_, err = OpenRows(path+"#cube", nil)
	requireFault(t, err, path, `holds no matrix named "cube"`)

	literal := written(t, "odd#name.npy", matrix(7))
	r, err := OpenRows(literal, nil)
	require.NoError(t, err, "a file that has # in its name")
	require.NoError(t, r.Close())
}

func TestRowsRefused(t *testing.T) {
	tests := []struct {
		file string
		data []byte
		want string
	}{
		{"x.dat", []byte("some other bytes, not of ours"), "not a format of embeddings: want .npy"},
		{"vector.npy", npy(npyHeaderText("<f4", false, "(2,)"), f32Bytes(1, 2)), "embeddings are a matrix"},
		{"flat.npy", npy(npyHeaderText("<f4", false, "(2, 0)"), nil), "rows must have 1 to 1048576 values"},
		{"wide.npy.zst", zst(t, npy(npyHeaderText("<f4", false, "(2, 1048577)"), nil)), "rows must have 1 to 1048576 values"},
		{"short.npy", npy(npyHeaderText("<f2", false, "(2, 2)"), f32Bytes(1)), "truncated: shape [2 2] needs 8 bytes, 4 are left"},
		{"none.npz", zipped(t, entryOf{"readme.txt", zip.Store, []byte("x")}), "holds no matrix"},
		{"x.fvecs", nil, "holds no rows"},
		{"x.fvecs", []byte{1, 0}, "truncated in row 0"},
		{"x.fvecs", []byte{0, 0, 0, 0}, "row 0 has 0 values"},
		{"x.fvecs", []byte{255, 255, 255, 255}, "row 0 has -1 values"},
		{"x.fvecs", []byte{0, 0, 0, 8, 1, 2, 3, 4}, "row 0 has 134217728 values"},
		{"x.fvecs", fvecs(grid...)[:70], "byte 64: truncated: 6 bytes are left for row 4, which takes 16"},
		{"x.csv", nil, "holds no rows"},
		{"x.csv", []byte("key,a,b\n"), "holds no rows"},
		{"x.csv", []byte("key,a,b\nx,1\n"), "line 2: byte 8: 2 fields, the header has 3"},
		{"x.csv", []byte("x\n"), "a key without values"},
		{"x.csv", []byte("\"x,1,2\n"), "field 1: its quotes do not end"},
		{"x.jsonl", []byte("\n\n"), "holds no rows"},
	}
	for _, tt := range tests {
		t.Run(tt.file+" "+tt.want, func(t *testing.T) {
			_, err := ParseRows(tt.file, tt.data)
			requireFault(t, err, tt.file, tt.want)
		})
	}
}

// TestRowsFailLate: faults that show only while rows are read, after the sound rows before them,
// and that repeat when asked again.
func TestRowsFailLate(t *testing.T) {
	cOrder := npy(npyHeaderText("<f4", false, "(5, 3)"), f32Bytes(flatten(grid)...))
	deflated := zipped(t, entryOf{"x.npy", zip.Deflate, cOrder})
	stored := zipped(t, entryOf{"x.npy", zip.Store, cOrder})
	stored[30+5+len(cOrder)-1] ^= 1
	checksum := gz(t, cOrder)
	checksum[len(checksum)-6] ^= 1
	tests := []struct {
		file  string
		data  []byte
		sound int
		want  string
	}{
		{"cut.npy.zst", zst(t, cOrder[:len(cOrder)-4]), 0, "truncated: rows 0 to 4 needs 60 bytes at byte"},
		{"cut.npy.gz", gz(t, cOrder)[:60], 0, "gzip: truncated"},
		{"long.npy.zst", zst(t, append(cOrder, 0)), 5, "bytes follow the data"},
		{"checksum.npy.gz", checksum, 5, "gzip: invalid checksum"},
		{"checksum.npz", stored, 5, "the checksum is"},
		{"sound.npz", deflated, 5, "EOF"},
		{"cut.safetensors.zst", zst(t, safetensors(`{"x":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"y":{"dtype":"F32","shape":[9],"data_offsets":[16,52]}}`, f32Bytes(1, 2, 3, 4, 5))), 2, "truncated: the data should end at byte"},
		{"width.fvecs.zst", zst(t, fvecs([]float32{1, 2}, []float32{3})), 1, "row 1 has 1 values, row 0 has 2"},
		{"cut.fvecs.zst", zst(t, fvecs(grid...)[:70]), 4, "byte 70: truncated in row 4"},
		{"x.csv", []byte("1,2\n3\n"), 1, "line 2: byte 4: 1 values, the first row has 2"},
		{"x.csv", []byte("1,2\n3,\n"), 1, `line 2: byte 4: field 2: "" is not a float32`},
		{"x.csv", []byte("1,2\n3,1e99\n"), 1, `field 2: "1e99" is not a float32`},
		{"x.csv", []byte("a,1,2\nb,3,x\n"), 1, `field 3: "x" is not a float32`},
		{"x.jsonl", []byte("{\"embedding\":[1,2]}\n\n{\"embedding\":[3]}\n"), 1, "line 3: byte 21: the embedding has 1 values, the first had 2"},
		{"x.jsonl", []byte("{\"embedding\":[1,2]}\n{\"embedding\":[3,"), 1, "line 2: byte"},
		{"x.jsonl.zst", zst(t, []byte("{\"embedding\":[1,2]}\n{\"embedding\":[1,2]}\n"))[:30], 0, "zstd"},
	}
	for _, tt := range tests {
		t.Run(tt.file+" "+tt.want, func(t *testing.T) {
			r, err := ParseRows(tt.file, tt.data)
			sound := 0
			for dst := make([]float32, 8); err == nil; sound++ {
				_, err = r.Next(dst)
			}
			require.Equal(t, tt.sound, max(sound-1, 0))
			if tt.want == "EOF" {
				require.Equal(t, io.EOF, err)
				return
			}
			requireFault(t, err, tt.file, tt.want)
			if r != nil {
				_, again := r.Next(make([]float32, 8))
				require.Equal(t, err, again)
				require.NoError(t, r.Close())
			}
		})
	}
}

func TestRowsOfRealEmbeddings(t *testing.T) {
	for graph, shape := range map[string][2]int{"go-stdlib": {33445, 64}, "ddi": {4267, 256}} {
		path := filepath.Join(bigData(t), graph, "embeddings.npy")
		r, err := OpenRows(path, nil)
		require.NoError(t, err)
		require.Equal(t, shape[1], r.Dim())
		require.EqualValues(t, shape[0], r.Count())
		values, _ := readAll(t, r)
		require.Len(t, values, shape[0])

		whole, err := ReadTensors(path)
		require.NoError(t, err)
		require.Equal(t, shape[:], whole[""].Shape)
		require.True(t, slices.Equal(whole[""].Data, flatten(values)))
	}
}

func BenchmarkRows(b *testing.B) {
	const n, dim = 8192, 64
	data := npy(npyHeaderText("<f2", false, "(8192, 64)"), make([]byte, 2*n*dim))
	dst := make([]float32, dim)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		r, err := ParseRows("x.npy", data)
		for err == nil {
			_, err = r.Next(dst)
		}
		require.Equal(b, io.EOF, err)
	}
}
