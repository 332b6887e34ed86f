package codec

import (
	"errors"
	"fmt"
	"strings"
)

// NumPy's arrays inside a pickle, as torch.save writes them beside tensors. An array is made empty
// by _reconstruct and filled by BUILD with its version, shape, type, order and bytes. Protocol 2
// has no bytes: _codecs.encode makes them of text.

// rawBytes are bytes of a pickle.
type rawBytes string

// arrayType is a numpy.dtype.
type arrayType struct{ dtype dtype }

// array is a numpy.ndarray; kind is nil until BUILD has filled it.
type array struct {
	kind    *arrayType
	shape   []int64
	fortran bool
	data    rawBytes
}

// newArrayType reads the arguments of numpy.dtype: a kind such as "i8", and two flags.
func newArrayType(args tuple) (*arrayType, error) {
	if len(args) < 1 {
		return nil, errors.New("numpy.dtype without a type")
	}
	name, _ := args[0].(string)
	t, known := npyTypes[name]
	if !known {
		return nil, fmt.Errorf("a NumPy array of type %s is not supported: save numbers", quote(name))
	}
	return &arrayType{t}, nil
}

// build takes (version, byte order, ...) of a plain type.
func (t *arrayType) build(state any) error {
	fields, _ := state.(tuple)
	if len(fields) < 2 {
		return errors.New("numpy.dtype without a byte order")
	}
	if order, _ := fields[1].(string); order == ">" && t.dtype.size() > 1 {
		return errors.New("a NumPy array is big-endian: save it with .astype('<i8') or another little-endian type")
	}
	return nil
}

// build takes (version, shape, type, Fortran order, bytes).
func (a *array) build(state any) error {
	fields, _ := state.(tuple)
	wrong := errors.New("a NumPy array wants shape, type, order and bytes")
	if len(fields) != 5 {
		return wrong
	}
	shape, err := integers(fields[1])
	if err != nil {
		return fmt.Errorf("%w: %w", wrong, err)
	}
	kind, isKind := fields[2].(*arrayType)
	fortran, isBool := fields[3].(bool)
	data, isBinary := fields[4].(rawBytes)
	if !isKind || !isBool || !isBinary {
		return wrong
	}
	n, ok := product(shape)
	if !ok || n > maxOffset/8 || n*kind.dtype.size() != int64(len(data)) {
		return fmt.Errorf("a NumPy array of shape %s has %d bytes", shapeText(shape), len(data))
	}
	*a = array{kind, shape, fortran, data}
	return nil
}

// encodeLatin is _codecs.encode(text, "latin1"): a byte for each character.
func encodeLatin(args tuple) (rawBytes, error) {
	if len(args) < 1 {
		return "", errors.New("_codecs.encode without text")
	}
	text, isText := args[0].(string)
	if !isText || (len(args) > 1 && args[1] != "latin1") {
		return "", errors.New("_codecs.encode of something that is not latin1 text")
	}
	p := make([]byte, 0, len(text))
	for _, r := range text {
		if r > 0xff {
			return "", errors.New("_codecs.encode of a character that latin1 has not")
		}
		p = append(p, byte(r))
	}
	return rawBytes(p), nil
}

// view makes the array a tensor of in.
func (a *array) view(in *blob, name string) (*view, error) {
	if a.kind == nil {
		return nil, fmt.Errorf("tensor %s: a NumPy array that was never filled", quote(name))
	}
	b := &blob{file: in.file, section: "array " + quote(name), mem: in.mem, at: strings.NewReader(string(a.data)), size: int64(len(a.data))}
	var strides []int64
	if a.fortran {
		strides = columnMajor(a.shape)
	}
	return newView(b, name, a.kind.dtype, a.shape, strides, 0)
}
