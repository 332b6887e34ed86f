package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// budgets are the numbers of rows scored by which ways to find them are compared.
var budgets = []int{200, 300, 600, 1000, 2000}

// budgetFlags are what the budgets command takes.
type budgetFlags struct {
	data, graph string
	k           int
	sources     int
	stored      int
	seed        uint64
	markdown    bool
}

func budgetsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var f budgetFlags
	fs := newFlags("budgets", stderr)
	fs.StringVar(&f.data, "data", os.Getenv("FLASHDB_DATA"), "`folder` that holds a folder for each decoder, as peers/train_decoder.py writes them")
	fs.StringVar(&f.graph, "graph", demoGraph, "`name` of the folder; it needs no oracle")
	fs.IntVar(&f.k, "k", 100, "nodes asked for")
	fs.IntVar(&f.sources, "sources", 60, "sources to ask")
	fs.IntVar(&f.stored, "stored", 384, "other sources to learn seeds from; 0: none")
	fs.Uint64Var(&f.seed, "seed", 1, "of the sources")
	fs.BoolVar(&f.markdown, "markdown", false, "print the table as Markdown")
	if err := parse(fs, args); err != nil {
		return err
	}
	if f.k < 1 || f.sources < 1 || f.stored < 0 {
		return errors.New("-k and -sources want a positive number, -stored 0 or more")
	}
	d, err := openDataset(f.data, f.graph)
	if err != nil {
		return err
	}
	t, err := measureBudgets(ctx, d, f, stderr)
	if err != nil {
		return err
	}
	return t.write(stdout, f.markdown)
}

// A budgetBench is a decoder with its rows in memory, and the exact answers of some sources.
type budgetBench struct {
	d         *dataset
	k         int
	rows      []float32
	memory    *flashlight.Memory
	asked     []int
	truths    []map[uint32]bool // the k best of each source asked
	exactTime time.Duration     // of one source on one core
	e         flashlight.Executor
}

// measureBudgets asks some sources for as many rows as each budget allows, found in every way.
func measureBudgets(ctx context.Context, d *dataset, f budgetFlags, log io.Writer) (table, error) {
	b := &budgetBench{d: d, k: f.k}
	err := d.rows(ctx, 0, d.info.Nodes, func(_ int64, values []float32) error {
		b.rows = append(b.rows, values...)
		return nil
	})
	if err != nil {
		return table{}, err
	}
	if d.info.CandidatesFrom > 0 {
		return table{}, fmt.Errorf("graph %q: its sources are no candidates: want a graph of one kind of node", d.name)
	}
	b.memory = flashlight.NewMemory(d.info.Dim, nil, b.rows)
	order := rand.New(rand.NewPCG(f.seed, 0)).Perm(int(d.info.Nodes))
	b.asked = order[:min(f.sources, len(order))]
	fmt.Fprintf(log, "%s: exact answers of %d sources\n", d.name, len(b.asked))
	if err := b.answer(ctx); err != nil {
		return table{}, err
	}
	others := order[len(b.asked):]
	fmt.Fprintf(log, "%s: learning from %d sources\n", d.name, min(f.stored, len(others)))
	seeds, err := b.learn(ctx, others[:min(f.stored, len(others))])
	if err != nil {
		return table{}, err
	}
	t := table{
		title:  fmt.Sprintf("%s, %v: recall@%d by rows scored, mean / worst of %d sources; exact scan %v on one core", d.name, d.decoder, f.k, len(b.asked), b.exactTime.Round(time.Microsecond)),
		header: []string{"how rows are found"},
	}
	for _, n := range budgets {
		t.header = append(t.header, fmt.Sprint(n))
	}
	fmt.Fprintln(log, t.title)
	if err := b.addPlans(ctx, &t, seeds); err != nil {
		return table{}, err
	}
	return t, b.addTwoStage(&t)
}

// query asks for a source, which is left out.
func (b *budgetBench) query(source int, plan flashlight.Plan) *flashlight.Query {
	row := b.row(source)
	return &flashlight.Query{
		Bound: b.d.decoder.Bind(nil, row), Source: row, K: b.k, Plan: plan, Excluded: roaring.BitmapOf(uint32(source)),
	}
}

func (b *budgetBench) row(i int) []float32 { return b.rows[i*b.d.info.Dim : (i+1)*b.d.info.Dim] }

// answer scans exactly for the sources asked, one worker at a time.
func (b *budgetBench) answer(ctx context.Context) error {
	var times []time.Duration
	for _, source := range b.asked {
		began := time.Now()
		hits, _, err := flashlight.Exact(ctx, b.query(source, flashlight.Plan{}), b.memory, 1, nil)
		if err != nil {
			return err
		}
		times = append(times, time.Since(began))
		best := map[uint32]bool{}
		for _, h := range hits {
			best[h.ID] = true
		}
		b.truths = append(b.truths, best)
	}
	slices.Sort(times)
	b.exactTime = times[len(times)/2]
	return nil
}

// learn returns the seeds that searches for some sources teach, or nil.
func (b *budgetBench) learn(ctx context.Context, sources []int) (*flashlight.Seeds, error) {
	plan := flashlight.LearnPlan(int(b.d.info.Nodes))
	plan.Probes = index.Probes{Share: 1}
	var prototypes []flashlight.Prototype
	for _, source := range sources {
		p, err := b.e.Learn(ctx, uint32(source), b.query(source, plan), b.memory.NewSearch(), b.memory)
		if errors.Is(err, flashlight.ErrNotSeparable) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		prototypes = append(prototypes, p)
	}
	return flashlight.NewSeeds(b.d.info.Dim, prototypes), nil
}

// addPlans adds the recall of Flashlight's plans.
func (b *budgetBench) addPlans(ctx context.Context, t *table, seeds *flashlight.Seeds) error {
	given := []flashlight.Seed{flashlight.SeedOnes}
	if b.d.decoder.Kind() == decoder.MoL {
		given = append(given, flashlight.SeedComponents)
	}
	if seeds.Len() > 0 {
		given = append(given, flashlight.SeedLearned)
	}
	for _, seed := range given {
		for _, rounds := range []int{1, 2, 4} {
			plan := flashlight.Plan{
				Method: flashlight.MethodFlashlight, Seed: seed, AnchorsFrom: flashlight.AnchorsBoth, Anchors: 20,
				Rounds: rounds, Patience: rounds, Probes: index.Probes{Share: 1},
			}
			cells := []string{fmt.Sprintf("seed %s, %d rounds", seed, rounds)}
			for _, n := range budgets {
				plan.PerRound = n / rounds
				var recalls []float64
				for i, source := range b.asked {
					q := b.query(source, plan)
					q.Seeds = seeds
					hits, _, err := b.e.Run(ctx, q, b.memory.NewSearch(), b.memory, nil)
					if err != nil {
						return err
					}
					found := 0
					for _, h := range hits {
						if b.truths[i][h.ID] {
							found++
						}
					}
					recalls = append(recalls, float64(found)/float64(len(b.truths[i])))
				}
				cells = append(cells, meanAndWorst(recalls))
			}
			t.add(cells...)
		}
	}
	return nil
}

func meanAndWorst(recalls []float64) string {
	mean := 0.0
	for _, r := range recalls {
		mean += r / float64(len(recalls))
	}
	return fmt.Sprintf("%.3f / %.2f", mean, slices.MinFunc(recalls, cmp.Compare[float64]))
}
