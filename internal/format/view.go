package format

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// nativeLittle tells whether numbers in memory have the byte order of our files.
var nativeLittle = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// number is what the views below cast to and from: fixed-size, no pointers, every bit pattern
// valid.
type number interface{ ~float32 | ~uint32 | ~uint64 }

// Float32s returns the little-endian numbers in b. On a little-endian machine and a b aligned to 4
// bytes the result shares b's memory (keep b mapped, write to neither); otherwise it is a copy. The
// length of b must be a multiple of 4.
func Float32s(b []byte) []float32 { return view[float32](b) }

// Uint32s is Float32s for uint32.
func Uint32s(b []byte) []uint32 { return view[uint32](b) }

// Uint64s is Float32s for uint64, with a length and an alignment of 8.
func Uint64s(b []byte) []uint64 { return view[uint64](b) }

// Float32Bytes returns the little-endian bytes of f, sharing its memory on a little-endian machine.
func Float32Bytes(f []float32) []byte { return bytesOf(f) }

// Uint32Bytes is Float32Bytes for uint32.
func Uint32Bytes(u []uint32) []byte { return bytesOf(u) }

// Uint64Bytes is Float32Bytes for uint64.
func Uint64Bytes(u []uint64) []byte { return bytesOf(u) }

func view[T number](b []byte) []T {
	size := int(unsafe.Sizeof(*new(T)))
	if len(b)%size != 0 {
		panic(fmt.Sprintf("format: %d bytes are no whole number of %T", len(b), *new(T)))
	}
	if len(b) == 0 {
		return nil
	}
	if nativeLittle && uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(size) == 0 {
		return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
	}
	return viewCopy[T](b)
}

// viewCopy is view without sharing: for misaligned bytes and big-endian machines.
func viewCopy[T number](b []byte) []T {
	out := make([]T, len(b)/int(unsafe.Sizeof(*new(T))))
	if _, err := binary.Decode(b, binary.LittleEndian, out); err != nil {
		panic("format: " + err.Error()) // the lengths match and T is of fixed size
	}
	return out
}

func bytesOf[T number](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	if nativeLittle {
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(v[0])))
	}
	return bytesCopy(v)
}

// bytesCopy is bytesOf without sharing: for big-endian machines.
func bytesCopy[T number](v []T) []byte {
	out, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic("format: " + err.Error()) // T is of fixed size
	}
	return out
}
