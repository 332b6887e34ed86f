package calibrate_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/calibrate"
)

const dim = 8

func randomFloats(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

func mlp(t *testing.T, rng *rand.Rand) decoder.Decoder {
	t.Helper()
	const hidden = 16
	d, err := decoder.New(decoder.Spec{Kind: decoder.HadamardMLP, Dim: dim, Layers: []decoder.LayerSpec{
		{Weight: "w0", Activation: "relu"}, {Weight: "w1", Activation: "identity"},
	}}, map[string]decoder.Tensor{
		"w0": {Shape: []int{hidden, dim}, Data: randomFloats(rng, hidden*dim)},
		"w1": {Shape: []int{1, hidden}, Data: randomFloats(rng, hidden)},
	})
	require.NoError(t, err)
	return d
}

// A world has its own clock. Only reading rows takes time.
type world struct {
	*flashlight.Memory
	rows int
	mu   sync.Mutex // guards now: several workers look at rows at a time
	now  time.Time
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// listRows is how many neighbouring rows make a list.
const listRows = 8

// Centroids implements calibrate.Lists.
func (w *world) Centroids() []float32 {
	centroids := make([]float32, w.rows/listRows*dim)
	_ = w.Memory.Rows(context.Background(), func(_ []uint32, rows []float32) error {
		for i, x := range rows {
			centroids[i/(listRows*dim)*dim+i%dim] += x / listRows
		}
		return nil
	})
	return centroids
}

// Grouped implements calibrate.Lists.
func (w *world) Grouped() bool { return false }

// List implements calibrate.Lists.
func (w *world) List(l int, dst []index.Candidate) []index.Candidate {
	for at := uint32(l) * listRows; at < uint32(l+1)*listRows; at++ {
		dst = append(dst, index.Candidate{ID: at, Ref: at})
	}
	return dst
}

// Gather takes a tenth of a millisecond for each row.
func (w *world) Gather(dst []float32, c []index.Candidate) error {
	w.pass(time.Duration(len(c)) * 100 * time.Microsecond)
	return w.Memory.Gather(dst, c)
}

// Rows takes a second.
func (w *world) Rows(ctx context.Context, fn func(ids []uint32, rows []float32) error) error {
	w.pass(time.Second)
	return w.Memory.Rows(ctx, fn)
}

// narrow is a search of the first rows only, as many as the share of its probes. So recall depends
// on the probes. Every search takes a fiftieth of a second.
type narrow struct {
	*flashlight.MemorySearch
	*world
}

func (n narrow) Search(ctx context.Context, q [][]float32, k int, p index.Probes, f index.Filter, dst [][]index.Candidate) error {
	n.pass(time.Duration(p.Share * float64(20*time.Millisecond)))
	if err := n.MemorySearch.Search(ctx, q, n.rows, p, f, dst); err != nil {
		return err
	}
	for i := range dst {
		kept := dst[i][:0]
		for _, c := range dst[i] {
			if float64(c.ID) < p.Share*float64(n.rows) && len(kept) < k {
				kept = append(kept, c)
			}
		}
		dst[i] = kept
	}
	return nil
}

func input(t *testing.T, d decoder.Decoder, rng *rand.Rand) calibrate.Input {
	t.Helper()
	const rows = 1200
	w := &world{Memory: flashlight.NewMemory(dim, nil, randomFloats(rng, rows*dim)), rows: rows}
	var sources []calibrate.Source
	for i := range 30 {
		sources = append(sources, calibrate.Source{Vector: randomFloats(rng, dim), Excluded: []uint32{uint32(i)}})
	}
	return calibrate.Input{
		Decoder: d,
		Sources: sources,
		Rows:    rows,
		Ks:      []int{5, 20},
		Open: func() calibrate.Engine {
			return calibrate.Engine{Search: narrow{w.NewSearch(), w}, Rows: w, Lists: w}
		},
		Workers: 1,
		Time:    40 * time.Second,
		Clock:   w.clock,
	}
}

// A panic of Progress reaches the caller, and no worker is left waiting.
func TestProgressPanics(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	in := input(t, mlp(t, rng), rng)
	in.Workers, in.Clock = 4, nil
	in.Progress = func(time.Duration, time.Duration) {
		for began := time.Now(); time.Since(began) < 200*time.Millisecond; runtime.Gosched() { // the others come to wait
		}
		panic("mine")
	}
	over := make(chan any)
	go func() {
		defer func() { over <- recover() }()
		_, _ = calibrate.Run(context.Background(), in)
	}()
	select {
	case p := <-over:
		assert.Equal(t, "mine", p)
	case <-time.After(2 * time.Minute):
		require.Fail(t, "the workers wait for each other")
	}
}

func TestRunFindsWhatItsOwnPlansReach(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	in := input(t, mlp(t, rng), rng)
	var last time.Duration
	in.Progress = func(done, total time.Duration) {
		assert.GreaterOrEqual(t, done, last)
		assert.LessOrEqual(t, done, total)
		last = done
	}
	in.Sources = in.Sources[:14]
	res, err := calibrate.Run(context.Background(), in)
	require.NoError(t, err)
	assert.Positive(t, last)
	assert.Equal(t, 14, res.Sources)
	assert.Equal(t, 1200, res.Rows)
	assert.Positive(t, res.ExactSeconds)
	require.Len(t, res.Frontiers, 2)
	for i, f := range res.Frontiers {
		assert.Equal(t, in.Ks[i], f.K)
		require.NotEmpty(t, f.Points)
		for j, p := range f.Points {
			require.NoError(t, p.Plan.Validate())
			assert.LessOrEqual(t, p.Bound, p.Mean)
			assert.LessOrEqual(t, p.Worst, p.P5)
			assert.Less(t, p.Seconds, res.ExactSeconds)
			if j > 0 {
				assert.Greater(t, p.Bound, f.Points[j-1].Bound)
				assert.GreaterOrEqual(t, p.Seconds, f.Points[j-1].Seconds)
			}
			assert.InDelta(t, p.Mean, exactRecall(t, in, f.K, p.Plan, res.Seeds), .01, "the pool knows nearly all of the best rows")
		}
	}
}

// exactRecall returns the mean recall of a plan against exact scans.
func exactRecall(t *testing.T, in calibrate.Input, k int, p flashlight.Plan, seeds *flashlight.Seeds) (mean float64) {
	t.Helper()
	e := in.Open()
	var executor flashlight.Executor
	for _, s := range in.Sources {
		query := func() *flashlight.Query {
			return &flashlight.Query{
				Bound: in.Decoder.Bind(nil, s.Vector), Source: s.Vector, K: k, Plan: p, Seeds: seeds,
				Excluded: roaring.BitmapOf(s.Excluded...),
			}
		}
		exact, _, err := flashlight.Exact(context.Background(), query(), e.Rows, 1, nil)
		require.NoError(t, err)
		e.Search.Reset()
		hits, _, err := executor.Run(context.Background(), query(), e.Search, e.Rows, nil)
		require.NoError(t, err)
		for _, h := range hits {
			if h.Score >= exact[k-1].Score {
				mean += 1 / float64(k*len(in.Sources))
			}
		}
	}
	return mean
}

func TestRunIsDeterministicByItsClock(t *testing.T) {
	var first calibrate.Calibration
	for i := range 2 {
		rng := rand.New(rand.NewPCG(2, 2))
		in := input(t, mlp(t, rng), rng)
		in.Sources = in.Sources[:13]
		res, err := calibrate.Run(context.Background(), in)
		require.NoError(t, err)
		require.NotEmpty(t, res.Frontiers[0].Points)
		require.NotEmpty(t, res.Frontiers[1].Points)
		if i == 0 {
			first = res.Calibration
		}
		assert.Equal(t, first, res.Calibration)
	}
}

func TestRunKeepsToItsTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, tt := range []struct {
		name string
		box  time.Duration
		want func(sources int) bool
	}{
		{"none at all: one source", 0, func(n int) bool { return n == 1 }},
		{"a little: not all", 6 * time.Second, func(n int) bool { return n > 6 && n < 20 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, mlp(t, rng), rng)
			in.Time = tt.box
			in.Sources = in.Sources[:20]
			res, err := calibrate.Run(context.Background(), in)
			require.NoError(t, err)
			assert.True(t, tt.want(res.Sources), "%d sources", res.Sources)
		})
	}
}

func TestLinearDecodersNeedOneRound(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	dot, err := decoder.NewDot(dim)
	require.NoError(t, err)
	in := input(t, dot, rng)
	res, err := calibrate.Run(context.Background(), in)
	require.NoError(t, err)
	for _, f := range res.Frontiers {
		require.NotEmpty(t, f.Points)
		for _, p := range f.Points {
			assert.Equal(t, 1, p.Plan.Rounds)
		}
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	in := input(t, mlp(t, rng), rng)
	ctx, cancel := context.WithCancel(context.Background())
	in.Progress = func(time.Duration, time.Duration) { cancel() }
	_, err := calibrate.Run(ctx, in)
	require.ErrorIs(t, err, context.Canceled)
	in.Sources = nil
	_, err = calibrate.Run(context.Background(), in)
	require.EqualError(t, err, "calibrate: no sources")
}

// TestRunLearnsSeeds checks that training sources become seeds, and that plans with them are
// measured as queries run them.
func TestRunLearnsSeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes")
	}
	rng := rand.New(rand.NewPCG(7, 7))
	in := input(t, mlp(t, rng), rng)
	for i := range 80 {
		in.Training = append(in.Training, calibrate.Source{ID: uint32(500 + i), Vector: randomFloats(rng, dim)})
	}
	in.Time = 10 * time.Minute
	res, err := calibrate.Run(context.Background(), in)
	require.NoError(t, err)
	assert.Equal(t, 80, res.Seeds.Len())
	in.Time = 40 * time.Second
	res, err = calibrate.Run(context.Background(), in)
	require.NoError(t, err)
	assert.Positive(t, res.Seeds.Len())
	assert.Less(t, res.Seeds.Len(), 80, "they take their share of the time and no more")
	dot, err := decoder.NewDot(dim)
	require.NoError(t, err)
	in.Decoder = dot
	res, err = calibrate.Run(context.Background(), in)
	require.NoError(t, err)
	assert.Zero(t, res.Seeds.Len(), "a linear decoder needs none")
}

// TestCompareKnowsWhatEitherFinds checks that a new index is measured also against rows that the
// old one never found.
func TestCompareKnowsWhatEitherFinds(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	in := input(t, mlp(t, rng), rng)
	in.Sources = in.Sources[:10]
	res, err := calibrate.Run(context.Background(), in)
	require.NoError(t, err)
	all := aimedPlan(1)
	before, after, err := res.Compare(context.Background(),
		calibrate.Served{Engine: in.Open(), Plan: aimedPlan(.2)}, calibrate.Served{Engine: in.Open(), Plan: all}, 20)
	require.NoError(t, err)
	require.Len(t, before, 10)
	assert.Less(t, calibrate.Mean(before)+.3, calibrate.Mean(after), "a fifth of the rows hold a fifth of the best")
	assert.True(t, calibrate.Worse(after, before, .01))
	again, same, err := res.Compare(context.Background(), calibrate.Served{Engine: in.Open(), Plan: all}, calibrate.Served{Engine: in.Open(), Plan: all}, 20)
	require.NoError(t, err)
	assert.Equal(t, again, same)
}

// aimedPlan returns a plan of four large rounds in a share of the rows.
func aimedPlan(share float64) flashlight.Plan {
	p := flashlight.DefaultPlan(20, 1200)
	p.Rounds, p.PerRound, p.Patience, p.Probes = 4, 100, 4, index.Probes{Share: share}
	return p
}

// TestMixturesBeginWithTheirComponents has a gate that takes the largest of four logits, each with
// best rows of its own. One query vector for each finds them in one round, and no other seed does.
func TestMixturesBeginWithTheirComponents(t *testing.T) {
	const pairs = 4
	sharp := make([]float32, pairs*pairs)
	for i := range pairs {
		sharp[i*pairs+i] = 50
	}
	mixture, err := decoder.New(decoder.Spec{Kind: decoder.MoL, Dim: dim, Mixture: &decoder.MixtureSpec{
		Source:    decoder.SideSpec{Components: 2},
		Candidate: decoder.SideSpec{Components: 2},
		Gate:      decoder.GateSpec{Combine: decoder.CombineSum, Logits: []decoder.LayerSpec{{Weight: "gate"}}},
	}}, map[string]decoder.Tensor{"gate": {Shape: []int{pairs, pairs}, Data: sharp}})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(6, 6))
	res, err := calibrate.Run(context.Background(), input(t, mixture, rng))
	require.NoError(t, err)
	for _, f := range res.Frontiers {
		first := f.Points[0]
		assert.Equal(t, flashlight.SeedComponents, first.Plan.Seed)
		assert.Equal(t, 1, first.Plan.Rounds)
		assert.InDelta(t, 1, first.Mean, 1e-9)
	}
}
