package decoder_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
)

// requireLogit demands what the package promises: 1e-5 relative, 1e-6 absolute near zero.
func requireLogit(t *testing.T, want float64, got float32, what string, args ...any) {
	t.Helper()
	require.LessOrEqual(t, logitError(want, got), 1e-5, what+": got %v, want %v", append(args, got, want))
}

func logitError(want float64, got float32) float64 {
	return math.Abs(float64(got)-want) / max(math.Abs(want), 0.1)
}

// gradientError is the largest difference relative to the largest value of the true gradient.
func gradientError(want []float64, got []float32) float64 {
	var worst, norm float64
	for k := range want {
		worst = max(worst, math.Abs(want[k]-float64(got[k])))
		norm = max(norm, math.Abs(want[k]))
	}
	return worst / norm
}

// Changes a test makes to a layer.
var (
	noBias        = func(l *decoder.LayerSpec, _ int) { l.Bias = "" }
	residualInput = func(l *decoder.LayerSpec, _ int) { l.Residual = "input" }
	residualZ     = func(l *decoder.LayerSpec, _ int) { l.Residual = "z" }
	after         = func(l *decoder.LayerSpec, _ int) { l.NormPosition = "after_activation" }
)

func slope(s float64) func(*decoder.LayerSpec, int) {
	return func(l *decoder.LayerSpec, _ int) { l.Slope = &s }
}

func (b *builder) with(kind string) func(*decoder.LayerSpec, int) {
	return func(l *decoder.LayerSpec, out int) { l.Norm = b.norm(kind, out) }
}

// networks are one network or more for everything a spec can say of a layer.
var networks = []struct {
	name  string
	kind  decoder.Kind
	dim   int
	build func(b *builder)
}{
	{"relu", decoder.HadamardMLP, 12, func(b *builder) { b.layer(20, decoder.ReLU).layer(17, decoder.ReLU).layer(1, decoder.Identity) }},
	{"leaky relu", decoder.HadamardMLP, 12, func(b *builder) {
		b.layer(20, decoder.LeakyReLU).layer(17, decoder.LeakyReLU, slope(0.3)).layer(1, decoder.Identity)
	}},
	{"leaky relu that rises again", decoder.ConcatMLP, 8, func(b *builder) { b.layer(9, decoder.LeakyReLU, slope(-0.5)).layer(1, decoder.Identity) }},
	{"gelu", decoder.HadamardMLP, 12, func(b *builder) { b.layer(20, decoder.GELU).layer(17, decoder.GELU).layer(1, decoder.Identity) }},
	{"gelu tanh", decoder.HadamardMLP, 12, func(b *builder) { b.layer(20, decoder.GELUTanh).layer(1, decoder.Identity) }},
	{"silu", decoder.HadamardMLP, 12, func(b *builder) { b.layer(20, decoder.SiLU).layer(1, decoder.Identity) }},
	{"tanh", decoder.HadamardMLP, 12, func(b *builder) { b.layer(20, decoder.Tanh).layer(1, decoder.Identity) }},
	{"sigmoid", decoder.HadamardMLP, 12, func(b *builder) { b.layer(20, decoder.Sigmoid).layer(1, decoder.Identity) }},
	{"no bias", decoder.HadamardMLP, 12, func(b *builder) { b.layer(20, decoder.ReLU, noBias).layer(1, decoder.Identity, noBias) }},
	{"one neuron wide", decoder.HadamardMLP, 5, func(b *builder) {
		b.layer(1, decoder.Tanh).layer(7, decoder.Tanh).layer(1, decoder.SiLU).layer(1, decoder.Tanh)
	}},
	{"one dimension", decoder.HadamardMLP, 1, func(b *builder) { b.layer(3, decoder.Tanh).layer(1, decoder.Identity) }},
	{"several outputs", decoder.HadamardMLP, 9, func(b *builder) {
		b.layer(20, decoder.ReLU).layer(4, decoder.Tanh)
		b.spec.OutputColumn = 2
	}},
	{"several outputs, layer norm", decoder.HadamardMLP, 9, func(b *builder) {
		b.layer(20, decoder.ReLU).layer(4, decoder.Tanh, b.with("layer_norm"))
		b.spec.OutputColumn = 3
	}},
	{"several outputs, batch norm after", decoder.ConcatMLP, 9, func(b *builder) {
		b.layer(20, decoder.ReLU).layer(4, decoder.Tanh, b.with("batch_norm"), after)
		b.spec.OutputColumn = 1
	}},
	{"batch norm", decoder.HadamardMLP, 12, func(b *builder) {
		b.layer(20, decoder.ReLU, b.with("batch_norm")).layer(17, decoder.GELU, b.with("batch_norm"), noBias).layer(1, decoder.Identity, b.with("batch_norm"))
	}},
	{"batch norm after", decoder.HadamardMLP, 12, func(b *builder) {
		b.layer(20, decoder.ReLU, b.with("batch_norm"), after).layer(17, decoder.SiLU, b.with("batch_norm"), after).layer(1, decoder.Identity)
	}},
	{"layer norm", decoder.HadamardMLP, 12, func(b *builder) {
		b.layer(20, decoder.ReLU, b.with("layer_norm")).layer(17, decoder.GELU, b.with("layer_norm")).layer(1, decoder.Identity)
	}},
	{"layer norm after", decoder.ConcatMLP, 12, func(b *builder) {
		b.layer(20, decoder.ReLU, b.with("layer_norm"), after).layer(17, decoder.Identity, b.with("layer_norm"), after).layer(1, decoder.Identity)
	}},
	{"norm without weights", decoder.HadamardMLP, 12, func(b *builder) {
		plain := func(l *decoder.LayerSpec, _ int) { l.Norm = &decoder.NormSpec{Kind: "layer_norm"} }
		b.layer(20, decoder.Tanh, plain).layer(1, decoder.Identity)
	}},
	{"residual input", decoder.HadamardMLP, 12, func(b *builder) {
		b.layer(12, decoder.SiLU, residualInput).layer(12, decoder.ReLU, residualInput, b.with("batch_norm")).layer(1, decoder.Identity)
	}},
	{"residual input behind batch norm", decoder.HadamardMLP, 12, func(b *builder) {
		b.layer(15, decoder.SiLU, b.with("batch_norm"), after).layer(15, decoder.ReLU, residualInput, b.with("layer_norm")).layer(1, decoder.Identity)
	}},
	{"residual z", decoder.HadamardMLP, 12, func(b *builder) {
		b.layer(12, decoder.ReLU, residualZ).layer(12, decoder.ReLU, residualZ).layer(1, decoder.Identity)
	}},
	{"residual z, batch norm", decoder.HadamardMLP, 12, func(b *builder) {
		b.layer(14, decoder.Tanh).layer(12, decoder.Tanh, residualZ, b.with("batch_norm")).layer(1, decoder.Identity)
	}},
	{"residual z at the logit", decoder.HadamardMLP, 6, func(b *builder) {
		b.layer(14, decoder.Tanh).layer(6, decoder.Identity, residualZ, b.with("batch_norm"), after)
		b.spec.OutputColumn = 4
	}},
	{"residual z, concat", decoder.ConcatMLP, 7, func(b *builder) {
		b.layer(14, decoder.GELU, residualZ).layer(14, decoder.GELU, residualZ).layer(1, decoder.Identity)
	}},
	{"input layer norm", decoder.HadamardMLP, 12, func(b *builder) {
		b.layer(14, decoder.ReLU).layer(1, decoder.Identity)
		b.spec.InputNorm = b.norm("layer_norm", 12)
	}},
	{"input layer norm, concat", decoder.ConcatMLP, 12, func(b *builder) {
		b.layer(14, decoder.ReLU).layer(1, decoder.Identity)
		b.spec.InputNorm = b.norm("layer_norm", 24)
	}},
	{"input batch norm", decoder.HadamardMLP, 12, func(b *builder) {
		b.layer(12, decoder.ReLU, residualZ).layer(1, decoder.Identity)
		b.spec.InputNorm = b.norm("batch_norm", 12)
	}},
	{"input batch norm, residual z", decoder.HadamardMLP, 12, func(b *builder) {
		b.layer(12, decoder.ReLU).layer(12, decoder.ReLU, residualZ).layer(1, decoder.Identity)
		b.spec.InputNorm = b.norm("batch_norm", 12)
	}},
	{"input batch norm, concat", decoder.ConcatMLP, 12, func(b *builder) {
		b.layer(14, decoder.ReLU).layer(1, decoder.Identity)
		b.spec.InputNorm = b.norm("batch_norm", 24)
	}},
	{"everything", decoder.ConcatMLP, 6, func(b *builder) {
		b.layer(12, decoder.GELU, residualZ, b.with("layer_norm")).
			layer(12, decoder.ReLU, residualInput, b.with("batch_norm"), after).
			layer(12, decoder.Tanh, residualZ, b.with("batch_norm")).
			layer(12, decoder.Identity, b.with("layer_norm"), after).
			layer(3, decoder.LeakyReLU, b.with("layer_norm"))
		b.spec.InputNorm = b.norm("layer_norm", 12)
		b.spec.OutputColumn = 1
	}},
	{"affine, hadamard", decoder.HadamardMLP, 12, func(b *builder) {
		b.layer(14, decoder.Identity, b.with("batch_norm")).layer(12, decoder.Identity, residualZ, b.with("batch_norm")).layer(1, decoder.Identity)
		b.spec.InputNorm = b.norm("batch_norm", 12)
	}},
	{"affine, concat", decoder.ConcatMLP, 6, func(b *builder) {
		b.layer(12, decoder.Identity, b.with("batch_norm"), after).layer(12, decoder.Identity, residualZ).layer(2, decoder.Identity)
		b.spec.OutputColumn = 1
	}},
}

func TestNetworkMatchesReference(t *testing.T) {
	for _, test := range networks {
		t.Run(test.name, func(t *testing.T) {
			for seed := range uint64(3) {
				b := newBuilder(seed, test.kind, test.dim)
				test.build(b)
				d, err := decoder.New(b.spec, b.tensors)
				require.NoError(t, err)

				const n = 150 // more than two tiles
				source, rows := b.vector(), b.rows(n)
				bound := d.Bind(nil, source)
				var s decoder.Scratch
				got := make([]float32, n)
				bound.Score(&s, got, rows)

				grad := make([]float32, test.dim)
				for i := range n {
					row := rows[i*test.dim : (i+1)*test.dim]
					requireLogit(t, b.logit(widen(source), widen(row)), got[i], "seed %d row %d", seed, i)
					if i%15 == 0 {
						bound.Gradient(&s, grad, row, nil)
						want := b.gradient(widen(source), widen(row))
						assert.Less(t, gradientError(want, grad), 1e-4, "seed %d row %d: got %v, want %v", seed, i, grad, want)
					}
				}
			}
		})
	}
}

// The gradient of a batch is the weighted sum of single ones, over several tiles too; nil weights
// are 1/n.
func TestGradientOfBatch(t *testing.T) {
	for _, name := range []string{"relu", "everything", "affine, hadamard", "layer norm after"} {
		t.Run(name, func(t *testing.T) {
			b, d := buildNetwork(t, name)
			const n = 130
			bound, rows, dim := d.Bind(nil, b.vector()), b.rows(n), d.Dim()
			var s decoder.Scratch
			weights := make([]float32, n)
			single, got := make([]float32, dim), make([]float32, dim)
			sum, mean := make([]float64, dim), make([]float64, dim)
			for i := range n {
				weights[i] = float32(b.rng.NormFloat64())
				bound.Gradient(&s, single, rows[i*dim:(i+1)*dim], nil)
				for k, g := range single {
					sum[k] += float64(weights[i]) * float64(g)
					mean[k] += float64(g) / n
				}
			}
			bound.Gradient(&s, got, rows, weights)
			assert.Less(t, gradientError(sum, got), 1e-5)
			bound.Gradient(&s, got, rows, nil)
			assert.Less(t, gradientError(mean, got), 1e-5)
			bound.Gradient(&s, got, nil, nil)
			assert.Equal(t, make([]float32, dim), got, "of no rows")
		})
	}
}

// With every activation the identity and every layer norm its weight, the network is affine and its
// gradient is Ones.
func TestOnesIsGradientWithoutActivations(t *testing.T) {
	for _, test := range networks {
		t.Run(test.name, func(t *testing.T) {
			b := newBuilder(7, test.kind, test.dim)
			test.build(b)
			d, err := decoder.New(b.spec, b.tensors)
			require.NoError(t, err)
			source := b.vector()
			ones := make([]float32, test.dim)
			d.Bind(nil, source).Ones(ones)

			open := newBuilder(7, test.kind, test.dim)
			test.build(open)
			open.spec.InputNorm = open.weightOnly(open.spec.InputNorm, open.width)
			for i := range open.spec.Layers {
				l := &open.spec.Layers[i]
				l.Activation, l.Slope = decoder.Identity, nil
				l.Norm = open.weightOnly(l.Norm, open.tensors[l.Weight].Shape[0])
			}
			want := open.gradient(widen(source), widen(open.vector()))
			assert.Less(t, gradientError(want, ones), 1e-5, "got %v, want %v", ones, want)

			affine, err := decoder.New(open.spec, open.tensors)
			require.NoError(t, err)
			bound := affine.Bind(nil, source)
			assert.True(t, bound.Linear())
			row, logit, grad := b.vector(), make([]float32, 1), make([]float32, test.dim)
			bound.Score(nil, logit, row)
			requireLogit(t, open.logit(widen(source), widen(row)), logit[0], "affine twin")
			bound.Gradient(nil, grad, row, nil)
			assert.Equal(t, grad, bindOnes(affine, source))
		})
	}
}

func bindOnes(d decoder.Decoder, source []float32) []float32 {
	ones := make([]float32, d.Dim())
	d.Bind(nil, source).Ones(ones)
	return ones
}

// weightOnly turns a layer norm into the map it is counted as in Ones: a batch norm of mean 0 and
// variance 1.
func (b *builder) weightOnly(n *decoder.NormSpec, width int) *decoder.NormSpec {
	if n == nil || n.Kind == "batch_norm" {
		return n
	}
	return &decoder.NormSpec{
		Kind: "batch_norm", Weight: n.Weight, Bias: n.Bias,
		Mean: b.tensor(0, 0, width), Var: b.tensor(1, 0, width), Eps: new(float64),
	}
}

func buildNetwork(t testing.TB, name string) (*builder, decoder.Decoder) {
	t.Helper()
	for _, test := range networks {
		if test.name == name {
			b := newBuilder(1, test.kind, test.dim)
			test.build(b)
			d, err := decoder.New(b.spec, b.tensors)
			require.NoError(t, err)
			return b, d
		}
	}
	t.Fatal("no network " + name)
	return nil, nil
}

// The gradient of PyTorch's relu and leaky_relu at 0 is that of x < 0.
func TestNeuronAtZeroIsInactive(t *testing.T) {
	for act, want := range map[decoder.Activation]float32{decoder.ReLU: 0, decoder.LeakyReLU: 0.01} {
		d, err := decoder.NewHadamardMLP(2,
			decoder.Layer{Weight: []float32{1, 1, 1, 1}, Activation: act}, decoder.Layer{Weight: []float32{1, 0}})
		require.NoError(t, err)
		var s decoder.Scratch
		grad := make([]float32, 2)
		d.Bind(nil, []float32{1, 1}).Gradient(&s, grad, []float32{3, -3}, nil)
		assert.Equal(t, []float32{want, want}, grad, act)
	}
}

// The neurons that count are those with an activation, in the order of the layers.
func TestActive(t *testing.T) {
	d, err := decoder.NewHadamardMLP(2,
		decoder.Layer{Weight: []float32{1, 0, 0, 1, 1, 1}, Activation: decoder.ReLU},
		decoder.Layer{Weight: []float32{1, -1, 0, 0, 0, -1}, Bias: []float32{0, 1}, Activation: decoder.ReLU},
		decoder.Layer{Weight: []float32{1, 1}})
	require.NoError(t, err)
	network, ok := d.Bind(nil, []float32{1, -1}).(decoder.Neurons)
	require.True(t, ok)
	var s decoder.Scratch
	for _, tt := range []struct {
		row  []float32
		want []bool
	}{
		// z = (2, -1): hidden 2, -1, 1; then 2 - 0 and 1 - 1
		{[]float32{2, 1}, []bool{true, false, true, true, false}},
		// z = (-1, 3): hidden -1, 3, 2; then 0 - 3 and 1 - 2
		{[]float32{-1, -3}, []bool{false, true, true, false, false}},
		{[]float32{0, 0}, []bool{false, false, false, false, true}},
	} {
		assert.Equal(t, tt.want, network.Active(&s, nil, tt.row), "row %v", tt.row)
	}
	linear, err := decoder.NewDot(2)
	require.NoError(t, err)
	_, ok = linear.Bind(nil, []float32{1, 1}).(decoder.Neurons)
	assert.False(t, ok)
}

// A row has the same bits wherever it lies in a batch: results do not depend on how candidates were
// grouped.
func TestScoreDoesNotDependOnBatch(t *testing.T) {
	for _, name := range []string{"relu", "everything", "several outputs", "affine, concat"} {
		t.Run(name, func(t *testing.T) {
			b, d := buildNetwork(t, name)
			const n = 200
			bound, rows, dim := d.Bind(nil, b.vector()), b.rows(n), d.Dim()
			var s decoder.Scratch
			whole, part := make([]float32, n), make([]float32, n)
			bound.Score(&s, whole, rows)
			for start, size := 0, 1; start < n; start, size = start+size, size+3 {
				end := min(start+size, n)
				bound.Score(&s, part[start:end], rows[start*dim:end*dim])
			}
			assert.Equal(t, whole, part)
			bound.Score(&s, nil, nil)
		})
	}
}

func TestBindReusesMemory(t *testing.T) {
	for _, test := range networks {
		t.Run(test.name, func(t *testing.T) {
			b := newBuilder(1, test.kind, test.dim)
			test.build(b)
			d, err := decoder.New(b.spec, b.tensors)
			require.NoError(t, err)
			first, second, rows := b.vector(), b.vector(), b.rows(70)
			want, got := make([]float32, 70), make([]float32, 70)
			var s decoder.Scratch
			d.Bind(nil, second).Score(&s, want, rows)

			bound := d.Bind(nil, first)
			again := d.Bind(bound, second)
			assert.Same(t, bound, again)
			kept := second[0]
			second[0]++ // the source is not retained
			again.Score(&s, got, rows)
			assert.Equal(t, want, got)

			// A bound of another decoder may be given; it is left alone or overwritten, and the
			// result is right.
			second[0] = kept
			_, other := buildNetwork(t, "several outputs")
			d.Bind(other.Bind(nil, make([]float32, other.Dim())), second).Score(&s, got, rows)
			assert.Equal(t, want, got)
		})
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	for _, test := range networks {
		b := newBuilder(1, test.kind, test.dim)
		test.build(b)
		d, err := decoder.New(b.spec, b.tensors)
		require.NoError(t, err)
		source, rows := b.vector(), b.rows(150)
		logits, grad := make([]float32, 150), make([]float32, test.dim)
		var s decoder.Scratch
		bound := d.Bind(nil, source)
		run := func() {
			bound = d.Bind(bound, source)
			bound.Ones(grad)
			bound.Score(&s, logits, rows)
			bound.Gradient(&s, grad, rows[:20*test.dim], nil)
			bound.Gradient(&s, grad, rows, logits)
		}
		run()
		run() // scratch grows when the call after the one that wanted more begins
		assert.Zero(t, testing.AllocsPerRun(10, run), test.name)
	}
}

// A bound is shared by goroutines that have scratch of their own (under -race).
func TestBoundIsSafeForConcurrentUse(t *testing.T) {
	b, d := buildNetwork(t, "everything")
	bound, rows := d.Bind(nil, b.vector()), b.rows(100)
	want := make([]float32, 100)
	bound.Score(new(decoder.Scratch), want, rows)
	done := make(chan []float32)
	for range 4 {
		go func() {
			var s decoder.Scratch
			got, grad := make([]float32, 100), make([]float32, d.Dim())
			bound.Gradient(&s, grad, rows, nil)
			bound.Score(&s, got, rows)
			done <- got
		}()
	}
	for range 4 {
		assert.Equal(t, want, <-done)
	}
}

func TestWrongSizesPanic(t *testing.T) {
	_, d := buildNetwork(t, "relu")
	bound := d.Bind(nil, make([]float32, 12))
	var s decoder.Scratch
	v := make([]float32, 12)
	assert.Panics(t, func() { d.Bind(nil, v[:11]) })
	assert.Panics(t, func() { bound.Score(&s, v, v) })
	assert.Panics(t, func() { bound.Gradient(&s, v[:11], v, nil) })
	assert.Panics(t, func() { bound.Gradient(&s, v, v[:11], nil) })
	assert.Panics(t, func() { bound.Gradient(&s, v, v, v[:2]) })
	assert.Panics(t, func() { bound.(decoder.Separable).GradientZ(&s, v[:11], v, nil) })
}

func TestString(t *testing.T) {
	_, d := buildNetwork(t, "affine, concat")
	assert.Equal(t, "concat_mlp 12-12-12-2", fmt.Sprint(d))
	dot, err := decoder.NewDot(7)
	require.NoError(t, err)
	assert.Equal(t, "dot 7", dot.String())
}
