package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// unpickler runs the opcodes of protocols 2 to 5 that build data. A handful of
// callables stand behind findGlobal, reduce and persistent, in torch.go; every
// opcode that could reach another one is refused.
//
// Each opcode takes at least a byte of input and adds at most a few words, so
// memory is proportional to the pickle.
type unpickler struct {
	code  []byte
	pos   int
	stack []any
	memo  map[uint64]any
}

// unpickle returns the value a pickle builds, or the position of its fault.
func unpickle(code []byte) (value any, at int, err error) {
	u := &unpickler{code: code, memo: map[uint64]any{}}
	for {
		at = u.pos
		op, err := u.take(1)
		if err != nil {
			return nil, at, err
		}
		if op[0] == '.' { // STOP
			value, err := u.pop()
			return value, at, err
		}
		if err := u.step(op[0]); err != nil {
			return nil, at, fmt.Errorf("opcode 0x%02x: %w", op[0], err)
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
func (u *unpickler) take(n uint64) ([]byte, error) {
	if n > uint64(len(u.code)-u.pos) {
		return nil, fmt.Errorf("truncated: wants %d bytes, %d are left", n, len(u.code)-u.pos)
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

// popMark pops everything above the topmost mark, and the mark. The items are
// copied, so that later pushes do not overwrite them.
func (u *unpickler) popMark() ([]any, error) {
	for i := len(u.stack) - 1; i >= 0; i-- {
		if u.stack[i] == (mark{}) {
			items := append([]any(nil), u.stack[i+1:]...)
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
		v, known := u.memo[slot]
		if !known {
			return fmt.Errorf("memo %d is not set", slot)
		}
		u.push(v)
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
		perform := reduce
		if op == 'b' {
			perform = build
		}
		v, err := perform(object, arg)
		if err != nil {
			return err
		}
		u.push(v)
	case 'Q': // BINPERSID
		id, err := u.pop()
		if err != nil {
			return err
		}
		v, err := persistent(id)
		if err != nil {
			return err
		}
		u.push(v)
	default:
		return errUnknownOpcode
	}
	return nil
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
	parts := strings.SplitN(string(u.code[u.pos:min(len(u.code), u.pos+1024)]), "\n", n+1)
	if len(parts) <= n {
		return nil, errors.New("truncated: the name of a global does not end")
	}
	for _, part := range parts[:n] {
		u.pos += len(part) + 1
	}
	return parts[:n], nil
}
