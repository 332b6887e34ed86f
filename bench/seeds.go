package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/index/ivf"
	"github.com/flashdb/flashdb/internal/vfs"
)

// seedShapes are the rounds that seeds are compared by.
var seedShapes = []struct {
	rounds, perRound int
	tail             float64
}{{1, 200, 0}, {1, 300, 0}, {1, 500, 0}, {1, 1000, 0}, {2, 200, 0}, {3, 200, 0}, {2, 300, .03}, {2, 500, .03}}

// seedFlags are what the seeds command takes.
type seedFlags struct {
	data, graph string
	k           int
	from        int
	sources     int
	stored      string
	variants    bool
	probes      float64
	seed        uint64
	markdown    bool
}

func seedsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var f seedFlags
	fs := newFlags("seeds", stderr)
	fs.StringVar(&f.data, "data", os.Getenv("FLASHDB_DATA"), "`folder` that holds one folder per graph (default $FLASHDB_DATA; "+demoGraph+" needs none)")
	fs.StringVar(&f.graph, "graph", demoGraph, "`name` of the graph")
	fs.IntVar(&f.k, "k", 100, "nodes asked for")
	fs.IntVar(&f.sources, "sources", 60, "sources of the oracle to ask; none of them is learned from")
	fs.IntVar(&f.from, "from", 0, "first source of the oracle to ask")
	fs.BoolVar(&f.variants, "variants", false, "ask with other ways to make a seed of what was learned, too")
	fs.StringVar(&f.stored, "stored", "512", "`numbers` of sources to learn from, with commas between them")
	fs.Float64Var(&f.probes, "probes", 0, "visit this `share` of the rows of an index; 0: compare every row's exact inner product, without an index")
	fs.Uint64Var(&f.seed, "seed", 1, "of the sources to learn from")
	fs.BoolVar(&f.markdown, "markdown", false, "print the table as Markdown")
	if err := parse(fs, args); err != nil {
		return err
	}
	if f.k < 1 || f.sources < 1 || f.from < 0 || !(f.probes >= 0 && f.probes <= 1) {
		return errors.New("-k and -sources want a positive number, -from 0 or more, -probes a number from 0 to 1")
	}
	d, err := openDataset(f.data, f.graph)
	if err != nil {
		return err
	}
	t, err := measureSeeds(ctx, d, f, stderr)
	if err != nil {
		return err
	}
	return t.write(stdout, f.markdown)
}

// measureSeeds learns from sources and asks others, with every seed and shape.
func measureSeeds(ctx context.Context, d *dataset, f seedFlags, log io.Writer) (table, error) {
	t := table{title: "recall of " + d.name + ", mean / worst", header: []string{"seed"}}
	for _, s := range seedShapes {
		name := fmt.Sprintf("%d x %d", s.rounds, s.perRound)
		if s.tail > 0 {
			name += fmt.Sprintf(", tail %g%%: rows", 100*s.tail)
		}
		t.header = append(t.header, name)
	}
	var counts []int
	for text := range strings.SplitSeq(f.stored, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return t, fmt.Errorf("-stored: %q is no number of sources", text)
		}
		counts = append(counts, n)
	}
	b, err := newSeedBench(ctx, d, f)
	if err != nil {
		return t, err
	}
	defer b.close()
	fmt.Fprintf(log, "%s: learning from %d sources\n", d.name, slices.Max(counts))
	prototypes, err := b.learn(ctx, slices.Max(counts))
	if err != nil {
		return t, err
	}
	fmt.Fprintf(log, "%s: asking %d others\n", d.name, len(b.questions))
	if err := b.addRow(ctx, &t, "ones", func(q *flashlight.Query) { q.Plan.Seed = flashlight.SeedOnes }); err != nil {
		return t, err
	}
	for _, n := range counts {
		seeds := flashlight.NewSeeds(d.info.Dim, prototypes[:min(n, len(prototypes))])
		for _, seed := range []flashlight.Seed{flashlight.SeedLearned, flashlight.SeedLearnedOnes} {
			err := b.addRow(ctx, &t, fmt.Sprintf("%s from %d", seed, seeds.Len()), func(q *flashlight.Query) {
				q.Plan.Seed, q.Seeds = seed, seeds
			})
			if err != nil {
				return t, err
			}
		}
	}
	if f.variants {
		return t, b.addVariants(ctx, &t, prototypes)
	}
	return t, nil
}

// A seedBench is a graph in memory with its questions.
type seedBench struct {
	d         *dataset
	k         int
	sources   [][]float32 // rows that may be asked about or learned from
	first     int64       // id of the first candidate, as a row
	rows      flashlight.Rows
	searcher  func() flashlight.Searcher
	close     func()
	probes    index.Probes
	questions []oracleLine
	unasked   []int // sources that the oracle does not hold, shuffled
	e         flashlight.Executor
}

func newSeedBench(ctx context.Context, d *dataset, f seedFlags) (*seedBench, error) {
	lines, err := d.oracle(f.k, 0)
	if err != nil {
		return nil, err
	}
	b := &seedBench{d: d, k: f.k, first: d.info.CandidatesFrom, probes: index.Probes{Share: 1}, close: func() {}}
	candidates := memoryRows{dim: d.info.Dim}
	err = d.rows(ctx, 0, d.info.Nodes, func(row int64, values []float32) error {
		if row < b.first || b.first == 0 {
			b.sources = append(b.sources, slices.Clone(values))
		}
		if row >= b.first {
			candidates.values = append(candidates.values, values...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	held := map[int64]bool{}
	for _, l := range lines {
		held[l.Source] = true
	}
	for _, i := range rand.New(rand.NewPCG(f.seed, 0)).Perm(len(b.sources)) {
		if !held[int64(i)] {
			b.unasked = append(b.unasked, i)
		}
	}
	if f.from >= len(lines) {
		return nil, fmt.Errorf("-from %d: the oracle has %d sources", f.from, len(lines))
	}
	b.questions = lines[f.from:min(len(lines), f.from+f.sources)]
	if f.probes == 0 {
		m := flashlight.NewMemory(d.info.Dim, nil, candidates.values)
		b.rows = m
		b.searcher = func() flashlight.Searcher { return m.NewSearch() }
		return b, nil
	}
	b.probes.Share = f.probes
	return b, b.buildIndex(ctx, &candidates)
}

// buildIndex searches an index of the candidates from now on.
func (b *seedBench) buildIndex(ctx context.Context, candidates *memoryRows) error {
	dir, remove, err := scratchDir("")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "index.ivf")
	if err := ivf.Build(ctx, vfs.OS(), path, candidates, ivf.BuildOptions{Dim: b.d.info.Dim}); err != nil {
		remove()
		return err
	}
	ix, err := ivf.Open(vfs.OS(), path)
	if err != nil {
		remove()
		return err
	}
	b.close = func() {
		_ = ix.Release()
		remove()
	}
	b.rows = ix
	b.searcher = func() flashlight.Searcher { return ix.NewSearch() }
	return nil
}

// query asks for a source, which is left out where it is a candidate.
func (b *seedBench) query(source int, plan flashlight.Plan) *flashlight.Query {
	row := b.sources[source]
	q := &flashlight.Query{Bound: b.d.decoder.Bind(nil, row), Source: row, K: b.k, Plan: plan}
	if b.first == 0 {
		q.Excluded = roaring.BitmapOf(uint32(source))
	}
	return q
}

// learn returns the prototypes of n sources.
func (b *seedBench) learn(ctx context.Context, n int) ([]flashlight.Prototype, error) {
	plan := flashlight.LearnPlan(int(b.d.candidates()))
	var prototypes []flashlight.Prototype
	for _, source := range b.unasked[:min(n, len(b.unasked))] {
		p, err := b.e.Learn(ctx, uint32(source), b.query(source, plan), b.searcher(), b.rows)
		if err != nil {
			return nil, err
		}
		prototypes = append(prototypes, p)
	}
	return prototypes, nil
}

// addRow adds the recall of one seed, which set sets, in every shape.
func (b *seedBench) addRow(ctx context.Context, t *table, name string, set func(q *flashlight.Query)) error {
	cells := []string{name}
	for _, s := range seedShapes {
		plan := flashlight.Plan{
			Method: flashlight.MethodFlashlight, AnchorsFrom: flashlight.AnchorsBoth, Anchors: 20,
			Rounds: s.rounds, PerRound: s.perRound, Patience: s.rounds, Probes: b.probes, Tail: s.tail,
		}
		if s.tail > 0 {
			plan.AnchorsFrom = flashlight.AnchorsRoundOnes
		}
		scored := 0
		var recalls []float64
		for i := range b.questions {
			l := &b.questions[i]
			q := b.query(int(l.Source), plan)
			set(q)
			hits, report, err := b.e.Run(ctx, q, b.searcher(), b.rows, nil)
			if err != nil {
				return err
			}
			recalls = append(recalls, b.recall(l, hits))
			scored += report.RowsScored
		}
		cell := meanAndWorst(recalls)
		if s.tail > 0 {
			cell += fmt.Sprintf(": %d", scored/len(recalls))
		}
		cells = append(cells, cell)
	}
	t.add(cells...)
	return nil
}

// recall is the share of the oracle's best k among the hits.
func (b *seedBench) recall(l *oracleLine, hits []index.Hit) float64 {
	keys := make([]string, b.k)
	for i, row := range l.Top[:b.k] {
		keys[i] = key(row)
	}
	named := make([]flashdb.Hit, len(hits))
	for i, h := range hits {
		named[i] = flashdb.Hit{Key: key(b.first + int64(h.ID)), Score: h.Score}
	}
	return newTruth(keys, l.Logit[:b.k]).recall(named)
}
