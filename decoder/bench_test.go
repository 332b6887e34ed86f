package decoder_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
)

// benchNetworks are the sizes of the trained decoders flashdb is measured on, and a deep one with
// layer norms.
var benchNetworks = []struct {
	name  string
	dim   int
	build func(b *builder)
}{
	{"64-128-128-1", 64, func(b *builder) { b.layer(128, decoder.ReLU).layer(128, decoder.ReLU).layer(1, decoder.Identity) }},
	{"128-256-256-1", 128, func(b *builder) { b.layer(256, decoder.ReLU).layer(256, decoder.ReLU).layer(1, decoder.Identity) }},
	{"64-128-128-1-gelu-layernorm", 64, func(b *builder) {
		b.layer(128, decoder.GELU, b.with("layer_norm")).layer(128, decoder.GELU, b.with("layer_norm")).layer(1, decoder.Identity)
	}},
}

func BenchmarkScore(b *testing.B) {
	for _, test := range benchNetworks {
		b.Run(test.name, func(b *testing.B) {
			const n = 640
			build := newBuilder(1, decoder.HadamardMLP, test.dim)
			test.build(build)
			d, err := decoder.New(build.spec, build.tensors)
			require.NoError(b, err)
			bound, rows, logits := d.Bind(nil, build.vector()), build.rows(n), make([]float32, n)
			var s decoder.Scratch
			for range 2 { // until the scratch has its size
				bound.Score(&s, logits, rows)
			}
			b.ReportAllocs()
			for b.Loop() {
				bound.Score(&s, logits, rows)
			}
			b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func BenchmarkGradient(b *testing.B) {
	for _, test := range benchNetworks {
		b.Run(fmt.Sprintf("%s/20 anchors", test.name), func(b *testing.B) {
			build := newBuilder(1, decoder.HadamardMLP, test.dim)
			test.build(build)
			d, err := decoder.New(build.spec, build.tensors)
			require.NoError(b, err)
			bound, rows, grad := d.Bind(nil, build.vector()), build.rows(20), make([]float32, test.dim)
			var s decoder.Scratch
			for range 2 {
				bound.Gradient(&s, grad, rows, nil)
			}
			b.ReportAllocs()
			for b.Loop() {
				bound.Gradient(&s, grad, rows, nil)
			}
		})
	}
}

func BenchmarkBind(b *testing.B) {
	for _, kind := range []decoder.Kind{decoder.HadamardMLP, decoder.ConcatMLP} {
		for _, test := range benchNetworks[:2] {
			b.Run(fmt.Sprintf("%s/%s", kind, test.name), func(b *testing.B) {
				build := newBuilder(1, kind, test.dim)
				test.build(build)
				d, err := decoder.New(build.spec, build.tensors)
				require.NoError(b, err)
				source := build.vector()
				bound := d.Bind(nil, source)
				b.ReportAllocs()
				for b.Loop() {
					bound = d.Bind(bound, source)
				}
			})
		}
	}
}
