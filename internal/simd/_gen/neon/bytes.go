package main

// dotBytes writes the products of 8-bit rows, 16 rows at a time. A register holds four values of
// each of four rows. The products of two groups are added up in lanes of 16 bits, which hold 2 *
// 127 * 127, and then in two lanes of 32 per row.
func dotBytes(a *assembly) {
	f := a.function("dotBytes", "dst *float32, q, rows *int8, factors *float32, blocks, groups int, scale float32", "",
		"is dotBytesGeneric for blocks blocks of groups groups, a positive even number.")
	dst, q, rows, factors := f.arg("dst"), f.arg("q"), f.arg("rows"), f.arg("factors")
	blocks, groups := f.arg("blocks"), f.arg("groups")
	at, left := f.reg(), f.reg()
	sums, values, query := span(0, 8), span(8, 8), span(16, 2)
	const products, scale = vec(18), vec(31)
	f.op("FMOVS %s, %s", f.frame("scale"), scale)
	f.op("VDUP V31.S[0], %s", scale.as("S4"))
	f.op("CBZ %s, done", blocks)

	f.label("block")
	f.zero(sums...)
	f.op("MOVD %s, %s", q, at)
	f.op("MOVD %s, %s", groups, left)
	f.label("pair")
	for _, v := range query {
		f.op("VLD1R.P 4(%s), [%s]", at, v.as("S4"))
	}
	for i := 0; i < len(values); i += 2 {
		f.op("FLDPQ.P 32(%s), (%s, %s)", rows, values[i], values[i+1])
	}
	for i, low := range values[:4] {
		high := values[4+i]
		f.smull(products, low, query[0])
		f.smlal(products, high, query[1])
		f.sadalp(sums[2*i], products)
		f.smull2(products+1, low, query[0])
		f.smlal2(products+1, high, query[1])
		f.sadalp(sums[2*i+1], products+1)
	}
	f.op("SUBS $2, %s, %s", left, left)
	f.op("BNE pair")
	for i := range 4 {
		sum, factor := sums[i], values[i]
		f.op("VADDP %s, %s, %s", sums[2*i+1].as("S4"), sums[2*i].as("S4"), sum.as("S4"))
		f.scvtf(sum, sum)
		f.op("FMOVQ.P 16(%s), %s", factors, factor)
		f.fmul(sum, sum, factor)
		f.fmul(sum, sum, scale)
		f.op("FMOVQ.P %s, 16(%s)", sum, dst)
	}
	f.op("SUBS $1, %s, %s", blocks, blocks)
	f.op("BNE block")
	f.label("done")
	f.op("RET")
}
