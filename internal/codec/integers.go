package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
)

// Integers is one array of integers, row-major: len(Data) = the product of Shape.
type Integers struct {
	Name  string // in its file; "" for the array of a .npy
	Shape []int
	Data  []int64
}

// ReadIntegers reads the arrays of integers of a .npy, .npz, .safetensors or .pt file, or of a .zst
// or .gz of one, in the order of the file: of edges, which are pairs of row numbers. Arrays of
// other types are passed over. Names are as those of ReadTensors. Memory is bounded as there, with
// 8 bytes per value.
func ReadIntegers(path string) ([]Integers, error) {
	in, err := openInput(path)
	if err != nil {
		return nil, err
	}
	arrays, err := readIntegers(in)
	return arrays, errors.Join(err, in.close())
}

// ParseIntegers is ReadIntegers of the content of a file; name is for messages and recognises
// nothing but the compression.
func ParseIntegers(name string, data []byte) ([]Integers, error) {
	in, err := newInput(name, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	return readIntegers(in)
}

func readIntegers(in *blob) (arrays []Integers, err error) {
	views, err := listTensors(in)
	if err == errNoTensorFormat {
		return nil, in.fault(0, "not a file of arrays: want .npy, .npz, .safetensors or .pt")
	}
	if err != nil {
		return nil, err
	}
	for i, v := range views {
		if !v.dtype.isInteger() {
			continue
		}
		a, err := v.integers()
		if err != nil {
			return nil, err
		}
		arrays = append(arrays, a)
		views[i] = nil // lets go of an inflated entry no other view needs
	}
	if len(arrays) == 0 {
		return nil, in.fault(0, "holds no array of integers: save row numbers with .astype('int64')")
	}
	return arrays, nil
}

// integers decodes the view into memory of its own.
func (v *view) integers() (Integers, error) {
	if err := v.blob.hold(); err != nil {
		return Integers{}, err
	}
	if err := v.fits(); err != nil {
		return Integers{}, err
	}
	n := v.elements()
	if err := v.blob.mem.spend(8 * int64(n)); err != nil {
		return Integers{}, v.fault("shape %v: %w", v.shape, err)
	}
	a := Integers{Name: v.name, Shape: v.shape, Data: make([]int64, n)}
	if n == 0 {
		return a, nil
	}
	if v.contiguous() {
		return a, v.readIntegers(a.Data)
	}
	if err := v.blob.mem.spend(8 * v.span()); err != nil {
		return Integers{}, v.fault("strides %v: %w", v.strides, err)
	}
	spanned := make([]int64, v.span())
	if err := v.readIntegers(spanned); err != nil {
		return Integers{}, err
	}
	gather(a.Data, spanned, v.shape, v.strides)
	return a, nil
}

// readIntegers decodes the stored elements from the first of the view on.
func (v *view) readIntegers(dst []int64) error {
	size := int(v.dtype.size())
	raw := make([]byte, min(len(dst)*size, 64<<10))
	for at := 0; at < len(dst); {
		n := min(len(dst)-at, len(raw)/size)
		p := raw[:n*size]
		if err := v.blob.readFull(v.blob.at, p, v.offset+int64(at)*int64(size), "tensor "+quote(v.name)); err != nil {
			return err
		}
		for i := range n {
			value, ok := v.dtype.integer(p[i*size:])
			if !ok {
				return v.fault("value %d is too large for an int64", at+i)
			}
			dst[at+i] = value
		}
		at += n
	}
	return nil
}

func (t dtype) isInteger() bool { return t >= i8 && t <= u64 }

// integer reads one element of a type of integers; ok is false beyond an int64.
func (t dtype) integer(p []byte) (value int64, ok bool) {
	switch t {
	case i8:
		return int64(int8(p[0])), true
	case u8:
		return int64(p[0]), true
	case i16:
		return int64(int16(binary.LittleEndian.Uint16(p))), true
	case u16:
		return int64(binary.LittleEndian.Uint16(p)), true
	case i32:
		return int64(int32(binary.LittleEndian.Uint32(p))), true
	case u32:
		return int64(binary.LittleEndian.Uint32(p)), true
	}
	wide := binary.LittleEndian.Uint64(p)
	return int64(wide), t == i64 || wide <= math.MaxInt64
}
