package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	unitBytes  = 2 * pairBytes
	groupUnits = 4
)

// units is the scan of units: two pairs of a block, one in each half of a
// register. The sums of groupUnits units fit in bytes (see Scan4Group) and are
// widened together. That is what the scan gains over that of the avx512 class;
// the other gains are a byte permutation for a masking and the layout of a table,
// and a shift of bytes, which leaves nothing to mask.
type units struct {
	scan
	shift  VecVirtual    // the matrix that moves bits 4 to 7 to bits 0 to 3
	second VecVirtual    // what leads from the tables of the first pair to those of the second
	lower  OpmaskVirtual // halves of a register, by 64-bit lanes
	upper  OpmaskVirtual
}

func (s scan) newUnits() units {
	u := units{s, ZMM(), ZMM(), K(), K()}
	matrix, mask := GP64(), GP32()
	MOVQ(U64(0x1020408000000000), matrix)
	VPBROADCASTQ(matrix, u.shift)
	VMOVDQU32(words("second", 32, 16, func(i int) int { return i / 8 * 0x20202020 }), u.second)
	MOVL(U32(0x0f), mask)
	KMOVB(mask, u.lower)
	KNOTB(u.lower, u.upper)
	return u
}

// pass is one, two or four blocks on their way through the tables.
type pass struct {
	units
	label      string
	count      int
	codes, lut Register // at the next unit
	left       Register // bytes of pairs, less those of the step to come
	ahead      Register // to prefetch
	third      Register // 3 * pairs
	all, odd   []VecVirtual
}

func (u units) newPass(label string, count int) pass {
	p := pass{
		units: u, label: label, count: count,
		codes: GP64(), lut: GP64(), left: GP64(), ahead: GP64(), third: GP64(),
		all: u.zeros(count), odd: u.zeros(count),
	}
	MOVQ(u.scan.codes, p.codes)
	MOVQ(u.scan.lut, p.lut)
	MOVQ(u.pairs, p.left)
	if count > 1 {
		LEAQ(Mem{Base: p.codes, Index: u.pairs, Scale: aheadBlocks}, p.ahead)
		CMPQ(u.blocks, I32(aheadBlocks+count))
		CMOVQLT(p.codes, p.ahead)
	}
	if count == 4 {
		LEAQ(Mem{Base: u.pairs, Index: u.pairs, Scale: 2}, p.third)
	}
	return p
}

// line returns the address of the n-th unit from here of a block.
func (p pass) line(block, n int) Mem {
	m := Mem{Base: p.codes, Disp: n * unitBytes}
	switch block {
	case 1, 2:
		m.Index, m.Scale = p.pairs, uint8(block)
	case 3:
		m.Index, m.Scale = p.third, 1
	}
	return m
}

// unit returns the sums of the entries of the n-th unit from here of every
// block, one byte per code. load reads a unit, of codes as of tables.
func (p pass) unit(n int, load func(m, v Op)) []VecVirtual {
	tables, highTables := ZMM(), ZMM()
	load(Mem{Base: p.lut, Disp: n * unitBytes}, tables)
	VSHUFI32X4(Imm(0b11_11_01_01), tables, tables, highTables) // tables 1 1 3 3
	sums := make([]VecVirtual, p.count)
	for b := range sums {
		low, high := ZMM(), ZMM()
		load(p.line(b, n), low)
		VGF2P8AFFINEQB(Imm(0), p.shift, low, high)
		VPTERNLOGD(Imm(0xea), p.second, p.nibble, low) // low & nibble | second
		VPERMB(tables, low, low)                       // tables 0 and 2
		VPSHUFB(high, highTables, high)
		VPADDB(high, low, low)
		sums[b] = low
	}
	return sums
}

func (p pass) add(sums []VecVirtual) {
	for b, bytes := range sums {
		VPADDW(bytes, p.all[b], p.all[b])
		VPSRLW(Imm(8), bytes, bytes)
		VPADDW(bytes, p.odd[b], p.odd[b])
	}
}

func (p pass) advance(bytes int) {
	ADDQ(I32(bytes), p.lut)
	ADDQ(I32(bytes), p.codes)
	SUBQ(I32(bytes), p.left)
}

// group is a step of groupUnits units.
func (p pass) group() {
	sums := p.unit(0, whole)
	for n := 1; n < groupUnits; n++ {
		for b, bytes := range p.unit(n, whole) {
			VPADDB(bytes, sums[b], sums[b])
		}
	}
	p.add(sums)
	if p.count > 1 {
		for line := range p.count * groupUnits {
			PREFETCHT0(Mem{Base: p.ahead, Disp: line * unitBytes})
		}
		ADDQ(I32(p.count*groupUnits*unitBytes), p.ahead)
	}
	p.advance(groupUnits * unitBytes)
}

// whole reads a whole unit.
func whole(m, v Op) { VMOVDQU32(m, v) }

// sum runs the blocks through all tables: groups, single units and an odd last
// pair, which leaves the upper half zero, in the tables too.
func (p pass) sum() {
	SUBQ(I32(groupUnits*unitBytes), p.left)
	JL(LabelRef(p.label + "Rest"))
	Label(p.label + "Group")
	p.group()
	JGE(LabelRef(p.label + "Group"))

	Label(p.label + "Rest")
	ADDQ(I32((groupUnits-1)*unitBytes), p.left)
	JL(LabelRef(p.label + "Last"))
	Label(p.label + "Unit")
	p.add(p.unit(0, whole))
	p.advance(unitBytes)
	JGE(LabelRef(p.label + "Unit"))

	Label(p.label + "Last")
	ADDQ(I32(pairBytes), p.left)
	JL(LabelRef(p.label + "Fold"))
	p.add(p.unit(0, func(m, v Op) { VMOVDQU64_Z(m, p.lower, v) }))
	Label(p.label + "Fold")
}

// chunk is the sums of the 64 codes of two blocks, those of the first block in
// the lower halves. The second block of a lone one is itself.
type chunk struct{ even, odd VecVirtual }

// fold adds the halves of the sums, of two blocks at once.
func (p pass) fold() []chunk {
	join := func(x, y VecVirtual) VecVirtual {
		inner, outer := ZMM(), ZMM()
		VSHUFI64X2(Imm(0b01_00_11_10), y, x, inner) // upper half of x, lower of y
		VPBLENDMQ(y, x, p.upper, outer)
		VPADDW(inner, outer, outer)
		return outer
	}
	chunks := make([]chunk, (p.count+1)/2)
	for i := range chunks {
		x, y := 2*i, min(2*i+1, p.count-1)
		even, odd, shifted := join(p.all[x], p.all[y]), join(p.odd[x], p.odd[y]), ZMM()
		VPSLLW(Imm(8), odd, shifted)
		VPSUBW(shifted, even, even)
		chunks[i] = chunk{even, odd}
	}
	return chunks
}

// chunks scans one, two or four blocks. If any code survives, it sorts the sums
// of each block by position and compacts survivors 16 codes at a time.
func (u units) chunks(label string, count int) {
	p := u.newPass(label, count)
	p.sum()
	sums := p.fold()
	largest, passed := ZMM(), K()
	VPMAXUW(sums[0].even, sums[0].odd, largest)
	for _, c := range sums[1:] {
		VPMAXUW(c.even, largest, largest)
		VPMAXUW(c.odd, largest, largest)
	}
	VPCMPUW(Imm(5), u.min, largest, passed) // largest >= min
	KORTESTD(passed, passed)
	JZ(LabelRef(label + "Next"))

	position, sixteen := u.positions()
	for b := range count {
		half := 16 * (b % 2)
		interleave := words(fmt.Sprint("interleave", b%2), 16, blockCodes, func(i int) int { return half + i/2 + 32*(i%2) })
		ordered, passed := ZMM(), K()
		VMOVDQU16(interleave, ordered)
		VPERMI2W(sums[b/2].odd, sums[b/2].even, ordered)
		VPCMPUW(Imm(5), u.min, ordered, passed)
		u.compactBlock(b, ordered, passed, position, sixteen)
	}
}
