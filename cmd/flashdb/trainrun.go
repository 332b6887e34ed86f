package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

// trainGCPercent bounds garbage while a model is trained. Its memory is a few large arrays without
// pointers, which cost the collector nothing, and with the default as much garbage would pile up.
const trainGCPercent = 20

// run trains the model.
func (t *trainRun) run(ctx context.Context) error {
	t.describeGraph()
	r := t.r
	begin := sync.OnceFunc(t.printGraph)
	r.opts.Progress = func(p train.Progress) {
		begin()
		epochs := max(1, p.Epochs)
		done := (float64(max(1, p.Epoch)-1) + p.Share) / float64(epochs)
		if p.Stage != train.StageTrain {
			r.progress.Update("train: "+p.Stage, int64(1000*p.Share), 1000)
			return
		}
		r.progress.UpdateWith("train", int64(1000*min(1, done)), 1000, describeProgress(p))
	}
	keepAfterInterrupt(ctx)
	before := debug.SetGCPercent(trainGCPercent)
	m, err := train.Run(ctx, &t.g.Graph, t.split, r.opts)
	debug.SetGCPercent(before)
	debug.FreeOSMemory() // else what was allocated for the training stays while the model is stored
	if err != nil {
		if ctx.Err() != nil {
			r.progress.Clear()
			t.remark("no epoch had ended: nothing is stored")
		}
		return t.plainFault(err)
	}
	if ctx.Err() != nil {
		begin()
		r.progress.Clear()
		t.remark("interrupted: the best model so far is stored, that of epoch %d; interrupt again to store nothing", m.Epochs[m.Best].Epoch)
	}
	begin()
	t.model = m
	t.describeModel()
	return nil
}

// describeProgress says how well a run goes.
func describeProgress(p train.Progress) string {
	parts := []string{fmt.Sprintf("epoch %d of %d", p.Epoch, p.Epochs)}
	if p.Loss > 0 {
		parts = append(parts, fmt.Sprintf("loss %.4f", p.Loss))
	}
	if p.Valid > 0 {
		parts = append(parts, fmt.Sprintf("%s %.4f, best %.4f", p.Metric, p.Valid, p.Best))
	}
	return strings.Join(parts, ", ")
}

// plainFault says about memory what to do, in the words of the command.
func (t *trainRun) plainFault(err error) error {
	if errors.Is(err, context.Canceled) || t.r.opts.MemoryBytes == 0 {
		return err
	}
	if need := train.Estimate(&t.g.Graph, t.split, t.r.opts).Total; need > t.r.opts.MemoryBytes {
		return fmt.Errorf("training needs about %s of memory, and %s may be used: a smaller --dim or --batch takes less, --memory allows more",
			show.Bytes(need), show.Bytes(t.r.opts.MemoryBytes))
	}
	return err
}

// keptK are the k of Hits@k that the summary shows; official ones go with OGB's negatives.
var (
	keptK     = []int{1, 10}
	officialK = []int{20, 50, 100}
)

// heldOutAgainst is what held-out edges are ranked among, where the data set does not say.
const heldOutAgainst = "100 random candidates each"

// measure evaluates the model: on edges of known nodes, and on those of nodes held out.
func (t *trainRun) measure(ctx context.Context) error {
	if t.cold != nil {
		if err := t.cold.embed(t, t.cold.seen); err != nil {
			return err
		}
	}
	if err := t.evaluate(ctx); err != nil || t.cold == nil {
		return err
	}
	if err := t.evaluateCold(ctx); err != nil {
		return err
	}
	return t.cold.embed(t, append(slices.Clone(t.cold.seen), t.cold.test...))
}

// relatedK are the k of Hits@k that are usual with relations.
var relatedK = []int{1, 3, 10}

// mostScores is how many scores a measurement among all nodes may take: about a minute.
const mostScores = 2_000_000_000

// evaluate measures the model on the edges held out, beside the plain dot product of the same
// embeddings.
func (t *trainRun) evaluate(ctx context.Context) error {
	if len(t.split.Test) == 0 {
		t.report.NoScore = t.whyNoTest()
		return nil
	}
	task := t.model.Task(t.split.Test)
	task.Seed, task.Cores = t.r.opts.Seed, t.r.opts.Cores
	task.Hits = keptK
	against := heldOutAgainst
	switch {
	case len(t.g.TestNegatives) > 0:
		task.NegativeEdges, task.Hits = t.g.TestNegatives, officialK
		against = fmt.Sprintf("the %s of the data set", show.Count(len(t.g.TestNegatives), "negative"))
	case t.g.TestCandidates != nil:
		task.Candidates = t.g.TestCandidates
		against = listsText(task.Candidates) + ", of the data set"
	default:
		task.Sample, task.Known = 100, t.known()
	}
	if t.related() && task.Sample > 0 {
		task.Hits = relatedK
		if len(task.Edges)*t.g.Nodes <= mostScores { // all nodes, as is usual with relations
			task.Sample, task.All, against = 0, true, "all nodes, known triples left out"
		}
	}
	t.r.progress.Update("measure", 0, 1)
	m, err := train.Evaluate(ctx, task)
	if err != nil {
		return err
	}
	dot, err := decoder.NewDot(t.model.Dim)
	if err != nil {
		return err
	}
	plain := *task
	plain.Decoders = []decoder.Decoder{dot}
	if plain.Reversed != nil {
		plain.Reversed = plain.Decoders
		plain.Known = withoutRelations(task.Known)
	}
	plain.Edges = withoutRelations(task.Edges)
	plain.NegativeEdges = withoutRelations(task.NegativeEdges)
	d, err := train.Evaluate(ctx, &plain)
	if err != nil {
		return err
	}
	t.report.HeldOut, t.report.Dot = newJSONMetrics(m, against), newJSONMetrics(d, "")
	t.report.Dot.Edges, t.report.Dot.Degrees = 0, nil
	if len(t.g.TestNegatives) > 0 { // they are no ranking of one edge
		t.report.HeldOut.mrr, t.report.Dot.mrr = nil, nil
	}
	return nil
}

// known are the links that are no negatives, in the directions in which they will be stored.
func (t *trainRun) known() []train.Edge {
	var known []train.Edge
	sets := [][]train.Edge{t.split.Train, t.split.Valid}
	if t.cold != nil {
		sets = append(sets, t.cold.edges)
	}
	for _, edges := range sets {
		known = append(known, edges...)
		if t.bothWays() && !t.related() {
			known = append(known, reversed(edges)...)
		}
	}
	return known
}

// bothWays tells whether the ends of an edge are known to each other, so that neither is predicted
// for the other: also where edges have a direction, unless the user insists on it.
func (t *trainRun) bothWays() bool { return t.g.Sources == 0 && !t.r.directed }

func reversed(edges []train.Edge) []train.Edge {
	out := make([]train.Edge, len(edges))
	for i, e := range edges {
		out[i] = train.Edge{Source: e.Target, Target: e.Source, Relation: e.Relation}
	}
	return out
}

// withoutRelations is for a decoder that knows none.
func withoutRelations(edges []train.Edge) []train.Edge {
	out := slices.Clone(edges)
	for i := range out {
		out[i].Relation = 0
	}
	return out
}

// whyNoTest says why there is nothing to measure.
func (t *trainRun) whyNoTest() string {
	if t.r.testFile == "" {
		return fmt.Sprintf("a graph of %s is too small to hold any out", show.Count(len(t.g.Edges), "edge"))
	}
	return t.noneLeft(t.r.testFile)
}

// noneLeft says why no edge of a held-out file is of use. The counts are of all such files.
func (t *trainRun) noneLeft(file string) string {
	var why []string
	c := t.g.Cleaned
	if c.Leaked > 0 {
		why = append(why, show.Count(c.Leaked, "training edge"))
	}
	if c.Unknown > 0 {
		why = append(why, show.Count(c.Unknown, "edge")+" of nodes that no training edge has")
	}
	if len(why) == 0 {
		why = append(why, "self loops, or edges of nodes that were held out")
	}
	return fmt.Sprintf("no edge of %s is left: left out were %s", show.Text(file), strings.Join(why, " and "))
}
