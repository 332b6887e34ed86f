package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// class is a set of vector instructions: the suffix of its kernels' names and
// the shape of its registers.
type class struct {
	suffix string
	lanes  int // float32 values in a register
	// dotTile is the number of rows dotRows works on at once. With four
	// partial sums per row it is bounded by the number of registers.
	dotTile int
}

var (
	avx2   = class{suffix: "AVX2", lanes: 8, dotTile: 2}
	avx512 = class{suffix: "AVX512", lanes: 16, dotTile: 4}
	// vbmi is avx512 with the byte permutations of AVX512-VBMI, where they pay.
	vbmi = class{suffix: "VBMI", lanes: 16}
)

// bytes is the size of a register.
func (c class) bytes() int { return 4 * c.lanes }

// vec returns a fresh vector register.
func (c class) vec() VecVirtual {
	if c.lanes == 16 {
		return ZMM()
	}
	return YMM()
}

// zeros returns n registers set to zero.
func (c class) zeros(n int) []VecVirtual {
	vs := make([]VecVirtual, n)
	for i := range vs {
		vs[i] = c.vec()
		VXORPS(vs[i], vs[i], vs[i])
	}
	return vs
}

// text begins the function name + suffix. doc lines may hold the suffix too.
func (c class) text(name, signature string, doc ...string) {
	TEXT(name+c.suffix, NOSPLIT, "func("+signature)
	Doc(append([]string{name + c.suffix + " " + doc[0]}, doc[1:]...)...)
	Pragma("noescape")
}

// load returns op itself if it is a register, else a register holding it.
func (c class) load(op Op) Op {
	if _, isMem := op.(Mem); !isMem {
		return op
	}
	v := c.vec()
	VMOVUPS(op, v)
	return v
}

// tail reads the first n values at an address, n less than a register, and
// leaves the other lanes zero. It never touches memory beyond the n values.
type tail struct {
	c    class
	mask Op
}

// tailMask prepares a tail for the count n.
func (c class) tailMask(n Register) tail {
	if c.lanes == 16 {
		bits, mask := GP32(), K()
		MOVL(I32(-1), bits)
		BZHIL(n.(GPVirtual).As32(), bits, bits)
		KMOVW(bits, mask)
		return tail{c, mask}
	}
	// A window of eight words on eight ones and eight zeros: the first n are
	// ones when it starts at the word 8-n.
	table := words("tailMask", 32, 16, func(i int) int { return -1 + i/8 })
	address, offset := GP64(), GP64()
	LEAQ(table.Offset(32), address)
	MOVQ(n, offset)
	NEGQ(offset)
	mask := YMM()
	VMOVDQU(Mem{Base: address, Index: offset, Scale: 4}, mask)
	return tail{c, mask}
}

func (t tail) load(m Mem) Op {
	v := t.c.vec()
	if t.c.lanes == 16 {
		VMOVUPS_Z(m, t.mask, v)
	} else {
		VMASKMOVPS(m, t.mask, v)
	}
	return v
}

// fold adds the halves of a 512-bit register, leaving 256 bits.
func (c class) fold(v VecVirtual) VecVirtual {
	if c.lanes == 8 {
		return v
	}
	high := YMM()
	VEXTRACTF64X4(Imm(1), v, high)
	low := v.AsY()
	VADDPS(high, low, high)
	return high
}

// foldLanes adds the halves of a 256-bit register, leaving 128 bits.
func foldLanes(v VecVirtual) VecVirtual {
	high := XMM()
	VEXTRACTF128(Imm(1), v, high)
	VADDPS(high, v.AsX(), high)
	return high
}

// tables holds the constants words has already written.
var tables = map[string]Mem{}

// words returns a table of n constants of 16 or 32 bits, written on first use.
func words(name string, bits, n int, value func(i int) int) Mem {
	if m, ok := tables[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range n {
		if bits == 16 {
			DATA(2*i, I16(value(i)))
		} else {
			DATA(4*i, I32(value(i)))
		}
	}
	tables[name] = m
	return m
}
