package parquet

import (
	"errors"
	"fmt"
	"math"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// plainDictionary is deprecated and still written: of a dictionary page it means Plain, of a data
// page RLEDictionary.
const plainDictionary format.Encoding = 2

// maxText is the longest string read: twice what a payload may have.
const maxText = 32 << 20

var errText = fmt.Errorf("damaged, or a string of more than %d bytes", maxText)

// value is one value of a column; which field counts is the column's to know.
type value struct {
	rep    int
	null   bool // or an empty list
	number float32
	double float64 // number, as exact as it is in the file
	whole  int64
	bytes  []byte // shares the memory of its page
}

// source reads the values of a page that are not null, one after another.
type source interface{ next(v *value) error }

// physical is how the values of a column are stored.
type physical struct {
	kind parquet.Kind
	size int // bytes of a value; 0 for strings
}

func physicalOf(t parquet.Type) physical {
	switch t.Kind() {
	case parquet.Int32, parquet.Float:
		return physical{t.Kind(), 4}
	case parquet.Int64, parquet.Double:
		return physical{t.Kind(), 8}
	case parquet.FixedLenByteArray:
		return physical{t.Kind(), t.Length()}
	}
	return physical{t.Kind(), 0}
}

// decode reads a value of a fixed size.
func (p physical) decode(v *value, b []byte) {
	switch p.kind {
	case parquet.Int32:
		v.whole = int64(int32(le.Uint32(b)))
	case parquet.Int64:
		v.whole = int64(le.Uint64(b))
	case parquet.Float:
		v.number = math.Float32frombits(le.Uint32(b))
		v.double = float64(v.number)
	case parquet.Double:
		v.double = math.Float64frombits(le.Uint64(b))
		v.number = float32(v.double)
	default:
		v.number = half(le.Uint16(b))
	}
}

// source returns the values of a data page.
func (c *cursor) source(enc format.Encoding, b []byte, values int64) (source, error) {
	t := c.physical
	switch {
	case t.kind == parquet.Boolean:
		return newBools(enc, b)
	case enc == format.Plain && t.size > 0:
		return &fixed{b, t}, nil
	case enc == format.Plain:
		return &texts{b}, nil
	case enc == format.RLEDictionary || enc == plainDictionary:
		if c.dictionary == nil {
			return nil, errors.New("damaged: the page needs a dictionary, and there is none before it")
		}
		if len(b) == 0 {
			return &indexed{c.dictionary, runs{}}, nil // only nulls
		}
		if b[0] > 32 {
			return nil, fmt.Errorf("damaged: dictionary indexes of %d bits", b[0])
		}
		return &indexed{c.dictionary, runs{b: b[1:], width: int(b[0])}}, nil
	case enc == format.ByteStreamSplit && t.size > 0:
		return &split{b: b, n: len(b) / t.size, physical: t}, nil
	case len(b) == 0: // only nulls
		return &fixed{nil, t}, nil
	case enc == format.DeltaBinaryPacked && (t.kind == parquet.Int32 || t.kind == parquet.Int64):
		d, err := newDelta(b, values)
		return &differences{d, t}, err
	case enc == format.DeltaLengthByteArray && t.size == 0:
		return newLengths(b, values)
	case enc == format.DeltaByteArray && t.size == 0:
		return newPrefixed(b, values)
	}
	return nil, fmt.Errorf("values of type %s encoded as %s are not supported", t.kind, enc)
}

// fixed reads values of a fixed size, PLAIN.
type fixed struct {
	b []byte
	physical
}

func (s *fixed) next(v *value) error {
	if len(s.b) < s.size || s.size == 0 {
		return errEnds
	}
	s.decode(v, s.b)
	s.b = s.b[s.size:]
	return nil
}

// bools reads bits, PLAIN or RLE.
type bools struct {
	plain packed
	runs  *runs // nil for PLAIN
}

func newBools(enc format.Encoding, b []byte) (source, error) {
	switch {
	case enc == format.Plain || len(b) == 0: // only nulls
		return &bools{plain: packed{b: b}}, nil
	case enc == format.RLE && len(b) >= 4 && uint64(le.Uint32(b)) <= uint64(len(b)-4):
		return &bools{runs: &runs{b: b[4 : 4+le.Uint32(b)], width: 1}}, nil
	case enc == format.RLE:
		return nil, errEnds
	}
	return nil, fmt.Errorf("bools encoded as %s are not supported", enc)
}

func (s *bools) next(v *value) error {
	if s.runs != nil {
		bit, err := s.runs.next()
		v.whole = int64(bit)
		return err
	}
	bit, err := s.plain.next(1)
	v.whole = int64(bit)
	return err
}

// texts reads strings with their lengths before them, PLAIN.
type texts struct{ b []byte }

func (s *texts) next(v *value) error {
	if len(s.b) < 4 {
		return errEnds
	}
	n := int64(le.Uint32(s.b))
	if n > int64(len(s.b))-4 {
		return errEnds
	}
	v.bytes, s.b = s.b[4:4+n:4+n], s.b[4+n:]
	return nil
}

// split reads values whose first bytes stand first, then their second bytes and so on,
// BYTE_STREAM_SPLIT.
type split struct {
	b    []byte
	n, i int
	physical
}

func (s *split) next(v *value) error {
	if s.i == s.n || s.size > 8 {
		return errEnds
	}
	var b [8]byte
	for k := range s.size {
		b[k] = s.b[k*s.n+s.i]
	}
	s.i++
	s.decode(v, b[:])
	return nil
}

type differences struct {
	d *delta
	physical
}

func (s *differences) next(v *value) (err error) {
	if v.whole, err = s.d.next(); s.kind == parquet.Int32 {
		v.whole = int64(int32(v.whole))
	}
	return err
}

// lengths reads strings behind all of their lengths, DELTA_LENGTH_BYTE_ARRAY.
type lengths struct {
	lengths *delta
	b       []byte
}

func newLengths(b []byte, values int64) (*lengths, error) {
	ahead, err := newDelta(b, values)
	if err != nil {
		return nil, err
	}
	s := &lengths{}
	var sum int64
	if s.b, sum, err = ahead.rest(); err == nil && sum > int64(len(s.b)) {
		err = errEnds
	}
	if err != nil {
		return nil, err
	}
	s.lengths, err = newDelta(b, values)
	return s, err
}

func (s *lengths) next(v *value) error {
	n, err := s.lengths.next()
	if err != nil {
		return err
	}
	v.bytes, s.b = s.b[:n:n], s.b[n:] // newLengths has added them up
	return nil
}

// prefixed reads strings that begin as the one before, DELTA_BYTE_ARRAY: the lengths of these
// beginnings, and what follows.
type prefixed struct {
	prefixes *delta
	suffixes *lengths
	last     []byte
}

func newPrefixed(b []byte, values int64) (*prefixed, error) {
	ahead, err := newDelta(b, values)
	if err != nil {
		return nil, err
	}
	rest, _, err := ahead.rest()
	if err != nil {
		return nil, err
	}
	s := &prefixed{}
	if s.prefixes, err = newDelta(b, values); err == nil {
		s.suffixes, err = newLengths(rest, values)
	}
	return s, err
}

func (s *prefixed) next(v *value) error {
	n, err := s.prefixes.next()
	if err == nil {
		err = s.suffixes.next(v)
	}
	if err != nil {
		return err
	}
	if n > int64(len(s.last)) || n+int64(len(v.bytes)) > maxText {
		return errText
	}
	s.last = append(s.last[:n:n], v.bytes...)
	v.bytes = s.last
	return nil
}

// dictionary is the values of a dictionary page, where they lie in it.
type dictionary struct {
	b  []byte
	at []uint32 // of strings: where each begins, behind its length; the length is before it
	physical
}

func (c *cursor) readDictionary(h pageHeader, body []byte) error {
	if c.dictionary != nil {
		return errors.New("damaged: a second dictionary")
	}
	if h.encoding != format.Plain && h.encoding != plainDictionary {
		return fmt.Errorf("a dictionary encoded as %s is not supported", h.encoding)
	}
	b, err := c.decompress(body, h.uncompressed, true)
	if err != nil {
		return err
	}
	d := &dictionary{b: b, physical: c.physical}
	if d.size == 0 {
		s, v := texts{b}, value{}
		for range min(h.values, int64(len(b)/4)) {
			if err := s.next(&v); err != nil {
				return err
			}
			d.at = append(d.at, uint32(len(b)-len(s.b)-len(v.bytes)))
		}
	}
	c.dictionary = d
	return nil
}

// indexed reads values of a dictionary.
type indexed struct {
	dictionary *dictionary
	runs       runs
}

func (s *indexed) next(v *value) error {
	i, err := s.runs.next()
	if err != nil {
		return err
	}
	d := s.dictionary
	n := len(d.at)
	if d.size > 0 {
		n = len(d.b) / d.size
	}
	if int64(i) >= int64(n) {
		return fmt.Errorf("damaged: value %d of a dictionary of %d", i, n)
	}
	if d.size > 0 {
		d.decode(v, d.b[int(i)*d.size:])
		return nil
	}
	at := int64(d.at[i])
	v.bytes = d.b[at : at+int64(le.Uint32(d.b[at-4:]))]
	return nil
}
