//go:build !noasm

package simd

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/flashdb/flashdb/internal/simd/internal/roofline"
)

// BenchmarkPeak is the ceiling of BenchmarkMatrixMul.
func BenchmarkPeak(b *testing.B) {
	const n, chains = 1000, 12
	benchEachClass(b, func(b *testing.B) {
		run, lanes := roofline.MultiplyAddAVX2, 8
		switch active {
		case generic:
			b.Skip("plain Go has no fused multiply-add of float32")
		case avx512, avx512VBMI:
			run, lanes = roofline.MultiplyAddAVX512, 16
		}
		for b.Loop() {
			run(n)
		}
		perSecond(b, float64(2*n*chains*lanes)/1e9, "GFLOP/s")
	})
}

// BenchmarkScan4Reads compares Scan4 with a plain read of the same bytes in the widest registers
// there are. Both have turns, and the best of each counts, so that the ratio holds on a busy
// machine.
func BenchmarkScan4Reads(b *testing.B) {
	read := roofline.ReadAVX2
	if best() >= avx512 {
		read = roofline.ReadAVX512
	}
	for _, pairs := range []int{16, 32} {
		for _, size := range workingSets {
			b.Run(fmt.Sprintf("pairs=%d/%s", pairs, size.name), func(b *testing.B) {
				benchEachClass(b, func(b *testing.B) {
					run := newScanRun(size.bytes/(pairs*blockCodes), pairs, fewPass)
					scanTime, readTime := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
					for b.Loop() {
						scanTime = min(scanTime, elapsed(func() { run.scan() }))
						readTime = min(readTime, elapsed(func() { read(run.codes) }))
					}
					b.ReportMetric(float64(scanTime)/float64(readTime), "reads")
					b.ReportMetric(runs*float64(size.bytes)/float64(scanTime), "GB/s")
					b.ReportMetric(runs*float64(size.bytes)/float64(readTime), "read-GB/s")
				})
			})
		}
	}
}

// runs last well beyond the resolution of the clock.
const runs = 16

// elapsed is the time of so many runs.
func elapsed(run func()) time.Duration {
	begin := time.Now()
	for range runs {
		run()
	}
	return time.Since(begin)
}

// BenchmarkRead is the ceiling of BenchmarkScan4 and BenchmarkDotRows.
func BenchmarkRead(b *testing.B) {
	for _, size := range workingSets {
		b.Run(fmt.Sprint(size.name), func(b *testing.B) {
			benchEachClass(b, func(b *testing.B) {
				run := roofline.ReadAVX2
				switch active {
				case generic:
					b.Skip("the loop is assembly")
				case avx512, avx512VBMI:
					run = roofline.ReadAVX512
				}
				data := make([]byte, size.bytes)
				for i := range data {
					data[i] = byte(i)
				}
				for b.Loop() {
					run(data)
				}
				perSecond(b, float64(len(data))/1e9, "GB/s")
			})
		})
	}
}
