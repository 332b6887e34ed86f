package graph

import (
	"cmp"
	"errors"
	"slices"

	"github.com/flashdb/flashdb/train"
)

// SplitByTime deals the edges into a split by their times: the latest are for the test, those
// before them for validation, and the model is trained on the past. The shares are of the edges, 0
// to 1.
func (g *Graph) SplitByTime(valid, test float64) (train.Split, error) {
	if len(g.Times) != len(g.Edges) {
		return train.Split{}, errors.New("the edges have no times: name the column")
	}
	order := make([]int, len(g.Edges))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(g.Times[x], g.Times[y]) })
	edges := make([]train.Edge, len(order))
	for i, at := range order {
		edges[i] = g.Edges[at]
	}
	n := len(edges)
	nTest := int(float64(n) * test)
	nValid := min(int(float64(n)*valid), n-nTest)
	return train.Split{Train: edges[:n-nTest-nValid], Valid: edges[n-nTest-nValid : n-nTest], Test: edges[n-nTest:]}, nil
}

// Components counts the connected components of the graph, and the nodes of the largest.
func (g *Graph) Components() (count, largest int) {
	parent := make([]uint32, g.Nodes)
	size := make([]int, g.Nodes)
	for i := range parent {
		parent[i], size[i] = uint32(i), 1
	}
	root := func(n uint32) uint32 {
		for parent[n] != n {
			parent[n] = parent[parent[n]]
			n = parent[n]
		}
		return n
	}
	for _, e := range g.Edges {
		x, y := root(e.Source), root(e.Target)
		if x == y {
			continue
		}
		if size[x] < size[y] {
			x, y = y, x
		}
		parent[y] = x
		size[x] += size[y]
	}
	for n := range parent {
		if parent[n] == uint32(n) {
			count++
			largest = max(largest, size[n])
		}
	}
	return count, largest
}
