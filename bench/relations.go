package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/flashdb/flashdb"
)

// relationFlags are what the relations command takes.
type relationFlags struct {
	dir, collection, edges string
	recall                 float64
	sources, draws         int
}

// relationsCommand measures what a calibration of a decoder with relations can tell of one relation
// from few sources. It asks many sources of each relation for the recall of each plan. Then it
// draws sources as a calibration does, again and again: with the plan that is chosen for the
// recall, and with one relation that is served by a cheaper plan.
func relationsCommand(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	var f relationFlags
	fs := newFlags("relations", stderr)
	fs.StringVar(&f.dir, "dir", "", "`directory` of a database whose decoder has relations and is calibrated")
	fs.StringVar(&f.collection, "collection", candidateCollection, "its `collection`")
	fs.StringVar(&f.edges, "edges", "", "`file` of its triples: source, relation and target, separated by tabs")
	fs.Float64Var(&f.recall, "recall", .98, "recall asked for")
	fs.IntVar(&f.sources, "sources", 160, "sources of each relation and direction, half of them with such a link")
	fs.IntVar(&f.draws, "draws", 1000, "calibrations that are simulated for each cell")
	if err := parse(fs, args); err != nil {
		return err
	}
	if f.dir == "" || f.edges == "" || f.sources < 2 || f.draws < 1 {
		return errors.New("-dir and -edges are needed, -sources wants 2 or more, -draws 1 or more")
	}
	db, err := flashdb.Open(f.dir, &flashdb.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	b := &relationBench{rng: rand.New(rand.NewPCG(1, 7)), nodes: map[askedEnd][]string{}}
	if b.c, err = db.Collection(f.collection); err != nil {
		return err
	}
	if err := b.readEdges(f.edges); err != nil {
		return err
	}
	if err := b.choose(ctx, f.recall); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%d relations, %d plans: asking %d sources\n", len(b.names), len(b.plans), len(b.ends)*f.sources)
	if err := b.ask(ctx, f.sources); err != nil {
		return err
	}
	t := b.simulate(f.recall, f.draws)
	return t.write(stdout, true)
}

// askedEnd is a relation in one direction.
type askedEnd struct {
	relation string
	reverse  bool
}

// relationBench is a calibrated decoder with relations, and the recalls of its plans.
type relationBench struct {
	c       *flashdb.Collection
	names   []string
	ends    []askedEnd
	nodes   map[askedEnd][]string       // the source of each link
	all     []string                    // nodes
	plans   []flashdb.PlanPoint         // the one that is chosen, and cheaper ones
	recalls []map[askedEnd][2][]float64 // by plan: of any nodes, and of those with such a link
	rng     *rand.Rand
}

// readEdges reads the triples.
func (b *relationBench) readEdges(path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		parts := strings.Split(lines.Text(), "\t")
		if len(parts) != 3 {
			return errors.Join(fmt.Errorf("%s: line %d has %d columns: want source, relation and target", path, n, len(parts)), in.Close())
		}
		b.nodes[askedEnd{parts[1], false}] = append(b.nodes[askedEnd{parts[1], false}], parts[0])
		b.nodes[askedEnd{parts[1], true}] = append(b.nodes[askedEnd{parts[1], true}], parts[2])
		for _, node := range []string{parts[0], parts[2]} {
			if !seen[node] {
				seen[node] = true
				b.all = append(b.all, node)
			}
		}
	}
	for end := range b.nodes {
		b.ends = append(b.ends, end)
		if !end.reverse {
			b.names = append(b.names, end.relation)
		}
	}
	slices.Sort(b.names)
	slices.SortFunc(b.ends, func(a, c askedEnd) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(c)) })
	return errors.Join(lines.Err(), in.Close())
}

// choose takes the plan for the recall, and three cheaper ones that miss more and more.
func (b *relationBench) choose(ctx context.Context, recall float64) error {
	all, err := b.c.Calibrations(ctx)
	if err != nil {
		return err
	}
	if len(all) != 1 {
		return fmt.Errorf("the collection has %d calibrations: want one decoder", len(all))
	}
	frontiers := all[0].Frontiers
	plans := frontiers[len(frontiers)-1]
	chosen, ok := plans.Choose(recall)
	if !ok {
		return fmt.Errorf("no plan reaches %.3g: ask for less by -recall", recall)
	}
	b.plans = append(b.plans, chosen)
	for i := len(plans.Plans) - 1; i >= 0 && len(b.plans) < 4; i-- {
		if p := plans.Plans[i]; 1-p.Mean > 1.4*(1-b.plans[len(b.plans)-1].Mean) {
			b.plans = append(b.plans, p)
		}
	}
	return nil
}

// ask measures every plan.
func (b *relationBench) ask(ctx context.Context, sources int) error {
	for range b.plans {
		b.recalls = append(b.recalls, map[askedEnd][2][]float64{})
	}
	for _, end := range b.ends {
		for i := range sources {
			from := b.all
			if i%2 == 1 {
				from = b.nodes[end]
			}
			if err := b.askOne(ctx, end, from[b.rng.IntN(len(from))], i%2); err != nil {
				return err
			}
		}
	}
	return nil
}

// askOne measures every plan for one source.
func (b *relationBench) askOne(ctx context.Context, end askedEnd, source string, kind int) error {
	opts := flashdb.PredictOptions{Relation: end.relation, Reverse: end.reverse, Exact: true}
	exact, err := b.c.Predict(ctx, source, paperK, &opts)
	if err != nil {
		return err
	}
	opts.Exact = false
	truth := truthOf(exact.Hits)
	for i := range b.plans {
		opts.Plan = &b.plans[i].Plan
		got, err := b.c.Predict(ctx, source, paperK, &opts)
		if err != nil {
			return err
		}
		kept := b.recalls[i][end]
		kept[kind] = append(kept[kind], truth.recall(got.Hits))
		b.recalls[i][end] = kept
	}
	return nil
}

// The ways to draw the relations of a calibration's 200 sources.
const (
	byLinks = "by links"
	byHalf  = "half by links, half evenly"
	byTurn  = "evenly"
)

// drawn returns the relation of a source, and whether the source has such a link.
func (b *relationBench) drawn(way string, i int, total int) (end askedEnd, kind int) {
	if way == byTurn || way == byHalf && i%2 == 1 {
		return b.ends[b.rng.IntN(len(b.ends))], 0
	}
	at := b.rng.IntN(total)
	for _, end := range b.ends {
		if at -= len(b.nodes[end]); at < 0 {
			return end, 1
		}
	}
	return b.ends[0], 1
}

// lowest simulates a calibration in which one relation, unless it is empty, is served by another
// plan. It returns how much the relation that is served worst misses, of those with so many
// sources, and how many have.
func (b *relationBench) lowest(way string, least int, bad string, plan, total int) (miss float64, judged int) {
	const sources = 200
	sum, count := map[string]float64{}, map[string]int{}
	for i := range sources {
		end, kind := b.drawn(way, i, total)
		of := 0
		if end.relation == bad {
			of = plan
		}
		recalls := b.recalls[of][end][kind]
		sum[end.relation] += 1 - recalls[b.rng.IntN(len(recalls))]
		count[end.relation]++
	}
	for name, n := range count {
		if n >= least {
			judged++
			miss = max(miss, sum[name]/float64(n))
		}
	}
	return miss, judged
}

// misses is the mean miss of a plan over the relations.
func (b *relationBench) misses(plan int) float64 {
	var all []float64
	for _, end := range b.ends {
		for _, recalls := range b.recalls[plan][end] {
			all = append(all, recalls...)
		}
	}
	return 1 - mean(all)
}

// simulate makes the table: how often the plan is rejected because of the relation that it serves
// worst, where that may miss 1.5, 2 and 3 times as much as the recall asked for allows.
func (b *relationBench) simulate(recall float64, draws int) table {
	limits := []float64{1.5, 2, 3}
	t := table{
		title:  fmt.Sprintf("%d relations, recall %.3g: share of %d calibrations in which the poorest relation misses more than 1.5 / 2 / 3 times what is allowed", len(b.names), recall, draws),
		header: []string{"relations of the sources", "least sources", "relations judged", "all served alike"},
	}
	for plan := 1; plan < len(b.plans); plan++ {
		t.header = append(t.header, fmt.Sprintf("one misses %.1f times as much", b.misses(plan)/(1-recall)))
	}
	total := 0
	for _, nodes := range b.nodes {
		total += len(nodes)
	}
	for _, way := range []string{byLinks, byHalf, byTurn} {
		for _, least := range []int{2, 4, 8, 16} {
			cells := []string{way, fmt.Sprint(least), ""}
			for plan := range b.plans {
				over, judged := make([]int, len(limits)), 0
				for range draws {
					bad := ""
					if plan > 0 {
						bad = b.names[b.rng.IntN(len(b.names))]
					}
					miss, n := b.lowest(way, least, bad, plan, total)
					judged += n
					for i, limit := range limits {
						if miss > limit*(1-recall) {
							over[i]++
						}
					}
				}
				cells[2] = fmt.Sprintf("%.1f", float64(judged)/float64(draws))
				cells = append(cells, shares(over, draws))
			}
			t.add(cells...)
		}
	}
	return t
}

// shares writes counts as shares.
func shares(counts []int, of int) string {
	var parts []string
	for _, n := range counts {
		parts = append(parts, fmt.Sprintf("%.3f", float64(n)/float64(of)))
	}
	return strings.Join(parts, " / ")
}
