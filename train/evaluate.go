package train

import (
	"context"
	"errors"

	"github.com/flashdb/flashdb/decoder"
)

// Task is an evaluation: links, and what their targets are ranked among. Exactly one of Sample, Candidates, NegativeEdges
// and All is in use; if none is, Sample is 100.
type Task struct {
	Decoders   []decoder.Decoder // one, or one a relation, by Edge.Relation
	Dim        int
	Embeddings []float32 // row-major, one row of Dim values a node; not changed
	Sources    int       // 0: every node is a candidate; otherwise the candidates are the rows from Sources on
	Edges      []Edge    // the links to rank

	Sample        int        // negatives drawn uniformly among the candidates for each link
	Candidates    [][]uint32 // the negatives of each link, by node number
	NegativeEdges []Edge     // one list of negatives for all links together, as OGB's Hits@K has it
	All           bool       // rank among all candidates

	// Known are edges that are no negatives although they may be drawn: training links, for filtered ranking. They are left
	// out of All and of what Sample draws, in the direction given. The links of Edges always are.
	Known []Edge

	Hits  []int  // the k of Hits@k; default 1, 10, 50
	Seed  uint64 // of Sample
	Cores int    // goroutines; default all processors
}

// Metrics is the result of an evaluation. Every metric is a mean over the links. A tie counts half a place.
type Metrics struct {
	Edges  int
	MRR    float64         // mean reciprocal rank of the link among its negatives; not with NegativeEdges
	Hits   map[int]float64 // share of the links of rank k or better; with NegativeEdges, above the k-th best negative
	AUC    float64         // probability that a link scores above one of its negatives
	Degree []DegreeMetrics // the same by how many of Known a source has, in powers of ten; empty without Known
}

// DegreeMetrics is the part of an evaluation whose sources have From to To known links.
type DegreeMetrics struct {
	From, To int
	Edges    int
	MRR      float64
	Hits     map[int]float64
	AUC      float64
}

// Evaluate scores the links of a task and their negatives. The error lists every fault of the task, or is ctx's.
func Evaluate(ctx context.Context, t *Task) (*Metrics, error) {
	return nil, errors.New("train: not implemented")
}
