package train

import (
	"context"
	"errors"
	"time"

	"github.com/flashdb/flashdb/decoder"
)

// Model is a trained link predictor.
type Model struct {
	Dim        int
	Embeddings []float32         // row-major, one row of Dim values a node of the graph
	Decoders   []decoder.Decoder // one; with DistMult one a relation
	Encoder    *Encoder          // embeds nodes that were not in the graph

	Sources int     // as the graph's
	Epochs  []Epoch // what was measured, in order
	Best    int     // index in Epochs of the one the model is from
	Stopped string  // why training ended, in one phrase
	Elapsed time.Duration
}

// Epoch is what was measured at the end of an epoch.
type Epoch struct {
	Epoch   int           // from 1
	Loss    float64       // mean a link
	Valid   float64       // MRR of the validation links; 0 without any
	Elapsed time.Duration // since Run began
}

// Run trains a model on the training edges of a split. The graph's own Edges are not read: a zero split means
// RandomSplit(g, 0.05, 0, opts.Seed). Self loops and repeats among the training edges are left out.
//
// The model kept is that of the best validation; without validation edges, the last. When ctx is done or the time budget
// is used up, Run returns the best model so far, or ctx's error if there was no epoch yet. The error of bad options, graph
// or split lists every fault.
func Run(ctx context.Context, g *Graph, split Split, opts Options) (*Model, error) {
	return nil, errors.New("train: not implemented")
}

// Task returns what Evaluate needs to rank the given edges by the model.
func (m *Model) Task(edges []Edge) *Task {
	return &Task{Decoders: m.Decoders, Dim: m.Dim, Embeddings: m.Embeddings, Sources: m.Sources, Edges: edges}
}
