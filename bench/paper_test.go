package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/codec"
	"github.com/flashdb/flashdb/train"
)

// writePaperGraph writes a small graph of communities, in a folder of data. With sources, those are
// nodes of another kind, and the first ones.
func writePaperGraph(t *testing.T, data string, nodes, sources int) {
	t.Helper()
	const community = 20
	dir := filepath.Join(data, "small")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	rng := rand.New(rand.NewPCG(1, 1))
	var edges [2]strings.Builder
	from := nodes
	if sources > 0 {
		from = sources
	}
	for node := range from {
		for i := range 8 {
			to := node/community*community + rng.IntN(community)
			if sources > 0 {
				to = sources + node*community%(nodes-sources) + rng.IntN(community)
			}
			if to != node {
				fmt.Fprintf(&edges[i/7], "%d\t%d\n", node, to)
			}
		}
	}
	for name, text := range map[string]string{
		"info.json": fmt.Sprintf(`{"nodes": %d, "dim": 8, "candidates_from": %d}`, nodes, sources),
		"train.tsv": edges[0].String(), "test.tsv": edges[1].String(),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
}

// writeGiven writes a model into a graph's folder: embeddings by community, and an MLP.
func writeGiven(t *testing.T, data string, nodes int) {
	t.Helper()
	const dim, community = 8, 20
	rng := rand.New(rand.NewPCG(2, 1))
	normal := func(n int, spread float64) []float32 {
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(spread * rng.NormFloat64())
		}
		return values
	}
	var rows, centre []float32
	for node := range nodes {
		if node%community == 0 {
			centre = normal(dim, 1)
		}
		for i, x := range normal(dim, .3) {
			rows = append(rows, centre[i]+x)
		}
	}
	mlp := map[string]codec.Tensor{
		"a.weight": {Shape: []int{16, dim}, Data: normal(16*dim, 1)}, "a.bias": {Shape: []int{16}, Data: normal(16, 1)},
		"b.weight": {Shape: []int{1, 16}, Data: normal(16, 1)}, "b.bias": {Shape: []int{1}, Data: normal(1, 1)},
	}
	dir := filepath.Join(data, "small")
	write := func(name string, tensors map[string]codec.Tensor) {
		var text bytes.Buffer
		require.NoError(t, codec.WriteSafetensors(&text, tensors))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o644))
	}
	write("decoder.safetensors", mlp)
	write("embeddings.npy", map[string]codec.Tensor{"embeddings": {Shape: []int{nodes, dim}, Data: rows}}) // recognised by its content
	spec := `{"kind": "hadamard_mlp", "dim": 8, "layers": [{"weight": "a.weight", "bias": "a.bias", "activation": "relu"},
		{"weight": "b.weight", "bias": "b.bias", "activation": "identity"}], "output": "none"}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "decoder.json"), []byte(spec), 0o644))
}

// writeTriples writes a knowledge graph: each relation leads from all nodes of a group to all of
// the next one. One triple in nine is held out.
func writeTriples(t *testing.T, data string) {
	t.Helper()
	const groups, size = 6, 9
	dir := filepath.Join(data, "kin")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	parts := map[string]*strings.Builder{"train.txt": {}, "valid.txt": {}, "test.txt": {}}
	for i := range groups * size * size {
		group, from, to := i/size/size, i/size%size, i%size
		name := "train.txt"
		if (from+to)%size == 0 {
			name = []string{"valid.txt", "test.txt"}[from%2]
		}
		fmt.Fprintf(parts[name], "n%d-%d\tto%d\tn%d-%d\n", group, from, group, (group+1)%groups, to)
	}
	for name, text := range parts {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text.String()), 0o644))
	}
}

// smallPaper are settings of the smallest run.
func smallPaper() paperSettings {
	s := newPaperSettings(true, []string{"small"}, []train.EncoderKind{train.GCN}, 2)
	s.Training["small"] = paperTraining{Dim: 16, Hidden: []int{16}, Epochs: 30, Batch: 256, Rate: .02, Walks: 1}
	s.Links, s.Sources, s.Ablated, s.Timed, s.Learned = 60, 20, 20, 10, 20
	s.Given, s.Triples = []string{"small"}, []string{"kin"}
	s.Beyond, s.Probe = paperBeyond{Graph: "small", Models: []string{molModel, "3x16"}}, time.Millisecond
	s.Fit = paperFit{Dims: []int{8}, Samples: []int{100, 400}, Hidden: 8, Epochs: 3, Repeats: 2}
	return s
}

// smallRun opens a run over the records of dir.
func smallRun(t *testing.T, data, dir string, log *strings.Builder) *paperRun {
	t.Helper()
	records, err := openPaperRecords(filepath.Join(dir, "records.jsonl"), log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	r := &paperRun{settings: smallPaper(), data: data, dir: dir, records: records, log: log, opened: map[string]*paperGraph{}}
	t.Cleanup(func() { require.NoError(t, r.release()) })
	return r
}

// TestPaper runs every part in small. Flashlight retrieves all candidates of so small a graph, so
// the last two columns of table 2 must be equal. What is finished is not measured again, so that a
// second run needs neither the graph nor a model, and a third only what a kill cut off.
func TestPaper(t *testing.T) {
	data, dir := t.TempDir(), t.TempDir()
	writePaperGraph(t, data, 1000, 0)
	writeGiven(t, data, 1000)
	writeTriples(t, data)
	var log strings.Builder
	page, err := smallRun(t, data, dir, &log).measure(t.Context(), 0)
	require.NoError(t, err, log.String())
	for seed := 1; seed <= 2; seed++ {
		key := modelKey("small", train.GCN, decoder.HadamardMLP, seed)
		sameMetrics(t, page.trained[key], page.indexed[key])
	}
	key := modelKey("small", given, decoder.HadamardMLP, 1)
	require.NotEmpty(t, page.trained[key].Metrics)
	for metric, want := range page.trained[key].Metrics {
		assert.InDelta(t, want, page.indexed[key].Metrics[metric], .01, metric)
	}
	assert.NotContains(t, page.trained, modelKey("small", given, decoder.Bilinear, 1), "its folder has none")
	assert.Equal(t, paperServing{"small", given}, page.largest())
	kin := page.triples["kin"]
	assert.Equal(t, []int{54, 6, 432, 30, 24}, []int{kin.Nodes, kin.Relations, kin.Train, kin.Valid, kin.Test})
	for _, kind := range relationDecoders {
		for seed := 1; seed <= 2; seed++ {
			got := page.related[relationKey("kin", kind, seed)]
			assert.GreaterOrEqual(t, got.MRR, got.Hits[1]) // equal where all are first
			assert.GreaterOrEqual(t, got.Hits[10], got.Hits[3])
			assert.Positive(t, got.Hits[10])
		}
	}
	require.Len(t, page.beyonds, 2)
	mol := page.beyonds[0]
	require.NotNil(t, mol.row(halfPairs))
	require.NotNil(t, mol.row(planRow(flashlight.SeedComponents, 4)))
	for _, row := range mol.Rows {
		assert.InDelta(t, 1, row.at(1000), 1e-9, "%s: every row is scored", row.Name)
		assert.Less(t, row.at(200), 1.0, row.Name)
	}
	assert.Nil(t, page.beyonds[1].row(halfPairs))
	assert.Equal(t, 2*(16*16+16+2*16)+16+1, page.beyonds[1].Weights, "two hidden layers with norms, and the logit")
	assert.Greater(t, page.hours["small"].total(), 0.0)
	require.NoError(t, page.write(filepath.Join(dir, "paper.md")))
	first := checkPaperPage(t, dir)

	require.NoError(t, os.Rename(data, data+"-away"))
	page, err = smallRun(t, data, dir, &log).measure(t.Context(), 0)
	require.NoError(t, err)
	require.NoError(t, page.write(filepath.Join(dir, "paper.md")))
	assert.Equal(t, first, checkPaperPage(t, dir))

	path := filepath.Join(dir, "records.jsonl")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text[:len(text)-5], 0o644))
	require.NoError(t, os.Rename(data+"-away", data))
	log.Reset()
	_, err = smallRun(t, data, dir, &log).measure(t.Context(), 0)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(log.String(), " s\n"), "one part is measured again: %s", log.String())
	again, err := openPaperRecords(path, &log)
	require.NoError(t, err, "what the kill left is gone")
	require.NoError(t, again.Close())
}

// TestRecallByRound compares the rounds of one long plan with shorter plans. A round has at least
// as many rows as are asked for: a plan with fewer would retrieve more.
func TestRecallByRound(t *testing.T) {
	data := t.TempDir()
	writePaperGraph(t, data, 1000, 0)
	writeGiven(t, data, 1000)
	var log strings.Builder
	r := smallRun(t, data, t.TempDir(), &log)
	s, err := r.served(t.Context(), paperServing{"small", given}, 20)
	require.NoError(t, err)
	for _, seed := range ablationSeeds {
		recalls, err := s.recallByRound(t.Context(), seed, 4, 120)
		require.NoError(t, err)
		for round, got := range recalls {
			plan := asPrinted(round+1, 120)
			plan.Seed = seed
			want, err := s.recallOf(t.Context(), plan, 20)
			require.NoError(t, err)
			assert.InDelta(t, want, got, 1e-9, "%s, %d rounds", seed, round+1)
		}
		assert.Less(t, recalls[0], recalls[3])
	}
}

func TestHitsAt(t *testing.T) {
	links, negatives := []float32{9, 5, 4, 1}, []float32{0, 2, 4, 5}
	for k, want := range map[int]float64{1: .25, 2: .5, 3: .75, 4: 1, 5: 1} {
		assert.InDelta(t, want, hitsAt(links, negatives, k), 1e-9, "k = %d", k)
	}
}

// sameMetrics compares what the decoder and what the index give.
func sameMetrics(t *testing.T, own trainedRecord, indexed flashlightRecord) {
	t.Helper()
	require.NotEmpty(t, own.Metrics)
	for metric, want := range own.Metrics {
		delta := 1e-9
		if metric == mrrName { // half of a link's negatives are retrieved
			delta = .01
		}
		assert.InDelta(t, want, indexed.Metrics[metric], delta, metric)
	}
	assert.Greater(t, own.Metrics[mrrName], .02, "a guess is near .008")
}

// TestPaperTwoKinds has sources that are no candidates, so that ids are not numbers of nodes.
func TestPaperTwoKinds(t *testing.T) {
	data := t.TempDir()
	writePaperGraph(t, data, 1300, 300)
	var log strings.Builder
	r := smallRun(t, data, t.TempDir(), &log)
	own, err := r.trained(t.Context(), "small", train.GCN, decoder.HadamardMLP, 1)
	require.NoError(t, err)
	indexed, err := r.flashlighted(t.Context(), "small", train.GCN, 1)
	require.NoError(t, err)
	sameMetrics(t, own, indexed)
	speed, err := r.speed(t.Context(), paperServing{"small", train.GCN})
	require.NoError(t, err)
	assert.Equal(t, 1000, speed.Nodes)
	c, err := r.complexity(t.Context(), paperServing{"small", train.GCN})
	require.NoError(t, err)
	rows, _, recall := c.line(oursLine)
	assert.Equal(t, []float64{62, 125, 250, 500, 1000}, rows)
	assert.Greater(t, recall[4], .9)
}

// checkPaperPage returns the page, whose plots must be there and whose prose must fit.
func checkPaperPage(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "paper.md"))
	require.NoError(t, err)
	for _, link := range strings.Split(string(text), "](")[1:] {
		target := link[:strings.IndexByte(link, ')')]
		if !strings.HasPrefix(target, "img/") {
			continue // another page, or a section of this one: internal/lint follows them
		}
		_, err := os.Stat(filepath.Join(dir, target))
		require.NoError(t, err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "!") {
			assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSpace(line)), pageWidth, line)
		}
	}
	assert.NotContains(t, string(text), "NaN")
	return string(text)
}

// TestRecordsOfOtherGraphs: a run goes on with the records of one with other graphs and seeds, but
// not where a graph is trained differently, also one that an earlier run named.
func TestRecordsOfOtherGraphs(t *testing.T) {
	r, err := openPaperRecords(filepath.Join(t.TempDir(), "data.jsonl"), io.Discard)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	of := func(seeds int, graphs ...string) paperSettings {
		return newPaperSettings(true, graphs, paperEncoders, seeds)
	}
	require.NoError(t, r.belongs(of(1, "go-stdlib")))
	require.NoError(t, r.belongs(of(3, "ogbl-ddi")))
	require.NoError(t, r.belongs(of(1, "go-stdlib", "ogbl-ddi")))
	for _, graph := range []string{"go-stdlib", "ogbl-ddi"} {
		other := of(1, graph)
		training := other.Training[graph]
		training.Epochs++
		other.Training[graph] = training
		require.ErrorContains(t, r.belongs(other), "other settings", graph)
	}
	other := of(1, "go-stdlib")
	other.Sources++
	require.ErrorContains(t, r.belongs(other), "other settings")
}

func TestPaperMakesItsFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docs", "new", "paper-data.jsonl")
	r, err := openPaperRecords(path, io.Discard)
	require.NoError(t, err)
	require.NoError(t, r.file.Close())
	assert.FileExists(t, path)
}

func TestPaperRefuses(t *testing.T) {
	dir := t.TempDir()
	var out, log strings.Builder
	at := []string{"-data", "", "-dir", dir, "-out", filepath.Join(dir, "paper.md")}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-graphs", "absent"}, `no folder "../cmd/flashdb/demodata"`},
		{[]string{"-encoders", "gcn,gat"}, `-encoders: "gat"`},
		{[]string{"-seeds", "-1"}, "-seeds is -1"},
		{[]string{"-beyond", "mol,5"}, `-beyond: "5": use mol, or layers x width such as 5x256`},
		{[]string{"-long", "5m"}, "-long is 5m0s: want a time, and a folder ogbl-ddi"},
	} {
		err := run(t.Context(), append(append([]string{"paper"}, at...), tt.args...), &out, &log)
		require.ErrorContains(t, err, tt.want)
	}
	path := filepath.Join(dir, "paper-data.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"key":"settings","value":{"quick":false}}`+"\n"), 0o644))
	err := run(t.Context(), append([]string{"paper", "-quick"}, at...), &out, &log)
	require.ErrorContains(t, err, "paper-data.jsonl is of a run with other settings")
	require.NoError(t, os.WriteFile(path, []byte("nonsense\n"), 0o644))
	err = run(t.Context(), append([]string{"paper", "-quick"}, at...), &out, &log)
	require.ErrorContains(t, err, "line 1")
}

func TestAddCurve(t *testing.T) {
	line := make([]float64, len(curveKs))
	best := []index.Hit{{ID: 7}, {ID: 3}, {ID: 9}, {ID: 1}}
	addCurve(line, []uint32{3, 5, 7, 8, 9, 2}, best, 2)
	addCurve(line, []uint32{7, 3, 9, 1}, best, 2)
	assert.Equal(t, []float64{1, 2, 5, 10}, []float64{float64(curveKs[0]), float64(curveKs[1]), float64(curveKs[2]), float64(curveKs[3])})
	assert.Equal(t, []float64{.25, .375, .875, .875}, line[:4])
}

// TestMRRAmongItsOwn: the search for a test link returns no rows but the link's target and its
// negatives. These are the last candidates of the source here, which a search of all does not
// bring, and the target is the best of them.
func TestMRRAmongItsOwn(t *testing.T) {
	const nodes, dim, own = 3000, 8, 21
	rng := rand.New(rand.NewPCG(1, 1))
	m := &paperModel{Dim: dim}
	for range nodes * dim {
		m.Embeddings = append(m.Embeddings, float32(rng.NormFloat64()))
	}
	var err error
	m.decoder, err = decoder.NewDot(dim)
	require.NoError(t, err)
	s, err := servePaper(t.Context(), m)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.close()) }()

	p := &paperGraph{}
	for source := range uint32(3) {
		hits, _, err := flashlight.Exact(t.Context(), s.query(int(source), nodes, flashlight.Plan{}), s.ix, 1, nil)
		require.NoError(t, err)
		var last []uint32
		for _, h := range hits[len(hits)-own:] {
			last = append(last, h.ID)
		}
		p.split.Test = append(p.split.Test, train.Edge{Source: source, Target: last[0]})
		p.lists = append(p.lists, last[1:])
	}
	mrr, err := s.mrr(t.Context(), p)
	require.NoError(t, err)
	assert.InDelta(t, 1, mrr, 1e-9)
}

func TestRetrievedRank(t *testing.T) {
	scores := map[uint32]float32{1: 5, 2: 3, 3: 3, 4: 1}
	assert.InDelta(t, 1+1+.5, retrievedRank(scores, 2, []uint32{1, 3, 4, 8}, 0), 1e-9, "one is better and one ties")
	assert.InDelta(t, 1+2+.5, retrievedRank(scores, 9, []uint32{11, 12, 18}, 10), 1e-9, "it is among those not retrieved")
	assert.InDelta(t, 1, retrievedRank(scores, 1, []uint32{2, 8, 9}, 0), 1e-9)
}

func TestBestSpeed(t *testing.T) {
	r := speedRecord{Points: []speedPoint{
		{Line: "a", Recall: .95, Rate: 900},
		{Line: "a", Recall: 1, Rate: 100},
		{Line: "a", Recall: .9995, Rate: 300},
		{Line: "a", Recall: .97, Rate: 200},
		{Line: "b", Recall: .5, Rate: 1000},
		{Line: "b", Recall: .7, Rate: 10},
	}}
	best, reached := r.best("a", fullRecall)
	assert.True(t, reached)
	assert.InDelta(t, 300, best.Rate, 0)
	best, reached = r.best("b", fullRecall)
	assert.False(t, reached)
	assert.InDelta(t, .7, best.Recall, 0)
	var rates []float64
	for _, p := range r.frontier("a") {
		rates = append(rates, p.Rate)
	}
	assert.Equal(t, []float64{900, 300, 100}, rates)
}
