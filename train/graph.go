package train

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/flashdb/flashdb/decoder"
)

// Edge is one link of a graph, by node numbers.
type Edge struct {
	Source, Target uint32
	Relation       uint16 // relation of a knowledge graph; only DistMult and ComplEx distinguish relations
}

// Graph is what a model is trained on. With two kinds of nodes, every edge leads from a source to a
// target.
type Graph struct {
	Nodes   int // of both kinds together
	Sources int // 0 for one kind of node; otherwise nodes [0, Sources) are sources and nodes [Sources, Nodes) targets
	Edges   []Edge

	Relations     int      // number of relations; 0 means 1
	RelationNames []string // name of each relation, which the decoder knows it by; nil means its number

	Directed bool // one kind of node: whether an edge has a direction

	Features   []float32 // optional, row-major, Nodes x FeatureDim
	FeatureDim int
}

// Validate reports every fault of the graph: sizes that do not fit together, edges to nodes that do
// not exist or of the wrong kind, features that are NaN or infinite.
func (g *Graph) Validate() error {
	var faults []error
	if g.Nodes < 2 || g.Nodes > math.MaxInt32 {
		faults = append(faults, fmt.Errorf("a graph of %d nodes: want 2 to %d", g.Nodes, math.MaxInt32))
	}
	if g.Sources < 0 || (g.Sources > 0 && g.Sources >= g.Nodes) {
		faults = append(faults, fmt.Errorf("%d of %d nodes are sources: want at least one target", g.Sources, g.Nodes))
	}
	if g.Relations < 0 || g.Relations > 1<<16 {
		faults = append(faults, fmt.Errorf("%d relations: want at most %d", g.Relations, 1<<16))
	}
	if g.RelationNames != nil && len(g.RelationNames) != g.Relations {
		faults = append(faults, fmt.Errorf("%d names of %d relations", len(g.RelationNames), g.Relations))
	}
	faults = append(faults, g.checkFeatures(), g.checkEdges("", g.Edges))
	return errors.Join(faults...)
}

// checkFeatures returns an error for the first feature that is NaN or infinite.
func (g *Graph) checkFeatures() error {
	if g.FeatureDim < 0 || len(g.Features) != g.Nodes*g.FeatureDim {
		return fmt.Errorf("%d feature values for %d nodes of %d features", len(g.Features), g.Nodes, g.FeatureDim)
	}
	for i, x := range g.Features {
		if x-x != 0 {
			return fmt.Errorf("feature %d of node %d is %v: want a finite number", i%g.FeatureDim, i/g.FeatureDim, x)
		}
	}
	return nil
}

// checkEdges names the first edge that does not fit the graph. What names the list, "test " for
// example.
func (g *Graph) checkEdges(what string, edges []Edge) error {
	for i, e := range edges {
		switch {
		case int(e.Source) >= g.Nodes || int(e.Target) >= g.Nodes:
			return fmt.Errorf("%sedge %d leads from node %d to %d: the graph has %d nodes", what, i, e.Source, e.Target, g.Nodes)
		case g.Sources > 0 && (int(e.Source) >= g.Sources || int(e.Target) < g.Sources):
			return fmt.Errorf("%sedge %d leads from node %d to %d: want a source below %d and a target from it on", what, i, e.Source, e.Target, g.Sources)
		case int(e.Relation) >= max(1, g.Relations):
			return fmt.Errorf("%sedge %d has relation %d: the graph has %d", what, i, e.Relation, max(1, g.Relations))
		}
	}
	return nil
}

// related reports whether a decoder of a kind distinguishes the relations of the graph.
func (g *Graph) related(kind decoder.Kind) bool {
	return g.Relations > 0 && (kind == decoder.DistMult || kind == decoder.ComplEx)
}

// relationNames returns a name for each relation, nil where there are none.
func (g *Graph) relationNames() []string {
	if g.RelationNames != nil || g.Relations == 0 {
		return g.RelationNames
	}
	names := make([]string, g.Relations)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}

// firstTarget is the first row that may be a candidate.
func (g *Graph) firstTarget() int { return g.Sources }

// sourceNodes is how many nodes may be sources, from the first one on.
func (g *Graph) sourceNodes() int {
	if g.Sources > 0 {
		return g.Sources
	}
	return g.Nodes
}

// undirected reports whether an edge means the same in both directions.
func (g *Graph) undirected() bool { return g.Sources == 0 && !g.Directed }

// distinctEdges returns the edges of the graph without self loops and repeats, in a fixed order. Of
// an undirected edge and its reverse it keeps the one with the smaller source.
func (g *Graph) distinctEdges() []Edge { return g.distinct(g.Edges) }

func (g *Graph) distinct(edges []Edge) []Edge {
	out := make([]Edge, 0, len(edges))
	for _, e := range edges {
		if e.Source == e.Target {
			continue
		}
		if g.undirected() && e.Source > e.Target {
			e.Source, e.Target = e.Target, e.Source
		}
		out = append(out, e)
	}
	slices.SortFunc(out, compareEdges)
	return slices.Compact(out)
}

// compareEdges orders by source, target and relation.
func compareEdges(a, b Edge) int {
	return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Relation, b.Relation))
}
