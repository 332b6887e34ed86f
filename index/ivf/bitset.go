package ivf

import "math/bits"

// bitset is a set of small numbers: bit i%64 of word i/64.
type bitset []uint64

const wordBits = 64

func newBitset(n int) bitset { return make(bitset, (n+wordBits-1)/wordBits) }

func (b bitset) has(i int) bool { return b[i/wordBits]&(1<<(i%wordBits)) != 0 }

func (b bitset) add(i int) { b[i/wordBits] |= 1 << (i % wordBits) }

// each calls do with the members in ascending order.
func (b bitset) each(do func(i int)) {
	for w, word := range b {
		for ; word != 0; word &= word - 1 {
			do(w*wordBits + bits.TrailingZeros64(word))
		}
	}
}

// appendTo appends the members to dst in ascending order.
func (b bitset) appendTo(dst []uint32) []uint32 {
	b.each(func(i int) { dst = append(dst, uint32(i)) })
	return dst
}
