//go:build !noasm

package simd

import "golang.org/x/sys/cpu"

// class is a set of instructions there are kernels for.
type class uint8

const (
	generic class = iota
	avx2
	avx512
	avx512VBMI
)

// active is the class in use: the best the processor has. Only tests change it.
var active = best()

// best tests for each feature the kernels of a class use, not for one that usually implies the
// others: virtual machines mask single features.
func best() class {
	x := &cpu.X86
	switch {
	case !(x.HasAVX2 && x.HasFMA && x.HasBMI1 && x.HasBMI2 && x.HasPOPCNT):
		return generic
	case !(x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512DQ):
		return avx2
	case !(x.HasAVX512VBMI && x.HasAVX512GFNI):
		return avx512
	default:
		return avx512VBMI
	}
}

// hasVNNI says whether dotBytes of the AVX-512 classes may use VPDPBUSD; without, it is that of
// AVX2.
var hasVNNI = cpu.X86.HasAVX512VNNI

func (c class) String() string {
	return [...]string{generic: "generic", avx2: "avx2+fma", avx512: "avx512", avx512VBMI: "avx512+vbmi"}[c]
}

func dot(a, b []float32) float32 {
	switch active {
	case avx512, avx512VBMI:
		return dotAVX512(a, b)
	case avx2:
		return dotAVX2(a, b)
	default:
		return dotGeneric(a, b)
	}
}

func dotWide(a []float64, b []float32) float64 {
	switch active {
	case avx512, avx512VBMI:
		return dotWideAVX512(a, b)
	case avx2:
		return dotWideAVX2(a, b)
	default:
		return dotWideGeneric(a, b)
	}
}

func squaredL2(a, b []float32) float32 {
	switch active {
	case avx512, avx512VBMI:
		return squaredL2AVX512(a, b)
	case avx2:
		return squaredL2AVX2(a, b)
	default:
		return squaredL2Generic(a, b)
	}
}

func mulDot(a, b, c []float32) float32 {
	switch active {
	case avx512, avx512VBMI:
		return mulDotAVX512(a, b, c)
	case avx2:
		return mulDotAVX2(a, b, c)
	default:
		return mulDotGeneric(a, b, c)
	}
}

func axpy(dst []float32, alpha float32, x []float32) {
	switch active {
	case avx512, avx512VBMI:
		axpyAVX512(dst, alpha, x)
	case avx2:
		axpyAVX2(dst, alpha, x)
	default:
		axpyGeneric(dst, alpha, x)
	}
}

func mul(dst, a, b []float32) {
	switch active {
	case avx512, avx512VBMI:
		mulAVX512(dst, a, b)
	case avx2:
		mulAVX2(dst, a, b)
	default:
		mulGeneric(dst, a, b)
	}
}

func relu(x []float32) {
	switch active {
	case avx512, avx512VBMI:
		reluAVX512(x)
	case avx2:
		reluAVX2(x)
	default:
		reluGeneric(x)
	}
}

func gate(dst, x []float32) {
	switch active {
	case avx512, avx512VBMI:
		gateAVX512(dst, x)
	case avx2:
		gateAVX2(dst, x)
	default:
		gateGeneric(dst, x)
	}
}

func atLeast(bits []uint64, x []float32, least float32) {
	kernel, words := active, len(x)/wordBits
	if words == 0 {
		kernel = generic
	}
	switch kernel {
	case avx512, avx512VBMI:
		atLeastAVX512(&bits[0], &x[0], words, least)
	case avx2:
		atLeastAVX2(&bits[0], &x[0], words, least)
	default:
		words = 0
	}
	atLeastGeneric(bits[words:], x[words*wordBits:], least)
}

func dotRows(dst, q, rows []float32) {
	switch active {
	case avx512, avx512VBMI:
		dotRowsAVX512(dst, q, rows)
	case avx2:
		dotRowsAVX2(dst, q, rows)
	default:
		dotRowsGeneric(dst, q, rows)
	}
}

func dotBytes(dst []float32, q, rows []int8, factors []float32, scale float32) {
	blocks, groups := len(dst)/byteRows, len(q)/byteGroup
	switch {
	case active >= avx512 && hasVNNI:
		dotBytesVNNI(&dst[0], &q[0], &rows[0], &factors[0], blocks, groups, scale)
	case active >= avx2:
		dotBytesAVX2(&dst[0], &q[0], &rows[0], &factors[0], blocks, groups, scale)
	default:
		dotBytesGeneric(dst, q, rows, factors, scale)
	}
}

func prefetch(x *byte, n int) {
	if active != generic {
		prefetchAVX2(x, n)
	}
}

// tileShape returns the inputs and the outputs mulTile takes at most. Inputs are summed up in
// chunks of 32 terms to a partial sum. That bounds the rounding error, and the part of a panel that
// must stay in the L1 cache.
func tileShape() (inputs, outputs int) {
	if wideTiles() {
		return 64, 32 // two partial sums an output: of even and of odd inputs
	}
	return 32, 16
}

// wideTiles says which mulPanel kernel is that of the active class. Each has a function of its own,
// small enough to be inlined: to pass nine arguments on costs a tenth of the product of one row.
func wideTiles() bool { return active >= avx512 }

func mulWideTile(dst, init, rows, panel *float32, n, k, dstStride, initStride, rowStride int) {
	mulPanelAVX512(dst, init, rows, panel, n, k, dstStride, initStride, rowStride)
}

func mulTile(dst, init, rows, panel *float32, n, k, dstStride, initStride, rowStride int) {
	mulPanelAVX2(dst, init, rows, panel, n, k, dstStride, initStride, rowStride)
}

// packTile transposes weights with the one kernel there is for all classes.
func packTile(panel, w, scale *float32, in, inputs int) {
	packAVX2(panel, w, scale, in, inputs)
}

func scan4(pos []uint32, sums []uint16, codes, lut []byte, pairs int, min uint16) int {
	blocks := len(codes) / (pairs * blockCodes)
	kernel := active
	if blocks == 0 {
		kernel = generic
	}
	switch kernel {
	case avx512VBMI:
		return scan4VBMI(&pos[0], &sums[0], &codes[0], &lut[0], blocks, pairs, min)
	case avx512:
		return scan4AVX512(&pos[0], &sums[0], &codes[0], &lut[0], blocks, pairs, min)
	case avx2:
		return scan4AVX2(&pos[0], &sums[0], &codes[0], &lut[0], blocks, pairs, min)
	default:
		return scan4Generic(pos, sums, codes, lut, pairs, min)
	}
}
