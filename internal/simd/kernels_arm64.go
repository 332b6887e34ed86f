//go:build !noasm

package simd

// class is a set of instructions there are kernels for.
type class uint8

const (
	generic class = iota
	neon
)

// active is the class in use: the best the processor has. Only tests change it.
var active = best()

// best needs no test of the processor: every arm64 there is a Go port for has NEON.
func best() class { return neon }

func (c class) String() string {
	return [...]string{generic: "generic", neon: "neon"}[c]
}

func dot(a, b []float32) float32 {
	if active == generic {
		return dotGeneric(a, b)
	}
	return dotNEON(a, b)
}

func dotWide(a []float64, b []float32) float64 {
	if active == generic {
		return dotWideGeneric(a, b)
	}
	return dotWideNEON(a, b)
}

func squaredL2(a, b []float32) float32 {
	if active == generic {
		return squaredL2Generic(a, b)
	}
	return squaredL2NEON(a, b)
}

func mulDot(a, b, c []float32) float32 {
	if active == generic {
		return mulDotGeneric(a, b, c)
	}
	return mulDotNEON(a, b, c)
}

func axpy(dst []float32, alpha float32, x []float32) {
	if active == generic {
		axpyGeneric(dst, alpha, x)
		return
	}
	axpyNEON(dst, alpha, x)
}

func mul(dst, a, b []float32) {
	if active == generic {
		mulGeneric(dst, a, b)
		return
	}
	mulNEON(dst, a, b)
}

func relu(x []float32) {
	if active == generic {
		reluGeneric(x)
		return
	}
	reluNEON(x)
}

func gate(dst, x []float32) { gateGeneric(dst, x) }

func atLeast(bits []uint64, x []float32, least float32) {
	words := len(x) / wordBits
	if active == generic || words == 0 {
		atLeastGeneric(bits, x, least)
		return
	}
	atLeastNEON(&bits[0], &x[0], words, least)
	atLeastGeneric(bits[words:], x[words*wordBits:], least)
}

func dotRows(dst, q, rows []float32) {
	if active == generic {
		dotRowsGeneric(dst, q, rows)
		return
	}
	dotRowsNEON(dst, q, rows)
}

func dotBytes(dst []float32, q, rows []int8, factors []float32, scale float32) {
	if active == generic {
		dotBytesGeneric(dst, q, rows, factors, scale)
		return
	}
	dotBytesNEON(&dst[0], &q[0], &rows[0], &factors[0], len(dst)/byteRows, len(q)/byteGroup, scale)
}

func prefetch(x *byte, n int) {
	if active != generic {
		prefetchNEON(x, n)
	}
}

// tileShape returns the inputs and the outputs mulTile takes at most. Inputs are summed up in
// chunks of 32 terms to a partial sum, which bounds the rounding error.
func tileShape() (inputs, outputs int) { return 32, 16 }

// wideTiles says that there is one kernel, for tiles of one width.
func wideTiles() bool { return false }

// mulWideTile is never called.
func mulWideTile(_, _, _, _ *float32, _, _, _, _, _ int) {}

// mulTile is the mulPanel kernel.
func mulTile(dst, init, rows, panel *float32, n, k, dstStride, initStride, rowStride int) {
	mulPanelNEON(dst, init, rows, panel, n, k, dstStride, initStride, rowStride)
}

// packTile is the pack kernel.
func packTile(panel, w, scale *float32, in, inputs int) {
	packNEON(panel, w, scale, in, inputs)
}

func scan4(pos []uint32, sums []uint16, codes, lut []byte, pairs int, min uint16) int {
	blocks := len(codes) / (pairs * blockCodes)
	if active == generic || blocks == 0 {
		return scan4Generic(pos, sums, codes, lut, pairs, min)
	}
	return scan4NEON(&pos[0], &sums[0], &codes[0], &lut[0], blocks, pairs, min)
}
