package simd

import "fmt"

const (
	blockCodes = 32 // codes in a block of Scan4
	tableSize  = 16 // entries of the lookup table of one 4-bit sub-quantizer
	maxPairs   = 128
)

// Scan4 sums the lookup table entries of 4-bit product quantizer codes (the FastScan layout) and
// writes the position, counted in codes from 0, and the sum of every code whose sum is at least
// min, in ascending order of position. It returns how many. pos and sums must have room for all
// codes; what they hold beyond the returned count is unspecified.
//
// codes is a whole number of blocks of 32 codes, a block is pairs*32 bytes. Byte i of pair j of a
// block belongs to code i: the low nibble is its sub-quantizer 2j, the high nibble its
// sub-quantizer 2j+1. pairs is at most 128. lut holds 2*pairs tables of 16 entries. The largest
// entries of the tables of a group (see Scan4Group) must not add up to more than 255: kernels add
// them up as bytes. The sums of other tables are unspecified.
//
//	for i := range 32 * blocks {
//		block := codes[i/32*pairs*32:]
//		var sum uint16
//		for j := range pairs {
//			code := block[j*32+i%32]
//			sum += uint16(lut[2*j*16+int(code&15)]) + uint16(lut[(2*j+1)*16+int(code>>4)])
//		}
//		if sum >= min {
//			pos[n], sums[n] = uint32(i), sum
//			n++
//		}
//	}
func Scan4(pos []uint32, sums []uint16, codes, lut []byte, pairs int, min uint16) int {
	if pairs < 1 || pairs > maxPairs || len(codes)%(pairs*blockCodes) != 0 {
		panic(fmt.Sprintf("simd: Scan4: %d bytes are not whole blocks of 32 codes of %d pairs (1 to %d)",
			len(codes), pairs, maxPairs))
	}
	n := len(codes) / pairs
	return scan4(pos[:n], sums[:n], codes, lut[:2*pairs*tableSize], pairs, min)
}

// Scan4Group returns the group of a lookup table of Scan4, numbered from 0. There are two groups in
// 16 tables: that of their even pairs and that of their odd ones.
func Scan4Group(table int) int { return table/16*2 + table/2%2 }

// Scan8 sets dst to the sums of the lookup table entries of 8-bit product quantizer codes. codes is
// row-major len(dst) x m, lut row-major m x 256.
//
//	for i := range dst {
//		dst[i] = 0
//		for s := range m {
//			dst[i] += lut[s*256+int(codes[i*m+s])]
//		}
//	}
func Scan8(dst []float32, codes []byte, lut []float32, m int) {
	scan8Generic(dst, codes[:len(dst)*m], lut[:m*256], m)
}
