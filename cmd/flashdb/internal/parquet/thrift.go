package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/parquet-go/parquet-go/format"
)

// walker steps over values of Thrift's compact protocol, in which footers and page headers are
// written, and checks that each length and count fits the bytes that follow. The first fault
// sticks.
type walker struct {
	b      []byte
	memory int64 // bytes that the elements of lists may take, decoded
	err    error
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

// fields are what is done with the fields of a struct; each may be nil.
type fields struct {
	number  func(id, value int64)                // is given an integer, or a boolean as 0 or 1
	nested  func(id int64) func(id, value int64) // is the number of a field that is a struct itself
	list    func(id int64) func(id, value int64) // is the number of the structs in a list
	element func(id int64)                       // is told the end of each of these
}

// fields walks a struct.
func (w *walker) fields(depth int, f fields) {
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
		var v int64
		switch typ {
		case thriftI16, thriftI32, thriftI64:
			v = w.zigzag()
		case thriftTrue: // the value is the type
			v = 1
		case thriftFalse:
		case thriftStruct:
			inner := fields{}
			if f.nested != nil {
				inner.number = f.nested(id)
			}
			w.fields(depth+1, inner)
			continue
		case thriftList:
			w.list(depth+1, id, f)
			continue
		default:
			w.value(typ, depth+1)
			continue
		}
		if f.number != nil {
			f.number(id, v)
		}
	}
}

// list walks the list in a field.
func (w *walker) list(depth int, id int64, f fields) {
	n, typ := w.listHead()
	var number func(id, value int64)
	if f.list != nil && typ == thriftStruct {
		number = f.list(id)
	}
	if number == nil {
		w.values(n, depth, typ)
		return
	}
	for ; n > 0 && w.err == nil; n-- {
		w.memory += structCost
		w.fields(depth+1, fields{number: number})
		f.element(id)
	}
}

// listHead reads how many elements a list has, and their type.
func (w *walker) listHead() (n uint64, typ byte) {
	head := w.byte()
	if n = uint64(head >> 4); n == 15 {
		n = w.uvarint()
	}
	if n > uint64(len(w.b)) {
		w.fail()
	}
	return n, head & 15
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
		n, elements := w.listHead()
		w.values(n, depth, elements)
	case thriftMap:
		if n := w.uvarint(); n > 0 {
			types := w.byte()
			w.values(n, depth, types>>4, types&15)
		}
	case thriftStruct:
		w.fields(depth, fields{})
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
			w.memory += elementCost
			if typ == thriftStruct && depth <= chunkDepth {
				w.memory += structCost
			}
			w.value(typ, depth+1)
		}
	}
}

// Fields that are read, by their numbers in parquet.thrift.
const (
	footerSchema   = 2 // FileMetaData.schema
	schemaChildren = 5 // SchemaElement.num_children

	pageData       = 0 // PageType
	pageIndex      = 1
	pageDictionary = 2
	pageDataV2     = 3
)

// pageHeader is what the header of a page declares.
type pageHeader struct {
	header       int // bytes of the header itself
	typ          int64
	uncompressed int64
	compressed   int64
	values       int64
	crc          uint32
	hasCRC       bool
	encoding     format.Encoding // of the values
	defEncoding  format.Encoding // of the levels, version 1
	repEncoding  format.Encoding
	defBytes     int64 // of the levels, version 2
	repBytes     int64
	isCompressed bool // version 2
}

// readPageHeader reads PageHeader, of which DataPageHeader is field 5, DictionaryPageHeader 7 and
// DataPageHeaderV2 8.
func readPageHeader(b []byte) (p pageHeader, err error) {
	p.isCompressed = true
	w := walker{b: b}
	w.fields(0, fields{number: func(id, v int64) {
		switch id {
		case 1:
			p.typ = v
		case 2:
			p.uncompressed = v
		case 3:
			p.compressed = v
		case 4:
			p.crc, p.hasCRC = uint32(v), true
		}
	}, nested: p.inner})
	p.header = len(b) - len(w.b)
	return p, w.err
}

// possible refuses sizes and counts that parquet.thrift, where all of them are i32, has no room
// for. Sums and small multiples of the others do not overflow.
func (p *pageHeader) possible() error {
	for _, n := range []int64{p.values, p.uncompressed, p.compressed, p.repBytes, p.defBytes} {
		if n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("damaged: its header declares %d bytes or values", n)
		}
	}
	return nil
}

// inner is given the fields of the header of one kind of page.
func (p *pageHeader) inner(kind int64) func(id, v int64) {
	return func(id, v int64) {
		version2 := kind == 8
		switch known := kind == 5 || kind == 7 || version2; {
		case !known:
		case id == 1:
			p.values = v
		case id == 2 && !version2, id == 4 && version2:
			p.encoding = format.Encoding(v)
		case id == 3 && kind == 5:
			p.defEncoding = format.Encoding(v)
		case id == 4 && kind == 5:
			p.repEncoding = format.Encoding(v)
		case id == 5 && version2:
			p.defBytes = v
		case id == 6 && version2:
			p.repBytes = v
		case id == 7 && version2:
			p.isCompressed = v != 0
		}
	}
}
