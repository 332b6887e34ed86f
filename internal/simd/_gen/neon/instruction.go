package main

import "fmt"

// This file holds the instructions that Go's assembler does not know. They are
// written as the words they are, with the mnemonic of the architecture manual
// beside them, whose first operand is the destination. A test assembles the
// mnemonics and compares.

// word writes the encoding of an instruction.
func (f *function) word(encoding uint32, format string, args ...any) {
	f.op("WORD $%#08x // %s", encoding, fmt.Sprintf(format, args...))
}

// three writes an instruction of two source registers.
func (f *function) three(encoding uint32, name, to, from string, d, n, m vec) {
	f.word(encoding|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s v%d.%s, v%d.%s, v%d.%s", name, int(d), to, int(n), from, int(m), from)
}

// Four lanes of float32: d = n + m, d = n - m, d = n * m.
func (f *function) fadd(d, n, m vec) { f.three(0x4e20d400, "fadd", "4s", "4s", d, n, m) }
func (f *function) fsub(d, n, m vec) { f.three(0x4ea0d400, "fsub", "4s", "4s", d, n, m) }
func (f *function) fmul(d, n, m vec) { f.three(0x6e20dc00, "fmul", "4s", "4s", d, n, m) }

// faddp sets d to the sums of neighbours: those of n, then those of m.
func (f *function) faddp(d, n, m vec) { f.three(0x6e20d400, "faddp", "4s", "4s", d, n, m) }

// faddpScalar sets lane 0 of d to the sum of the lanes 0 and 1 of n.
func (f *function) faddpScalar(d, n vec) {
	f.word(0x7e30d800|uint32(n)<<5|uint32(d), "faddp s%d, v%d.2s", int(d), int(n))
}

// widen sets d to the low two float32 of n as float64, widen2 to the high two.
func (f *function) widen(d, n vec) {
	f.word(0x0e617800|uint32(n)<<5|uint32(d), "fcvtl v%d.2d, v%d.2s", int(d), int(n))
}

func (f *function) widen2(d, n vec) {
	f.word(0x4e617800|uint32(n)<<5|uint32(d), "fcvtl2 v%d.2d, v%d.4s", int(d), int(n))
}

// Two lanes of float64: d = n + m, and lane 0 of d = the sum of both lanes of n.
func (f *function) faddWide(d, n, m vec) { f.three(0x4e60d400, "fadd", "2d", "2d", d, n, m) }

func (f *function) faddpWide(d, n vec) {
	f.word(0x7e70d800|uint32(n)<<5|uint32(d), "faddp d%d, v%d.2d", int(d), int(n))
}

// fmla adds the products of n and m to d. Go's VFMLA is the same; this form
// stands beside fmlaLane.
func (f *function) fmla(d, n, m vec) {
	f.op("VFMLA %s, %s, %s", m.as("S4"), n.as("S4"), d.as("S4"))
}

// fmlaLane adds the products of n and one lane of m to d.
func (f *function) fmlaLane(d, n, m vec, lane int) {
	encoding := uint32(0x4f801000) | uint32(lane&1)<<21 | uint32(lane>>1)<<11
	f.word(encoding|uint32(m)<<16|uint32(n)<<5|uint32(d), "fmla v%d.4s, v%d.4s, v%d.s[%d]", int(d), int(n), int(m), lane)
}

// positive sets the lanes of d to ones where n is greater than zero, to zeros
// where it is not, a NaN or less.
func (f *function) positive(d, n vec) {
	f.word(0x4ea0c800|uint32(n)<<5|uint32(d), "fcmgt v%d.4s, v%d.4s, #0.0", int(d), int(n))
}

// below sets the lanes of d to ones where m is less than n, to zeros where it is not, or one is
// NaN.
func (f *function) below(d, n, m vec) { f.three(0x6ea0e400, "fcmgt", "4s", "4s", d, n, m) }

// uaddl adds the low eight bytes of n and m in lanes of 16 bits, uaddl2 the high
// eight.
func (f *function) uaddl(d, n, m vec)  { f.three(0x2e200000, "uaddl", "8h", "8b", d, n, m) }
func (f *function) uaddl2(d, n, m vec) { f.three(0x6e200000, "uaddl2", "8h", "16b", d, n, m) }

// atLeast sets the 16-bit lanes of d to ones where n >= m, unsigned, else to
// zeros.
func (f *function) atLeast(d, n, m vec) { f.three(0x6e603c00, "cmhs", "8h", "8h", d, n, m) }

// smull sets d to the products of the low eight bytes of n and m, signed, in lanes of 16 bits,
// smlal adds them to d; smull2 and smlal2 take the high eight.
func (f *function) smull(d, n, m vec)  { f.three(0x0e20c000, "smull", "8h", "8b", d, n, m) }
func (f *function) smull2(d, n, m vec) { f.three(0x4e20c000, "smull2", "8h", "16b", d, n, m) }
func (f *function) smlal(d, n, m vec)  { f.three(0x0e208000, "smlal", "8h", "8b", d, n, m) }
func (f *function) smlal2(d, n, m vec) { f.three(0x4e208000, "smlal2", "8h", "16b", d, n, m) }

// sadalp adds the sums of neighbours of n, lanes of 16 bits, signed, to the 32-bit lanes of d.
func (f *function) sadalp(d, n vec) {
	f.word(0x4e606800|uint32(n)<<5|uint32(d), "sadalp v%d.4s, v%d.8h", int(d), int(n))
}

// scvtf sets d to the 32-bit integers of n as float32.
func (f *function) scvtf(d, n vec) {
	f.word(0x4e21d800|uint32(n)<<5|uint32(d), "scvtf v%d.4s, v%d.4s", int(d), int(n))
}
