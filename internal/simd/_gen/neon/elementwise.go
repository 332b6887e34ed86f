package main

// elementwise writes the kernels that map vectors to a vector.
func elementwise(a *assembly) {
	const dst, x, y, alpha = vec(0), vec(4), vec(8), vec(31)

	f := a.function("axpy", "dst []float32, alpha float32, x []float32", "", "is axpyGeneric with fused multiply-adds.")
	to, from, n := f.arg("dst_base"), f.arg("x_base"), f.arg("dst_len")
	f.op("FMOVS %s, %s", f.frame("alpha"), alpha)
	f.op("VDUP V31.S[0], %s", alpha.as("S4"))
	out := f.reg()
	f.op("MOVD %s, %s", to, out)
	f.blocks("axpy", n, func(s step) {
		f.load(s, to, dst)
		f.load(s, from, x)
		for r := range vec(s.registers) {
			f.fmla(dst+r, x+r, alpha)
		}
		f.store(s, out, dst)
	})
	f.op("RET")

	f = a.function("mul", "dst, a, b []float32", "", "is mulGeneric.")
	out, first, second, n := f.arg("dst_base"), f.arg("a_base"), f.arg("b_base"), f.arg("dst_len")
	f.blocks("mul", n, func(s step) {
		f.load(s, first, x)
		f.load(s, second, y)
		for r := range vec(s.registers) {
			f.fmul(dst+r, x+r, y+r)
		}
		f.store(s, out, dst)
	})
	f.op("RET")

	f = a.function("relu", "x []float32", "", "is reluGeneric.")
	from, n = f.arg("x_base"), f.arg("x_len")
	out = f.reg()
	f.op("MOVD %s, %s", from, out)
	f.blocks("relu", n, func(s step) {
		f.load(s, from, x)
		for r := range vec(s.registers) {
			// The maximum with zero would keep NaNs.
			f.positive(y+r, x+r)
			f.op("VAND %s, %s, %s", (y + r).as("B16"), (x + r).as("B16"), (x + r).as("B16"))
		}
		f.store(s, out, x)
	})
	f.op("RET")
}

// prefetch writes the hint that x is read soon, for each line of 64 bytes.
func prefetch(a *assembly) {
	f := a.function("prefetch", "x *byte, n int", "", "asks for every cache line of n bytes.")
	p, end := f.arg("x"), f.arg("n")
	f.op("ADD %s, %s, %s", end, p, end)
	f.op("AND $~63, %s, %s", p, p)
	f.label("line")
	f.op("CMP %s, %s", end, p)
	f.op("BHS done")
	f.op("PRFM (%s), PLDL1KEEP", p)
	f.op("ADD $64, %s, %s", p, p)
	f.op("B line")
	f.label("done")
	f.op("RET")
}
