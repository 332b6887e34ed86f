package train

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHopFeatures compares the features with powers of a dense matrix in float64.
func TestHopFeatures(t *testing.T) {
	g := ring(40, 3)
	o := Options{Cores: 2, Dim: 4}
	o = o.withDefaults(g, len(g.Edges))
	f := newFit(g, g.distinct(g.Edges), Split{}, &o, time.Now())
	h := f.enc.(*hops)
	linked := make([][]float64, g.Nodes)
	for i := range linked {
		linked[i] = make([]float64, g.Nodes)
	}
	check := func(links []Edge) {
		for i := range linked {
			clear(linked[i])
		}
		for _, e := range links {
			linked[e.Source][e.Target], linked[e.Target][e.Source] = 1, 1
		}
		degree := make([]float64, g.Nodes)
		for i, row := range linked {
			for _, x := range row {
				degree[i] += x
			}
		}
		width, block := h.layout.width(), h.layout.block()
		for hop := 1; hop <= hopCount; hop++ {
			for i := range g.Nodes {
				for k := range block {
					var want float64
					for j, x := range linked[i] {
						if x > 0 {
							want += float64(h.features[j*width+(hop-1)*block+k]) / math.Sqrt(degree[i]*degree[j])
						}
					}
					want *= float64(h.sizes[hop-1] / h.sizes[hop])
					require.InDelta(t, want, h.features[i*width+hop*block+k], 1e-5, "hop %d, node %d, value %d", hop, i, k)
				}
			}
		}
		for i := range g.Nodes {
			require.InDelta(t, math.Log1p(degree[i])/2-1, h.features[(i+1)*width-hopDegrees], 1e-6)
		}
	}
	check(f.links)
	for hop := 1; hop <= hopCount; hop++ {
		assert.InDelta(t, 1, h.size(hop), 1e-4, "values of block %d are about 1", hop)
	}
	for i := h.layout.random; i < h.layout.block(); i++ { // given features have mean 0 and variance 1
		var sum, squares float64
		for n := range g.Nodes {
			x := float64(h.features[n*h.layout.width()+i])
			sum, squares = sum+x, squares+x*x
		}
		assert.InDelta(t, 0, sum, 1e-4)
		assert.InDelta(t, g.Nodes, squares, 1e-3)
	}
	h.see(f.links[:50])
	check(f.links[:50])
}

// TestSampler checks what a batch promises: rows, places, and negatives that are no links.
func TestSampler(t *testing.T) {
	for _, kind := range []NegativeKind{Uniform, Batch, Degree, Pairs} {
		for _, sources := range []int{0, 30} {
			g := &Graph{Nodes: 100, Sources: sources, Directed: true}
			for i := range 300 {
				g.Edges = append(g.Edges, Edge{Source: uint32(i % 30), Target: uint32(30 + (i*7+i/30)%70)})
			}
			links := g.distinct(g.Edges)
			o := Options{Negatives: kind, PerLink: 3}
			s := newSampler(crew{1}, g, links, &o, false)
			var b batch
			s.fill(&b, allNodes(60), newRand(3))
			require.Len(t, b.pairs, 240)
			known := map[Edge]bool{}
			for _, e := range links {
				known[e] = true
			}
			negatives, drawn := 0, map[uint32]bool{}
			for i, p := range b.pairs {
				e := Edge{Source: b.nodes[p.source], Target: b.nodes[p.target]}
				if i%4 == 0 {
					require.Equal(t, links[i/4], e)
					continue
				}
				if drawn[e.Source] = true; kind == Pairs {
					require.Less(t, int(e.Source), g.sourceNodes())
				} else {
					require.Equal(t, b.pairs[i/4*4].source, p.source)
				}
				require.GreaterOrEqual(t, int(e.Target), sources)
				if !known[e] {
					negatives++
				}
			}
			assert.Greater(t, negatives, 150, "most are no links: kind %s", kind)
			assert.Equal(t, kind == Pairs && sources == 0, len(drawn) > 30, "links have 30 sources: kind %s", kind)
			seen := 0
			for row := range b.rows {
				for _, place := range b.places[b.start[row]:b.start[row+1]] {
					p := b.pairs[place/2]
					require.EqualValues(t, row, [2]uint32{p.source, p.target}[place%2])
					seen++
				}
			}
			require.Equal(t, 480, seen)
		}
	}
}

// TestPairsAmongNonEdges: with Pairs every pair of nodes without a link is a negative as often as
// every other. A hub with links to most nodes is in few such pairs, so it is the source of few.
func TestPairsAmongNonEdges(t *testing.T) {
	const nodes, hub, linked = 40, 3, 36
	g := &Graph{Nodes: nodes}
	for i := range linked {
		g.Edges = append(g.Edges, Edge{Source: hub, Target: uint32((hub + 1 + i) % nodes)})
	}
	o := Options{Negatives: Pairs, PerLink: 50}
	s := newSampler(crew{1}, g, g.distinct(g.Edges), &o, true)
	var b batch
	drawn := [2]int{} // negatives that the hub is the source of, and the target
	for seed := range uint64(40) {
		s.fill(&b, allNodes(linked), newRand(seed))
		for i, p := range b.pairs {
			if i%b.group == 0 {
				continue
			}
			require.False(t, s.targets.has(p.source, p.target), "%d and %d are linked", p.source, p.target)
			if p.source == hub {
				drawn[0]++
			}
			if p.target == hub {
				drawn[1]++
			}
		}
	}
	const draws = 40 * linked * 50
	const without = nodes*(nodes-1) - 2*linked // pairs of two nodes without a link, in both directions
	for i, count := range drawn {
		assert.InEpsilon(t, draws*float64(nodes-1-linked)/without, count, 0.15, "the hub is end %d of negatives", i)
	}
}

// TestWalks checks that walks follow links, and that p and q bias them: with a large q a walk stays
// near where it was.
func TestWalks(t *testing.T) {
	g := ring(200, 0)
	a := newAdjacency(crew{1}, g.Nodes, g.Edges, both)
	returns := func(back, away float64) float64 {
		w, rng := walker{a, back, away}, newRand(5)
		count, steps := 0, 0
		for range 300 {
			path := make([]uint32, 20)
			path[0] = uint32(rng.IntN(g.Nodes))
			require.Equal(t, 20, w.walk(path, rng))
			for i := 1; i < len(path); i++ {
				require.True(t, a.has(path[i-1], path[i]))
				if i > 1 {
					steps++
					if path[i] == path[i-2] {
						count++
					}
				}
			}
		}
		return float64(count) / float64(steps)
	}
	plain := returns(1, 1)
	assert.Greater(t, returns(10, 1), 2*plain)
	assert.Less(t, returns(0.1, 1), plain/2)
	assert.Greater(t, returns(1, 0.1), 1.5*plain)
}

// TestWalkWindow brings the nodes of a walk together that are at most so many steps apart.
func TestWalkWindow(t *testing.T) {
	var chain []Edge
	for i := range uint32(9) {
		chain = append(chain, Edge{Source: i, Target: i + 1})
	}
	f := &fit{trainer: &trainer{crew: crew{1}}}
	w := walker{newAdjacency(f.crew, 10, chain, outgoing), 1, 1}
	o := Options{WalkLength: 5, WalkWindow: 2}
	assert.Equal(t, []Edge{
		{Source: 3, Target: 4},
		{Source: 3, Target: 5},
		{Source: 4, Target: 5},
		{Source: 4, Target: 6},
		{Source: 5, Target: 6},
		{Source: 5, Target: 7},
		{Source: 6, Target: 7},
	}, f.windows(nil, w, []uint32{3}, &o, 1))
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// TestDefaultEpochs checks that few links get many epochs, and many links at least two.
func TestDefaultEpochs(t *testing.T) {
	for links, want := range map[int]int{0: 30, 1_000: 30, 70_000: 20, 114_000: 12, 600_000: 12, 1_800_000: 4, 3_000_000: 2, 50_000_000: 2} {
		assert.Equal(t, want, defaultEpochs(links), "%d links", links)
	}
}
