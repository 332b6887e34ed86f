package simd

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plainScan4 is the loop of Scan4's doc comment.
func plainScan4(codes, lut []byte, pairs int, min uint16) (pos []uint32, sums []uint16) {
	for i := range len(codes) / pairs {
		block := codes[i/32*pairs*32:]
		var sum uint16
		for j := range pairs {
			code := block[j*32+i%32]
			sum += uint16(lut[2*j*16+int(code&15)]) + uint16(lut[(2*j+1)*16+int(code>>4)])
		}
		if sum >= min {
			pos, sums = append(pos, uint32(i)), append(sums, sum)
		}
	}
	return pos, sums
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// randomTable returns the tables of pairs pairs. The largest entries of a group of tables add up to
// 255, the most there may be.
func randomTable(rng *rand.Rand, pairs int) []byte {
	lut := make([]byte, 2*pairs*tableSize)
	groups := make([]int, 2*pairs)
	for i := range groups {
		groups[i] = 255
	}
	for s := 2*pairs - 1; s >= 0; s-- {
		g := Scan4Group(s)
		largest := groups[g]
		if s > 1 && Scan4Group(s-1) == g || s > 3 && Scan4Group(s-4) == g {
			largest = rng.IntN(largest/2 + 1)
		}
		groups[g] -= largest
		copy(lut[s*tableSize:], bytesUpTo(rng, largest))
	}
	return lut
}

// bytesUpTo returns a table of random entries, the largest of which is largest.
func bytesUpTo(rng *rand.Rand, largest int) []byte {
	table := make([]byte, tableSize)
	for i := range table {
		table[i] = byte(rng.IntN(largest + 1))
	}
	table[rng.IntN(tableSize)] = byte(largest)
	return table
}

func TestScan4(t *testing.T) { eachClass(t, testScan4) }

func testScan4(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, pairs := range []int{1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 33, 128} {
		for _, blocks := range []int{0, 1, 2, 3, 4, 5, 7, 11} {
			codes, lut := randomBytes(rng, blocks*pairs*32), randomTable(rng, pairs)
			mean := uint16(pairs * 32)
			for _, min := range []uint16{0, 1, mean / 2, mean, mean + mean/8, mean + mean/4, mean * 2, 65535} {
				checkScan4(t, codes, lut, pairs, min)
			}
		}
	}
}

func TestScan4LargestSum(t *testing.T) { eachClass(t, testScan4LargestSum) }

func testScan4LargestSum(t *testing.T) {
	// Every group of tables adds up to 255: with tables that are about equal, and with all of it in
	// one of them.
	const pairs = maxPairs
	codes := randomBytes(rand.New(rand.NewPCG(3, 2)), 7*pairs*32)
	for only := -1; only < 8; only++ {
		lut := make([]byte, pairs*32)
		var rank [2 * pairs]int
		for s := range 2 * pairs {
			g := Scan4Group(s)
			entry := byte(32 - rank[g]/7) // 7 * 32 + 31
			if only >= 0 {
				entry = 0
			}
			if rank[g] == only {
				entry = 255
			}
			rank[g]++
			copy(lut[s*tableSize:], bytes.Repeat([]byte{entry}, tableSize))
		}
		for _, min := range []uint16{0, 255, 256, 8159, 8160, 8161, 32768} {
			checkScan4(t, codes, lut, pairs, min)
		}
	}
}

func checkScan4(t *testing.T, codes, lut []byte, pairs int, min uint16) {
	t.Helper()
	wantPos, wantSums := plainScan4(codes, lut, pairs, min)
	n := len(codes) / pairs
	pos, sums := make([]uint32, n), make([]uint16, n)
	got := Scan4(pos, sums, codes, lut, pairs, min)
	require.Equal(t, len(wantPos), got, "pairs %d, %d codes, min %d", pairs, n, min)
	if got > 0 {
		require.Equal(t, wantPos, pos[:got], "pairs %d, %d codes, min %d", pairs, n, min)
		require.Equal(t, wantSums, sums[:got], "pairs %d, %d codes, min %d", pairs, n, min)
	}
}

func TestScan8(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, m := range []int{0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 64} {
		for n := range 5 {
			codes, lut := randomBytes(rng, n*m), randomVector(rng, m*256)
			dst := randomVector(rng, n)
			Scan8(dst, codes, lut, m)
			for i := range dst {
				terms := make([]float64, m)
				for s := range m {
					terms[s] = float64(lut[s*256+int(codes[i*m+s])])
				}
				wantSum(t, terms, dst[i], "m %d, code %d of %d", m, i, n)
			}
		}
	}
	assert.Panics(t, func() { Scan8(make([]float32, 2), make([]byte, 3), make([]float32, 512), 2) })
}
