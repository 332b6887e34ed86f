package main

// atLeast writes the kernel that turns comparisons into bits, a word of 64 of them at a time: one byte per value, then one
// bit, and eight bits of a byte are added up.
func atLeast(a *assembly) {
	f := a.function("atLeast", "bits *uint64, x *float32, words int, least float32", "", "is atLeastGeneric for 64*words values.")
	out, x, words := f.arg("bits"), f.arg("x"), f.arg("words")
	word := f.reg()
	const least, bits = vec(31), vec(30)
	f.op("FMOVS %s, %s", f.frame("least"), least)
	f.op("VDUP V31.S[0], %s", least.as("S4"))
	f.op("VMOVQ $0x8040201008040201, $0x8040201008040201, V%d", int(bits))
	f.op("CBZ %s, done", words)

	f.label("word")
	below := span(0, 16)
	for i := range below {
		f.op("FMOVQ.P 16(%s), %s", x, below[i])
		f.below(below[i], least, below[i])
	}
	narrow := func(lanes string, of []vec) []vec {
		for i := range len(of) / 2 {
			f.op("VUZP1 %s, %s, %s", of[2*i+1].as(lanes), of[2*i].as(lanes), of[i].as(lanes))
		}
		return of[:len(of)/2]
	}
	bytes := narrow("B16", narrow("H8", below))
	for _, b := range bytes {
		f.op("VAND %s, %s, %s", bits.as("B16"), b.as("B16"), b.as("B16"))
	}
	add := func(n, m, d vec) { f.op("VADDP %s, %s, %s", m.as("B16"), n.as("B16"), d.as("B16")) }
	add(bytes[0], bytes[1], bytes[0])
	add(bytes[2], bytes[3], bytes[1])
	add(bytes[0], bytes[1], bytes[0])
	add(bytes[0], bytes[0], bytes[0])
	f.op("FMOVD %s, %s", bytes[0], word)
	f.op("MVN %s, %s", word, word)
	f.op("MOVD.P %s, 8(%s)", word, out)
	f.op("SUBS $1, %s, %s", words, words)
	f.op("BNE word")
	f.label("done")
	f.op("RET")
}
