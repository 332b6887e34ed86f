package main

const (
	blockCodes = 32
	pairBytes  = 32 // of a pair, in a block as in the tables
)

// scan4 writes the FastScan kernel. A table is one register: TBL looks it up for
// 16 codes. The entries of the two tables of a pair are added up to 16 bits and
// then to the sums of the block's 32 codes, four registers in the order of codes.
func scan4(a *assembly) {
	f := a.function("scan4", "pos *uint32, sums *uint16, codes, lut *byte, blocks, pairs int, min uint16", "int",
		"is scan4Generic for blocks blocks of pairs*32 bytes, at least one of each.")
	pos, sums := f.arg("pos"), f.arg("sums")
	codes, lut := f.arg("codes"), f.arg("lut")
	blocks, pairs := f.arg("blocks"), f.arg("pairs")
	least, table, left, first, start := f.reg(), f.reg(), f.reg(), f.reg(), f.reg()

	const nibble, threshold, bits = vec(31), vec(30), vec(29)
	f.op("MOVHU %s, %s", f.frame("min"), least)
	f.op("VDUP %s, %s", least, threshold.as("H8"))
	f.op("VMOVI $15, %s", nibble.as("B16"))
	f.op("VMOVQ $0x8040201008040201, $0x8040201008040201, V%d", int(bits))
	f.op("MOVD ZR, %s", first)
	f.op("MOVD %s, %s", sums, start)

	f.label("block")
	sum := span(0, 4)
	f.zero(sum...)
	f.op("MOVD %s, %s", lut, table)
	f.op("MOVD %s, %s", pairs, left)
	f.label("pair")
	f.pairSums(sum, codes, table, nibble)
	f.op("SUBS $1, %s, %s", left, left)
	f.op("BNE pair")

	passed := f.passed(sum, threshold, bits, least)
	f.op("CBZW %s, next", passed)
	f.note("All 32 sums are stored where the survivors among them will be: there is room,")
	f.note("for no more codes survive than were scanned. Then they are moved together.")
	f.op("FSTPQ (%s, %s), (%s)", sum[0], sum[1], sums)
	f.op("FSTPQ (%s, %s), 32(%s)", sum[2], sum[3], sums)
	f.survivors(passed, pos, sums, first)
	f.label("next")
	f.op("ADD $%d, %s, %s", blockCodes, first, first)
	f.op("SUBS $1, %s, %s", blocks, blocks)
	f.op("BNE block")

	f.op("SUB %s, %s, %s", start, sums, sums)
	f.op("LSR $1, %s, %s", sums, sums)
	f.op("MOVD %s, %s", sums, f.frame("ret"))
	f.op("RET")
}

// pairSums adds the table entries of one pair of 32 codes to sum.
func (f *function) pairSums(sum []vec, codes, table reg, nibble vec) {
	code, tables, high, both := span(4, 2), span(6, 2), span(8, 2), span(10, 4)
	f.op("FLDPQ.P %d(%s), (%s, %s)", pairBytes, codes, code[0], code[1])
	f.op("FLDPQ.P %d(%s), (%s, %s)", pairBytes, table, tables[0], tables[1])
	for i, c := range code {
		f.op("VUSHR $4, %s, %s", c.as("B16"), high[i].as("B16"))
		f.op("VAND %s, %s, %s", nibble.as("B16"), c.as("B16"), c.as("B16"))
		f.op("VTBL %s, [%s], %s", c.as("B16"), tables[0].as("B16"), c.as("B16"))
		f.op("VTBL %s, [%s], %s", high[i].as("B16"), tables[1].as("B16"), high[i].as("B16"))
		f.uaddl(both[2*i], c, high[i])
		f.uaddl2(both[2*i+1], c, high[i])
	}
	for i, s := range sum {
		f.op("VADD %s, %s, %s", both[i].as("H8"), s.as("H8"), s.as("H8"))
	}
}

// passed sets bit i of a register for each code i whose sum reaches threshold.
func (f *function) passed(sum []vec, threshold, bits vec, mask reg) reg {
	m := span(10, 4)
	for i := range m {
		f.atLeast(m[i], sum[i], threshold)
	}
	f.note("One byte per code, then one bit, and eight bits of a byte are added up.")
	op := func(name string, n, m, d vec) {
		f.op("%s %s, %s, %s", name, m.as("B16"), n.as("B16"), d.as("B16"))
	}
	op("VUZP1", m[0], m[1], m[0])
	op("VUZP1", m[2], m[3], m[2])
	op("VAND", m[0], bits, m[0])
	op("VAND", m[2], bits, m[2])
	op("VADDP", m[0], m[2], m[0])
	op("VADDP", m[0], m[0], m[0])
	op("VADDP", m[0], m[0], m[0])
	f.op("VMOV V%d.S[0], %s", int(m[0]), mask)
	return mask
}

// survivors writes the positions and sums of the codes whose bit is set, at least
// one, and moves pos and sums past them. The 32 sums lie at sums.
func (f *function) survivors(passed, pos, sums, first reg) {
	block, code, value := f.reg(), f.reg(), f.reg()
	f.op("MOVD %s, %s", sums, block)
	f.label("survivor")
	f.op("RBITW %s, %s", passed, code)
	f.op("CLZW %s, %s", code, code)
	f.op("MOVHU (%s)(%s<<1), %s", block, code, value)
	f.op("MOVH.P %s, 2(%s)", value, sums)
	f.op("ADD %s, %s, %s", first, code, code)
	f.op("MOVW.P %s, 4(%s)", code, pos)
	f.op("SUBW $1, %s, %s", passed, value)
	f.op("ANDSW %s, %s, %s", value, passed, passed)
	f.op("BNE survivor")
}
