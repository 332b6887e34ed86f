package flashlight_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/codec"
)

// truth is the exact answer of one source, by float64 PyTorch.
type truth struct {
	Source uint32
	Top    []uint32
	Logit  []float64
}

// loadGraph reads a trained graph and its oracle from the folder that FLASHDB_DATA names.
func loadGraph(t testing.TB, name string) (*graph, []truth) {
	t.Helper()
	data := os.Getenv("FLASHDB_DATA")
	if data == "" {
		t.Skipf("FLASHDB_DATA is not set: skipping the recall on the %s graph", name)
	}
	dir := filepath.Join(data, name)
	text, err := os.ReadFile(filepath.Join(dir, "decoder.json"))
	require.NoError(t, err)
	spec, err := decoder.ParseSpec(text)
	require.NoError(t, err)
	dec, err := weights.Read(filepath.Join(dir, "decoder.safetensors"), &weights.Options{Spec: &spec})
	require.NoError(t, err)
	rows, err := codec.ReadTensors(filepath.Join(dir, "embeddings.npy"))
	require.NoError(t, err)

	packed, err := os.ReadFile(filepath.Join(dir, "oracle.jsonl.zst"))
	require.NoError(t, err)
	unpacker, err := zstd.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	defer unpacker.Close()
	var truths []truth
	lines := bufio.NewScanner(unpacker)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one truth
		require.NoError(t, json.Unmarshal(lines.Bytes(), &one))
		truths = append(truths, one)
	}
	require.NoError(t, lines.Err())
	return &graph{dim: dec.Dim(), rows: rows[""].Data, dec: dec}, truths
}

// recall is the share of the true top that was found: hits that score at least the true k-th score,
// within 1e-5 relative, so that ties are no misses.
func (tr *truth) recall(hits []index.Hit) float64 {
	kth := tr.Logit[len(tr.Logit)-1]
	found := 0
	for _, h := range hits {
		if float64(h.Score) >= kth-1e-5*math.Abs(kth) {
			found++
		}
	}
	return float64(min(found, len(tr.Top))) / float64(len(tr.Top))
}

// requireLogits compares the scores of the hits that are in the true top with PyTorch's.
func (tr *truth) requireLogits(t *testing.T, hits []index.Hit) {
	t.Helper()
	for _, h := range hits {
		if i := slices.Index(tr.Top, h.ID); i >= 0 {
			require.InDelta(t, tr.Logit[i], h.Score, 1e-5+1e-4*math.Abs(tr.Logit[i]), "source %d, id %d", tr.Source, h.ID)
		}
	}
}

// ask answers for one source, which is left out as the oracle leaves it out.
func (tr *truth) ask(t testing.TB, e *flashlight.Executor, g *graph, m *flashlight.Memory, plan flashlight.Plan) ([]index.Hit, flashlight.Report) {
	q := g.query(tr.Source, len(tr.Top), plan)
	q.Excluded = roaring.BitmapOf(tr.Source)
	hits, report, err := e.Run(context.Background(), q, m.NewSearch(), m, nil)
	require.NoError(t, err)
	return hits, report
}

// rounds returns a plan of the table in docs: everything probed, no early stop.
func rounds(n, perRound, anchors int, from flashlight.AnchorsFrom) flashlight.Plan {
	plan := flashlight.PaperPlan()
	plan.Method, plan.Rounds, plan.PerRound, plan.Patience = flashlight.MethodFlashlight, n, perRound, n
	plan.Anchors, plan.AnchorsFrom = anchors, from
	return plan
}

// TestRecallOnTrainedGraphs runs a few sources of trained graphs with everything probed, so that
// only the algorithm can miss rows, and not the index.
func TestRecallOnTrainedGraphs(t *testing.T) {
	for name, sources := range map[string]int{"go-stdlib": 6, "debian": 3} {
		t.Run(name, func(t *testing.T) {
			g, truths := loadGraph(t, name)
			m := g.memory()
			var e flashlight.Executor
			for _, tr := range truths[:sources] {
				for _, plan := range []flashlight.Plan{flashlight.PaperPlan(), rounds(4, 150, 20, flashlight.AnchorsBoth)} {
					hits, report := tr.ask(t, &e, g, m, plan)
					assert.GreaterOrEqual(t, tr.recall(hits), 0.95, "source %d, %v", tr.Source, plan)
					assert.Equal(t, 600, report.RowsScored)
					tr.requireLogits(t, hits)
				}
			}
			hits, _ := truths[0].ask(t, &e, g, m, flashlight.Plan{Method: flashlight.MethodExact})
			assert.Equal(t, 1.0, truths[0].recall(hits))
			truths[0].requireLogits(t, hits)
		})
	}
}

// BenchmarkRecall reports mean, 5th percentile and worst recall@100 over a hundred sources, with
// everything probed. One iteration asks all of them.
func BenchmarkRecall(b *testing.B) {
	const sources = 100
	for _, name := range []string{"go-stdlib", "debian", "ddi"} {
		b.Run(name, func(b *testing.B) {
			g, truths := loadGraph(b, name)
			m := g.memory()
			source := rounds(3, 200, 20, flashlight.AnchorsBoth)
			source.Seed = flashlight.SeedSource
			for _, plan := range []flashlight.Plan{
				flashlight.PaperPlan(),
				rounds(3, 200, 20, flashlight.AnchorsRound),
				rounds(3, 200, 20, flashlight.AnchorsBoth),
				rounds(4, 150, 20, flashlight.AnchorsBoth),
				rounds(6, 100, 20, flashlight.AnchorsBoth),
				source,
			} {
				b.Run(fmt.Sprintf("%dx%d-%s-%d-%s", plan.Rounds, plan.PerRound, plan.Seed, plan.Anchors, plan.AnchorsFrom), func(b *testing.B) {
					var e flashlight.Executor
					var recalls []float64
					for b.Loop() {
						recalls = recalls[:0]
						for _, tr := range truths[:sources] {
							hits, _ := tr.ask(b, &e, g, m, plan)
							recalls = append(recalls, tr.recall(hits))
						}
					}
					slices.SortFunc(recalls, cmp.Compare[float64])
					sum := 0.0
					for _, r := range recalls {
						sum += r
					}
					b.ReportMetric(sum/float64(len(recalls)), "recall")
					b.ReportMetric(recalls[len(recalls)/20], "recall-p5")
					b.ReportMetric(recalls[0], "recall-worst")
				})
			}
		})
	}
}

// TestLearnedSeedOnTrainedGraphs checks that, with every row searched, one round of 500 from the
// learned seed finds at least as much as one from the ones seed. Nothing was learned from the
// sources asked.
func TestLearnedSeedOnTrainedGraphs(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes")
	}
	for name, more := range map[string]float64{"ddi": 0.1, "go-stdlib": -0.002} {
		t.Run(name, func(t *testing.T) {
			g, truths := loadGraph(t, name)
			seeds := flashlight.NewSeeds(g.dim, learn(t, g, unasked(g, truths, 128)))
			m := g.memory()
			var e flashlight.Executor
			recall := map[flashlight.Seed]float64{}
			for _, tr := range truths[:40] {
				for _, seed := range []flashlight.Seed{flashlight.SeedOnes, flashlight.SeedLearned} {
					q := g.query(tr.Source, 100, learnedPlan(500))
					q.Plan.Seed, q.Seeds, q.Excluded = seed, seeds, roaring.BitmapOf(tr.Source)
					hits, _, err := e.Run(context.Background(), q, m.NewSearch(), m, nil)
					require.NoError(t, err)
					recall[seed] += tr.recall(hits) / 40
				}
			}
			t.Log(recall)
			assert.Greater(t, recall[flashlight.SeedLearned], 0.98)
			assert.Greater(t, recall[flashlight.SeedLearned], recall[flashlight.SeedOnes]+more)
		})
	}
}

// TestLearnedSeedOfStrangers checks sources that are unlike those learned from: with random or
// shuffled values, or with noise as strong as the source added. They find about as much as from the
// ones seed, or more.
func TestLearnedSeedOfStrangers(t *testing.T) {
	g, truths := loadGraph(t, "ddi")
	seeds := flashlight.NewSeeds(g.dim, learn(t, g, unasked(g, truths, 128)))
	m := g.memory()
	rng := rand.New(rand.NewPCG(1, 2))
	asked, others := 0, 0
	for name, change := range map[string]func(source []float32){
		"normal": func(source []float32) { copy(source, normal(rng, g.dim, 0.1)) },
		"shuffled": func(source []float32) {
			rng.Shuffle(len(source), func(i, j int) { source[i], source[j] = source[j], source[i] })
		},
		"noisy": func(source []float32) {
			var squares float64
			for _, x := range source {
				squares += float64(x) * float64(x)
			}
			for i, x := range normal(rng, g.dim, math.Sqrt(squares/float64(g.dim))) {
				source[i] += x
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var e flashlight.Executor
			recall := map[flashlight.Seed]float64{}
			for _, tr := range truths[:30] {
				source := slices.Clone(g.row(tr.Source))
				change(source)
				q := &flashlight.Query{Bound: g.dec.Bind(nil, source), Source: source, K: 100, Seeds: seeds}
				q.Plan.Method = flashlight.MethodExact
				truth := exact(t, g, q)
				for _, seed := range []flashlight.Seed{flashlight.SeedOnes, flashlight.SeedLearned} {
					q.Plan = learnedPlan(500)
					q.Plan.Seed = seed
					hits, report, err := e.Run(context.Background(), q, m.NewSearch(), m, nil)
					require.NoError(t, err)
					if seed == flashlight.SeedLearned {
						asked++
					}
					if report.Plan.Seed != seed {
						require.Equal(t, flashlight.SeedOnes, report.Plan.Seed, "none of those stored is like it")
						others++
					}
					for _, h := range hits {
						if h.Score >= truth[99].Score {
							recall[seed] += 1.0 / 100 / 30
						}
					}
				}
			}
			t.Log(recall, asked, others)
			assert.GreaterOrEqual(t, recall[flashlight.SeedLearned], recall[flashlight.SeedOnes]-0.01)
		})
	}
	assert.Less(t, others, asked, "some began with the learned seed")
}

// unasked returns n sources, evenly spread, that are not in the oracle.
func unasked(g *graph, truths []truth, n int) []uint32 {
	asked := map[uint32]bool{}
	for _, tr := range truths {
		asked[tr.Source] = true
	}
	var sources []uint32
	for i := range n {
		source := uint32(i * g.n() / n)
		for asked[source] {
			source++
		}
		sources = append(sources, source)
	}
	return sources
}
