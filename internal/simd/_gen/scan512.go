package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// aheadBlocks is how far scan4 prefetches. Reading two blocks side by side hides
// from the processor that memory is read in order.
const aheadBlocks = 4

// blockSums512 returns the sums of the even and of the odd codes of one or two
// blocks. It takes two pairs at a time, one in each half of a register; two
// blocks share the work of laying out the tables.
func (s scan) blockSums512(label string, count int) (even, odd []VecVirtual) {
	all, odd := s.zeros(count), s.zeros(count)
	i, whole := GP64(), GP64()
	blocks := []Register{s.codes, GP64()}[:count]
	XORQ(i, i)
	MOVQ(s.pairs, whole)
	ANDQ(I32(-2*pairBytes), whole)
	ahead := GP64()
	if count == 2 {
		LEAQ(Mem{Base: s.codes, Index: s.pairs, Scale: 1}, blocks[1])
		LEAQ(Mem{Base: s.codes, Index: s.pairs, Scale: aheadBlocks}, ahead)
		CMPQ(s.blocks, I32(aheadBlocks+count))
		CMOVQLT(s.codes, ahead)
	}
	TESTQ(whole, whole)
	JZ(LabelRef(label + "Last"))

	Label(label + "Pairs")
	tables, lowTable, highTable := ZMM(), ZMM(), ZMM()
	VMOVDQU32(Mem{Base: s.lut, Index: i, Scale: 1}, tables)
	VSHUFI32X4(Imm(0b10_10_00_00), tables, tables, lowTable)  // tables 0 0 2 2
	VSHUFI32X4(Imm(0b11_11_01_01), tables, tables, highTable) // tables 1 1 3 3
	for b, base := range blocks {
		code := ZMM()
		VMOVDQU32(Mem{Base: base, Index: i, Scale: 1}, code)
		s.sum(code, lowTable, highTable, all[b], odd[b])
		if count == 2 {
			PREFETCHT0(Mem{Base: ahead, Index: i, Scale: 2, Disp: 64 * b})
		}
	}
	ADDQ(I32(2*pairBytes), i)
	CMPQ(i, whole)
	JL(LabelRef(label + "Pairs"))

	// An odd last pair: zeros in the upper halves, of the tables too, add nothing.
	Label(label + "Last")
	CMPQ(i, s.pairs)
	JE(LabelRef(label + "Fold"))
	VBROADCASTI128(Mem{Base: s.lut, Index: i, Scale: 1}, lowTable.AsY())
	VBROADCASTI128(Mem{Base: s.lut, Index: i, Scale: 1, Disp: tableSize}, highTable.AsY())
	for b, base := range blocks {
		code := ZMM()
		VMOVDQU(Mem{Base: base, Index: i, Scale: 1}, code.AsY())
		s.sum(code, lowTable, highTable, all[b], odd[b])
	}

	Label(label + "Fold")
	for b := range blocks {
		all[b], odd[b] = foldWords(all[b]), foldWords(odd[b])
		finish(all[b], odd[b])
	}
	return all, odd
}

// foldWords adds the halves of a 512-bit register of 16-bit lanes.
func foldWords(v VecVirtual) VecVirtual {
	sum := YMM()
	VEXTRACTI64X4(Imm(1), v, sum)
	VPADDW(v.AsY(), sum, sum)
	return sum
}

// blocks512 scans one or two blocks and compacts survivors 16 codes at a time.
func (s scan) blocks512(label string, count int) {
	even, odd := s.blockSums512(label, count)
	ordered, passed := make([]VecVirtual, count), make([]OpmaskVirtual, count)
	interleave := words("interleave", 16, blockCodes, func(i int) int { return i/2 + 32*(i%2) })
	for b := range ordered {
		order := ZMM()
		VMOVDQU16(interleave, order)
		VPERMI2W(odd[b].AsZ(), even[b].AsZ(), order)
		ordered[b], passed[b] = order, K()
		VPCMPUW(Imm(5), s.min, order, passed[b]) // order >= min
	}
	KORTESTD(passed[0], passed[count-1])
	JZ(LabelRef(label + "Next"))
	position, sixteen := s.positions()
	for b := range ordered {
		s.compactBlock(b, ordered[b], passed[b], position, sixteen)
	}
}

// positions returns the positions of the first 16 codes, and 16 times 16.
func (s scan) positions() (position, sixteen VecVirtual) {
	position, sixteen = ZMM(), ZMM()
	VPBROADCASTD(s.first.(GPVirtual).As32(), position)
	VPADDD(words("iota", 32, 16, func(i int) int { return i }), position, position)
	VPBROADCASTD(words("sixteen", 32, 1, func(int) int { return 16 }), sixteen)
	return position, sixteen
}

// compactBlock writes the survivors of block b, whose predecessors have been
// written.
func (s scan) compactBlock(b int, ordered VecVirtual, passed OpmaskVirtual, position, sixteen VecVirtual) {
	for half := range 2 {
		if b+half > 0 {
			VPADDD(sixteen, position, position)
		}
		s.compact(ordered, passed, half, position)
	}
}

// compact writes the survivors among 16 codes. Whole registers are stored: what
// follows the survivors lies within the room of these and earlier codes.
func (s scan) compact(ordered VecVirtual, passed OpmaskVirtual, half int, position VecVirtual) {
	sums, mask, bits := YMM(), K(), GP32()
	VEXTRACTI64X4(Imm(uint64(half)), ordered, sums)
	KSHIFTRD(Imm(uint64(16*half)), passed, mask)
	wide, kept := ZMM(), ZMM()
	VPMOVZXWD(sums, wide)
	VPCOMPRESSD_Z(wide, mask, wide)
	VPCOMPRESSD_Z(position, mask, kept)
	VPMOVDW(wide, Mem{Base: s.sums, Index: s.n, Scale: 2})
	VMOVDQU32(kept, Mem{Base: s.pos, Index: s.n, Scale: 4})
	KMOVW(mask, bits)
	POPCNTL(bits, bits)
	ADDQ(bits.As64(), s.n)
}
