package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// atLeast writes the kernel that turns comparisons into bits, a word of 64 of them at a time.
func (c class) atLeast() {
	const wordBits = 64
	const notGreater = 0x1a // of a comparison: true also when an operand is NaN, and silent then
	c.text("atLeast", "bits *uint64, x *float32, words int, least float32)", "is atLeastGeneric for 64*words values.")
	bits, x, words := Load(Param("bits"), GP64()), Load(Param("x"), GP64()), Load(Param("words"), GP64())
	least := c.vec()
	address, err := Param("least").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(address.Addr, least)

	Label("word")
	TESTQ(words, words)
	JZ(LabelRef("done"))
	at := func(register int) Op { return Mem{Base: x, Disp: register * c.bytes()} }
	if c.lanes == 16 {
		k := []Op{K(), K(), K(), K()}
		for i := range k {
			VCMPPS(Imm(notGreater), at(i), least, k[i])
		}
		KUNPCKWD(k[0], k[1], k[0])
		KUNPCKWD(k[2], k[3], k[2])
		KUNPCKDQ(k[0], k[2], k[0])
		KMOVQ(k[0], Mem{Base: bits})
	} else {
		for i := range wordBits / c.lanes {
			passed, some := c.vec(), GP32()
			VCMPPS(Imm(notGreater), at(i), least, passed)
			VMOVMSKPS(passed, some)
			MOVB(some.As8(), Mem{Base: bits, Disp: i})
		}
	}
	ADDQ(I32(4*wordBits), x)
	ADDQ(I32(wordBits/8), bits)
	DECQ(words)
	JMP(LabelRef("word"))

	Label("done")
	VZEROUPPER()
	RET()
}
