package train

import (
	"math"
	"slices"
)

// adjacency holds the neighbours of every node in compressed rows. Those of node i are
// to[start[i]:start[i+1]], ascending, each once.
type adjacency struct {
	start []uint64
	to    []uint32
}

// direction says for which ends of an edge the other end is a neighbour.
type direction uint8

const (
	both direction = iota
	outgoing
	incoming
)

// newAdjacency returns the adjacency of n nodes by the edges.
func newAdjacency(c crew, n int, edges []Edge, dir direction) *adjacency {
	a := &adjacency{start: make([]uint64, n+1)}
	for _, e := range edges {
		if dir != incoming {
			a.start[e.Source+1]++
		}
		if dir != outgoing {
			a.start[e.Target+1]++
		}
	}
	for i := range n {
		a.start[i+1] += a.start[i]
	}
	a.to = make([]uint32, a.start[n])
	next := slices.Clone(a.start[:n])
	put := func(at, to uint32) {
		a.to[next[at]] = to
		next[at]++
	}
	for _, e := range edges {
		if dir != incoming {
			put(e.Source, e.Target)
		}
		if dir != outgoing {
			put(e.Target, e.Source)
		}
	}
	a.tidy(c, n)
	return a
}

// tidy sorts the neighbours of each node and removes repeats, which come from several relations or
// from both directions of an edge.
func (a *adjacency) tidy(c crew, n int) {
	kept := make([]uint64, n+1)
	c.ranges(n, 1024, func(_, first, last int) {
		for i := first; i < last; i++ {
			row := a.to[a.start[i]:a.start[i+1]]
			slices.Sort(row)
			kept[i+1] = uint64(len(slices.Compact(row)))
		}
	})
	for i := range n {
		kept[i+1] += kept[i]
		copy(a.to[kept[i]:kept[i+1]], a.to[a.start[i]:])
	}
	a.start, a.to = kept, a.to[:kept[n]]
}

// of returns the neighbours of node.
func (a *adjacency) of(node uint32) []uint32 { return a.to[a.start[node]:a.start[node+1]] }

// degree returns the number of neighbours of node.
func (a *adjacency) degree(node uint32) int { return int(a.start[node+1] - a.start[node]) }

// has reports whether to is a neighbour of node.
func (a *adjacency) has(node, to uint32) bool {
	_, found := slices.BinarySearch(a.of(node), to)
	return found
}

// inverseRoots returns 1 / sqrt(degree + more) for every node, or 1 where that is infinite.
func (a *adjacency) inverseRoots(more int) []float32 {
	roots := make([]float32, len(a.start)-1)
	for i := range roots {
		roots[i] = float32(1 / math.Sqrt(float64(max(1, a.degree(uint32(i))+more))))
	}
	return roots
}
