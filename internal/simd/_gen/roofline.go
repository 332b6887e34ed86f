package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// roofline writes the loops whose speed bounds that of the kernels.
func roofline() {
	for _, c := range []class{avx2, avx512} {
		c.multiplyAdd()
		c.read()
	}
}

// chains is the number of independent FMAs: two units of latency four need eight.
const chains = 12

func (c class) multiplyAdd() {
	c.text("MultiplyAdd", "n int)", "runs 12 independent chains of n fused multiply-adds of whole registers.")
	n := Load(Param("n"), GP64())
	acc := c.zeros(chains)
	x := c.zeros(1)[0]
	Label("loop")
	for _, a := range acc {
		VFMADD231PS(x, x, a)
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func (c class) read() {
	c.text("Read", "b []byte)", "loads b; its length must be a positive multiple of 512.")
	p, n := Load(Param("b").Base(), GP64()), Load(Param("b").Len(), GP64())
	acc := c.zeros(4)
	Label("loop")
	for i := range 512 / c.bytes() {
		a := acc[i%len(acc)]
		VORPS(Mem{Base: p, Disp: i * c.bytes()}, a, a)
	}
	ADDQ(I32(512), p)
	SUBQ(I32(512), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
