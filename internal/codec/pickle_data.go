package codec

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// The values a pickle builds here, beside string, int64, float64, bool and nil. Nothing in them can
// be executed; what torch.go makes of globals joins them.
type (
	tuple []any
	// sequence is a list or a set; only its items matter.
	sequence struct{ items []any }
	// dict keeps its pairs in order; a repeated key shows up when names are joined.
	dict struct{ keys, values []any }
	// inert stands for values that cannot be part of a tensor: integers beyond 64 bits.
	inert struct{}
	// mark separates the items of a container under construction from what lies below.
	mark struct{}
	// unset is what a slot of the memo holds before it is given a value.
	unset struct{}
)

// scalar runs the opcodes of numbers and constants.
func (u *unpickler) scalar(op byte) error {
	switch op {
	case 'N':
		u.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		u.push(op == 0x88)
	case 'K': // BININT1
		return u.integer(1)
	case 'M': // BININT2
		return u.integer(2)
	case 'J': // BININT, the one that is signed
		v, err := u.number(4)
		if err != nil {
			return err
		}
		return u.make(scalarCost, int64(int32(v)))
	case 0x8a: // LONG1
		return u.long(1)
	case 0x8b: // LONG4
		return u.long(4)
	case 'G': // BINFLOAT, the one big-endian number
		p, err := u.take(8)
		if err != nil {
			return err
		}
		return u.make(scalarCost, math.Float64frombits(binary.BigEndian.Uint64([]byte(p))))
	default:
		return errUnknownOpcode
	}
	return nil
}

// integer pushes an unsigned integer of the given width.
func (u *unpickler) integer(width uint64) error {
	v, err := u.number(width)
	if err != nil {
		return err
	}
	return u.make(scalarCost, int64(v))
}

// long pushes a two's complement little-endian integer whose length stands before it, in width
// bytes.
func (u *unpickler) long(width uint64) error {
	n, err := u.number(width)
	if err != nil {
		return err
	}
	p, err := u.take(n)
	if err != nil {
		return err
	}
	if n > 8 {
		u.push(inert{})
		return nil
	}
	var v int64
	for i := range len(p) {
		v |= int64(p[i]) << (8 * i)
	}
	if n > 0 && n < 8 && p[n-1]&0x80 != 0 {
		v -= 1 << (8 * n)
	}
	return u.make(scalarCost, v)
}

// text runs the opcodes of strings and bytes.
func (u *unpickler) text(op byte) error {
	width, isText := uint64(0), true
	switch op {
	case 0x8c: // SHORT_BINUNICODE
		width = 1
	case 'X': // BINUNICODE
		width = 4
	case 0x8d: // BINUNICODE8
		width = 8
	case 'U': // SHORT_BINSTRING: the str of Python 2
		width = 1
	case 'T': // BINSTRING
		width = 4
	case 'C': // SHORT_BINBYTES
		width, isText = 1, false
	case 'B': // BINBYTES
		width, isText = 4, false
	case 0x8e, 0x96: // BINBYTES8, BYTEARRAY8
		width, isText = 8, false
	default:
		return errUnknownOpcode
	}
	n, err := u.number(width)
	if err != nil {
		return err
	}
	p, err := u.take(n)
	if err != nil {
		return err
	}
	if isText {
		return u.make(scalarCost, p)
	}
	return u.make(scalarCost, rawBytes(p))
}

// container runs the opcodes of tuples, lists, sets and dicts.
func (u *unpickler) container(op byte) error {
	switch op {
	case '(':
		u.push(mark{})
	case ')':
		u.push(tuple{})
	case ']', 0x8f: // EMPTY_LIST, EMPTY_SET
		return u.make(containerCost, &sequence{})
	case '}':
		return u.make(containerCost, &dict{})
	case 0x85, 0x86, 0x87: // TUPLE1 to TUPLE3
		n := int(op - 0x84)
		items := make(tuple, n)
		for i := n - 1; i >= 0; i-- {
			var err error
			if items[i], err = u.pop(); err != nil {
				return err
			}
		}
		return u.make(containerCost+slotCost*n, items)
	case 't', 'l', 'd', 0x91: // TUPLE, LIST, DICT, FROZENSET
		items, err := u.popMark()
		if err != nil {
			return err
		}
		return u.collect(op, items)
	case 'a', 's': // APPEND, SETITEM
		n := 1
		if op == 's' {
			n = 2
		}
		if len(u.stack) < n {
			return errors.New("the stack is empty")
		}
		items := u.stack[len(u.stack)-n:]
		u.stack = u.stack[:len(u.stack)-n]
		return u.extend(op == 's', items)
	case 'e', 0x90, 'u': // APPENDS, ADDITEMS, SETITEMS
		items, err := u.popMark()
		if err != nil {
			return err
		}
		return u.extend(op == 'u', items)
	default:
		return errUnknownOpcode
	}
	return nil
}

// collect pushes a container of the items above a mark.
func (u *unpickler) collect(op byte, items []any) error {
	if err := u.mem.spend(int64(containerCost + slotCost*len(items))); err != nil {
		return err
	}
	switch op {
	case 't':
		u.push(tuple(slices.Clone(items)))
	case 'd':
		d := &dict{}
		if err := d.set(items); err != nil {
			return err
		}
		u.push(d)
	default:
		u.push(&sequence{items: slices.Clone(items)})
	}
	return nil
}

// extend adds items to the list, set or dict on top of the stack.
func (u *unpickler) extend(pairs bool, items []any) error {
	if len(u.stack) == 0 {
		return errors.New("the stack is empty")
	}
	if err := u.mem.spend(int64(slotCost * len(items))); err != nil {
		return err
	}
	for _, item := range items {
		if item == (mark{}) {
			return errors.New("a mark where a value should be")
		}
	}
	switch target := u.stack[len(u.stack)-1].(type) {
	case *dict:
		if pairs {
			return target.set(items)
		}
	case *sequence:
		if !pairs {
			target.items = append(target.items, items...)
			return nil
		}
	}
	return errors.New("items are added to something that is not a list or a dict")
}

// set adds alternating keys and values.
func (d *dict) set(items []any) error {
	if len(items)%2 != 0 {
		return errors.New("a dict key without a value")
	}
	for i := 0; i < len(items); i += 2 {
		d.keys = append(d.keys, items[i])
		d.values = append(d.values, items[i+1])
	}
	return nil
}
