package codec

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHalfIsExact compares all 65,536 halves with their definition.
func TestHalfIsExact(t *testing.T) {
	src := make([]byte, 2<<16)
	for h := range 1 << 16 {
		binary.LittleEndian.PutUint16(src[2*h:], uint16(h))
	}
	dst := make([]float32, 1<<16)
	f16.decode(dst, src)
	for h, got := range dst {
		exponent, mantissa := h>>10&31, float64(h&1023)
		var want float64
		switch exponent {
		case 0:
			want = math.Ldexp(mantissa, -24)
		case 31:
			want = math.Inf(1)
			if mantissa != 0 {
				require.True(t, math.IsNaN(float64(got)), "%04x", h)
				continue
			}
		default:
			want = math.Ldexp(1024+mantissa, exponent-25)
		}
		if h&0x8000 != 0 {
			want = -want
		}
		require.Equal(t, math.Float32bits(float32(math.Copysign(want, 1))), math.Float32bits(got)&^(1<<31), "%04x", h)
		require.Equal(t, h&0x8000 != 0, math.Signbit(float64(got)), "%04x", h)
	}
}

func TestDecodeNumbers(t *testing.T) {
	tests := []struct {
		name  string
		dtype dtype
		src   []byte
		want  float32
	}{
		{"bf16", bf16, []byte{0xc0, 0xbf}, -1.5},
		{"f32", f32, f32Bytes(3.25), 3.25},
		{"f64 rounds", f64, binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.1)), 0.1},
		{"f64 beyond float32", f64, binary.LittleEndian.AppendUint64(nil, math.Float64bits(1e300)), float32(math.Inf(1))},
		{"i8", i8, []byte{0x80}, -128},
		{"u8", u8, []byte{0x80}, 128},
		{"bool 0", boolean, []byte{0}, 0},
		{"bool 1", boolean, []byte{1}, 1},
		{"bool beyond 1", boolean, []byte{255}, 1},
		{"i16", i16, []byte{0xff, 0xff}, -1},
		{"u16", u16, []byte{0xff, 0xff}, 65535},
		{"i32", i32, []byte{0xfe, 0xff, 0xff, 0xff}, -2},
		{"u32", u32, []byte{0, 0, 0, 0x80}, 1 << 31},
		{"i64", i64, []byte{0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -3},
		{"u64", u64, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}, 1 << 63},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.EqualValues(t, len(tt.src), tt.dtype.size())
			dst := []float32{77, 77, 77}
			tt.dtype.decode(dst[1:2], append(tt.src, 0xaa))
			require.Equal(t, []float32{77, tt.want, 77}, dst)
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	const n = 64 << 10
	src := make([]byte, 8*n)
	for i := range n {
		// Values as in embeddings: a few binades around 1, some zeros.
		binary.LittleEndian.PutUint16(src[2*i:], uint16(0x3000+i*40503&0x0fff)*uint16(min(i%5, 1)))
	}
	dst := make([]float32, n)
	for _, bb := range []struct {
		name  string
		dtype dtype
	}{{"f16", f16}, {"bf16", bf16}, {"f32", f32}, {"f64", f64}, {"u8", u8}} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(n * bb.dtype.size())
			for b.Loop() {
				bb.dtype.decode(dst, src)
			}
		})
	}
}
