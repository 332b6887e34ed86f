package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// partials is the number of registers a sum of products is spread over: enough
// to keep two FMA units of latency four half busy, and more were of no use for
// vectors of a few hundred values.
const partials = 4

// sums writes the kernels that turn vectors into one number.
func (c class) sums() {
	c.sum("dot", "a, b", func(acc Op, x []Op) {
		VFMADD231PS(x[1], c.load(x[0]), acc)
	})
	c.sum("squaredL2", "a, b", func(acc Op, x []Op) {
		d := c.vec()
		VSUBPS(x[1], c.load(x[0]), d)
		VFMADD231PS(d, d, acc)
	})
	c.sum("mulDot", "a, b, c", func(acc Op, x []Op) {
		ab := c.vec()
		VMULPS(x[1], c.load(x[0]), ab)
		VFMADD231PS(x[2], ab, acc)
	})
}

// sum writes the kernel name: step adds the terms of one register's worth of
// each argument, in memory or in registers, to acc.
func (c class) sum(name, args string, step func(acc Op, x []Op)) {
	c.text(name, args+" []float32) float32",
		"is "+name+"Generic with fused multiply-adds.")
	n := Load(Param("a").Len(), GP64())
	var pointers []Register
	for _, arg := range strings.Split(args, ", ") {
		pointers = append(pointers, Load(Param(arg).Base(), GP64()))
	}
	full := func(offset int) []Op {
		var x []Op
		for _, p := range pointers {
			x = append(x, Mem{Base: p, Disp: offset})
		}
		return x
	}
	advance := func(registers int) {
		for _, p := range pointers {
			ADDQ(I32(registers*c.bytes()), p)
		}
		SUBQ(I32(registers*c.lanes), n)
	}
	acc := c.zeros(partials)

	Label("block")
	CMPQ(n, I32(partials*c.lanes))
	JL(LabelRef("vectors"))
	for i := range partials {
		step(acc[i], full(i*c.bytes()))
	}
	advance(partials)
	JMP(LabelRef("block"))

	Label("vectors")
	for i := range partials - 1 {
		CMPQ(n, I32(c.lanes))
		JL(LabelRef("tail"))
		step(acc[i], full(0))
		advance(1)
	}

	Label("tail")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	rest := c.tailMask(n)
	var x []Op
	for _, p := range pointers {
		x = append(x, rest.load(Mem{Base: p}))
	}
	step(acc[partials-1], x)

	Label("done")
	total := foldLanes(pairwise(c.fold(tree(acc))))
	VZEROUPPER()
	Store(total.AsX(), ReturnIndex(0))
	RET()
}

// dotWide writes the inner product in float64: half a register's worth of
// float32 values is widened at a time.
func (c class) dotWide() {
	c.text("dotWide", "a []float64, b []float32) float64",
		"is dotWideGeneric with fused multiply-adds.")
	n := Load(Param("a").Len(), GP64())
	a := Load(Param("a").Base(), GP64())
	b := Load(Param("b").Base(), GP64())
	lanes := c.lanes / 2
	acc := c.zeros(partials)
	step := func(i int) {
		x := c.vec()
		VCVTPS2PD(Mem{Base: b, Disp: i * c.bytes() / 2}, x)
		VFMADD231PD(Mem{Base: a, Disp: i * c.bytes()}, x, acc[i])
	}
	advance := func(registers int) {
		ADDQ(I32(registers*c.bytes()), a)
		ADDQ(I32(registers*c.bytes()/2), b)
		SUBQ(I32(registers*lanes), n)
	}

	Label("block")
	CMPQ(n, I32(partials*lanes))
	JL(LabelRef("vectors"))
	for i := range partials {
		step(i)
	}
	advance(partials)
	JMP(LabelRef("block"))

	Label("vectors")
	CMPQ(n, I32(lanes))
	JL(LabelRef("fold"))
	step(0)
	advance(1)
	JMP(LabelRef("vectors"))

	Label("fold")
	VADDPD(acc[1], acc[0], acc[0])
	VADDPD(acc[3], acc[2], acc[2])
	VADDPD(acc[2], acc[0], acc[0])
	total := acc[0]
	if c.lanes == 16 {
		total = YMM()
		VEXTRACTF64X4(Imm(1), acc[0], total)
		VADDPD(acc[0].AsY(), total, total)
	}
	sum := XMM()
	VEXTRACTF128(Imm(1), total, sum)
	VADDPD(total.AsX(), sum, sum)
	VHADDPD(sum, sum, sum)

	Label("tail") // one value at a time
	TESTQ(n, n)
	JZ(LabelRef("done"))
	x := XMM()
	VXORPS(x, x, x)
	VCVTSS2SD(Mem{Base: b}, x, x)
	VFMADD231SD(Mem{Base: a}, x, sum)
	ADDQ(Imm(8), a)
	ADDQ(Imm(4), b)
	DECQ(n)
	JMP(LabelRef("tail"))

	Label("done")
	VZEROUPPER()
	Store(sum, ReturnIndex(0))
	RET()
}

// tree adds the registers up in a balanced tree, into the first.
func tree(acc []VecVirtual) VecVirtual {
	for step := 1; step < len(acc); step *= 2 {
		for i := 0; i+step < len(acc); i += 2 * step {
			VADDPS(acc[i+step], acc[i], acc[i])
		}
	}
	return acc[0]
}

// pairwise returns the sums of the four values in each 128-bit lane of v, the
// sum of v[0] in lanes 0 of the result, that of v[1], if there is one, in lanes 1
// and so on. Every v's sum is (0 + 1) + (2 + 3), however many there are.
func pairwise(v ...VecVirtual) VecVirtual {
	at := func(i int) VecVirtual { return v[i%len(v)] }
	low, high := YMM(), YMM()
	VHADDPS(at(1), at(0), low)
	if len(v) <= 2 {
		VHADDPS(low, low, low)
		return low
	}
	VHADDPS(at(3), at(2), high)
	VHADDPS(high, low, low)
	return low
}

// dotRows writes the matrix-vector product. Rows go in tiles, so that a load of
// q serves several; a row's partial sums are those of dot, wherever it lies.
func (c class) dotRows() {
	c.text("dotRows", "dst, q, rows []float32)",
		"sets dst[i] to dot"+c.suffix+"(q, row i); rows is row-major, len(dst) x len(q).")
	dst := Load(Param("dst").Base(), GP64())
	n := Load(Param("dst").Len(), GP64())
	q := Load(Param("q").Base(), GP64())
	dim := Load(Param("q").Len(), GP64())
	rows := Load(Param("rows").Base(), GP64())

	stride, stride3, rest := GP64(), GP64(), GP64()
	MOVQ(dim, stride)
	SHLQ(Imm(2), stride)
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	MOVQ(dim, rest)
	ANDQ(I32(c.lanes-1), rest)
	mask := c.tailMask(rest)

	tile := func(label string, count int) {
		Label(label)
		CMPQ(n, I32(count))
		JL(LabelRef(label + "End"))
		sums := c.dotTileSums(label, count, q, rows, dim, stride, stride3, mask)
		switch count {
		case 4:
			VMOVUPS(sums.AsX(), Mem{Base: dst})
		case 2:
			VMOVLPS(sums.AsX(), Mem{Base: dst})
		case 1:
			VMOVSS(sums.AsX(), Mem{Base: dst})
		}
		for range count {
			ADDQ(stride, rows)
		}
		ADDQ(I32(4*count), dst)
		SUBQ(I32(count), n)
		JMP(LabelRef(label))
		Label(label + "End")
	}
	tile("tile", c.dotTile)
	tile("row", 1)
	VZEROUPPER()
	RET()
}

// dotTileSums returns the inner products of q and count rows in the low lanes of
// a register.
func (c class) dotTileSums(label string, count int, q, rows, dim, stride, stride3 Register, mask tail) VecVirtual {
	row := func(p Register, i, offset int) Mem {
		m := Mem{Base: p, Disp: offset}
		switch i {
		case 1, 2:
			m.Index, m.Scale = stride, uint8(i)
		case 3:
			m.Index, m.Scale = stride3, 1
		}
		return m
	}
	qp, rp, left := GP64(), GP64(), GP64()
	MOVQ(q, qp)
	MOVQ(rows, rp)
	MOVQ(dim, left)
	acc := make([][]VecVirtual, count)
	for i := range acc {
		acc[i] = c.zeros(partials)
	}
	step := func(partial int, x Op, row func(i int) Op) {
		for i := range acc {
			VFMADD231PS(row(i), x, acc[i][partial])
		}
	}
	advance := func(registers int) {
		ADDQ(I32(registers*c.bytes()), qp)
		ADDQ(I32(registers*c.bytes()), rp)
		SUBQ(I32(registers*c.lanes), left)
	}

	Label(label + "Block")
	CMPQ(left, I32(partials*c.lanes))
	JL(LabelRef(label + "Vectors"))
	for p := range partials {
		offset := p * c.bytes()
		step(p, c.load(Mem{Base: qp, Disp: offset}), func(i int) Op { return row(rp, i, offset) })
	}
	advance(partials)
	JMP(LabelRef(label + "Block"))

	Label(label + "Vectors")
	for p := range partials - 1 {
		CMPQ(left, I32(c.lanes))
		JL(LabelRef(label + "Tail"))
		step(p, c.load(Mem{Base: qp}), func(i int) Op { return row(rp, i, 0) })
		advance(1)
	}

	Label(label + "Tail")
	TESTQ(left, left)
	JZ(LabelRef(label + "Done"))
	step(partials-1, mask.load(Mem{Base: qp}), func(i int) Op { return mask.load(row(rp, i, 0)) })

	Label(label + "Done")
	sums := make([]VecVirtual, count)
	for i := range sums {
		sums[i] = c.fold(tree(acc[i]))
	}
	return foldLanes(pairwise(sums...))
}
