package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/flashdb/flashdb/encoder"
	"github.com/flashdb/flashdb/train"
)

// A coldStart is nodes that the training does not see, to measure how well the encoder embeds nodes
// that come later. Each is embedded from half of its edges, and the others are ranked. In the end
// it is embedded from all of them and stored as any other node.
type coldStart struct {
	held  []bool       // by node
	edges []train.Edge // all that have a held node
	seen  []train.Edge // between a held node and another: those it is embedded from,
	test  []train.Edge // and those that are ranked
}

// streamCold tells the choice of held nodes from what else a seed says.
const streamCold = 77

// newColdStart takes a share of the nodes and all of their edges out of the graph.
func newColdStart(t *trainRun, share float64) (*coldStart, error) {
	g := t.g
	c := &coldStart{held: make([]bool, g.Nodes)}
	rng := rand.New(rand.NewPCG(t.r.opts.Seed, streamCold))
	for _, node := range rng.Perm(g.Nodes)[:int(float64(g.Nodes)*share)] {
		c.held[node] = true
	}
	var kept []train.Edge
	var times []float64
	for i, e := range g.Edges {
		if c.held[e.Source] || c.held[e.Target] {
			c.edges = append(c.edges, e)
			continue
		}
		kept = append(kept, e)
		if g.Times != nil {
			times = append(times, g.Times[i])
		}
	}
	if len(kept) == 0 || len(c.edges) == 0 {
		return nil, fmt.Errorf("--new-nodes %v of %d nodes leaves %d edges to train on and %d to measure: the graph is too small", share, g.Nodes, len(kept), len(c.edges))
	}
	g.Edges, g.Times = kept, times
	isHeld := func(e train.Edge) bool { return c.held[e.Source] || c.held[e.Target] }
	g.Valid, g.ValidCandidates = without(g.Valid, g.ValidCandidates, isHeld)
	g.Test, g.TestCandidates = without(g.Test, g.TestCandidates, isHeld)
	c.halve(rng, g.Sources == 0 && !g.Directed)
	return c, nil
}

// without leaves edges out, and the negatives of each where there are lists of them.
func without(edges []train.Edge, lists [][]uint32, drop func(train.Edge) bool) (kept []train.Edge, keptLists [][]uint32) {
	kept, keptLists = edges[:0], lists[:0] // nil stays nil: there was no file
	for i, e := range edges {
		if drop(e) {
			continue
		}
		kept = append(kept, e)
		if lists != nil {
			keptLists = append(keptLists, lists[i])
		}
	}
	return kept, keptLists
}

// halve deals the edges between a held node and another, those of each node half and half.
// Undirected ones are turned so that the held node is asked about.
func (c *coldStart) halve(rng *rand.Rand, undirected bool) {
	of := map[uint32][]train.Edge{}
	var nodes []uint32
	for _, e := range c.edges {
		if c.held[e.Source] && c.held[e.Target] {
			continue
		}
		node := e.Source
		if c.held[e.Target] {
			node = e.Target
			if undirected {
				e.Source, e.Target = e.Target, e.Source
			}
		}
		if of[node] == nil {
			nodes = append(nodes, node)
		}
		of[node] = append(of[node], e)
	}
	for _, node := range nodes {
		own := of[node]
		rng.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
		c.seen, c.test = append(c.seen, own[:(len(own)+1)/2]...), append(c.test, own[(len(own)+1)/2:]...)
	}
}

// embed sets the embeddings of the held nodes that edges have, or features describe.
func (c *coldStart) embed(t *trainRun, edges []train.Edge) error {
	m, dim := t.model, t.model.Dim
	row := func(node uint32) []float32 { return m.Embeddings[int(node)*dim : (int(node)+1)*dim] }
	nodes := map[uint32]*encoder.Node{}
	of := func(node uint32) *encoder.Node {
		if nodes[node] == nil {
			nodes[node] = &encoder.Node{}
		}
		return nodes[node]
	}
	if width := t.g.FeatureDim; width > 0 {
		for node, held := range c.held {
			if held {
				of(uint32(node)).Features = t.g.Features[node*width : (node+1)*width]
			}
		}
	}
	for _, e := range edges {
		if c.held[e.Source] {
			n := of(e.Source)
			n.To = append(n.To, row(e.Target)...)
		} else {
			n := of(e.Target)
			n.From = append(n.From, row(e.Source)...)
		}
	}
	for node, n := range nodes {
		if err := m.Encoder.Embed(row(node), *n); err != nil {
			return fmt.Errorf("embed %s: %w", t.g.Keys[node], err)
		}
	}
	return nil
}

// evaluateCold ranks the test edges of the held nodes, as evaluate does those of the others.
func (t *trainRun) evaluateCold(ctx context.Context) error {
	if len(t.cold.test) == 0 {
		return nil
	}
	task := t.model.Task(t.cold.test)
	task.Seed, task.Cores, task.Hits = t.r.opts.Seed, t.r.opts.Cores, keptK
	task.Sample, task.Known = 100, t.known()
	m, err := train.Evaluate(ctx, task)
	if err != nil {
		return err
	}
	t.report.NewNodes = newJSONMetrics(m, heldOutAgainst)
	t.report.NewNodes.Degrees = nil
	return nil
}
