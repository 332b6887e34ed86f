package calibrate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// strips are rows of one value, in lists of neighbours. The score is the value times that of the
// source.
type strips struct {
	*flashlight.Memory
	values   []float32
	size     int  // of a list
	gathered *int // rows
}

func newStrips(values []float32, size int) strips {
	return strips{flashlight.NewMemory(1, nil, values), values, size, new(int)}
}

func (s strips) Centroids() []float32 {
	var centroids []float32
	for list := range slices.Chunk(s.values, s.size) {
		sum := float32(0)
		for _, v := range list {
			sum += v / float32(len(list))
		}
		centroids = append(centroids, sum)
	}
	return centroids
}

func (s strips) Gather(dst []float32, c []index.Candidate) error {
	*s.gathered += len(c)
	return s.Memory.Gather(dst, c)
}

func (s strips) Grouped() bool { return true }

func (s strips) List(l int, dst []index.Candidate) []index.Candidate {
	for at := l * s.size; at < min(len(s.values), (l+1)*s.size); at++ {
		dst = append(dst, index.Candidate{ID: uint32(at), Ref: uint32(at)})
	}
	return dst
}

// sampling returns a worker that can sample values, and a source whose scores are the values.
func sampling(t *testing.T, values []float32, size int) (*worker, *Source) {
	t.Helper()
	d, err := decoder.NewDot(1)
	require.NoError(t, err)
	s := newStrips(values, size)
	w := newWorker(Engine{Rows: s, Lists: s}, d, 1, time.Now)
	w.sampler = newSampler(w.engine)
	return w, &Source{Vector: []float32{1}}
}

// TestSampleIsUnbiased checks that the number of rows above any threshold is, on average, the
// number that the sampled rows represent, also if the best rows are in lists whose centroids score
// low.
func TestSampleIsUnbiased(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes: nothing for the race detector")
	}
	const rows, size, best, samples = 30_000, 20, 50, 1500
	rng := rand.New(rand.NewPCG(1, 1))
	for _, tt := range []struct {
		name  string
		value func(row int) float32
	}{
		{"lists are alike", func(int) float32 { return float32(rng.NormFloat64()) }},
		{"lists differ", func(row int) float32 { return float32(row/size)/100 + float32(rng.NormFloat64()) }},
		{"the best are alone", func(row int) float32 {
			if row%600 == 0 {
				return 5 + float32(rng.Float64())
			}
			return float32(row%7) - 20 + float32(rng.NormFloat64())
		}},
		{"the best are in a few lists of which nothing is known", func(row int) float32 {
			if row/size%600 == 7 && row%size < 10 {
				return 30
			}
			if row/size%600 == 7 {
				return -60 + float32(rng.NormFloat64())
			}
			return float32(rng.NormFloat64())
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			values := make([]float32, rows)
			for i := range values {
				values[i] = tt.value(i)
			}
			w, s := sampling(t, values, size)
			sorted := slices.Sorted(slices.Values(values))
			least := sorted[rows-best]
			sum, squares := 0.0, 0.0
			for number := range samples {
				truth := truth{size: best}
				require.NoError(t, w.sample(context.Background(), s, number, &truth))
				standing := 0.0
				for _, b := range truth.best {
					if b.score >= least {
						standing += b.weight
					}
				}
				sum += standing
				squares += standing * standing
			}
			mean := sum / samples
			errorOfMean := math.Sqrt(max(0, squares/samples-mean*mean) / samples)
			assert.InDelta(t, best, mean, 4*errorOfMean+1e-9)
		})
	}
}

// TestRank checks that every list is ranked once. If there are many, those of the best runs come
// first, by their own centroids, and then the others by the means of their runs.
func TestRank(t *testing.T) {
	for _, lists := range []int{1, 100, manyLists, manyLists + 1, 3*manyLists + 7} {
		values := make([]float32, lists)
		for i := range values {
			values[i] = float32(-(i / runLists)) + float32((i*7)%runLists)/100 // runs descend, lists within them do not
		}
		w, s := sampling(t, values, 1)
		bound := w.decoder.Bind(nil, s.Vector)
		w.sampler.rank(bound, w.engine.Lists.Centroids())
		require.Len(t, w.sampler.order, lists)
		seen := make([]bool, lists)
		for at, ranked := range w.sampler.order {
			l := int(uint32(ranked))
			require.False(t, seen[l], "list %d is ranked twice", l)
			seen[l] = true
			if lists <= manyLists || at < manyLists {
				if at > 0 {
					require.LessOrEqual(t, values[l], values[int(uint32(w.sampler.order[at-1]))], "the %d-th of %d", at, lists)
				}
				continue
			}
			require.Equal(t, at, l, "the others as their runs lie")
		}
	}
	w, _ := sampling(t, make([]float32, 10*manyLists), 1)
	assert.Less(t, w.sampler.ranked(), 2*manyLists)
}

// TestSampleCost checks that the number of rows scored grows with the logarithm of all rows.
func TestSampleCost(t *testing.T) {
	for _, rows := range []int{500, 10_000, 100_000, 1_000_000} {
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			const size = 50
			w, s := sampling(t, make([]float32, rows), size)
			truth := truth{size: 10}
			require.NoError(t, w.sample(context.Background(), s, 1, &truth))
			scored := *w.engine.Rows.(strips).gathered
			assert.LessOrEqual(t, float64(scored), certainRows*(1+math.Log(max(1, float64(rows)/certainRows)))+2*size)
			assert.GreaterOrEqual(t, scored, min(rows, certainRows))
		})
	}
}

func TestTruth(t *testing.T) {
	truth := truth{size: 3}
	unseen := func(k int) float64 { rows, _ := truth.unseen(k); return rows }
	assert.Equal(t, 1.0, truth.recall(nil, 3), "there is nothing to find")
	truth.put(known{1, 10, 1, true})
	truth.put(known{2, 8, 5, true})
	truth.put(known{3, 9, 4, true})
	assert.Equal(t, 7.0, unseen(3))
	assert.Equal(t, 3.0, unseen(2), "of the best two one stands for four")
	assert.Equal(t, 3, truth.sampled(3))
	truth.add(index.Hit{ID: 3, Score: 9})
	assert.Equal(t, 4.0, unseen(3), "what a plan has found stands for itself")
	truth.add(index.Hit{ID: 4, Score: 7})
	assert.Len(t, truth.best, 3, "not among the best")
	truth.add(index.Hit{ID: 5, Score: 9})
	assert.Equal(t, []uint32{1, 3, 5}, []uint32{truth.best[0].id, truth.best[1].id, truth.best[2].id}, "ties by id")
	assert.Zero(t, unseen(3))
	assert.Equal(t, 2, truth.sampled(3))
	assert.InDelta(t, 2./3, truth.recall([]float32{10, 9, 8}, 3), 1e-9)
	assert.InDelta(t, 1., truth.recall([]float32{10, 9, 9 - 1e-5}, 3), 1e-9, "a tie, but for rounding")
	assert.InDelta(t, .5, truth.recall([]float32{9, 7}, 2), 1e-9, "of two, and one is missing")
}

// A pool holds how likely each of the k best rows of a source is to be found by any plan, and to be
// sampled.
type pool struct {
	name    string
	chance  func(rng *rand.Rand) float64                 // of a row to be sampled
	missed  func(rng *rand.Rand, chance float64) float64 // by all plans
	blind   float64                                      // share of sources of which a list of blindRows is missed by all
	covered float64                                      // at least
	slack   float64                                      // at most, mean distance from the truth
}

const blindRows = 25

// TestBoundCoversWhatThePoolMisses draws sources some of whose best rows no plan finds, samples
// their rows, and counts how often the bound of a plan lies below its true recall.
func TestBoundCoversWhatThePoolMisses(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes: nothing for the race detector")
	}
	const k, sources, samples = 100, 200, 150
	ranked := func(rng *rand.Rand) float64 { // as on debian and genes: nearly all in lists that are always sampled
		if rng.Float64() < .85 {
			return 1
		}
		return math.Exp(-4 * rng.Float64())
	}
	sixteenth := func(*rand.Rand) float64 { return 1. / 16 }
	evenly := func(share float64) func(*rand.Rand, float64) float64 {
		return func(*rand.Rand, float64) float64 { return share }
	}
	for _, tt := range []pool{
		{"nothing", ranked, evenly(0), 0, .95, .003},
		{"one in 200", ranked, evenly(.005), 0, .95, .006},
		{"one in 50, and what is rarely sampled more", ranked, func(_ *rand.Rand, chance float64) float64 { return .01 / max(.02, chance) }, 0, .9, .03},
		{"nothing, but for a list of a twentieth of the sources", ranked, evenly(0), .05, .92, .03},
		{"nothing, by a sixteenth of the rows", sixteenth, evenly(0), 0, .95, .005},
		{"one in 200, by a sixteenth", sixteenth, evenly(.005), 0, .95, .01},
		// Ten lists are missed, and half of the time no row of them is sampled.
		{"a list of a twentieth of the sources, by a sixteenth: too few", sixteenth, evenly(0), .05, .35, .06},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 3))
			covered, slack := 0, 0.0
			for range samples {
				r := &run{Input: Input{Sources: make([]Source, sources)}, truths: make([]truth, sources), asked: sources}
				c := &candidate{k: k, outcomes: make([]outcome, sources)}
				real := 0.0
				for i := range sources {
					r.Sources[i].Drawn = Draw(i % int(draws))
					found := 0
					r.truths[i], c.outcomes[i].scores, found = tt.source(rng, k)
					real += float64(found) / k / sources
				}
				bound := r.point(c).Bound
				if bound <= real {
					covered++
				}
				slack += (real - bound) / samples
			}
			assert.GreaterOrEqual(t, float64(covered)/samples, tt.covered, "share of bounds that hold")
			assert.LessOrEqual(t, slack, tt.slack, "bounds should be of use")
		})
	}
}

// source draws a source: its truth, the scores of a plan's hits, and how many of these are among
// the k best.
func (p *pool) source(rng *rand.Rand, k int) (t truth, hits []float32, found int) {
	t.size = k
	blind := 0
	if rng.Float64() < p.blind {
		blind = blindRows
	}
	list := p.chance(rng) // of the list that is missed
	listed := rng.Float64() < list
	for rank := 0; len(t.best) < k; rank++ {
		score := float32(3*k - rank)
		chance, missed := p.chance(rng), false
		sampled := rng.Float64() < chance
		switch {
		case rank >= k: // not among the best: the plans have found it, and it takes the place of one they missed
		case rank%4 == 0 && rank/4 < blind:
			chance, sampled, missed = list, listed, true
		default:
			missed = rng.Float64() < p.missed(rng, chance)
		}
		switch {
		case missed && !sampled:
			continue
		case missed:
			t.best = append(t.best, known{uint32(rank), score, 1 / chance, true})
			continue
		}
		t.best = append(t.best, known{uint32(rank), score, 1, sampled})
		if rng.Float64() < .995 { // the plan finds most of what all find
			hits = append(hits, score)
			if rank < k {
				found++
			}
		}
	}
	return t, hits, found
}

// TestRecallsDoNotDependOnWorkers checks that plans have the same outcomes, and sources the same
// truths, with any number of workers.
func TestRecallsDoNotDependOnWorkers(t *testing.T) {
	const rows, sources = 5000, 9
	rng := rand.New(rand.NewPCG(4, 4))
	values := make([]float32, rows)
	for i := range values {
		values[i] = float32(rng.NormFloat64())
	}
	d, err := decoder.NewDot(1)
	require.NoError(t, err)
	measured := func(workers int) (recalls [][]float64, truths []truth) {
		s := newStrips(values, 20)
		in := Input{Decoder: d, Rows: rows, Workers: workers, Time: time.Hour, Ks: []int{10, 50}}
		in.Open = func() Engine {
			own := s
			own.gathered = new(int) // workers count for themselves
			return Engine{Search: s.NewSearch(), Rows: own, Lists: own}
		}
		for i := range sources {
			in.Sources = append(in.Sources, Source{Vector: []float32{float32(1+i) - 4.5}, Excluded: []uint32{uint32(i)}})
		}
		r, err := newRun(in)
		require.NoError(t, err)
		all := r.untried(func(k int) (plans []flashlight.Plan) {
			for _, n := range []int{k / 2, k} {
				p := flashlight.DefaultPlan(k, rows)
				p.Rounds, p.PerRound, p.MaxScored = 1, n, n
				plans = append(plans, p)
			}
			return plans
		})
		require.NoError(t, r.measure(context.Background(), all, 5, time.Hour))
		require.NoError(t, r.measure(context.Background(), all, sources, time.Hour))
		for _, c := range all {
			recalls = append(recalls, r.recalls(c))
		}
		return recalls, r.truths
	}
	recalls, truths := measured(1)
	again, same := measured(3)
	assert.Equal(t, recalls, again)
	assert.Equal(t, truths, same)
	assert.InDelta(t, .5, recalls[0][0], 1e-9, "half of the rows are half of what is to be found")
}
