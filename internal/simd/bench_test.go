package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// mulShapes are out x in of the benchmarked layers.
var mulShapes = [][2]int{{128, 64}, {128, 128}, {256, 128}, {256, 256}}

func BenchmarkMatrixMul(b *testing.B) {
	for _, shape := range mulShapes {
		for _, n := range []int{1, 100, 512} {
			b.Run(fmt.Sprintf("%dx%d/n=%d", shape[0], shape[1], n), func(b *testing.B) {
				benchEachClass(b, func(b *testing.B) { benchMul(b, shape[0], shape[1], n) })
			})
		}
	}
}

func benchMul(b *testing.B, out, in, n int) {
	rng := rand.New(rand.NewPCG(9, 1))
	m := Pack(nil, randomVector(rng, out*in), out, in, nil)
	rows, dst, bias := randomVector(rng, n*in), make([]float32, n*out), randomVector(rng, out)
	for b.Loop() {
		m.Mul(dst, rows, bias, n)
	}
	perSecond(b, 2*float64(out*in*n)/1e9, "GFLOP/s")
}

// perSecond reports a rate: amount units in each iteration.
func perSecond(b *testing.B, amount float64, unit string) {
	b.ReportMetric(amount*float64(b.N)/b.Elapsed().Seconds(), unit)
}

func BenchmarkPack(b *testing.B) {
	for _, shape := range mulShapes {
		out, in := shape[0], shape[1]
		b.Run(fmt.Sprintf("%dx%d", out, in), func(b *testing.B) {
			benchEachClass(b, func(b *testing.B) {
				rng := rand.New(rand.NewPCG(9, 2))
				w, scale, m := randomVector(rng, out*in), randomVector(rng, in), new(Matrix)
				for b.Loop() {
					Pack(m, w, out, in, scale)
				}
				perSecond(b, float64(4*out*in)/1e9, "GB/s")
			})
		})
	}
}

func BenchmarkDot(b *testing.B) {
	for _, dim := range []int{64, 128, 256, 768} {
		b.Run(fmt.Sprintf("dim=%d", dim), func(b *testing.B) {
			benchEachClass(b, func(b *testing.B) {
				rng := rand.New(rand.NewPCG(9, 3))
				q, row := randomVector(rng, dim), randomVector(rng, dim)
				for b.Loop() {
					Dot(q, row)
				}
			})
		})
	}
}

func BenchmarkDotRows(b *testing.B) {
	for _, dim := range []int{64, 128, 256} {
		for _, size := range workingSets {
			b.Run(fmt.Sprintf("dim=%d/%s", dim, size.name), func(b *testing.B) {
				benchEachClass(b, func(b *testing.B) {
					rng := rand.New(rand.NewPCG(9, 4))
					n := size.bytes / (4 * dim)
					q, rows, dst := randomVector(rng, dim), make([]float32, n*dim), make([]float32, n)
					for b.Loop() {
						DotRows(dst, q, rows)
					}
					perSecond(b, float64(4*n*dim)/1e9, "GB/s")
				})
			})
		}
	}
}

// workingSets fit in the first and the second level of cache of most processors, and in neither.
var workingSets = []struct {
	name  string
	bytes int
}{{"16KiB", 16 << 10}, {"256KiB", 256 << 10}, {"8MiB", 8 << 20}, {"256MiB", 256 << 20}}

// fewPass is a threshold that one code in some thousand passes, as in a scan once the best
// candidates are known.
func fewPass(mean, deviation float64) float64 { return mean + 3.2*deviation }

func BenchmarkScan4(b *testing.B) {
	for _, pairs := range []int{16, 32} {
		for _, size := range workingSets {
			b.Run(fmt.Sprintf("pairs=%d/%s", pairs, size.name), func(b *testing.B) {
				benchEachClass(b, func(b *testing.B) {
					benchScan4(b, size.bytes/(pairs*blockCodes), pairs, fewPass)
				})
			})
		}
	}
}

// BenchmarkScan4List scans lists of 64 codes, each by a call; in the second case every code passes.
func BenchmarkScan4List(b *testing.B) {
	cases := []struct {
		name string
		min  func(mean, deviation float64) float64
	}{
		{"few pass", fewPass},
		{"all pass", func(_, _ float64) float64 { return 0 }},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			benchEachClass(b, func(b *testing.B) { benchScan4(b, 2, 32, c.min) })
		})
	}
}

func benchScan4(b *testing.B, blocks, pairs int, threshold func(mean, deviation float64) float64) {
	run := newScanRun(blocks, pairs, threshold)
	passed := 0
	for b.Loop() {
		passed = run.scan()
	}
	b.ReportMetric(float64(passed)/float64(len(run.pos))*100, "%passed")
	perSecond(b, float64(len(run.codes))/1e9, "GB/s")
	perSecond(b, float64(len(run.pos))/1e6, "Mcodes/s")
}

// scanRun holds the arguments of Scan4.
type scanRun struct {
	pos        []uint32
	sums       []uint16
	codes, lut []byte
	pairs      int
	min        uint16
}

func newScanRun(blocks, pairs int, threshold func(mean, deviation float64) float64) scanRun {
	rng := rand.New(rand.NewPCG(9, 5))
	lut := randomTable(rng, pairs)
	codes := make([]byte, blocks*pairs*blockCodes)
	for i := range codes[:min(len(codes), 1<<20)] {
		codes[i] = byte(rng.Uint32())
	}
	for i := 1 << 20; i < len(codes); i *= 2 {
		copy(codes[i:], codes[:i])
	}
	n := blocks * blockCodes
	return scanRun{make([]uint32, n), make([]uint16, n), codes, lut, pairs, uint16(threshold(codeStatistics(lut)))}
}

func (r scanRun) scan() int { return Scan4(r.pos, r.sums, r.codes, r.lut, r.pairs, r.min) }

func BenchmarkScan8(b *testing.B) {
	const m, n = 32, 4096
	rng := rand.New(rand.NewPCG(9, 6))
	codes, lut, dst := randomBytes(rng, n*m), randomVector(rng, m*256), make([]float32, n)
	for b.Loop() {
		Scan8(dst, codes, lut, m)
	}
	perSecond(b, n/1e6, "Mcodes/s")
}

func BenchmarkElementwise(b *testing.B) {
	rng := rand.New(rand.NewPCG(9, 7))
	x, y, dst := randomVector(rng, 4096), randomVector(rng, 4096), make([]float32, 4096)
	bits := make([]uint64, len(x)/wordBits)
	kernels := []struct {
		name string
		run  func()
	}{
		{"Axpy", func() { Axpy(dst, 1e-9, x) }},
		{"Mul", func() { Mul(dst, x, y) }},
		{"MulDot", func() { MulDot(x, x, y) }},
		{"SquaredL2", func() { SquaredL2(x, y) }},
		{"AtLeast", func() { AtLeast(bits, x, 1.5) }},
		{"ReLU", func() { copy(dst, x); ReLU(dst) }},
	}
	for _, k := range kernels {
		b.Run(k.name, func(b *testing.B) {
			benchEachClass(b, func(b *testing.B) {
				for b.Loop() {
					k.run()
				}
			})
		})
	}
}

// codeStatistics returns the mean and the standard deviation of the sums of random codes.
func codeStatistics(lut []byte) (mean, deviation float64) {
	var variance float64
	for ; len(lut) > 0; lut = lut[tableSize:] {
		var sum, squares float64
		for _, x := range lut[:tableSize] {
			sum += float64(x)
			squares += float64(x) * float64(x)
		}
		mean += sum / tableSize
		variance += squares/tableSize - sum*sum/(tableSize*tableSize)
	}
	return mean, math.Sqrt(variance)
}
