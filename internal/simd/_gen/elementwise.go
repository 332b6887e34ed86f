package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// line is the size of a cache line in bytes.
const line = 64

// elementwise writes the kernels that map vectors to a vector.
func (c class) elementwise() {
	c.axpy()
	c.mul()
	c.relu()
	c.gate()
}

func (c class) axpy() {
	c.text("axpy", "dst []float32, alpha float32, x []float32)", "is axpyGeneric with fused multiply-adds.")
	alpha := c.vec()
	address, err := Param("alpha").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(address.Addr, alpha)
	dst, x := Load(Param("dst").Base(), GP64()), Load(Param("x").Base(), GP64())
	c.each(Load(Param("dst").Len(), GP64()), []Register{dst, x}, func(at func(Register) Op) Op {
		sum := c.load(at(dst))
		VFMADD231PS(at(x), alpha, sum)
		return sum
	}, func() {
		v := XMM()
		VMOVSS(Mem{Base: dst}, v)
		VFMADD231SS(Mem{Base: x}, alpha.AsX(), v)
		VMOVSS(v, Mem{Base: dst})
	})
}

func (c class) mul() {
	c.text("mul", "dst, a, b []float32)", "is mulGeneric.")
	dst, a, b := Load(Param("dst").Base(), GP64()), Load(Param("a").Base(), GP64()), Load(Param("b").Base(), GP64())
	c.each(Load(Param("dst").Len(), GP64()), []Register{dst, a, b}, func(at func(Register) Op) Op {
		product := c.vec()
		VMULPS(at(b), c.load(at(a)), product)
		return product
	}, func() {
		v := XMM()
		VMOVSS(Mem{Base: a}, v)
		VMULSS(Mem{Base: b}, v, v)
		VMOVSS(v, Mem{Base: dst})
	})
}

func (c class) relu() {
	c.text("relu", "x []float32)", "is reluGeneric.")
	zero := c.zeros(1)[0]
	x := Load(Param("x").Base(), GP64())
	c.each(Load(Param("x").Len(), GP64()), []Register{x}, func(at func(Register) Op) Op {
		// Of two zeros, and when one operand is NaN, VMAXPS takes its last
		// source operand, which Go writes first.
		v := c.vec()
		VMAXPS(zero, c.load(at(x)), v)
		return v
	}, func() {
		v := XMM()
		VMOVSS(Mem{Base: x}, v)
		VMAXSS(zero.AsX(), v, v)
		VMOVSS(v, Mem{Base: x})
	})
}

func (c class) gate() {
	const greater = 0x1e // of a comparison: false when an operand is NaN, and silent then
	c.text("gate", "dst, x []float32)", "is gateGeneric.")
	zero := c.zeros(1)[0]
	dst, x := Load(Param("dst").Base(), GP64()), Load(Param("x").Base(), GP64())
	c.each(Load(Param("dst").Len(), GP64()), []Register{dst, x}, func(at func(Register) Op) Op {
		v := c.vec()
		if c.lanes == 16 {
			open := K()
			VCMPPS(Imm(greater), zero, c.load(at(x)), open)
			VMOVUPS_Z(at(dst), open, v)
		} else {
			VCMPPS(Imm(greater), zero, c.load(at(x)), v)
			VANDPS(at(dst), v, v)
		}
		return v
	}, func() {
		v, open := XMM(), XMM()
		VMOVSS(Mem{Base: x}, open)
		VCMPSS(Imm(greater), zero.AsX(), open, open)
		VMOVSS(Mem{Base: dst}, v)
		VANDPS(v, open, v)
		VMOVSS(v, Mem{Base: dst})
	})
}

// each stores what vector returns, one register's worth after another, to the
// first of the pointers. vector reads its arguments through at. The tail shorter
// than a register is masked under AVX-512; under AVX2, where some processors
// take a hundred cycles for a masked store, scalar handles one value at a time.
func (c class) each(n Register, pointers []Register, vector func(at func(Register) Op) Op, scalar func()) {
	const unroll = 4
	advance := func(values int) {
		for _, p := range pointers {
			ADDQ(I32(4*values), p)
		}
		SUBQ(I32(values), n)
	}
	loop := func(label, next string, registers int) {
		Label(label)
		CMPQ(n, I32(registers*c.lanes))
		JL(LabelRef(next))
		for i := range registers {
			at := func(p Register) Op { return Mem{Base: p, Disp: i * c.bytes()} }
			VMOVUPS(vector(at), at(pointers[0]))
		}
		advance(registers * c.lanes)
		JMP(LabelRef(label))
	}
	loop("block", "vectors", unroll)
	loop("vectors", "tail", 1)

	Label("tail")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	if c.lanes == 16 {
		rest := c.tailMask(n)
		v := vector(func(p Register) Op { return rest.load(Mem{Base: p}) })
		VMOVUPS(v, rest.mask, Mem{Base: pointers[0]})
	} else {
		scalar()
		advance(1)
		JMP(LabelRef("tail"))
	}

	Label("done")
	VZEROUPPER()
	RET()
}

// prefetch writes the kernel that asks for the cache lines of its argument.
func (c class) prefetch() {
	c.text("prefetch", "x *byte, n int)", "asks for every cache line of n bytes.")
	x := Load(Param("x"), GP64())
	n := Load(Param("n"), GP64())
	end := GP64()
	LEAQ(Mem{Base: x, Index: n, Scale: 1}, end)
	ANDQ(I32(-line), x)

	Label("line")
	CMPQ(x, end)
	JAE(LabelRef("done"))
	PREFETCHT0(Mem{Base: x})
	ADDQ(I32(line), x)
	JMP(LabelRef("line"))

	Label("done")
	RET()
}
