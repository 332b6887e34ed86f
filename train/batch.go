package train

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// pair is a pair to score: two rows of the embeddings of a batch.
type pair struct {
	source, target uint32
	relation       uint16
	reverse        bool // the source is the tail of the triple
}

// batch is the pairs of one step, in groups of a link and its negatives, and the nodes they need.
type batch struct {
	nodes []uint32 // the node of each row, each once; nil if the encoder embeds all nodes, when rows are nodes
	rows  int
	group int
	pairs []pair

	// The places of a row: places[start[row]:start[row+1]] are 2*pair for a pair it is the source
	// of, 2*pair+1 for one it is the target of, ascending.
	start, places []uint32

	shared []uint32 // Softmax: the rows of the negatives of all links
	// Softmax: the numbers in shared of nodes that are no negatives of link i are
	// masked[maskStart[i]:maskStart[i+1]].
	maskStart, masked []uint32
}

// sampler makes batches.
type sampler struct {
	g       *Graph
	links   []Edge
	train   []Edge     // all links to learn, sorted; links may hold others
	targets *adjacency // for every source, the nodes that are no negatives for it
	kind    NegativeKind
	perLink int
	rate    []float64 // Degree: running sums of degree^0.75 over the candidates
	whole   bool      // rows are nodes
	related bool      // a negative is one of a relation
	turned  bool      // every other link is learned from its target
	fixed   bool      // links keep their direction, and every link has negatives of its own
	// lists, if set, are additional negatives of each link.
	lists [][]uint32

	shared int     // Softmax: negatives that all links of a batch have
	place  []int32 // Softmax: of a node among the negatives of the batch, plus 1; 0: none

	row []int32 // of a node in the batch, plus 1; 0: none
	// The negatives of a batch are drawn in two steps: first the nodes of the pool, then some of
	// them for each link. An embedding costs as much as several pairs, so the pool has only one
	// node per link.
	pool []uint32
}

func newSampler(c crew, g *Graph, links []Edge, o *Options, whole bool) *sampler {
	dir := outgoing
	if g.undirected() {
		dir = both
	}
	related := g.related(o.Decoder)
	if related && o.sharesNegatives() {
		dir = both // for a source, all that its links could make known
	}
	s := &sampler{
		g: g, links: links, train: links, targets: newAdjacency(c, g.Nodes, links, dir),
		kind: o.Negatives, perLink: o.PerLink, whole: whole,
		related: related, turned: related && g.Sources == 0,
	}
	if !whole {
		s.row = make([]int32, g.Nodes)
	}
	if o.sharesNegatives() {
		s.shared, s.place = o.PerLink, make([]int32, g.Nodes)
	}
	if s.kind == Degree {
		s.rate = make([]float64, g.Nodes-g.firstTarget())
		degree := make([]int, g.Nodes)
		for _, e := range links {
			degree[e.Target]++
			if g.undirected() {
				degree[e.Source]++
			}
		}
		var sum float64
		for i := range s.rate {
			sum += math.Pow(float64(degree[g.firstTarget()+i]), 0.75)
			s.rate[i] = sum
		}
	}
	return s
}

// candidate draws one node that may be a target.
func (s *sampler) candidate(rng *rand.Rand, links []Edge) uint32 {
	switch s.kind {
	case Batch:
		return links[rng.IntN(len(links))].Target
	case Degree:
		at := rng.Float64() * s.rate[len(s.rate)-1]
		i := sort.SearchFloat64s(s.rate, at)
		return uint32(s.g.firstTarget() + min(i, len(s.rate)-1))
	default:
		return uint32(s.g.firstTarget() + rng.IntN(s.g.Nodes-s.g.firstTarget()))
	}
}

// fill makes b the batch of some links, given by their numbers. It draws negatives with rng.
func (s *sampler) fill(b *batch, numbers []uint32, rng *rand.Rand) {
	links := make([]Edge, len(numbers))
	for i, n := range numbers {
		links[i] = s.links[n]
		if s.g.undirected() && !s.fixed && rng.Uint64()&1 == 0 {
			links[i].Source, links[i].Target = links[i].Target, links[i].Source
		}
	}
	if s.shared > 0 {
		s.fillShared(b, links, rng)
		return
	}
	s.pool = s.pool[:0]
	for range max(64, len(links)) {
		s.pool = append(s.pool, s.candidate(rng, links))
	}
	b.group = 1 + s.perLink
	b.nodes, b.pairs = b.nodes[:0], b.pairs[:0]
	for i, e := range links {
		reverse := s.turned && s.lists == nil && rng.Uint64()&1 == 0
		if reverse {
			e.Source, e.Target = e.Target, e.Source
		}
		source := s.rowOf(b, e.Source)
		b.pairs = append(b.pairs, pair{source, s.rowOf(b, e.Target), e.Relation, reverse})
		for range s.perLink {
			negative := s.negative(e, reverse, rng)
			b.pairs = append(b.pairs, pair{s.rowOf(b, negative.Source), s.rowOf(b, negative.Target), e.Relation, reverse})
		}
		if s.lists == nil {
			continue
		}
		for _, node := range s.lists[numbers[i]] {
			b.pairs = append(b.pairs, pair{source, s.rowOf(b, node), e.Relation, reverse})
		}
	}
	s.finish(b)
}

// finish completes a batch whose pairs are drawn.
func (s *sampler) finish(b *batch) {
	b.rows = len(b.nodes)
	if s.whole {
		b.rows = s.g.Nodes
	}
	for _, node := range b.nodes {
		s.row[node] = 0
	}
	b.place()
}

// negative returns e with a target of the pool that is not known to be one of its source. Pairs
// draws the source too. A known pair is drawn anew as a whole then: otherwise a node with many
// links would be the source more often than its share of the pairs without a link. On a graph so
// dense that a few draws do not find one, a known pair may be returned.
func (s *sampler) negative(e Edge, reverse bool, rng *rand.Rand) Edge {
	for range 5 {
		if s.kind == Pairs {
			e.Source = uint32(rng.IntN(s.g.sourceNodes()))
		}
		if s.fixed {
			e.Target = s.candidate(rng, nil)
		} else {
			e.Target = s.pool[rng.IntN(len(s.pool))]
		}
		if e.Target != e.Source && !s.known(e, reverse) {
			break
		}
	}
	return e
}

// known reports whether the target of e is known to be one of its source. If the decoder
// distinguishes relations, only links of the relation of e count.
func (s *sampler) known(e Edge, reverse bool) bool {
	if !s.related {
		return s.targets.has(e.Source, e.Target)
	}
	triple := e
	if reverse {
		triple.Source, triple.Target = e.Target, e.Source
	}
	if s.g.undirected() && triple.Source > triple.Target {
		triple.Source, triple.Target = triple.Target, triple.Source
	}
	_, found := slices.BinarySearchFunc(s.train, triple, compareEdges)
	return found
}

// rowOf returns the row of a node, a new one the first time.
func (s *sampler) rowOf(b *batch, node uint32) uint32 {
	if s.whole {
		return node
	}
	if s.row[node] == 0 {
		b.nodes = append(b.nodes, node)
		s.row[node] = int32(len(b.nodes))
	}
	return uint32(s.row[node] - 1)
}

// place lists the places of every row.
func (b *batch) place() {
	b.start = slices.Grow(b.start[:0], b.rows+2)[:b.rows+2]
	clear(b.start)
	for _, p := range b.pairs {
		b.start[p.source+2]++
		b.start[p.target+2]++
	}
	for i := range b.rows {
		b.start[i+2] += b.start[i+1]
	}
	b.places = slices.Grow(b.places[:0], 2*len(b.pairs))[:2*len(b.pairs)]
	for i, p := range b.pairs {
		b.places[b.start[p.source+1]] = uint32(2 * i)
		b.start[p.source+1]++
		b.places[b.start[p.target+1]] = uint32(2*i + 1)
		b.start[p.target+1]++
	}
	b.start = b.start[:b.rows+1]
}
