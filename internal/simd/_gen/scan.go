package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	blockCodes = 32
	tableSize  = 16
	pairBytes  = 32 // of a pair, in a block as in the tables
)

// scan is the state of one scan4 kernel under construction.
type scan struct {
	class
	pos, sums   Register
	codes, lut  Register
	blocks      Register // still to scan
	pairs       Register // in bytes: 32 per pair, of codes as of tables
	n, first    Register // survivors so far; position of the block's first code
	nibble, min VecVirtual
}

// scan4 writes the FastScan kernel. Two byte shuffles look up the tables of a
// pair for 32 codes. Their results, one byte per code, are added to one another and
// then in 16-bit lanes as they lie, two codes to a lane: all sums up the even code
// + 256 * the odd code, odd the odd code alone, and all - 256*odd is left for the
// even one. Overflow of all does no harm, for the two true sums fit in 16 bits.
func (c class) scan4() {
	c.text("scan4", "pos *uint32, sums *uint16, codes, lut *byte, blocks, pairs int, min uint16) int",
		"is scan4Generic for blocks blocks of pairs*32 bytes.")
	load := func(name string) Register { return Load(Param(name), GP64()) }
	s := scan{
		class: c,
		pos:   load("pos"), sums: load("sums"),
		codes: load("codes"), lut: load("lut"), blocks: load("blocks"), pairs: load("pairs"),
		n: GP64(), first: GP64(),
		nibble: c.vec(), min: c.vec(),
	}
	SHLQ(Imm(5), s.pairs)
	XORQ(s.n, s.n)
	XORQ(s.first, s.first)
	low := GP32()
	MOVL(U32(0x0f0f0f0f), low)
	MOVD(low, s.nibble.AsX())
	VPBROADCASTD(s.nibble.AsX(), s.nibble)
	min, err := Param("min").Resolve()
	if err != nil {
		panic(err)
	}
	VPBROADCASTW(min.Addr, s.min)

	loop := func(label, next string, count int, body func()) {
		Label(label)
		CMPQ(s.blocks, I32(count))
		JL(LabelRef(next))
		body()
		Label(label + "Next")
		for range count {
			ADDQ(s.pairs, s.codes)
		}
		ADDQ(I32(count*blockCodes), s.first)
		SUBQ(I32(count), s.blocks)
		JMP(LabelRef(label))
	}
	switch c {
	case vbmi:
		u := s.newUnits()
		loop("four", "two", 4, func() { u.chunks("four", 4) })
		loop("two", "one", 2, func() { u.chunks("two", 2) })
		loop("one", "done", 1, func() { u.chunks("one", 1) })
	case avx512:
		loop("two", "one", 2, func() { s.blocks512("two", 2) })
		loop("one", "done", 1, func() { s.blocks512("one", 1) })
	default:
		loop("one", "done", 1, func() { s.block256("one") })
	}
	Label("done")
	VZEROUPPER()
	Store(s.n, ReturnIndex(0))
	RET()
}

// sum adds the table entries of a register of codes to the sums all and odd.
func (s scan) sum(code, lowTable, highTable, all, odd VecVirtual) {
	and := VPANDD
	if s.lanes == 8 {
		and = func(ops ...Op) { VPAND(ops[0], ops[1], ops[2]) }
	}
	low, high := s.vec(), s.vec()
	VPSRLW(Imm(4), code, high)
	and(code, s.nibble, low)
	and(high, s.nibble, high)
	VPSHUFB(low, lowTable, low)
	VPSHUFB(high, highTable, high)
	VPADDB(low, high, high)
	VPADDW(high, all, all)
	VPSRLW(Imm(8), high, high)
	VPADDW(high, odd, odd)
}

// finish turns all into the sums of the even codes.
func finish(all, odd VecVirtual) {
	shifted := YMM()
	VPSLLW(Imm(8), odd, shifted)
	VPSUBW(shifted, all, all)
}

// blockSums256 returns the sums of the even and of the odd codes of a block, one
// pair at a time.
func (s scan) blockSums256(label string) (even, odd VecVirtual) {
	acc, i := s.zeros(2), GP64()
	XORQ(i, i)
	Label(label + "Pair")
	code, lowTable, highTable := YMM(), YMM(), YMM()
	VMOVDQU(Mem{Base: s.codes, Index: i, Scale: 1}, code)
	VBROADCASTI128(Mem{Base: s.lut, Index: i, Scale: 1}, lowTable)
	VBROADCASTI128(Mem{Base: s.lut, Index: i, Scale: 1, Disp: tableSize}, highTable)
	s.sum(code, lowTable, highTable, acc[0], acc[1])
	ADDQ(I32(pairBytes), i)
	CMPQ(i, s.pairs)
	JL(LabelRef(label + "Pair"))
	finish(acc[0], acc[1])
	return acc[0], acc[1]
}

// block256 scans one block and writes its survivors one by one.
func (s scan) block256(label string) {
	even, odd := s.blockSums256(label)

	// Byte i of passed is set when code i survives: the words of even hold the
	// codes at even bytes, those of odd the codes at odd bytes.
	oddBytes, passed, passedOdd := YMM(), YMM(), YMM()
	VPCMPEQW(oddBytes, oddBytes, oddBytes)
	VPSLLW(Imm(8), oddBytes, oddBytes)
	VPMAXUW(s.min, even, passed)
	VPCMPEQW(passed, even, passed)
	VPMAXUW(s.min, odd, passedOdd)
	VPCMPEQW(passedOdd, odd, passedOdd)
	VPBLENDVB(oddBytes, passedOdd, passed, passed)
	left := GP32()
	VPMOVMSKB(passed, left)
	TESTL(left, left)
	JZ(LabelRef(label + "Next"))

	ordered := AllocLocal(2 * blockCodes)
	low, high, half := YMM(), YMM(), YMM()
	VPUNPCKLWD(odd, even, low)
	VPUNPCKHWD(odd, even, high)
	VPERM2I128(Imm(0x20), high, low, half)
	VMOVDQU(half, ordered)
	VPERM2I128(Imm(0x31), high, low, half)
	VMOVDQU(half, ordered.Offset(32))

	Label(label + "Survivor")
	code, sum := GP64(), GP64()
	TZCNTL(left, code.As32())
	MOVWLZX(ordered.Idx(code, 2), sum.As32())
	MOVW(sum.As16(), Mem{Base: s.sums, Index: s.n, Scale: 2})
	ADDQ(s.first, code)
	MOVL(code.As32(), Mem{Base: s.pos, Index: s.n, Scale: 4})
	INCQ(s.n)
	BLSRL(left, left)
	JNZ(LabelRef(label + "Survivor"))
}
