package train

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/flashdb/flashdb/encoder"
)

const (
	newcomerBatch     = 512     // nodes per step
	newcomerLinks     = 2       // links that a node is scored on
	newcomerSeen      = 32      // most links it is embedded from
	newcomerSamples   = 120_000 // most nodes that are used, with repeats
	newcomerNegatives = 16      // for each link, where links share more than that in training
	newcomerPasses    = 4       // passes over the nodes, if there are fewer
	newcomerRate      = 0.002

	// With one kind of node, the mean of its neighbours is a good first embedding. With two kinds
	// it is a mean of nodes of the other kind, and the network has more to learn.
	leastNewcomerSteps = 20
	leastStepsBetween  = 300

	newcomerHidden = 2    // times Dim
	newcomerHides  = 0.15 // share of nodes whose features are hidden, and of those whose links are, where there are features
)

// newcomers fits an encoder.Encoder by embedding nodes of the graph as if they were new. It is an
// embedder of the trainer whose first rows are those nodes. The other rows are fixed embeddings.
type newcomers struct {
	crew
	g       *Graph
	desc    encoder.Input
	fixed   []float32 // the trained embeddings
	p       *params
	net     *network
	width   int        // values the network reads
	links   []Edge     // sorted
	out, in *adjacency // links by source and by target; out alone has both where they have no direction

	input  []float32
	mean   []float32
	record *tape
	parts  []*tape
}

func (n *newcomers) whole() bool                       { return false }
func (n *newcomers) tables() []*table                  { return nil }
func (n *newcomers) see([]Edge)                        {}
func (n *newcomers) update(o adam)                     { n.p.collect(); n.p.update(o) }
func (n *newcomers) embed(z []float32, nodes []uint32) { n.forward(z, nodes, nil) }

// forward embeds the newcomers described in input. The nodes are those of the other rows.
func (n *newcomers) forward(z []float32, nodes []uint32, _ *rand.PCG) {
	d := n.desc.Dim
	n.net.pack()
	n.chunks(newcomerBatch, chunkNodes, func(worker, _, first, last int) {
		part := n.parts[worker]
		n.net.part(part, n.record, first)
		out := n.net.forward(part, n.input[first*n.width:last*n.width], last-first, nil)
		for i, mean := range n.mean[first*d : last*d] {
			z[first*d+i] = mean + out[i]
		}
	})
	for i, node := range nodes[newcomerBatch:] {
		copy(z[(newcomerBatch+i)*d:(newcomerBatch+i+1)*d], n.fixed[int(node)*d:])
	}
}

func (n *newcomers) backward(dz []float32, _ []uint32) {
	d := n.desc.Dim
	n.chunks(newcomerBatch, chunkNodes, func(worker, lane, first, last int) {
		part := n.parts[worker]
		n.net.part(part, n.record, first)
		part.input = n.input[first*n.width : last*n.width]
		n.net.backward(part, lane, dz[first*d:last*d], last-first, false, false)
	})
}

// newcomerEncoder fits the encoder of a model. It ends early when ctx ends. The encoder starts as
// the mean of the neighbours, and is then closer to that.
func (f *fit) newcomerEncoder(ctx context.Context, embeddings []float32) (*encoder.Encoder, error) {
	n := newNewcomers(f, embeddings)
	t := &trainer{crew: f.crew, g: f.g, o: f.o, p: f.head.p, head: f.head.paired(), enc: n}
	steps := max(leastNewcomerSteps, min(newcomerSamples, newcomerPasses*f.g.Nodes)/newcomerBatch)
	if f.g.Sources > 0 {
		steps = max(steps, leastStepsBetween)
	}
	perLink := f.o.PerLink
	if f.head.queries {
		perLink = newcomerNegatives
	}
	for step := range steps {
		if ctx.Err() != nil {
			break
		}
		seed := mix(f.o.Seed, uint64(step)<<32)
		links := n.fill(&t.b, perLink, rand.New(rand.NewPCG(seed, streamNewcomers)))
		if links == 0 {
			break
		}
		t.backpropagate(seed, links)
		n.update(adam{rate: newcomerRate * (1 - 0.9*float64(step)/float64(steps))})
	}
	weights := make([][]float32, 0, 4)
	for _, l := range n.net.layers {
		weights = append(weights, slices.Clone(n.p.of(l.weight)), slices.Clone(n.p.of(l.bias)))
	}
	return encoder.New(string(f.o.Encoder), n.desc, encoder.Weights{Hidden: weights[0], HiddenBias: weights[1], Output: weights[2], OutputBias: weights[3]})
}

func newNewcomers(f *fit, embeddings []float32) *newcomers {
	n := &newcomers{crew: f.crew, g: f.g, links: f.links, fixed: embeddings, p: &params{crew: f.crew}}
	n.desc = encoder.Input{Dim: f.o.Dim, Pooled: f.g.undirected()}
	n.desc.Center, n.desc.Spread = featureMoments(f.g)
	n.width = n.desc.Width()
	n.net = newNetwork(n.p, rand.New(rand.NewPCG(f.o.Seed, streamNewcomers)), false, 0, n.width, newcomerHidden*f.o.Dim, f.o.Dim)
	clear(n.p.of(n.net.layers[1].weight)) // begin with the mean
	n.p.ready()
	n.record = n.net.newTape(newcomerBatch, 0)
	for range f.cores {
		n.parts = append(n.parts, n.net.newTape(0, chunkNodes))
	}
	n.input, n.mean = make([]float32, newcomerBatch*n.width), make([]float32, newcomerBatch*f.o.Dim)
	if n.desc.Pooled {
		n.out = newAdjacency(f.crew, f.g.Nodes, f.links, both)
		n.in = newAdjacency(f.crew, f.g.Nodes, nil, both)
	} else {
		n.out = newAdjacency(f.crew, f.g.Nodes, f.links, outgoing)
		n.in = newAdjacency(f.crew, f.g.Nodes, f.links, incoming)
	}
	return n
}

// featureMoments returns the mean and the standard deviation of every feature. A standard deviation
// of 0 is returned as 1.
func featureMoments(g *Graph) (center, spread []float32) {
	for k := range g.FeatureDim {
		var sum, squares float64
		for i := range g.Nodes {
			sum += float64(g.Features[i*g.FeatureDim+k])
		}
		mean := sum / float64(g.Nodes)
		for i := range g.Nodes {
			squares += math.Pow(float64(g.Features[i*g.FeatureDim+k])-mean, 2)
		}
		deviation := float32(math.Sqrt(squares / float64(g.Nodes)))
		if !(deviation > 0) {
			deviation = 1
		}
		center, spread = append(center, float32(mean)), append(spread, deviation)
	}
	return center, spread
}

// linkEnd is a link from the view of one of its nodes.
type linkEnd struct {
	other uint32
	to    bool // the link leads to other
}

// fill makes b a batch of newcomers and returns its number of links, or 0 if it found no node with
// two links. Rows of newcomers that were not found are unused. Every other node of a pair has a row
// of its own.
func (n *newcomers) fill(b *batch, perLink int, rng *rand.Rand) int {
	b.group, b.pairs = 1+perLink, b.pairs[:0]
	b.nodes = append(b.nodes[:0], make([]uint32, newcomerBatch)...)
	clear(n.input)
	clear(n.mean)
	var ends []linkEnd
	found := 0
	for range 20 * newcomerBatch {
		if found == newcomerBatch {
			break
		}
		node := uint32(rng.IntN(n.g.Nodes))
		ends = n.ends(ends[:0], node)
		if len(ends) < 2 {
			continue
		}
		rng.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
		seen := 1 + rng.IntN(min(len(ends)-1, newcomerSeen))
		n.describe(found, node, ends[:seen], rng)
		for _, end := range ends[seen:min(len(ends), seen+newcomerLinks)] {
			n.group(b, uint32(found), node, end, perLink, rng)
		}
		found++
	}
	b.rows = len(b.nodes)
	b.place()
	return len(b.pairs) / b.group
}

// ends appends the links of a node.
func (n *newcomers) ends(dst []linkEnd, node uint32) []linkEnd {
	for _, other := range n.out.of(node) {
		dst = append(dst, linkEnd{other, true})
	}
	for _, other := range n.in.of(node) {
		dst = append(dst, linkEnd{other, false})
	}
	return dst
}

// describe writes the network's input for the row-th newcomer. If there are features, they are
// hidden for some newcomers, and the links for others, so that the encoder learns to work without
// either.
func (n *newcomers) describe(row int, node uint32, seen []linkEnd, rng *rand.Rand) {
	var who encoder.Node
	d, dim := n.desc.Dim, n.g.FeatureDim
	luck := 1.0
	if dim > 0 {
		luck = rng.Float64()
	}
	if dim > 0 && luck > newcomerHides {
		who.Features = n.g.Features[int(node)*dim : (int(node)+1)*dim]
	}
	if luck < 1-newcomerHides || dim == 0 {
		for _, end := range seen {
			other := n.fixed[int(end.other)*d : (int(end.other)+1)*d]
			if end.to {
				who.To = append(who.To, other...)
			} else {
				who.From = append(who.From, other...)
			}
		}
	}
	n.desc.Describe(n.input[row*n.width:(row+1)*n.width], n.mean[row*d:(row+1)*d], who)
}

// group appends a link of a newcomer and its negatives. A link that leads to the newcomer has other
// sources as negatives.
func (n *newcomers) group(b *batch, row, node uint32, end linkEnd, perLink int, rng *rand.Rand) {
	first, last := n.g.firstTarget(), n.g.Nodes
	if !end.to && n.g.Sources > 0 {
		first, last = 0, n.g.Sources
	}
	for i := range 1 + perLink {
		other := end.other
		for try := 0; i > 0 && try < 5; try++ {
			other = uint32(first + rng.IntN(last-first))
			if other != node && !n.linked(node, other, end.to) {
				break
			}
		}
		p := pair{source: row, target: uint32(len(b.nodes)), relation: n.relationOf(node, end)}
		if !end.to {
			p.source, p.target = p.target, p.source
		}
		b.nodes, b.pairs = append(b.nodes, other), append(b.pairs, p)
	}
}

// relationOf returns the lowest relation of a link.
func (n *newcomers) relationOf(node uint32, end linkEnd) uint16 {
	e := Edge{Source: node, Target: end.other}
	if !end.to {
		e.Source, e.Target = e.Target, e.Source
	}
	if n.g.undirected() && e.Source > e.Target {
		e.Source, e.Target = e.Target, e.Source
	}
	at, _ := slices.BinarySearchFunc(n.links, e, compareEdges)
	if at < len(n.links) && n.links[at].Source == e.Source && n.links[at].Target == e.Target {
		return n.links[at].Relation
	}
	return 0
}

// linked reports whether there is a link, from node if out.
func (n *newcomers) linked(node, other uint32, out bool) bool {
	if out {
		return n.out.has(node, other)
	}
	return n.in.has(node, other)
}
