package codec

import (
	"encoding/binary"
	"math"
)

// dtype is the type of the elements of a stored tensor; all are little-endian.
type dtype uint8

const (
	f16 dtype = iota + 1
	bf16
	f32
	f64
	i8
	i16
	i32
	i64
	u8
	u16
	u32
	u64
	boolean
)

// size is the bytes of one element.
func (t dtype) size() int64 {
	switch t {
	case i8, u8, boolean:
		return 1
	case f16, bf16, i16, u16:
		return 2
	case f32, i32, u32:
		return 4
	default:
		return 8
	}
}

// decode converts len(dst) elements of src to float32. Doubles and wide integers are rounded to the
// nearest float32; any nonzero boolean is 1.
func (t dtype) decode(dst []float32, src []byte) {
	src = src[:int64(len(dst))*t.size()]
	switch t {
	case f16:
		decodeHalf(dst, src)
	case bf16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
		}
	case f32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case f64:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
		}
	default:
		t.decodeInteger(dst, src)
	}
}

// decodeHalf widens IEEE half precision. Exponent and mantissa moved into float32's places give the
// value times 2^-112, subnormals included, so one multiplication rights the exponent; only
// infinities and NaN need a branch.
func decodeHalf(dst []float32, src []byte) {
	const scale = 1 << 112
	for i := range dst {
		h := uint32(binary.LittleEndian.Uint16(src[2*i:]))
		sign := h & 0x8000 << 16
		if h&0x7c00 == 0x7c00 {
			dst[i] = math.Float32frombits(sign | 0x7f800000 | h&0x3ff<<13)
			continue
		}
		magnitude := math.Float32frombits(h&0x7fff<<13) * scale
		dst[i] = math.Float32frombits(sign | math.Float32bits(magnitude))
	}
}

func (t dtype) decodeInteger(dst []float32, src []byte) {
	switch t {
	case i8:
		for i := range dst {
			dst[i] = float32(int8(src[i]))
		}
	case u8:
		for i := range dst {
			dst[i] = float32(src[i])
		}
	case boolean:
		for i := range dst {
			dst[i] = 0
			if src[i] != 0 {
				dst[i] = 1
			}
		}
	case i16:
		for i := range dst {
			dst[i] = float32(int16(binary.LittleEndian.Uint16(src[2*i:])))
		}
	case u16:
		for i := range dst {
			dst[i] = float32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case i32:
		for i := range dst {
			dst[i] = float32(int32(binary.LittleEndian.Uint32(src[4*i:])))
		}
	case u32:
		for i := range dst {
			dst[i] = float32(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case i64:
		for i := range dst {
			dst[i] = float32(int64(binary.LittleEndian.Uint64(src[8*i:])))
		}
	case u64:
		for i := range dst {
			dst[i] = float32(binary.LittleEndian.Uint64(src[8*i:]))
		}
	}
}
