package main

import (
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
	decoder   decoder.Decoder
	k         int
	rows      []float32
	memory    *flashlight.Memory
	asked     []int
	others    []int             // those not asked
	truths    []map[uint32]bool // the k best of each source asked
	exactTime time.Duration     // of one source on one core
	e         flashlight.Executor
}

// A budgetRow is the recall of one way to find rows, for each of budgets.
type budgetRow struct {
	Name  string    `json:"name"`
	Mean  []float64 `json:"mean"`
	Worst []float64 `json:"worst"`
}

// add appends the recalls of the sources at the next budget.
func (r *budgetRow) add(recalls []float64) {
	r.Mean, r.Worst = append(r.Mean, mean(recalls)), append(r.Worst, slices.Min(recalls))
}

// at returns the mean recall at one of budgets.
func (r *budgetRow) at(rows int) float64 { return r.Mean[slices.Index(budgets, rows)] }

// measureBudgets asks some sources for as many rows as each budget allows, found in every way.
func measureBudgets(ctx context.Context, d *dataset, f budgetFlags, log io.Writer) (table, error) {
	if d.info.CandidatesFrom > 0 {
		return table{}, fmt.Errorf("graph %q: its sources are no candidates: want a graph of one kind of node", d.name)
	}
	var rows []float32
	err := d.rows(ctx, 0, d.info.Nodes, func(_ int64, values []float32) error {
		rows = append(rows, values...)
		return nil
	})
	if err != nil {
		return table{}, err
	}
	fmt.Fprintf(log, "%s: exact answers of %d sources\n", d.name, f.sources)
	b, err := newBudgetBench(ctx, d.decoder, rows, f.k, f.sources, f.seed)
	if err != nil {
		return table{}, err
	}
	fmt.Fprintf(log, "%s: learning from %d sources\n", d.name, min(f.stored, len(b.others)))
	title := fmt.Sprintf("%s, %v: recall@%d by rows scored, mean / worst of %d sources; exact scan %v on one core",
		d.name, d.decoder, f.k, len(b.asked), b.exactTime.Round(time.Microsecond))
	fmt.Fprintln(log, title)
	found, err := b.measure(ctx, f.stored)
	if err != nil {
		return table{}, err
	}
	t := budgetTable(found)
	t.title = title
	return t, nil
}

// budgetTable shows mean and worst recalls.
func budgetTable(rows []budgetRow) table {
	t := table{header: []string{"how rows are found"}}
	for _, n := range budgets {
		t.header = append(t.header, fmt.Sprint(n))
	}
	for _, row := range rows {
		cells := []string{row.Name}
		for i := range budgets {
			cells = append(cells, meanWorst(row.Mean[i], row.Worst[i]))
		}
		t.add(cells...)
	}
	return t
}

// newBudgetBench draws sources among the rows and answers them exactly.
func newBudgetBench(ctx context.Context, d decoder.Decoder, rows []float32, k, sources int, seed uint64) (*budgetBench, error) {
	b := &budgetBench{decoder: d, k: k, rows: rows, memory: flashlight.NewMemory(d.Dim(), nil, rows)}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(rows) / d.Dim())
	b.asked = order[:min(sources, len(order))]
	b.others = order[len(b.asked):]
	return b, b.answer(ctx)
}

// measure finds rows in every way. Seeds are learned from so many sources that are not asked.
func (b *budgetBench) measure(ctx context.Context, stored int) ([]budgetRow, error) {
	seeds, err := b.learn(ctx, b.others[:min(stored, len(b.others))])
	if err != nil {
		return nil, err
	}
	rows, err := b.plans(ctx, seeds)
	if err != nil {
		return nil, err
	}
	staged, err := b.twoStage()
	return append(rows, staged...), err
}

// query asks for a source, which is left out.
func (b *budgetBench) query(source int, plan flashlight.Plan) *flashlight.Query {
	row := b.row(source)
	return &flashlight.Query{
		Bound: b.decoder.Bind(nil, row), Source: row, K: b.k, Plan: plan, Excluded: roaring.BitmapOf(uint32(source)),
	}
}

func (b *budgetBench) row(i int) []float32 {
	dim := b.decoder.Dim()
	return b.rows[i*dim : (i+1)*dim]
}

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
	plan := flashlight.LearnPlan(len(b.rows) / b.decoder.Dim())
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
	return flashlight.NewSeeds(b.decoder.Dim(), prototypes), nil
}

// budgetAnchors is the number of anchors of each plan.
const budgetAnchors = 20

// budgetRounds are the numbers of rounds that a budget is split into.
var budgetRounds = []int{1, 2, 4}

// planRow names the recalls of a plan.
func planRow(seed flashlight.Seed, rounds int) string {
	if rounds == 1 {
		return fmt.Sprintf("seed %s, 1 round", seed)
	}
	return fmt.Sprintf("seed %s, %d rounds", seed, rounds)
}

// plans measures the recall of Flashlight's plans.
func (b *budgetBench) plans(ctx context.Context, seeds *flashlight.Seeds) (rows []budgetRow, err error) {
	given := []flashlight.Seed{flashlight.SeedOnes}
	if b.decoder.Kind() == decoder.MoL {
		given = append(given, flashlight.SeedComponents)
	}
	if seeds.Len() > 0 {
		given = append(given, flashlight.SeedLearned)
	}
	for _, seed := range given {
		for _, rounds := range budgetRounds {
			plan := flashlight.Plan{
				Method: flashlight.MethodFlashlight, Seed: seed, AnchorsFrom: flashlight.AnchorsBoth, Anchors: budgetAnchors,
				Rounds: rounds, Patience: rounds, Probes: index.Probes{Share: 1},
			}
			row := budgetRow{Name: planRow(seed, rounds)}
			for _, n := range budgets {
				plan.PerRound = n / rounds
				var recalls []float64
				for i, source := range b.asked {
					q := b.query(source, plan)
					q.Seeds = seeds
					hits, _, err := b.e.Run(ctx, q, b.memory.NewSearch(), b.memory, nil)
					if err != nil {
						return nil, err
					}
					found := 0
					for _, h := range hits {
						if b.truths[i][h.ID] {
							found++
						}
					}
					recalls = append(recalls, float64(found)/float64(len(b.truths[i])))
				}
				row.add(recalls)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func meanAndWorst(recalls []float64) string {
	return meanWorst(mean(recalls), slices.Min(recalls))
}

// meanWorst is how tables write a mean and a worst recall.
func meanWorst(mean, worst float64) string { return fmt.Sprintf("%.3f / %.2f", mean, worst) }
