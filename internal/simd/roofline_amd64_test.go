//go:build !noasm

package simd

import (
	"fmt"
	"testing"

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
		case avx512:
			run, lanes = roofline.MultiplyAddAVX512, 16
		}
		for b.Loop() {
			run(n)
		}
		perSecond(b, float64(2*n*chains*lanes)/1e9, "GFLOP/s")
	})
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
				case avx512:
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
