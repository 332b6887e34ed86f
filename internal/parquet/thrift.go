package parquet

import (
	"encoding/binary"
	"errors"
)

// walker steps over values of Thrift's compact protocol, in which footers and page headers are written, and checks that each length and
// count fits the bytes that follow. The first fault sticks.
type walker struct {
	b   []byte
	err error
}

var errThrift = errors.New("damaged: a length or count that does not fit the bytes that are there")

// Types of the compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12

	maxThriftDepth = 32
)

func (w *walker) fail() {
	w.err = errThrift
	w.b = nil
}

func (w *walker) uvarint() uint64 {
	v, n := binary.Uvarint(w.b)
	if n <= 0 {
		w.fail()
		return 0
	}
	w.b = w.b[n:]
	return v
}

// zigzag reads a signed number.
func (w *walker) zigzag() int64 {
	v := w.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (w *walker) skip(n uint64) {
	if n > uint64(len(w.b)) {
		w.fail()
		return
	}
	w.b = w.b[n:]
}

func (w *walker) byte() byte {
	if len(w.b) == 0 {
		w.fail()
		return 0
	}
	c := w.b[0]
	w.b = w.b[1:]
	return c
}

// structure walks the fields of a struct. fn, which may be nil, is given every integer field; nested returns it for the fields of a
// field that is a struct itself.
func (w *walker) structure(depth int, fn func(id int64, value int64), nested func(id int64) func(id int64, value int64)) {
	if depth > maxThriftDepth {
		w.fail()
	}
	for id := int64(0); w.err == nil; {
		head := w.byte()
		typ := head & 15
		if typ == 0 {
			return
		}
		if delta := head >> 4; delta != 0 {
			id += int64(delta)
		} else {
			id = w.zigzag()
		}
		switch typ {
		case thriftI16, thriftI32, thriftI64:
			if v := w.zigzag(); fn != nil {
				fn(id, v)
			}
		case thriftStruct:
			var inner func(id int64, value int64)
			if nested != nil {
				inner = nested(id)
			}
			w.structure(depth+1, inner, nil)
		case thriftTrue, thriftFalse: // the value is the type
		default:
			w.value(typ, depth+1)
		}
	}
}

// value walks one value of a type, in a field or in a list.
func (w *walker) value(typ byte, depth int) {
	if depth > maxThriftDepth {
		w.fail()
	}
	switch typ {
	case thriftTrue, thriftFalse, thriftByte:
		w.skip(1)
	case thriftI16, thriftI32, thriftI64:
		w.uvarint()
	case thriftDouble:
		w.skip(8)
	case thriftBinary:
		w.skip(w.uvarint())
	case thriftList, thriftSet:
		head := w.byte()
		n := uint64(head >> 4)
		if n == 15 {
			n = w.uvarint()
		}
		w.values(n, depth, head&15)
	case thriftMap:
		if n := w.uvarint(); n > 0 {
			types := w.byte()
			w.values(n, depth, types>>4, types&15)
		}
	case thriftStruct:
		w.structure(depth, nil, nil)
	default:
		w.fail()
	}
}

// values walks n elements, each of which takes a byte or more.
func (w *walker) values(n uint64, depth int, types ...byte) {
	if n > uint64(len(w.b)) {
		w.fail()
	}
	for ; n > 0 && w.err == nil; n-- {
		for _, typ := range types {
			w.value(typ, depth+1)
		}
	}
}

// pageSizes are what the header of a page declares.
type pageSizes struct {
	header       int // bytes of the header itself
	uncompressed int64
	compressed   int64
	values       int64
}

// readPageHeader reads PageHeader: 2 uncompressed_page_size, 3 compressed_page_size, 5 data_page_header, 7 dictionary_page_header,
// 8 data_page_header_v2, each of which has num_values as its field 1.
func readPageHeader(b []byte) (p pageSizes, err error) {
	w := walker{b: b}
	w.structure(0, func(id, v int64) {
		switch id {
		case 2:
			p.uncompressed = v
		case 3:
			p.compressed = v
		}
	}, func(id int64) func(id, value int64) {
		if id != 5 && id != 7 && id != 8 {
			return nil
		}
		return func(id, v int64) {
			if id == 1 {
				p.values = v
			}
		}
	})
	p.header = len(b) - len(w.b)
	return p, w.err
}
