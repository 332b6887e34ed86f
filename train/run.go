package train

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/encoder"
)

// Model is a trained link predictor.
type Model struct {
	Dim        int
	Embeddings []float32        // row-major, one row of Dim values per node of the graph
	Decoder    decoder.Decoder  // with relations if the graph has them and the kind distinguishes them
	Encoder    *encoder.Encoder // embeds nodes that were not in the graph

	Sources int     // as the graph's
	Links   int     // number of training links, without self loops and repeats
	Metric  string  // what the validations measured: "MRR", or with Split.ValidNegatives such as "Hits@20"
	Epochs  []Epoch // what was measured, in order
	Best    int     // index in Epochs of the epoch that the model is from
	Stopped string  // why training ended, in one phrase
	Elapsed time.Duration
}

// Epoch is what was measured at the end of an epoch.
type Epoch struct {
	Epoch   int           // from 1
	Loss    float64       // mean per link
	Valid   float64       // Model.Metric of the validation links; 0 without any
	Elapsed time.Duration // since Run began
}

// Run trains a model on the training edges of a split. It does not read the Edges of the graph,
// except that a zero split means RandomSplit(g, 0.05, 0, opts.Seed). Self loops and repeats among
// the training edges are left out.
//
// Run returns the model of the best validation, or of the last epoch if there are no validation
// edges. When ctx ends or the time budget is used up, it returns the best model so far, or the
// error of ctx if no epoch was completed. The error for invalid options, graph or split lists every
// fault.
func Run(ctx context.Context, g *Graph, split Split, opts Options) (*Model, error) {
	began := time.Now()
	if err := errors.Join(g.Validate(), opts.Validate()); err != nil {
		return nil, err
	}
	if split.Train == nil && split.Valid == nil && split.Test == nil {
		split = RandomSplit(g, 0.05, 0, opts.Seed)
	}
	if err := split.check(g); err != nil {
		return nil, err
	}
	links := g.distinct(split.Train)
	if len(links) == 0 {
		return nil, fmt.Errorf("no training edges: %d were given, none between two different nodes", len(split.Train))
	}
	o := opts.withDefaults(g, len(links))
	if need := estimate(g, len(links), &split, &o).Total; o.MemoryBytes > 0 && need > o.MemoryBytes {
		return nil, fmt.Errorf("training needs %d MiB of memory, %d MiB are allowed: choose a smaller Dim, or allow more", need>>20, o.MemoryBytes>>20)
	}
	if o.Checkpoint != "" {
		if err := mayCheckpoint(o.Checkpoint); err != nil {
			return nil, err
		}
	}
	f := newFit(g, links, split, &o, began)
	resumed := false
	if o.Checkpoint != "" {
		f.print = f.fingerprint(split)
		if o.Resume {
			var err error
			if resumed, err = f.resume(); err != nil {
				return nil, err
			}
		}
	}
	if table, ok := f.enc.(walked); ok && !resumed {
		f.walk(ctx, table.free)
	}
	if err := f.run(ctx); err != nil {
		return nil, err
	}
	return f.model(ctx)
}

// newFit prepares a run.
func newFit(g *Graph, links []Edge, split Split, o *Options, began time.Time) *fit {
	c := crew{o.Cores}
	rng := rand.New(rand.NewPCG(o.Seed, streamWeights))
	t := &trainer{crew: c, g: g, o: o, p: &params{crew: c}}
	t.head = newHead(t.p, o, max(1, g.Relations), g.relationNames(), rng)
	switch o.Encoder {
	case GCN, SAGE:
		t.enc = newConv(c, g, o, t.p, rng)
	case Node2Vec:
		t.enc = walked{newFree(c, g.Nodes, o.Dim, rng)}
	case MF:
		t.enc = newFree(c, g.Nodes, o.Dim, rng)
	default:
		t.enc = newHops(c, g, o, t.p, rng)
	}
	t.enc.see(links)
	t.p.ready()
	t.sampler = newSampler(c, g, links, o, t.enc.whole())
	return &fit{
		trainer: t, links: links, began: began, valid: newValidator(t.sampler, split, o),
		order: make([]uint32, len(links)), state: fitState{best: -1},
	}
}

// model returns the trained model.
func (f *fit) model(ctx context.Context) (*Model, error) {
	m := &Model{Dim: f.o.Dim, Sources: f.g.Sources, Links: len(f.links), Metric: f.valid.metric(), Epochs: f.state.history, Best: f.state.best, Stopped: f.state.stopped}
	m.Embeddings = make([]float32, f.g.Nodes*f.o.Dim)
	f.enc.embed(m.Embeddings, allNodes(f.g.Nodes))
	for i, x := range m.Embeddings {
		if x-x != 0 {
			return nil, fmt.Errorf("training diverged: value %d of node %d is %v: choose a smaller LearningRate than %g", i%m.Dim, i/m.Dim, x, f.o.LearningRate)
		}
	}
	var err error
	if m.Decoder, err = f.head.decoder(); err != nil {
		return nil, err
	}
	if m.Encoder, err = f.newcomerEncoder(ctx, m.Embeddings); err != nil {
		return nil, fmt.Errorf("encoder of later nodes: %w", err)
	}
	m.Elapsed = f.elapsed()
	return m, nil
}

// Task returns what Evaluate needs to rank the given edges by the model.
func (m *Model) Task(edges []Edge) *Task {
	t := &Task{Decoders: []decoder.Decoder{m.Decoder}, Dim: m.Dim, Embeddings: m.Embeddings, Sources: m.Sources, Edges: edges}
	if names := m.Decoder.Spec().Relations; len(names) > 0 {
		t.Decoders, t.Reversed, _ = ByRelation(m.Decoder, names) // of its own names
	}
	return t
}
