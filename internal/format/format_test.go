package format

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReaderReadsWhatWriterWrote(t *testing.T) {
	var w Writer
	w.Uint8(7)
	w.Uint16(0x0102)
	w.Uint32(0x03040506)
	w.Uint64(0x0708090a0b0c0d0e)
	w.Float32(float32(math.Inf(-1)))
	w.Float64(math.Pi)
	w.Uvarint(300)
	w.Bytes([]byte{1, 2, 3})
	w.Blob([]byte("blob"))
	w.String("string")
	w.CRC(0)
	assert.Equal(t, []byte{7, 2, 1, 6, 5, 4, 3, 0x0e}, w.Data()[:8], "little-endian")
	assert.Equal(t, len(w.Data()), w.Len())

	r := NewReader("f", "s", 100, w.Data())
	assert.Equal(t, uint8(7), r.Uint8())
	assert.Equal(t, uint16(0x0102), r.Uint16())
	assert.Equal(t, int64(103), r.Offset())
	assert.Equal(t, uint32(0x03040506), r.Uint32())
	assert.Equal(t, uint64(0x0708090a0b0c0d0e), r.Uint64())
	assert.Equal(t, float32(math.Inf(-1)), r.Float32())
	assert.Equal(t, math.Pi, r.Float64())
	assert.Equal(t, uint64(300), r.Uvarint())
	assert.Equal(t, []byte{1, 2, 3}, r.Bytes(3))
	assert.Equal(t, []byte("blob"), r.Blob())
	assert.Equal(t, "string", r.String())
	assert.Equal(t, CRC(w.Data()[:w.Len()-4]), r.Uint32())
	assert.Equal(t, 0, r.Len())
	assert.NoError(t, r.End())
	assert.Empty(t, r.Rest())
	assert.NoError(t, r.Err())
}

func TestReaderRefuses(t *testing.T) {
	tests := []struct {
		name   string
		data   []byte
		read   func(r *Reader)
		offset int64
		want   string
	}{
		{"short fixed", []byte{1, 2, 3}, func(r *Reader) { r.Uint32() }, 10, "4 bytes wanted, 3 left"},
		{"second read", []byte{1, 2, 3}, func(r *Reader) { r.Uint16(); r.Uint64() }, 12, "8 bytes wanted, 1 left"},
		{"negative length", []byte{1}, func(r *Reader) { r.Bytes(-1) }, 10, "-1 bytes wanted"},
		{"length overflow", []byte{1}, func(r *Reader) { r.Bytes(math.MaxInt) }, 10, "1 left"},
		{"unfinished varint", []byte{0x80}, func(r *Reader) { r.Uvarint() }, 10, "unfinished varint"},
		{"long varint", []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, func(r *Reader) { r.Uvarint() }, 10, "64 bits"},
		{"blob beyond end", []byte{9, 1}, func(r *Reader) { r.Blob() }, 10, "9 elements"},
		{"count overflow", []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, func(r *Reader) { r.Count(8) }, 10, "elements of at least 8 bytes"},
		{"trailing bytes", []byte{1, 2, 3}, func(r *Reader) { r.Uint8(); _ = r.End() }, 11, "2 bytes too many"},
		{"own finding", []byte{1}, func(r *Reader) { r.Fail("dim %d", 0) }, 10, "dim 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader("x.ivf", "header", 10, tt.data)
			tt.read(r)
			var corrupt *CorruptError
			require.ErrorAs(t, r.Err(), &corrupt)
			assert.ErrorIs(t, r.Err(), ErrCorrupt)
			assert.Equal(t, "x.ivf", corrupt.File)
			assert.Equal(t, "header", corrupt.Section)
			assert.Equal(t, tt.offset, corrupt.Offset)
			assert.ErrorContains(t, r.Err(), tt.want)

			first := r.Err()
			assert.Zero(t, r.Uint64())
			assert.Zero(t, r.Uvarint())
			assert.Zero(t, r.Count(1))
			assert.Nil(t, r.Rest())
			assert.Zero(t, r.Len())
			r.Fail("later")
			assert.Same(t, first, r.End(), "the first failure stays")
		})
	}
}

func TestBytesAreClipped(t *testing.T) {
	data := []byte{1, 2, 3}
	r := NewReader("f", "s", 0, data)
	_ = append(r.Bytes(1), 9)
	assert.Equal(t, []byte{1, 2, 3}, data)
}

func TestErrors(t *testing.T) {
	cause := errors.New("bad sum")
	err := Corrupt("wal/1.log", "frame", 32, "checksum: %w", cause)
	assert.EqualError(t, err, "corrupt wal/1.log: frame at offset 32: checksum: bad sum")
	assert.ErrorIs(t, err, ErrCorrupt)
	assert.ErrorIs(t, err, cause)
	assert.NotErrorIs(t, err, ErrVersion)
	assert.EqualError(t, Corrupt("", "ops", 0, "x"), "corrupt data: ops at offset 0: x")

	assert.NoError(t, CheckVersion("a", 1, 1))
	assert.NoError(t, CheckVersion("a", 1, 2))
	newer := CheckVersion("a", 3, 2)
	assert.ErrorIs(t, newer, ErrVersion)
	assert.NotErrorIs(t, newer, ErrCorrupt)
	assert.EqualError(t, newer, "a has format version 3, this program reads up to version 2: use a newer program")
	assert.EqualError(t, CheckVersion("", 0, 2), "data has format version 0, this program reads versions 1 to 2")
}

func TestCRC(t *testing.T) {
	// The check value of CRC-32C in the catalogue of parametrised CRC algorithms.
	assert.Equal(t, uint32(0xe3069283), CRC([]byte("123456789")))
	assert.Equal(t, CRC([]byte("123456789")), CRCUpdate(CRCUpdate(0, []byte("1234")), []byte("56789")))
}

func TestViews(t *testing.T) {
	floats := []float32{0, 1, -2.5, float32(math.Inf(1))}
	b := Float32Bytes(floats)
	assert.Equal(t, []byte{0, 0, 0x80, 0x3f}, b[4:8], "1.0, little-endian")
	assert.Equal(t, floats, Float32s(b))
	assert.Equal(t, b, bytesCopy(floats))
	assert.Equal(t, floats, viewCopy[float32](b))

	shifted := append(make([]byte, 1, len(b)+1), b...)
	assert.Equal(t, floats, Float32s(shifted[1:]), "misaligned bytes are copied")

	assert.Equal(t, []uint32{1, 1 << 31}, Uint32s(Uint32Bytes([]uint32{1, 1 << 31})))
	assert.Equal(t, []uint64{1, 1 << 63}, Uint64s(Uint64Bytes([]uint64{1, 1 << 63})))
	assert.Empty(t, Float32s(nil))
	assert.Empty(t, Float32Bytes(nil))
	assert.PanicsWithValue(t, "format: 3 bytes are no whole number of float32", func() { Float32s(make([]byte, 3)) })

	if nativeLittle {
		floats[0] = 9
		assert.Equal(t, float32(9), Float32s(b)[0], "memory is shared")
	}
}
