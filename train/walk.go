package train

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/flashdb/flashdb/decoder"
)

const (
	walkNegatives = 1       // of a pair
	walkPairs     = 1 << 14 // pairs per step
	walkRate      = 0.01
	walkTries     = 64 // draws of a next node, after which the last is taken
)

// walked is the encoder of Node2Vec: a table fitted to walks, which training of the decoder does
// not change.
type walked struct{ *free }

func (walked) backward([]float32, []uint32) {}
func (walked) update(adam)                  {}

// walker draws biased walks (Grover and Leskovec, arXiv 1607.00653, section 3.2): from a node they
// return to the one before with weight 1/p, go to a neighbour of that one with weight 1, and
// elsewhere with weight 1/q.
type walker struct {
	*adjacency
	back, away float64 // 1/p and 1/q
}

// walk writes a walk from its first node on, and returns how far it came.
func (w walker) walk(path []uint32, rng *rand.Rand) int {
	most := max(1, w.back, w.away)
	for i := 1; i < len(path); i++ {
		next := w.of(path[i-1])
		if len(next) == 0 {
			return i
		}
		for range walkTries {
			path[i] = next[rng.IntN(len(next))]
			if i == 1 || rng.Float64()*most < w.weight(path[i-2], path[i]) {
				break
			}
		}
	}
	return len(path)
}

// weight returns the weight of a step to a node, from a neighbour of before.
func (w walker) weight(before, to uint32) float64 {
	switch {
	case before == to:
		return w.back
	case w.has(before, to):
		return 1
	default:
		return w.away
	}
}

// walk fits the table of Node2Vec by skip-gram: nodes that a walk visits within a window of one
// another are links to learn, by the inner product. It stops when ctx is done or the time is used
// up.
func (f *fit) walk(ctx context.Context, table *free) {
	o := *f.o
	o.Decoder, o.Negatives, o.PerLink, o.Loss = decoder.Dot, Uniform, walkNegatives, BCE
	all := &Graph{Nodes: f.g.Nodes, Directed: true} // so that nodes of both kinds can be negatives
	p := &params{crew: f.crew}
	t := &trainer{crew: f.crew, g: all, o: &o, p: p, enc: table, head: newHead(p, &o, 1, nil, nil)}
	p.ready()
	t.sampler = newSampler(f.crew, all, nil, &o, false)
	w := walker{newAdjacency(f.crew, f.g.Nodes, f.links, both), 1 / o.WalkReturn, 1 / o.WalkInOut}
	numbers := allNodes(walkPairs)
	perStep := max(1, walkPairs/(o.WalkLength*min(o.WalkWindow, o.WalkLength)))
	steps := o.WalksPerNode * ((f.g.Nodes + perStep - 1) / perStep)
	rng := rand.New(rand.NewPCG(o.Seed, streamWalks))
	order := allNodes(f.g.Nodes)
	var loss float64
	for step := range steps {
		first := step * perStep % (perStep * (steps / o.WalksPerNode))
		if first == 0 {
			rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		t.sampler.links = f.windows(t.sampler.links[:0], w, order[first:min(len(order), first+perStep)], &o, mix(o.Seed, uint64(step)))
		n := min(len(t.sampler.links), walkPairs)
		if n == 0 {
			continue
		}
		share := float64(step) / float64(steps)
		loss = t.step(numbers[:n], mix(o.Seed, uint64(step)), adam{rate: walkRate * (1 - 0.9*share)}) / float64(n)
		if ctx.Err() != nil || (f.o.TimeBudget > 0 && f.elapsed() > f.o.TimeBudget/2) {
			return // the other half of the time is for the decoder
		}
		if time.Since(f.told) > time.Second && f.o.Progress != nil {
			f.told = time.Now()
			f.o.Progress(Progress{Stage: StageWalks, Share: share, Loss: loss, Elapsed: f.elapsed()})
		}
	}
}

// windows appends the pairs of a walk from each of the nodes.
func (f *fit) windows(dst []Edge, w walker, nodes []uint32, o *Options, seed uint64) []Edge {
	paths := make([][]uint32, len(nodes))
	f.ranges(len(nodes), 64, func(_, first, last int) {
		for i := first; i < last; i++ {
			path := make([]uint32, o.WalkLength)
			path[0] = nodes[i]
			paths[i] = path[:w.walk(path, rand.New(rand.NewPCG(seed, streamWalks+uint64(i)<<8)))]
		}
	})
	for _, path := range paths {
		for i, node := range path {
			for _, other := range path[i+1 : min(len(path), i+1+o.WalkWindow)] {
				if node != other {
					dst = append(dst, Edge{Source: node, Target: other})
				}
			}
		}
	}
	return dst
}
