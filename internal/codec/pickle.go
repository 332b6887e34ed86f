package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// unpickler runs the opcodes of protocols 2 to 5 that build data. A handful of callables stand
// behind findGlobal, reduce and persistent, in torch.go; every opcode that could reach another one
// is refused.
//
// Few opcodes make much of little: an opcode of one byte makes a list, a memo of two bytes is given
// a shape of any length. What the values take is charged to mem before they are made, and text is
// not copied out of the pickle.
type unpickler struct {
	code  string
	pos   int
	stack []any
	peak  int   // the most values the stack has held
	memo  []any // by slot; unset where nothing was stored
	mem   *bound

	persistent func(id any) (any, error) // what a persistent id stands for
}

// What values take in memory, in bytes. A slot is an interface value in the stack, the memo or a
// container, with the room such arrays grow ahead by.
const (
	slotCost      = 24
	scalarCost    = 16
	containerCost = 48
	tensorCost    = 128
)

// unpickle returns the value a pickle builds within mem and where it ends, or the position of its
// fault. The value shares the memory of code.
func unpickle(code string, mem *bound, persistent func(id any) (any, error)) (value any, at int, err error) {
	u := &unpickler{code: code, mem: mem, persistent: persistent}
	for {
		at = u.pos
		op, err := u.take(1)
		if err != nil {
			return nil, at, err
		}
		if op[0] == '.' { // STOP
			value, err := u.pop()
			if err != nil {
				return nil, at, err
			}
			return value, u.pos, nil
		}
		if err := u.step(op[0]); err != nil {
			return nil, at, fmt.Errorf("opcode 0x%02x: %w", op[0], err)
		}
		if len(u.stack) > u.peak {
			u.peak++
			if err := mem.spend(slotCost); err != nil {
				return nil, at, err
			}
		}
	}
}

// step runs one opcode. Each group returns errUnknownOpcode for those of the others.
func (u *unpickler) step(op byte) error {
	err := u.scalar(op)
	if err == errUnknownOpcode {
		err = u.text(op)
	}
	if err == errUnknownOpcode {
		err = u.container(op)
	}
	if err == errUnknownOpcode {
		err = u.memory(op)
	}
	if err == errUnknownOpcode {
		err = u.call(op)
	}
	return err
}

var errUnknownOpcode = errors.New("refused: not an opcode that builds tensors, dicts or lists")

// take consumes n bytes of code.
func (u *unpickler) take(n uint64) (string, error) {
	if n > uint64(len(u.code)-u.pos) {
		return "", fmt.Errorf("truncated: wants %d bytes, %d are left", n, len(u.code)-u.pos)
	}
	p := u.code[u.pos : u.pos+int(n)]
	u.pos += int(n)
	return p, nil
}

// number consumes an unsigned little-endian integer of width 1, 2, 4 or 8.
func (u *unpickler) number(width uint64) (uint64, error) {
	p, err := u.take(width)
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[:], p)
	return binary.LittleEndian.Uint64(wide[:]), nil
}

func (u *unpickler) push(v any) { u.stack = append(u.stack, v) }

// make pushes a value that takes cost bytes beside its slot.
func (u *unpickler) make(cost int, v any) error {
	u.push(v)
	return u.mem.spend(int64(cost))
}

func (u *unpickler) pop() (any, error) {
	if len(u.stack) == 0 {
		return nil, errors.New("the stack is empty")
	}
	v := u.stack[len(u.stack)-1]
	u.stack = u.stack[:len(u.stack)-1]
	if v == (mark{}) {
		return nil, errors.New("a mark where a value should be")
	}
	return v, nil
}

// popMark pops everything above the topmost mark, and the mark. The items are valid until the next
// push.
func (u *unpickler) popMark() ([]any, error) {
	for i := len(u.stack) - 1; i >= 0; i-- {
		if u.stack[i] == (mark{}) {
			items := u.stack[i+1:]
			u.stack = u.stack[:i]
			return items, nil
		}
	}
	return nil, errors.New("no mark on the stack")
}

// memory runs the opcodes of the memo, the stack and framing.
func (u *unpickler) memory(op byte) error {
	switch op {
	case 0x80: // PROTO
		version, err := u.number(1)
		if err == nil && version > 5 {
			err = fmt.Errorf("pickle protocol %d is not known", version)
		}
		return err
	case 0x95: // FRAME: a hint for readers of streams
		_, err := u.take(8)
		return err
	case 'q', 'r', 0x94: // BINPUT, LONG_BINPUT, MEMOIZE
		return u.remember(op)
	case 'h', 'j': // BINGET, LONG_BINGET
		width := uint64(1)
		if op == 'j' {
			width = 4
		}
		slot, err := u.number(width)
		if err != nil {
			return err
		}
		if slot >= uint64(len(u.memo)) || u.memo[slot] == (unset{}) {
			return fmt.Errorf("memo %d is not set", slot)
		}
		u.push(u.memo[slot])
	case '0': // POP; a mark may go too
		if len(u.stack) == 0 {
			return errors.New("the stack is empty")
		}
		u.stack = u.stack[:len(u.stack)-1]
	case '1': // POP_MARK
		_, err := u.popMark()
		return err
	default:
		return errUnknownOpcode
	}
	return nil
}

// remember stores the top of the stack in the memo.
func (u *unpickler) remember(op byte) error {
	slot := uint64(len(u.memo))
	var err error
	switch op {
	case 'q':
		slot, err = u.number(1)
	case 'r':
		slot, err = u.number(4)
	}
	if err != nil {
		return err
	}
	if len(u.stack) == 0 || u.stack[len(u.stack)-1] == (mark{}) {
		return errors.New("nothing on the stack to remember")
	}
	// Python numbers the slots one after another, so they are a slice; what a slot far away makes
	// of it is charged.
	if gap := int64(slot) + 1 - int64(len(u.memo)); gap > 0 {
		if err := u.mem.spend(slotCost * gap); err != nil {
			return err
		}
		u.memo = slices.Grow(u.memo, int(gap))
		for range gap {
			u.memo = append(u.memo, unset{})
		}
	}
	u.memo[slot] = u.stack[len(u.stack)-1]
	return nil
}

// call runs the opcodes that name globals and apply them.
func (u *unpickler) call(op byte) error {
	switch op {
	case 'c': // GLOBAL
		name, err := u.lines(2)
		if err != nil {
			return err
		}
		return u.pushGlobal(name[0], name[1])
	case 0x93: // STACK_GLOBAL
		name, err := u.pop()
		if err != nil {
			return err
		}
		module, err := u.pop()
		if err != nil {
			return err
		}
		m, isText := module.(string)
		n, isText2 := name.(string)
		if !isText || !isText2 {
			return errors.New("the name of a global is not text")
		}
		return u.pushGlobal(m, n)
	case 'R', 'b': // REDUCE, BUILD: pop an argument, replace the object below
		arg, err := u.pop()
		if err != nil {
			return err
		}
		object, err := u.pop()
		if err != nil {
			return err
		}
		if op == 'b' {
			v, cost, err := build(object, arg)
			if err != nil {
				return err
			}
			return u.make(cost, v)
		}
		v, cost, err := reduce(object, arg)
		if err != nil {
			return err
		}
		return u.make(cost, v)
	case 'Q': // BINPERSID
		id, err := u.pop()
		if err != nil {
			return err
		}
		v, err := u.persistent(id)
		if err != nil {
			return err
		}
		return u.make(containerCost, v)
	}
	return errUnknownOpcode
}

func (u *unpickler) pushGlobal(module, name string) error {
	g, err := findGlobal(module, name)
	if err != nil {
		return err
	}
	u.push(g)
	return nil
}

// lines consumes n lines of text.
func (u *unpickler) lines(n int) ([]string, error) {
	parts := strings.SplitN(u.code[u.pos:min(len(u.code), u.pos+1024)], "\n", n+1)
	if len(parts) <= n {
		return nil, errors.New("truncated: the name of a global does not end")
	}
	for _, part := range parts[:n] {
		u.pos += len(part) + 1
	}
	return parts[:n], nil
}
