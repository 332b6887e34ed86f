package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// panelBytes is the distance of two inputs in a panel of weights: 32 outputs.
const panelBytes = 4 * 32

// gemm is the shape of a register tile.
type gemm struct {
	rows, vectors int // rows by registers of outputs
	// partials is the number of partial sums of each output: input k goes to the
	// sum k%partials.
	partials int
}

// AVX-512 has the registers for 24 sums of 16 outputs, AVX2 for 12 of 8. Both
// leave room for a register of weights each and one broadcast input.
func (c class) gemm() gemm {
	if c.lanes == 16 {
		return gemm{rows: 6, vectors: 2, partials: 2}
	}
	return gemm{rows: 6, vectors: 2, partials: 1}
}

// product is the state of one mulPanel kernel under construction.
type product struct {
	class
	gemm
	dst, init, rows, panel           Register // of the current tile
	n, k                             Register
	dstStride, initStride, rowStride Register // in bytes
}

// mulPanel writes the matrix product kernel. The class and place of a row in the
// batch choose the tile it is in, but every tile adds up a row in the same order.
func (c class) mulPanel() {
	g := c.gemm()
	width := g.vectors * c.lanes
	c.text("mulPanel", "dst, init, rows, panel *float32, n, k, dstStride, initStride, rowStride int)",
		fmt.Sprintf("computes %d outputs of n rows over k inputs.", width),
		"",
		"	for i := range n {",
		fmt.Sprintf("		for o := range %d {", width),
		"			dst[i*dstStride+o] = init[i*initStride+o]",
		"			for j := range k {",
		"				dst[i*dstStride+o] += rows[i*rowStride+j] * panel[j*32+o]",
		"			}",
		"		}",
		"	}",
		"",
		"init may be dst. Inputs are added up apart before init is added.")
	p := product{class: c, gemm: g}
	pointer := func(name string) Register { return Load(Param(name), GP64()) }
	p.dst, p.init, p.rows, p.panel = pointer("dst"), pointer("init"), pointer("rows"), pointer("panel")
	p.n, p.k = pointer("n"), pointer("k")
	p.dstStride, p.initStride, p.rowStride = pointer("dstStride"), pointer("initStride"), pointer("rowStride")
	for _, s := range []Register{p.dstStride, p.initStride, p.rowStride} {
		SHLQ(Imm(2), s)
	}

	Label("tile")
	CMPQ(p.n, I32(g.rows))
	JL(LabelRef("rest"))
	p.tile("full", g.rows)
	p.advance(g.rows)
	JMP(LabelRef("tile"))

	Label("rest")
	for count := g.rows - 1; count > 0; count-- {
		skip := fmt.Sprintf("not%d", count)
		CMPQ(p.n, I32(count))
		JNE(LabelRef(skip))
		p.tile(fmt.Sprintf("rows%d", count), count)
		JMP(LabelRef("done"))
		Label(skip)
	}
	Label("done")
	VZEROUPPER()
	RET()
}

// advance moves on by count rows.
func (p product) advance(count int) {
	for range count {
		ADDQ(p.dstStride, p.dst)
		ADDQ(p.initStride, p.init)
		ADDQ(p.rowStride, p.rows)
	}
	SUBQ(I32(count), p.n)
}

// tile computes all outputs of count rows.
func (p product) tile(label string, count int) {
	acc := make([][][]VecVirtual, p.partials) // [sum][row][vector]
	for s := range acc {
		acc[s] = make([][]VecVirtual, count)
		for r := range acc[s] {
			acc[s][r] = p.zeros(p.vectors)
		}
	}
	x, x3, w, left := GP64(), GP64(), GP64(), GP64()
	MOVQ(p.rows, x)
	if count > 3 {
		LEAQ(Mem{Base: p.rowStride, Index: p.rowStride, Scale: 2}, x3)
		ADDQ(x, x3)
	}
	MOVQ(p.panel, w)
	MOVQ(p.k, left)
	step := func(sum, input int) {
		weights := make([]VecVirtual, p.vectors)
		for v := range weights {
			weights[v] = p.vec()
			VMOVUPS(Mem{Base: w, Disp: input*panelBytes + v*p.bytes()}, weights[v])
		}
		for r := range count {
			value := p.vec()
			VBROADCASTSS(rowAddress(x, x3, p.rowStride, r, 4*input), value)
			for v := range weights {
				VFMADD231PS(weights[v], value, acc[sum][r][v])
			}
		}
	}
	advance := func(inputs int) {
		ADDQ(I32(4*inputs), x)
		if count > 3 {
			ADDQ(I32(4*inputs), x3)
		}
		ADDQ(I32(panelBytes*inputs), w)
		SUBQ(I32(inputs), left)
	}
	unroll := 4

	Label(label + "Inputs")
	CMPQ(left, I32(unroll))
	JL(LabelRef(label + "Rest"))
	for i := range unroll {
		step(i%p.partials, i)
	}
	advance(unroll)
	JMP(LabelRef(label + "Inputs"))

	Label(label + "Rest")
	for i := range unroll - 1 {
		TESTQ(left, left)
		JZ(LabelRef(label + "Store"))
		step(i%p.partials, 0)
		advance(1)
	}

	Label(label + "Store")
	p.store(acc, count)
}

// rowAddress is the address of byte offset of row r, at most 6 rows from x; x3 is
// the fourth row's.
func rowAddress(x, x3, stride Register, r, offset int) Mem {
	m := Mem{Base: x, Disp: offset}
	if r >= 3 {
		m.Base = x3
	}
	if r%3 > 0 {
		m.Index, m.Scale = stride, uint8(r%3)
	}
	return m
}

// store adds init and the partial sums up and writes them to dst.
func (p product) store(acc [][][]VecVirtual, count int) {
	dst, init := GP64(), GP64()
	MOVQ(p.dst, dst)
	MOVQ(p.init, init)
	for r := range count {
		for v := range p.vectors {
			total := acc[0][r][v]
			if p.partials == 2 {
				VADDPS(acc[1][r][v], total, total)
			}
			VADDPS(Mem{Base: init, Disp: v * p.bytes()}, total, total)
			VMOVUPS(total, Mem{Base: dst, Disp: v * p.bytes()})
		}
		if r < count-1 {
			ADDQ(p.dstStride, dst)
			ADDQ(p.initStride, init)
		}
	}
}
