package train

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/flashdb/flashdb/decoder"
)

// Task is an evaluation: links, and what their targets are ranked among. At most one of Sample,
// Candidates, NegativeEdges and All is set; if none is, Sample is 100.
type Task struct {
	Decoders   []decoder.Decoder // one, or one per relation, by Edge.Relation
	Reversed   []decoder.Decoder // if set, as many as Decoders: they take targets as sources, and rank the sources of the links as well
	Dim        int
	Embeddings []float32 // row-major, one row of Dim values per node; not changed
	Sources    int       // if 0, every node is a candidate; otherwise the candidates are the rows from Sources on
	Edges      []Edge    // the links to rank

	Sample        int        // negatives drawn uniformly among the candidates for each link
	Candidates    [][]uint32 // the negatives of each link, by node number
	NegativeEdges []Edge     // one list of negatives for all links together, as OGB's Hits@K has it
	All           bool       // rank among all candidates

	// Known are edges that must not be negatives, such as training links, for filtered ranking. All
	// and Sample leave their targets out for their source, and if Undirected also the reverse. They
	// also leave out the links of Edges, and the source itself.
	Known      []Edge
	Undirected bool

	Hits  []int  // the k of Hits@k; default 1, 10, 50
	Seed  uint64 // of Sample
	Cores int    // goroutines; default all processors. It does not change the result
}

// Metrics is the result of an evaluation. Every metric is a mean over the links. A tie counts half
// a place.
type Metrics struct {
	Edges  int
	MRR    float64         // mean reciprocal rank of the link among its negatives; 0 with NegativeEdges
	Hits   map[int]float64 // share of the links of rank k or better; with NegativeEdges, above the k-th best negative
	AUC    float64         // probability that a link scores above one of its negatives
	Tails  *Metrics        // with Task.Reversed: those of the targets alone; the metrics above are then the means of Tails and Heads
	Heads  *Metrics        // those of the sources alone
	Degree []DegreeMetrics // metrics by how many Known links a source has, in powers of ten; empty without Known
}

// DegreeMetrics is the part of an evaluation whose sources have From to To known links, both
// included.
type DegreeMetrics struct {
	From, To int
	Edges    int
	MRR      float64
	Hits     map[int]float64
	AUC      float64
}

// defaultSample is the number of negatives that a link is ranked among by default.
const defaultSample = 100

// Evaluate scores the links of a task and their negatives. The error lists the faults of the task,
// or is that of ctx.
func Evaluate(ctx context.Context, task *Task) (*Metrics, error) {
	t := *task
	if err := t.validate(); err != nil {
		return nil, err
	}
	if t.Sample == 0 && t.Candidates == nil && t.NegativeEdges == nil && !t.All {
		t.Sample = defaultSample
	}
	if t.Hits == nil {
		t.Hits = []int{1, 10, 50}
	}
	if t.Cores <= 0 {
		t.Cores = runtime.GOMAXPROCS(0)
	}
	if len(t.Reversed) > 0 {
		return bothEnds(ctx, &t)
	}
	return t.evaluate(ctx)
}

// evaluate ranks the targets of a task that is valid.
func (t *Task) evaluate(ctx context.Context) (*Metrics, error) {
	r := newRanking(t)
	if t.NegativeEdges != nil {
		return r.shared(ctx)
	}
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	return r.metrics(), nil
}

// validate lists what is wrong with a task.
func (t *Task) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if t.Dim < 1 || len(t.Embeddings)%max(1, t.Dim) != 0 {
		return fmt.Errorf("%d values are no rows of %d: Embeddings must hold one row of Dim values per node", len(t.Embeddings), t.Dim)
	}
	nodes := len(t.Embeddings) / t.Dim
	if len(t.Edges) == 0 {
		fault("no links to evaluate")
	}
	if len(t.Decoders) == 0 {
		fault("no decoder")
	}
	for i, d := range slices.Concat(t.Decoders, t.Reversed) {
		if d.Dim() != t.Dim {
			fault("decoder %d is of %d dimensions, the embeddings of %d", i, d.Dim(), t.Dim)
		}
	}
	if len(t.Reversed) > 0 && (len(t.Reversed) != len(t.Decoders) || t.Sources > 0 || t.Candidates != nil) {
		fault("%d decoders in reverse: want %d, one for each, one kind of node and no lists of candidates", len(t.Reversed), len(t.Decoders))
	}
	if t.Sources < 0 || t.Sources > max(0, nodes-1) {
		fault("%d of %d nodes are sources: want at least one candidate", t.Sources, nodes)
	}
	modes := 0
	for _, set := range []bool{t.Sample != 0, t.Candidates != nil, t.NegativeEdges != nil, t.All} {
		if set {
			modes++
		}
	}
	if modes > 1 {
		fault("more than one of Sample, Candidates, NegativeEdges and All is set")
	}
	if t.Sample < 0 {
		fault("%d negatives per link", t.Sample)
	}
	for _, k := range t.Hits {
		if k < 1 {
			fault("hits@%d: want 1 or more", k)
		}
	}
	faults = append(faults, t.checkEdges("link", t.Edges, nodes), t.checkEdges("negative", t.NegativeEdges, nodes),
		t.checkEdges("known link", t.Known, nodes), checkCandidates(t.Candidates, len(t.Edges), nodes))
	return errors.Join(faults...)
}

// checkEdges names the first edge that is not within the task.
func (t *Task) checkEdges(what string, edges []Edge, nodes int) error {
	for i, e := range edges {
		if int(e.Source) >= nodes || int(e.Target) >= nodes {
			return fmt.Errorf("%s %d leads from node %d to %d: there are %d", what, i, e.Source, e.Target, nodes)
		}
		if len(t.Decoders) > 1 && int(e.Relation) >= len(t.Decoders) {
			return fmt.Errorf("%s %d has relation %d: there are %d decoders", what, i, e.Relation, len(t.Decoders))
		}
	}
	return nil
}

// checkCandidates names the first list of negatives that does not fit.
func checkCandidates(lists [][]uint32, links, nodes int) error {
	if lists == nil {
		return nil
	}
	if len(lists) != links {
		return fmt.Errorf("%d lists of negatives for %d links", len(lists), links)
	}
	for i, list := range lists {
		for _, node := range list {
			if int(node) >= nodes {
				return fmt.Errorf("negative node %d of link %d: there are %d nodes", node, i, nodes)
			}
		}
	}
	return nil
}
