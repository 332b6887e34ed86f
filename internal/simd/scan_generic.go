package simd

func scan4Generic(pos []uint32, sums []uint16, codes, lut []byte, pairs int, min uint16) int {
	n, first := 0, 0
	for len(codes) > 0 {
		block := blockSums(codes[:pairs*blockCodes], lut)
		for i, sum := range block {
			if sum >= min {
				pos[n], sums[n] = uint32(first+i), sum
				n++
			}
		}
		codes = codes[pairs*blockCodes:]
		first += blockCodes
	}
	return n
}

// blockSums returns the sums of the 32 codes of one block.
func blockSums(block, lut []byte) (sums [blockCodes]uint16) {
	for len(block) >= blockCodes && len(lut) >= 2*tableSize {
		low, high := (*[tableSize]byte)(lut), (*[tableSize]byte)(lut[tableSize:])
		for i, code := range (*[blockCodes]byte)(block) {
			sums[i] += uint16(low[code&15]) + uint16(high[code>>4])
		}
		block, lut = block[blockCodes:], lut[2*tableSize:]
	}
	return sums
}

// scan8Generic has no assembly twin: the gather instructions it would need are no faster than these
// loads.
func scan8Generic(dst []float32, codes []byte, lut []float32, m int) {
	for i := range dst {
		dst[i] = codeSum(codes[i*m:(i+1)*m], lut)
	}
}

// codeSum returns the sum of the table entries of one 8-bit code, in four partial sums.
func codeSum(code []byte, lut []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(code) >= 4 && len(lut) >= 4*256 {
		s0 += lut[code[0]]
		s1 += lut[256+int(code[1])]
		s2 += lut[512+int(code[2])]
		s3 += lut[768+int(code[3])]
		code, lut = code[4:], lut[4*256:]
	}
	for s, c := range code {
		s0 += lut[s*256+int(c)]
	}
	return (s0 + s1) + (s2 + s3)
}
