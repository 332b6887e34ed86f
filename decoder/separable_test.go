package decoder_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
)

// The network of a HadamardMLP sees source and candidate only as their product, so the gradient
// with respect to z is the one with respect to the candidate where the source is all ones and the
// candidate is z.
func TestGradientZMatchesReference(t *testing.T) {
	for _, test := range networks {
		t.Run(test.name, func(t *testing.T) {
			b := newBuilder(3, test.kind, test.dim)
			test.build(b)
			d, err := decoder.New(b.spec, b.tensors)
			require.NoError(t, err)
			source, row := b.vector(), b.vector()
			source[len(source)-1] = 0 // nothing may be divided by it
			at, z := widen(source), widen(row)
			if test.kind == decoder.HadamardMLP {
				for k := range z {
					z[k] *= at[k]
					at[k] = 1
				}
			}
			bound := d.Bind(nil, source)
			separable, ok := bound.(decoder.Separable)
			require.Equal(t, !bound.Linear(), ok)
			if !ok {
				return
			}
			var s decoder.Scratch
			got := make([]float32, test.dim)
			separable.GradientZ(&s, got, row, nil)
			want := b.gradient(at, z)
			assert.Less(t, gradientError(want, got), 1e-4, "got %v, want %v", got, want)

			chained, gradient := make([]float32, test.dim), make([]float32, test.dim)
			separable.FromZ(chained, got)
			bound.Gradient(&s, gradient, row, nil)
			assert.Equal(t, gradient, chained)
			separable.FromZ(got, got)
			assert.Equal(t, gradient, got, "in place")
		})
	}
}

// FromZ of GradientZ is what PyTorch calls the gradient.
func TestGradientZMatchesPyTorch(t *testing.T) {
	networks := 0
	for _, dir := range torchDirs(t) {
		d := openTorch(t, weightFiles(t, dir)[0])
		var s decoder.Scratch
		for i, c := range readTorchCases(t, dir) {
			bound, ok := d.Bind(nil, c.Source).(decoder.Separable)
			if !ok || (d.Kind() == decoder.MoL && filepath.Base(dir) != "mol-slices") {
				continue // that of other mixtures leaves out lengths, or the gate's part of the candidate
			}
			networks++
			g := make([]float32, d.Dim())
			bound.GradientZ(&s, g, c.Candidate, nil)
			bound.FromZ(g, g)
			assert.Less(t, gradientError(c.Gradient, g), 1e-4, "%s case %d", filepath.Base(dir), i)
		}
	}
	assert.Equal(t, 12*22, networks)
}
