package main

import (
	"fmt"
	"strings"
)

// partials is the number of registers a sum of products is spread over, as in
// the kernels for amd64. One register more than the loads can feed would only
// lengthen the reduction.
const partials = 4

// sums writes the kernels that turn vectors into one number.
func sums(a *assembly) {
	sum(a, "dot", "a, b", func(f *function, acc vec, x []vec) {
		f.fmla(acc, x[0], x[1])
	})
	sum(a, "squaredL2", "a, b", func(f *function, acc vec, x []vec) {
		f.fsub(x[0], x[0], x[1])
		f.fmla(acc, x[0], x[0])
	})
	sum(a, "mulDot", "a, b, c", func(f *function, acc vec, x []vec) {
		f.fmul(x[0], x[0], x[1])
		f.fmla(acc, x[0], x[2])
	})
}

// sum writes the kernel name: step adds the terms of one register of each
// argument to acc, and may overwrite the arguments.
func sum(a *assembly, name, args string, term func(f *function, acc vec, x []vec)) {
	f := a.function(name, args+" []float32", "float32", "is "+name+"Generic with fused multiply-adds.")
	var pointers []reg
	for _, arg := range strings.Split(args, ", ") {
		pointers = append(pointers, f.arg(arg+"_base"))
	}
	n := f.arg("a_len")
	acc := span(0, partials)
	f.zero(acc...)
	f.blocks(name, n, func(s step) {
		for i, p := range pointers {
			f.load(s, p, loaded(i))
		}
		for r := range s.registers {
			var x []vec
			for i := range pointers {
				x = append(x, loaded(i)+vec(r))
			}
			term(f, acc[s.first+r], x)
		}
	})
	f.tree(acc)
	f.faddp(acc[0], acc[0], acc[0])
	f.faddpScalar(acc[0], acc[0])
	f.op("FMOVS %s, %s", acc[0], f.frame("ret"))
	f.op("RET")
}

// dotWide writes the inner product in float64 of float64 and float32 values: by
// eight values, then one by one.
func dotWide(a *assembly) {
	f := a.function("dotWide", "a []float64, b []float32", "float64", "is dotWideGeneric with fused multiply-adds.")
	wide, narrow, n := f.arg("a_base"), f.arg("b_base"), f.arg("a_len")
	acc, x, y, z := span(0, partials), span(4, partials), span(8, 2), span(10, partials)
	f.zero(acc...)
	f.op("SUBS $8, %s, %s", n, n)
	f.op("BLT wideRest")
	f.label("wideBlock")
	f.op("FLDPQ 32(%s), (%s, %s)", wide, x[2], x[3])
	f.op("FLDPQ.P 64(%s), (%s, %s)", wide, x[0], x[1])
	f.op("FLDPQ.P 32(%s), (%s, %s)", narrow, y[0], y[1])
	for i := range partials {
		if i%2 == 0 {
			f.widen(z[i], y[i/2])
		} else {
			f.widen2(z[i], y[i/2])
		}
		f.op("VFMLA %s, %s, %s", z[i].as("D2"), x[i].as("D2"), acc[i].as("D2"))
	}
	f.op("SUBS $8, %s, %s", n, n)
	f.op("BGE wideBlock")
	f.label("wideRest")
	f.op("ADDS $8, %s, %s", n, n)
	f.op("BEQ wideDone")
	f.label("wideOne")
	f.op("FMOVD.P 8(%s), %s", wide, x[0])
	f.op("FMOVS.P 4(%s), %s", narrow, y[0])
	f.widen(z[0], y[0])
	f.op("VFMLA %s, %s, %s", z[0].as("D2"), x[0].as("D2"), acc[0].as("D2"))
	f.op("SUBS $1, %s, %s", n, n)
	f.op("BNE wideOne")
	f.label("wideDone")
	f.faddWide(acc[0], acc[0], acc[1])
	f.faddWide(acc[2], acc[2], acc[3])
	f.faddWide(acc[0], acc[0], acc[2])
	f.faddpWide(acc[0], acc[0])
	f.op("FMOVD %s, %s", acc[0], f.frame("ret"))
	f.op("RET")
}

// loaded is the first of the four registers that argument i is loaded into.
func loaded(i int) vec { return vec(16 + 4*i) }

// tree adds four registers up in a balanced tree, into the first.
func (f *function) tree(acc []vec) {
	f.fadd(acc[0], acc[0], acc[1])
	f.fadd(acc[2], acc[2], acc[3])
	f.fadd(acc[0], acc[0], acc[2])
}

// rowTile is the number of rows dotRows works on at once: with four partial sums
// each they leave half of the registers for what is loaded.
const rowTile = 4

// dotRows writes the matrix-vector product. Rows go in tiles, so that a load of
// q serves several; a row's partial sums are those of dot, wherever it lies.
func dotRows(a *assembly) {
	f := a.function("dotRows", "dst, q, rows []float32", "",
		"sets dst[i] to dotNEON(q, row i); rows is row-major, len(dst) x len(q).")
	dst, n := f.arg("dst_base"), f.arg("dst_len")
	q, dim := f.arg("q_base"), f.arg("q_len")
	row := []reg{f.arg("rows_base"), f.reg(), f.reg(), f.reg()}
	qp, left := f.reg(), f.reg()

	tile := func(label string, count int) {
		f.label(label)
		f.op("CMP $%d, %s", count, n)
		f.op("BLT %sEnd", label)
		for i := 1; i < count; i++ {
			f.op("ADD %s<<2, %s, %s", dim, row[i-1], row[i])
		}
		f.op("MOVD %s, %s", q, qp)
		f.op("MOVD %s, %s", dim, left)
		f.dotTile(label, row[:count], qp, left)
		if count == rowTile {
			f.op("FMOVQ.P F0, %d(%s)", 4*count, dst)
		} else {
			f.op("FMOVS.P F0, 4(%s)", dst)
		}
		if count > 1 {
			f.note("The last row ends where the next tile begins.")
			f.op("MOVD %s, %s", row[count-1], row[0])
		}
		f.op("SUB $%d, %s, %s", count, n, n)
		f.op("B %s", label)
		f.label(label + "End")
	}
	tile("tile", rowTile)
	tile("row", 1)
	f.op("RET")
}

// dotTile leaves the inner products of q and each of the rows, one or four, in
// the lanes of register 0. It moves the pointers to the ends of the rows.
func (f *function) dotTile(label string, row []reg, q, left reg) {
	acc := make([][]vec, len(row))
	for i := range acc {
		acc[i] = span(vec(partials*i), partials)
		f.zero(acc[i]...)
	}
	query := vec(16)
	f.blocks(label, left, func(s step) {
		f.load(s, q, query)
		for i, p := range row {
			values := vec(20 + 4*(i%2))
			f.load(s, p, values)
			for r := range s.registers {
				f.fmla(acc[i][s.first+r], query+vec(r), values+vec(r))
			}
		}
	})
	for i := range acc {
		f.tree(acc[i])
	}
	switch len(row) {
	case 1:
		f.faddp(0, 0, 0)
		f.faddp(0, 0, 0)
	case rowTile:
		f.faddp(0, acc[0][0], acc[1][0])
		f.faddp(1, acc[2][0], acc[3][0])
		f.faddp(0, 0, 1)
	default:
		panic(fmt.Sprintf("no reduction of %d rows", len(row)))
	}
}
