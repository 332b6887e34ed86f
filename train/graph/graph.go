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

// Options say what a graph is. The zero value, or nil, means one kind of node, and edges whose
// direction is detected.
type Options struct {
	TwoKinds  bool      // sources and targets are nodes of two kinds, with separate keys
	Direction Direction // one kind
	Relations bool      // edges of different relations between two nodes are different edges, if the file has relations
	Times     bool      // keep the times of edges, for Graph.SplitByTime

	// Nodes are the keys of all nodes in the order of their numbers, if they are known before. With
	// two kinds it must be nil.
	Nodes []string
	// ByNumber says that files name nodes by their number, which is their index in Nodes.
	ByNumber bool

	MemoryBytes int64 // bound of the memory of the graph; 0 means none
	// Progress, if set, is called from time to time with the number of lines read of a file.
	Progress func(file string, lines int64)
}

// A Graph is a graph with the keys of its nodes.
type Graph struct {
	train.Graph
	Keys  []string  // of the nodes, by number
	Times []float64 // of Edges; nil without Options.Times

	Valid, Test []train.Edge // edges held out by files of their own
	// OGB ranks the edges of Test among TestNegatives, one list for all of them. Likewise for
	// Valid.
	ValidNegatives, TestNegatives []train.Edge
	HitsAt                        int // k of the Hits@k that OGB uses for the data set; 0 if unknown
	// TestCandidates are the negatives of each edge of Test, by node number, if edges have
	// negatives of their own. Else it is nil. Likewise for Valid.
	ValidCandidates, TestCandidates [][]uint32

	LeadBack float64 // share of the edges whose reverse is there too; one kind
	Listing  Listing // what FindOut went by; one kind
	Cleaned  Cleaned
	Layouts  []Layout // of the files, in the order in which they were read
}

// Cleaned counts what was left out.
type Cleaned struct {
	Lines     int // lines that were edges
	SelfLoops int
	Repeats   int // repeats of an edge, or without a direction of its reverse
	Reversed  int // repeats in the other direction than the edge that is kept
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

// A Builder makes a graph from files. All training edges must be added first.
type Builder struct {
	o       Options
	sources names // of both kinds where there is one
	targets names
	name    string // of the last file of training edges, for messages
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

// keyCost is the memory of a key besides its bytes: an entry of the map and of the list.
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

// Layout returns what was detected of the first file.
func (b *Builder) Layout() Layout { return b.g.Layouts[0] }

// Add reads all edges of r and closes it.
func (b *Builder) Add(r *Reader, part Part) (err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	b.g.Layouts = append(b.g.Layouts, r.Layout())
	if part == Train {
		b.name = r.name
		if b.o.Times && r.Layout().Columns.Time == "" {
			return fmt.Errorf("%s has no column of times by a usual name: name the column", r.name)
		}
		if r.Layout().Columns.Relation == "" {
			b.o.Relations = false
		}
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

// resolve returns the numbers of the ends of an edge. With two kinds each kind is numbered from 0
// until the end. Only training edges make new nodes. known is false for another edge that would
// need one.
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
		return 0, 0, false, &UnknownNode{key}
	}
	return source, target, known && alsoKnown, nil
}

// An UnknownNode is the error for a training edge whose end is none of Options.Nodes.
type UnknownNode struct{ Key string }

// Error says which node it is.
func (u *UnknownNode) Error() string { return "no node is " + quote(u.Key) }

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

// edgeCost is the memory of an edge while the graph is built: in its growing list, and while it is
// sorted.
const edgeCost = 48

// listCost is the memory of the negatives of an edge besides 4 bytes for each.
const listCost = 24

// fits returns an error if the graph takes more memory than is allowed.
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

// Graph returns the cleaned graph. The builder must not be used any more.
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
		return nil, fmt.Errorf("%s: no edges are left: all of them are self loops (%d), which are left out", b.name, g.Cleaned.Lines)
	}
	return g, nil
}

// A timedEdge is an edge while repeats are found.
type timedEdge struct {
	train.Edge
	reversed bool // the file has it in the other direction
	time     float64
}

// clean removes self loops and repeats from the training edges. Of repeats it keeps the first in
// time.
func (b *Builder) clean() {
	g := &b.g
	once := Arrows
	if g.Sources == 0 {
		once = b.once()
	}
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
		g.Listing = b.listing(all, once)
		g.Directed = b.o.Direction == Directed || (b.o.Direction == FindOut && g.Listing == Arrows)
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
// each. They keep their direction, because the target is ranked for the source.
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
