package main

import "fmt"

const (
	// panelBytes is the distance of two inputs in a panel of weights: 32 outputs.
	panelBytes = 4 * 32
	// A register tile is 6 rows by 4 registers of outputs. Its 24 sums, an input
	// register of four values of each row and two registers of weights take all
	// 32 registers.
	tileRows, tileVectors = 6, 4
	weights               = vec(30)
)

// inputs is the register that holds values of row r.
func inputs(r int) vec { return vec(tileRows*tileVectors + r) }

// product is the state of the mulPanel kernel under construction.
type product struct {
	*function
	dst, init, rows, panel           reg // of the current tile
	n, k                             reg
	dstStride, initStride, rowStride reg // in words
	x                                [tileRows]reg
	w, left                          reg
}

// mulPanel writes the matrix product kernel. Every tile adds up a row in the
// same order, whatever number of rows is in it. Weights are multiplied by a lane
// of an input register, so that no value is broadcast.
func mulPanel(a *assembly) {
	f := a.function("mulPanel", "dst, init, rows, panel *float32, n, k, dstStride, initStride, rowStride int", "",
		"computes 16 outputs of n rows over k inputs.",
		"",
		"	for i := range n {",
		"		for o := range 16 {",
		"			dst[i*dstStride+o] = init[i*initStride+o]",
		"			for j := range k {",
		"				dst[i*dstStride+o] += rows[i*rowStride+j] * panel[j*32+o]",
		"			}",
		"		}",
		"	}",
		"",
		"init may be dst. Inputs are added up apart before init is added.")
	p := product{
		function: f,
		dst:      f.arg("dst"), init: f.arg("init"), rows: f.arg("rows"), panel: f.arg("panel"),
		n: f.arg("n"), k: f.arg("k"),
		dstStride: f.arg("dstStride"), initStride: f.arg("initStride"), rowStride: f.arg("rowStride"),
	}
	p.x[0] = p.rows
	for r := 1; r < tileRows; r++ {
		p.x[r] = f.reg()
	}
	p.w, p.left = f.reg(), f.reg()

	f.label("tile")
	f.op("CMP $%d, %s", tileRows, p.n)
	f.op("BLT rest")
	p.tile("full", tileRows)
	f.note("The pointer to the last row stands at its input k.")
	f.op("SUB %s<<2, %s, %s", p.k, p.x[tileRows-1], p.rows)
	f.op("ADD %s<<2, %s, %s", p.rowStride, p.rows, p.rows)
	f.op("SUB $%d, %s, %s", tileRows, p.n, p.n)
	f.op("B tile")

	f.label("rest")
	for count := tileRows - 1; count > 0; count-- {
		skip := fmt.Sprintf("not%d", count)
		f.op("CMP $%d, %s", count, p.n)
		f.op("BNE %s", skip)
		p.tile(fmt.Sprintf("rows%d", count), count)
		f.op("RET")
		f.label(skip)
	}
	f.op("RET")
}

// tile computes the outputs of count rows and moves dst and init past them.
func (p product) tile(label string, count int) {
	for r := 1; r < count; r++ {
		p.op("ADD %s<<2, %s, %s", p.rowStride, p.x[r-1], p.x[r])
	}
	p.op("MOVD %s, %s", p.panel, p.w)
	p.op("MOVD %s, %s", p.k, p.left)
	p.zero(span(0, count*tileVectors)...)

	p.op("SUBS $4, %s, %s", p.left, p.left)
	p.op("BLT %sRest", label)
	p.label(label + "Inputs")
	p.step(4, count)
	p.op("SUBS $4, %s, %s", p.left, p.left)
	p.op("BGE %sInputs", label)
	p.label(label + "Rest")
	for bit := 1; bit >= 0; bit-- {
		skip := fmt.Sprintf("%sSkip%d", label, 1<<bit)
		p.op("TBZ $%d, %s, %s", bit, p.left, skip)
		p.step(1<<bit, count)
		p.label(skip)
	}
	p.storeTile(count)
}

// step adds the products of 4, 2 or 1 inputs.
func (p product) step(count, rows int) {
	suffix := map[int]string{4: "Q", 2: "D", 1: "S"}[count]
	for r := range rows {
		p.op("FMOV%s.P %d(%s), %s", suffix, 4*count, p.x[r], inputs(r))
	}
	for input := range count {
		for v := 0; v < tileVectors; v += 2 {
			p.op("FLDPQ %d(%s), (%s, %s)", input*panelBytes+16*v, p.w, weights, weights+1)
			for half := range 2 {
				for r := range rows {
					p.fmlaLane(vec(r*tileVectors+v+half), weights+vec(half), inputs(r), input)
				}
			}
		}
	}
	p.op("ADD $%d, %s, %s", count*panelBytes, p.w, p.w)
}

// storeTile adds init to the sums and writes them to dst.
func (p product) storeTile(count int) {
	for r := range count {
		for v := 0; v < tileVectors; v += 2 {
			sum := vec(r*tileVectors + v)
			p.op("FLDPQ %d(%s), (%s, %s)", 16*v, p.init, weights, weights+1)
			p.fadd(sum, sum, weights)
			p.fadd(sum+1, sum+1, weights+1)
			p.op("FSTPQ (%s, %s), %d(%s)", sum, sum+1, 16*v, p.dst)
		}
		p.op("ADD %s<<2, %s, %s", p.dstStride, p.dst, p.dst)
		p.op("ADD %s<<2, %s, %s", p.initStride, p.init, p.init)
	}
}

// pack writes the kernel that transposes weights into a panel, by tiles of eight
// outputs by four inputs.
func pack(a *assembly) {
	f := a.function("pack", "panel, w, scale *float32, in, inputs int", "",
		"scales and transposes 8 outputs of inputs inputs, a positive multiple of 4.",
		"",
		"	for o := range 8 {",
		"		for k := range inputs {",
		"			panel[k*32+o] = w[o*in+k] * scale[k]",
		"		}",
		"	}")
	panel, scale, stride, left := f.arg("panel"), f.arg("scale"), f.arg("in"), f.arg("inputs")
	w := []reg{f.arg("w")}
	for o := 1; o < 8; o++ {
		w = append(w, f.reg())
		f.op("ADD %s<<2, %s, %s", stride, w[o-1], w[o])
	}
	const factors = vec(31)
	f.label("tile")
	f.op("FMOVQ.P 16(%s), %s", scale, factors)
	for o := range w {
		f.op("FMOVQ.P 16(%s), %s", w[o], vec(o))
		f.fmul(vec(o), vec(o), factors)
	}
	// Each block of four outputs: pairs of outputs, then pairs of pairs. Line k
	// of the block from register o on is left in register 16 + 2k + o/4.
	for o := vec(0); o < 8; o += 4 {
		t := span(8+o, 4)
		f.transpose(1, "S4", o, o+1, t[0])
		f.transpose(2, "S4", o, o+1, t[1])
		f.transpose(1, "S4", o+2, o+3, t[2])
		f.transpose(2, "S4", o+2, o+3, t[3])
		for k := range vec(4) {
			f.transpose(1+int(k)/2, "D2", t[k%2], t[2+k%2], 16+2*k+o/4)
		}
	}
	for k := range 4 {
		line := vec(16 + 2*k)
		f.op("FSTPQ (%s, %s), %d(%s)", line, line+1, k*panelBytes, panel)
	}
	f.op("ADD $%d, %s, %s", 4*panelBytes, panel, panel)
	f.op("SUBS $4, %s, %s", left, left)
	f.op("BNE tile")
	f.op("RET")
}

// transpose interleaves the even lanes (half 1) or the odd lanes (half 2) of n
// and m into d.
func (f *function) transpose(half int, lanes string, n, m, d vec) {
	f.op("VTRN%d %s, %s, %s", half, m.as(lanes), n.as(lanes), d.as(lanes))
}
