package simd

// dotBytesGeneric sets dst, whole blocks, to scale times the products of q and rows, laid out as in
// ByteRows.
func dotBytesGeneric(dst []float32, q, rows []int8, factors []float32, scale float32) {
	for len(dst) > 0 {
		var sums [byteRows]int32
		for j := 0; j < len(q); j += byteGroup {
			four, group := (*[byteGroup]int8)(q[j:]), (*[byteRows * byteGroup]int8)(rows)
			a, b, c, d := int32(four[0]), int32(four[1]), int32(four[2]), int32(four[3])
			for i := range sums {
				at := i * byteGroup
				sums[i] += a*int32(group[at]) + b*int32(group[at+1]) + c*int32(group[at+2]) + d*int32(group[at+3])
			}
			rows = rows[byteRows*byteGroup:]
		}
		for i, sum := range sums {
			dst[i] = float32(sum) * factors[i] * scale
		}
		dst, factors = dst[byteRows:], factors[byteRows:]
	}
}
