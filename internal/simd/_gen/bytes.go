package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// vnni is avx512 with the integer products of AVX512-VNNI.
var vnni = class{suffix: "VNNI", lanes: 16}

const (
	groupBytes = 64 // four values of each of the 16 rows of a block
	blockRows  = 16
)

// dotBytes writes the products of 8-bit rows. A register holds four values of each of 8 or 16 rows.
// Their products with the same four of q are added up in the 32-bit lane of the row, so that no sum
// goes across lanes.
func (c class) dotBytes() {
	c.text("dotBytes", "dst *float32, q, rows *int8, factors *float32, blocks, groups int, scale float32)",
		"is dotBytesGeneric for blocks blocks of groups groups, a positive even number.")
	load := func(name string) Register { return Load(Param(name), GP64()) }
	dst, q, rows, factors := load("dst"), load("q"), load("rows"), load("factors")
	blocks, groups := load("blocks"), load("groups")
	address, err := Param("scale").Resolve()
	if err != nil {
		panic(err)
	}
	scale := c.vec()
	VBROADCASTSS(address.Addr, scale)
	var kernel bytesKernel
	if c.lanes == 16 {
		kernel = newBytes512(q, groups)
	} else {
		kernel = newBytes256()
	}

	Label("block")
	TESTQ(blocks, blocks)
	JZ(LabelRef("done"))
	sums := kernel.begin()
	at, left := GP64(), GP64()
	MOVQ(q, at)
	MOVQ(groups, left)
	Label("pair")
	kernel.pair(at, rows, sums)
	ADDQ(Imm(8), at)
	ADDQ(I32(2*groupBytes), rows)
	SUBQ(Imm(2), left)
	JNZ(LabelRef("pair"))
	for i, sum := range kernel.end(sums) {
		VCVTDQ2PS(sum, sum)
		VMULPS(Mem{Base: factors, Disp: i * c.bytes()}, sum, sum)
		VMULPS(scale, sum, sum)
		VMOVUPS(sum, Mem{Base: dst, Disp: i * c.bytes()})
	}
	ADDQ(I32(4*blockRows), factors)
	ADDQ(I32(4*blockRows), dst)
	DECQ(blocks)
	JMP(LabelRef("block"))

	Label("done")
	VZEROUPPER()
	RET()
}

// bytesKernel is the part of dotBytes that a class does in its own way.
type bytesKernel interface {
	// begin returns the registers that sum up a block.
	begin() []VecVirtual
	// pair adds the products of two groups at rows with eight values at q.
	pair(q, rows Register, sums []VecVirtual)
	// end returns the sums, in the order of the rows.
	end(sums []VecVirtual) []VecVirtual
}

// bytes512 multiplies by VPDPBUSD, whose first factor is unsigned: rows are raised by 128, and what
// that adds to every sum, 128 times the sum of q, is subtracted from where the sum begins.
type bytes512 struct{ raise, begins VecVirtual }

func newBytes512(q, groups Register) bytes512 {
	b := bytes512{ZMM(), ZMM()}
	bits, at, left := GP32(), GP64(), GP64()
	MOVL(U32(0x80808080), bits)
	VPBROADCASTD(bits, b.raise)
	raised := ZMM()
	VPXORD(raised, raised, raised)
	MOVQ(q, at)
	MOVQ(groups, left)
	Label("raise")
	VPDPBUSD_BCST(Mem{Base: at}, b.raise, raised)
	ADDQ(Imm(4), at)
	DECQ(left)
	JNZ(LabelRef("raise"))
	VPXORD(b.begins, b.begins, b.begins)
	VPSUBD(raised, b.begins, b.begins)
	return b
}

func (b bytes512) begin() []VecVirtual {
	sums := []VecVirtual{ZMM(), ZMM()}
	VMOVDQA64(b.begins, sums[0])
	VPXORD(sums[1], sums[1], sums[1])
	return sums
}

func (b bytes512) pair(q, rows Register, sums []VecVirtual) {
	for i, sum := range sums {
		raised := ZMM()
		VPXORD(Mem{Base: rows, Disp: i * groupBytes}, b.raise, raised)
		VPDPBUSD_BCST(Mem{Base: q, Disp: 4 * i}, raised, sum)
	}
}

func (b bytes512) end(sums []VecVirtual) []VecVirtual {
	VPADDD(sums[1], sums[0], sums[0])
	return sums[:1]
}

// bytes256 multiplies by VPMADDUBSW, whose first factor is unsigned too: it gets the magnitudes of
// the rows, and q gets their signs. It adds two products up in 16 bits, which hold 2 * 127 * 127.
type bytes256 struct{ ones VecVirtual }

func newBytes256() bytes256 {
	b := bytes256{YMM()}
	VPCMPEQW(b.ones, b.ones, b.ones)
	VPSRLW(Imm(15), b.ones, b.ones)
	return b
}

func (b bytes256) begin() []VecVirtual { return avx2.zeros(2) }

func (b bytes256) pair(q, rows Register, sums []VecVirtual) {
	for group := range 2 {
		four := YMM()
		VPBROADCASTD(Mem{Base: q, Disp: 4 * group}, four)
		for half, sum := range sums {
			values, magnitudes, signed := YMM(), YMM(), YMM()
			VMOVDQU(Mem{Base: rows, Disp: group*groupBytes + half*groupBytes/2}, values)
			VPABSB(values, magnitudes)
			VPSIGNB(values, four, signed)
			VPMADDUBSW(signed, magnitudes, signed)
			VPMADDWD(b.ones, signed, signed)
			VPADDD(signed, sum, sum)
		}
	}
}

func (b bytes256) end(sums []VecVirtual) []VecVirtual { return sums }
