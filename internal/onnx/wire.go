package onnx

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a message: varint, fixed or bytes, by its wire type.
type field struct {
	num    protowire.Number
	typ    protowire.Type
	number uint64 // of a varint or a fixed
	bytes  []byte // of a length-delimited field; shares the memory of the input
}

// fields calls fn for every field of a message.
func fields(message []byte, fn func(f field) error) error {
	for len(message) > 0 {
		num, typ, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("damaged: %w", protowire.ParseError(n))
		}
		message = message[n:]
		f := field{num: num, typ: typ}
		switch typ {
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(message)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(message)
			f.number = uint64(v)
		case protowire.Fixed64Type:
			f.number, n = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(num, typ, message)
		}
		if n < 0 {
			return fmt.Errorf("damaged: field %d: %w", num, protowire.ParseError(n))
		}
		message = message[n:]
		if err := fn(f); err != nil {
			return err
		}
	}
	return nil
}

var errWireType = errors.New("damaged: a field has another type than ONNX gives it")

// message checks that a field is length-delimited.
func (f field) message() ([]byte, error) {
	if f.typ != protowire.BytesType {
		return nil, errWireType
	}
	return f.bytes, nil
}

// text appends a string field to dst.
func (f field) text(dst *string) error {
	b, err := f.message()
	*dst = string(b)
	return err
}

// integer reads a varint field.
func (f field) integer(dst *int64) error {
	if f.typ != protowire.VarintType {
		return errWireType
	}
	*dst = int64(f.number)
	return nil
}

// integers appends a repeated varint, packed or not.
func (f field) integers(dst []int64) ([]int64, error) {
	if f.typ == protowire.VarintType {
		return append(dst, int64(f.number)), nil
	}
	if f.typ != protowire.BytesType {
		return nil, errWireType
	}
	count := 0 // a varint ends at its first byte below 0x80
	for _, c := range f.bytes {
		if c < 0x80 {
			count++
		}
	}
	dst = slices.Grow(dst, count)
	for b := f.bytes; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return nil, fmt.Errorf("damaged: field %d: %w", f.num, protowire.ParseError(n))
		}
		dst = append(dst, int64(v))
		b = b[n:]
	}
	return dst, nil
}

// floats appends a repeated float, packed or not.
func (f field) floats(dst []float32) ([]float32, error) {
	switch {
	case f.typ == protowire.Fixed32Type:
		return append(dst, math.Float32frombits(uint32(f.number))), nil
	case f.typ != protowire.BytesType || len(f.bytes)%4 != 0:
		return nil, errWireType
	}
	dst = slices.Grow(dst, len(f.bytes)/4)
	for b := f.bytes; len(b) > 0; b = b[4:] {
		v, _ := protowire.ConsumeFixed32(b)
		dst = append(dst, math.Float32frombits(v))
	}
	return dst, nil
}

// doubles appends a repeated double, packed or not, as float32.
func (f field) doubles(dst []float32) ([]float32, error) {
	switch {
	case f.typ == protowire.Fixed64Type:
		return append(dst, float32(math.Float64frombits(f.number))), nil
	case f.typ != protowire.BytesType || len(f.bytes)%8 != 0:
		return nil, errWireType
	}
	dst = slices.Grow(dst, len(f.bytes)/8)
	for b := f.bytes; len(b) > 0; b = b[8:] {
		v, _ := protowire.ConsumeFixed64(b)
		dst = append(dst, float32(math.Float64frombits(v)))
	}
	return dst, nil
}
