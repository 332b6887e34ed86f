package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Tensor is a constant: row-major values of a shape. A scalar has no dimensions and one value.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
	Fault error // why Data is missing; nil if it is there
}

// Types of TensorProto.
const (
	typeFloat    = 1
	typeUint8    = 2
	typeInt8     = 3
	typeInt32    = 6
	typeInt64    = 7
	typeBool     = 9
	typeFloat16  = 10
	typeDouble   = 11
	typeBFloat16 = 16
)

// sizes is the bytes of an element in raw_data.
var sizes = map[int64]int{
	typeFloat: 4, typeUint8: 1, typeInt8: 1, typeInt32: 4, typeInt64: 8, typeBool: 1, typeFloat16: 2, typeDouble: 8, typeBFloat16: 2,
}

// maxRank bounds the dimensions of a tensor.
const maxRank = 16

var errRank = fmt.Errorf("more than %d dimensions", maxRank)

// stored is a TensorProto as it comes: of its places for values one is filled.
type stored struct {
	name     string
	dims     []int64
	typ      int64
	floats   []float32 // float_data and double_data
	ints     []int64   // int32_data and int64_data
	raw      []byte
	hasRaw   bool
	external map[string]string
	location int64
}

func (p *parser) tensor(b []byte) (*Tensor, error) {
	if p.tensors++; p.tensors > maxParts {
		return nil, fmt.Errorf("more than %d tensors", maxParts)
	}
	var s stored
	if err := fields(b, s.read); err != nil {
		return nil, fmt.Errorf("tensor %s: %w", quote(s.name), err)
	}
	t := &Tensor{Name: s.name}
	n, err := s.shape(t)
	if err == nil {
		err = s.values(t, n, p.external)
	}
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", quote(s.name), err)
	}
	return t, nil
}

func (s *stored) read(f field) (err error) {
	switch f.num {
	case 1:
		s.dims, err = f.integers(s.dims)
		if len(s.dims) > maxRank {
			err = errRank
		}
	case 2:
		err = f.integer(&s.typ)
	case 4:
		s.floats, err = f.floats(s.floats)
	case 5, 7:
		s.ints, err = f.integers(s.ints)
	case 8:
		err = f.text(&s.name)
	case 9:
		s.hasRaw = true
		s.raw, err = f.message()
	case 10:
		s.floats, err = f.doubles(s.floats)
	case 13:
		var part []byte
		if part, err = f.message(); err == nil {
			err = s.entry(part)
		}
	case 14:
		err = f.integer(&s.location)
	}
	return err
}

// entry reads a pair of external_data.
func (s *stored) entry(b []byte) error {
	var key, value string
	err := fields(b, func(f field) error {
		switch f.num {
		case 1:
			return f.text(&key)
		case 2:
			return f.text(&value)
		}
		return nil
	})
	if s.external == nil {
		s.external = map[string]string{}
	}
	s.external[key] = value
	return err
}

// shape checks the dimensions and returns the number of values.
func (s *stored) shape(t *Tensor) (n int, err error) {
	n = 1
	for _, d := range s.dims {
		if d < 0 || d > math.MaxInt32 || (d > 0 && n > math.MaxInt32/int(d)) {
			return 0, fmt.Errorf("shape %v is impossible", s.dims)
		}
		n *= int(d)
		t.Shape = append(t.Shape, int(d))
	}
	return n, nil
}

// values decodes n values into t.
func (s *stored) values(t *Tensor, n int, external External) error {
	size, known := sizes[s.typ]
	if !known {
		t.Fault = fmt.Errorf("tensor %s: data type %d is not supported; want float, double, float16 or bfloat16", quote(s.name), s.typ)
		return nil
	}
	if s.location == 1 {
		raw, err := s.fetch(int64(n)*int64(size), external)
		if err != nil {
			return err
		}
		s.raw, s.hasRaw = raw, true
	}
	switch have := max(len(s.floats), len(s.ints)); {
	case s.hasRaw && len(s.raw) != n*size:
		return fmt.Errorf("%d bytes of values, shape %v takes %d", len(s.raw), s.dims, n*size)
	case s.hasRaw:
		t.Data = make([]float32, n)
		decodeRaw(t.Data, s.raw, s.typ)
		return nil
	case have != n:
		return fmt.Errorf("%d values, shape %v takes %d", have, s.dims, n)
	case len(s.floats) == n:
		t.Data = s.floats
		return nil
	}
	t.Data = make([]float32, n)
	for i, v := range s.ints {
		switch s.typ {
		case typeFloat16: // the 16 bits, in an int32
			t.Data[i] = half(uint16(v))
		case typeBFloat16:
			t.Data[i] = math.Float32frombits(uint32(uint16(v)) << 16)
		default:
			t.Data[i] = float32(v)
		}
	}
	return nil
}

// fetch reads values kept in another file.
func (s *stored) fetch(size int64, external External) ([]byte, error) {
	if external == nil {
		return nil, errors.New("its values are in another file")
	}
	offset, err := number(s.external["offset"], 0)
	if err != nil {
		return nil, fmt.Errorf("offset of its values: %w", err)
	}
	length, err := number(s.external["length"], size)
	if err != nil {
		return nil, fmt.Errorf("length of its values: %w", err)
	}
	if length != size {
		return nil, fmt.Errorf("%d bytes of values in %s, shape %v takes %d", length, quote(s.external["location"]), s.dims, size)
	}
	return external(s.external["location"], offset, length)
}

func number(text string, absent int64) (int64, error) {
	if text == "" {
		return absent, nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%s is no number of bytes", quote(text))
	}
	return v, nil
}

func decodeRaw(dst []float32, raw []byte, typ int64) {
	le := binary.LittleEndian
	for i := range dst {
		switch typ {
		case typeFloat:
			dst[i] = math.Float32frombits(le.Uint32(raw[4*i:]))
		case typeDouble:
			dst[i] = float32(math.Float64frombits(le.Uint64(raw[8*i:])))
		case typeFloat16:
			dst[i] = half(le.Uint16(raw[2*i:]))
		case typeBFloat16:
			dst[i] = math.Float32frombits(uint32(le.Uint16(raw[2*i:])) << 16)
		case typeInt32:
			dst[i] = float32(int32(le.Uint32(raw[4*i:])))
		case typeInt64:
			dst[i] = float32(int64(le.Uint64(raw[8*i:])))
		case typeInt8:
			dst[i] = float32(int8(raw[i]))
		default:
			dst[i] = float32(raw[i])
		}
	}
}

// half widens an IEEE half precision number: sign, 5 bits of exponent with bias 15, 10 of mantissa.
func half(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exponent, mantissa := uint32(h>>10)&31, uint32(h)&1023
	switch exponent {
	case 0: // subnormal: mantissa * 2^-24
		v := float32(mantissa) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | mantissa<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | mantissa<<13)
}
