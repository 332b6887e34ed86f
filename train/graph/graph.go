package graph

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/train"
)

// A Direction says whether an edge between nodes of one kind says anything of its reverse.
type Direction uint8

// The directions there are.
const (
	FindOut    Direction = iota // Undirected where half of the edges or more lead back as well
	Directed                    // an edge and its reverse are two
	Undirected                  // an edge and its reverse are one
)

// leadBack is the share of edges whose reverse is there too from which on FindOut means Undirected.
const leadBack = 0.5

// Options say what a graph is. The zero value, or nil, is one kind of node, and what the edges mean
// is found out.
type Options struct {
	TwoKinds  bool      // sources and targets are nodes of two kinds, whose keys are apart
	Direction Direction // one kind
	Relations bool      // edges of different relations between two nodes are different edges, if the file has relations
	Times     bool      // keep the times of edges, for Graph.SplitByTime

	// Nodes are the keys of all nodes, in the order of their numbers, where that is known before.
	// With two kinds it must be nil.
	Nodes []string
	// ByNumber says that files name nodes by their number, which is their place in Nodes.
	ByNumber bool

	MemoryBytes int64 // what the graph may take in memory; 0: no bound
	// Progress, if set, is called now and then with the lines read of a file.
	Progress func(file string, lines int64)
}

// A Graph is a graph with the keys of its nodes.
type Graph struct {
	train.Graph
	Keys  []string  // of the nodes, by number
	Times []float64 // of Edges; nil without Options.Times

	Valid, Test []train.Edge // edges held out by files of their own
	// TestNegatives are what OGB ranks the edges of Test among: one list for all of them.
	ValidNegatives, TestNegatives []train.Edge
	HitsAt                        int // k of the Hits@k that OGB ranks the data set by; 0: unknown
	// TestCandidates are what OGB ranks the edges of Test among where each has negatives of its
	// own: a list for each edge, by node number. Else it is nil.
	ValidCandidates, TestCandidates [][]uint32

	LeadBack float64 // share of the edges whose reverse is there too; one kind
	Cleaned  Cleaned
	Layouts  []Layout // of the files, in the order in which they were read
}

// Cleaned counts what was left out.
type Cleaned struct {
	Lines     int // that were edges
	SelfLoops int
	Repeats   int // of an edge, and without a direction of its reverse
	Reversed  int // those of the repeats that lead the other way than the edge that stays
	BothKinds int // keys that are sources and targets: two nodes each
	Leaked    int // held-out edges that are training edges too
	Unknown   int // held-out edges of nodes that no training edge has
}

// A Part is what the edges of a file are for.
type Part uint8

// The parts of a graph.
const (
	Train Part = iota
	Valid
	Test
	ValidNegatives
	TestNegatives
	parts
)

// A Builder makes a graph of files: all of the training edges first.
type Builder struct {
	o       Options
	sources names // of both kinds where there is one
	targets names
	edges   [parts][]train.Edge
	lists   [parts][][]uint32 // negatives of each edge of Valid and Test; nil: there are none
	times   []float64
	rels    names
	g       Graph
}

// names numbers keys in the order of their first use.
type names struct {
	numbers map[string]uint32
	keys    []string
	bytes   int64
}

// keyCost is what a key takes beside its bytes: an entry of the map and of the list.
const keyCost = 64

func (n *names) number(key string) uint32 {
	at, ok := n.numbers[key]
	if !ok {
		if n.numbers == nil {
			n.numbers = map[string]uint32{}
		}
		key = strings.Clone(key)
		at = uint32(len(n.keys))
		n.numbers[key] = at
		n.keys = append(n.keys, key)
		n.bytes += int64(len(key)) + keyCost
	}
	return at
}

// NewBuilder returns a builder of an empty graph, or of the nodes of the options.
func NewBuilder(opts *Options) (*Builder, error) {
	b := &Builder{}
	if opts != nil {
		b.o = *opts
	}
	if b.o.TwoKinds && b.o.Nodes != nil {
		return nil, errors.New("keys of nodes by number are for one kind of node")
	}
	for i, key := range b.o.Nodes {
		if int(b.sources.number(key)) != i {
			return nil, fmt.Errorf("key %s names node %d and node %d", quote(key), b.sources.number(key), i)
		}
	}
	return b, nil
}

// Layout is what was found out about the first file.
func (b *Builder) Layout() Layout { return b.g.Layouts[0] }

// Add reads all edges of r and closes it.
func (b *Builder) Add(r *Reader, part Part) (err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	b.g.Layouts = append(b.g.Layouts, r.Layout())
	if part == Train && r.Layout().Columns.Relation == "" {
		b.o.Relations = false
	}
	before := len(b.edges[part])
	var e Edge
	for lines := int64(0); ; lines++ {
		if err := r.Next(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if err := b.add(&e, part); err != nil {
			return r.fault(err)
		}
		if lines%8192 != 0 {
			continue
		}
		if b.o.Progress != nil {
			b.o.Progress(r.name, lines)
		}
		if err := b.fits(); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	if len(b.edges[part]) == before && part <= Test && b.g.Cleaned.Unknown == 0 {
		return fmt.Errorf("%s holds no edges", r.name)
	}
	return b.fits()
}

// add resolves one edge.
func (b *Builder) add(e *Edge, part Part) error {
	source, target, known, err := b.resolve(e, part == Train)
	if err != nil {
		return err
	}
	if !known {
		b.g.Cleaned.Unknown++
		return nil
	}
	edge := train.Edge{Source: source, Target: target}
	if b.o.Relations {
		n := b.rels.number(e.Relation)
		if n > math.MaxUint16 {
			return fmt.Errorf("more than %d relations", math.MaxUint16+1)
		}
		edge.Relation = uint16(n)
	}
	b.edges[part] = append(b.edges[part], edge)
	if b.o.Times && part == Train {
		b.times = append(b.times, e.Time)
	}
	if part == Train {
		b.g.Cleaned.Lines++
	}
	return nil
}

// resolve numbers the ends of an edge. With two kinds each kind counts from 0 until the end. New
// nodes come of training edges alone; known is false of another edge that would need one.
func (b *Builder) resolve(e *Edge, mayAdd bool) (source, target uint32, known bool, err error) {
	if b.o.ByNumber {
		source, err = b.byNumber(e.Source)
		if err == nil {
			target, err = b.byNumber(e.Target)
		}
		return source, target, true, err
	}
	targets := &b.sources
	if b.o.TwoKinds {
		targets = &b.targets
	}
	if mayAdd && b.o.Nodes == nil {
		return b.sources.number(e.Source), targets.number(e.Target), true, nil
	}
	source, known = b.sources.numbers[e.Source]
	target, alsoKnown := targets.numbers[e.Target]
	if mayAdd && (!known || !alsoKnown) {
		key := e.Source
		if known {
			key = e.Target
		}
		return 0, 0, false, fmt.Errorf("no node is %s", quote(key))
	}
	return source, target, known && alsoKnown, nil
}

func (b *Builder) byNumber(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s is not the number of a node", quote(text))
	}
	if n >= uint64(len(b.o.Nodes)) {
		return 0, fmt.Errorf("no node has number %d: there are %d", n, len(b.o.Nodes))
	}
	return uint32(n), nil
}

// edgeCost is what an edge takes while the graph is built: in its list as that grows, and sorted.
const edgeCost = 48

// listCost is what the negatives of an edge take beside 4 bytes for each.
const listCost = 24

// fits refuses what takes more memory than is allowed.
func (b *Builder) fits() error {
	count := 0
	for _, edges := range b.edges {
		count += len(edges)
	}
	need := edgeCost*int64(count) + b.sources.bytes + b.targets.bytes
	for _, lists := range b.lists {
		for _, list := range lists {
			need += listCost + 4*int64(len(list))
		}
	}
	if b.o.MemoryBytes > 0 && need > b.o.MemoryBytes {
		return fmt.Errorf("%d edges between %d nodes take more than the %.3g MB of memory allowed: allow more, or train on a part of the edges",
			count, len(b.sources.keys)+len(b.targets.keys), float64(b.o.MemoryBytes)/1e6)
	}
	if len(b.sources.keys)+len(b.targets.keys) > math.MaxInt32 {
		return fmt.Errorf("more than %d nodes", math.MaxInt32)
	}
	return nil
}

// Graph returns what was read, cleaned. The builder is of no more use.
func (b *Builder) Graph() (*Graph, error) {
	g := &b.g
	g.Nodes, g.Keys = len(b.sources.keys), b.sources.keys
	if b.o.TwoKinds {
		g.Sources = len(b.sources.keys)
		g.Nodes += len(b.targets.keys)
		g.Keys = append(slices.Clip(g.Keys), b.targets.keys...)
		for i := range b.edges {
			for j := range b.edges[i] {
				b.edges[i][j].Target += uint32(g.Sources)
			}
		}
		for _, key := range b.sources.keys {
			if _, both := b.targets.numbers[key]; both {
				g.Cleaned.BothKinds++
			}
		}
	}
	if b.o.Relations {
		g.RelationNames, g.Relations = b.rels.keys, len(b.rels.keys)
	}
	b.sources.numbers, b.targets.numbers = nil, nil
	b.clean()
	g.Valid, g.ValidCandidates = b.heldOut(Valid)
	g.Test, g.TestCandidates = b.heldOut(Test)
	g.ValidNegatives, g.TestNegatives = b.edges[ValidNegatives], b.edges[TestNegatives]
	if len(g.Edges) == 0 {
		return nil, errors.New("no edges are left: all of them are self loops")
	}
	return g, nil
}

// A timedEdge is an edge while repeats are found.
type timedEdge struct {
	train.Edge
	reversed bool // it was written the other way round
	time     float64
}

// clean leaves self loops and repeats out of the training edges. Of repeats the first in time
// stays.
func (b *Builder) clean() {
	g := &b.g
	all := make([]timedEdge, 0, len(b.edges[Train]))
	for i, e := range b.edges[Train] {
		if g.Sources == 0 && e.Source == e.Target {
			g.Cleaned.SelfLoops++
			continue
		}
		t := timedEdge{Edge: e}
		if b.times != nil {
			t.time = b.times[i]
		}
		all = append(all, t)
	}
	b.edges[Train], b.times = nil, nil
	all = b.distinct(all)
	if g.Sources == 0 {
		g.LeadBack = leadingBack(all)
		g.Directed = b.o.Direction == Directed || (b.o.Direction == FindOut && g.LeadBack < leadBack)
	}
	if g.Sources == 0 && !g.Directed {
		for i := range all {
			all[i].Edge, all[i].reversed = g.canonical(all[i].Edge)
		}
		all = b.distinct(all)
	}
	for _, t := range all {
		g.Edges = append(g.Edges, t.Edge)
		if b.o.Times {
			g.Times = append(g.Times, t.time)
		}
	}
}

// distinct sorts the edges and leaves repeats out.
func (b *Builder) distinct(all []timedEdge) []timedEdge {
	slices.SortStableFunc(all, func(x, y timedEdge) int {
		return cmp.Or(compare(x.Edge, y.Edge), cmp.Compare(x.time, y.time))
	})
	kept := all[:0]
	for _, t := range all {
		if n := len(kept); n > 0 && t.Edge == kept[n-1].Edge {
			b.g.Cleaned.Repeats++
			if t.reversed != kept[n-1].reversed {
				b.g.Cleaned.Reversed++
			}
			continue
		}
		kept = append(kept, t)
	}
	return kept
}

// leadingBack is the share of distinct sorted edges whose reverse is among them.
func leadingBack(edges []timedEdge) float64 {
	back := 0
	for _, e := range edges {
		reverse := train.Edge{Source: e.Target, Target: e.Source, Relation: e.Relation}
		if _, ok := slices.BinarySearchFunc(edges, reverse, func(t timedEdge, r train.Edge) int { return compare(t.Edge, r) }); ok {
			back++
		}
	}
	return float64(back) / float64(max(1, len(edges)))
}

// canonical is the form of an edge in which repeats are equal.
func (g *Graph) canonical(e train.Edge) (_ train.Edge, reversed bool) {
	if g.Sources == 0 && !g.Directed && e.Source > e.Target {
		e.Source, e.Target = e.Target, e.Source
		return e, true
	}
	return e, false
}

func compare(x, y train.Edge) int {
	return cmp.Or(cmp.Compare(x.Source, y.Source), cmp.Compare(x.Target, y.Target), cmp.Compare(x.Relation, y.Relation))
}

// heldOut returns the edges of a part that are no training edges, each once, with the negatives of
// each. They keep their direction: a source is asked for its target.
func (b *Builder) heldOut(part Part) (kept []train.Edge, lists [][]uint32) {
	g := &b.g
	seen := map[train.Edge]bool{}
	for i, e := range b.edges[part] {
		c, _ := g.canonical(e)
		_, leaked := slices.BinarySearchFunc(g.Edges, c, compare)
		switch {
		case g.Sources == 0 && e.Source == e.Target:
			g.Cleaned.SelfLoops++
		case leaked:
			g.Cleaned.Leaked++
		case seen[c]:
			g.Cleaned.Repeats++
		default:
			seen[c] = true
			kept = append(kept, e)
			if b.lists[part] != nil {
				lists = append(lists, b.lists[part][i])
			}
		}
	}
	return kept, lists
}
