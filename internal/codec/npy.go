package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	npyMagic = "\x93NUMPY"
	// maxNPYHeader is far beyond what NumPy writes for an array of plain numbers.
	maxNPYHeader = 1 << 20
)

var npyTypes = map[string]dtype{
	"f2": f16, "f4": f32, "f8": f64, "b1": boolean,
	"i1": i8, "i2": i16, "i4": i32, "i8": i64, "u1": u8, "u2": u16, "u4": u32, "u8": u64,
}

// viewNPY reads the header of
//
//	"\x93NUMPY", u8 major, u8 minor
//	header length: u16 (version 1) or u32 (2 and 3), little-endian
//	header: a Python dict literal with descr, fortran_order and shape
//	data
func viewNPY(b *blob, name string) (*view, error) {
	at, done, err := b.pass()
	if err != nil {
		return nil, err
	}
	defer done() //nolint:errcheck // nothing was written
	var prefix [12]byte
	if err := b.readFull(at, prefix[:10], 0, "npy header"); err != nil {
		return nil, err
	}
	if string(prefix[:6]) != npyMagic {
		return nil, b.fault(0, "not a .npy array: it does not begin with \\x93NUMPY")
	}
	start, n := int64(10), int64(binary.LittleEndian.Uint16(prefix[8:]))
	switch prefix[6] {
	case 1:
	case 2, 3:
		if err := b.readFull(at, prefix[10:], 10, "npy header"); err != nil {
			return nil, err
		}
		start, n = 12, int64(binary.LittleEndian.Uint32(prefix[8:]))
	default:
		return nil, b.fault(6, "npy version %d is not known: want 1, 2 or 3", prefix[6])
	}
	if n > maxNPYHeader {
		return nil, b.fault(8, "npy header of %d bytes: at most %d are read", n, maxNPYHeader)
	}
	text, err := b.readHeader(at, start, n, "npy header")
	if err != nil {
		return nil, err
	}
	header, err := parseNPYHeader(string(text))
	if err != nil {
		return nil, b.fault(start, "npy header: %w", err)
	}
	return header.view(b, name, start+n)
}

type npyHeader struct {
	descr   string
	fortran bool
	shape   []int64
}

func (h *npyHeader) view(b *blob, name string, data int64) (*view, error) {
	order, kind := byte('|'), h.descr
	if kind != "" && strings.IndexByte("<>|=", kind[0]) >= 0 {
		order, kind = kind[0], kind[1:]
	}
	t, known := npyTypes[kind]
	switch {
	case !known:
		return nil, b.fault(data, "npy type %s is not supported: save it with .astype('<f4')", quote(h.descr))
	case order == '>' && t.size() > 1:
		return nil, b.fault(data, "npy type %s is big-endian: save it with .astype('<%s')", quote(h.descr), kind)
	}
	n, ok := product(h.shape)
	if !ok || n > maxOffset/8 {
		return nil, b.fault(data, "shape %s is impossible", shapeText(h.shape))
	}
	var strides []int64
	if h.fortran {
		strides = columnMajor(h.shape)
	}
	v, err := newView(b, name, t, h.shape, strides, data)
	if err != nil {
		return nil, err
	}
	v.end = data + n*t.size()
	return v, v.fits()
}

// parseNPYHeader reads the dict literal: strings, True, False and tuples of integers are all the
// Python there is in it.
func parseNPYHeader(text string) (npyHeader, error) {
	p := literal{text: text}
	var h npyHeader
	seen := map[string]bool{}
	p.expect('{')
	for p.err == nil && !p.accept('}') {
		key := p.str()
		p.expect(':')
		if seen[key] {
			p.fail("%s is there twice", quote(key))
		}
		seen[key] = true
		switch key {
		case "descr":
			if p.peek() == '[' {
				p.fail("a structured array: save a plain one")
			}
			h.descr = p.str()
		case "fortran_order":
			h.fortran = p.boolean()
		case "shape":
			h.shape = p.tuple()
		default:
			p.fail("key %s is not known", quote(key))
		}
		if !p.accept(',') && p.peek() != '}' {
			p.fail("want ',' or '}'")
		}
	}
	if p.err == nil && strings.TrimSpace(p.text[p.pos:]) != "" {
		p.fail("text after the dict")
	}
	if p.err == nil && len(seen) != 3 {
		p.err = errors.New("want descr, fortran_order and shape")
	}
	return h, p.err
}

// literal is a cursor over a Python literal; the first error sticks.
type literal struct {
	text string
	pos  int
	err  error
}

func (p *literal) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("character %d: %w", p.pos, fmt.Errorf(format, args...))
	}
}

// peek returns the next character after spaces, 0 at the end.
func (p *literal) peek() byte {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
	if p.pos == len(p.text) {
		return 0
	}
	return p.text[p.pos]
}

func (p *literal) accept(c byte) bool {
	if p.err != nil || p.peek() != c {
		return false
	}
	p.pos++
	return true
}

func (p *literal) expect(c byte) {
	if !p.accept(c) {
		p.fail("want %q", c)
	}
}

// str reads a quoted string; NumPy writes none with escapes in it.
func (p *literal) str() string {
	quotation := p.peek()
	if quotation != '\'' && quotation != '"' {
		p.fail("want a string")
		return ""
	}
	body := p.text[p.pos+1:]
	end := strings.IndexByte(body, quotation)
	if end < 0 || strings.IndexByte(body[:end], '\\') >= 0 {
		p.fail("a string that does not end, or has an escape in it")
		return ""
	}
	p.pos += end + 2
	return body[:end]
}

func (p *literal) boolean() bool {
	p.peek()
	for _, word := range []string{"True", "False"} {
		if strings.HasPrefix(p.text[p.pos:], word) {
			p.pos += len(word)
			return word == "True"
		}
	}
	p.fail("want True or False")
	return false
}

func (p *literal) tuple() []int64 {
	p.expect('(')
	var values []int64
	for p.err == nil && !p.accept(')') {
		p.peek()
		digits := p.text[p.pos:]
		if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
			digits = digits[:end]
		}
		value, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			p.fail("want a dimension")
			return nil
		}
		if len(values) == maxRank {
			p.fail("more than %d dimensions", maxRank)
			return nil
		}
		values = append(values, value)
		p.pos += len(digits)
		p.accept('L') // Python 2 marked long integers
		if !p.accept(',') && p.peek() != ')' {
			p.fail("want ',' or ')'")
		}
	}
	return values
}
