package graph

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// SetFeatures sets the features of the nodes. next writes the dim values of a row to dst and
// returns the key of its node, or no key if rows are in the order of the nodes. It returns ok false
// at the end. Every node must have a row. Rows of nodes that are not in the graph are ignored and
// counted. With two kinds of nodes these are the features of the targets, and sources have zeros in
// their place.
func (g *Graph) SetFeatures(name string, dim int, next func(dst []float32) (key string, ok bool, err error)) (unused int, err error) {
	return g.addFeatures(name, g.Sources, g.Nodes, dim, next)
}

// SetSourceFeatures is SetFeatures for the sources of a graph with two kinds of nodes. The features
// that are set first come first.
func (g *Graph) SetSourceFeatures(name string, dim int, next func(dst []float32) (key string, ok bool, err error)) (unused int, err error) {
	if g.Sources == 0 {
		return 0, fmt.Errorf("%s: features of sources are for two kinds of nodes", name)
	}
	return g.addFeatures(name, 0, g.Sources, dim, next)
}

// addFeatures adds features to the nodes of a range, after those that they have.
func (g *Graph) addFeatures(name string, first, last, dim int, next func(dst []float32) (key string, ok bool, err error)) (unused int, err error) {
	numbers := make(map[string]int, last-first)
	for i := first; i < last; i++ {
		numbers[g.Keys[i]] = i
	}
	before := g.FeatureDim
	width := before + dim
	features, seen := make([]float32, g.Nodes*width), make([]bool, last-first)
	for i := range g.Nodes {
		copy(features[i*width:], g.Features[i*before:(i+1)*before])
	}
	values, keyless := make([]float32, dim), false
	row := 0
	for ; ; row++ {
		key, ok, err := next(values)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		if i := slices.IndexFunc(values, func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }); i >= 0 {
			return 0, fmt.Errorf("%s: row %d: value %d is %v as a float32: want finite numbers", name, row, i, values[i])
		}
		if key == "" {
			key, keyless = strconv.Itoa(row), true
		}
		n, known := numbers[key]
		switch {
		case !known:
			unused++
			continue
		case seen[n-first]:
			return 0, fmt.Errorf("%s: row %d: node %s has features already", name, row, quote(key))
		}
		seen[n-first] = true
		copy(features[n*width+before:], values)
	}
	if n := slices.Index(seen, false); n >= 0 {
		hint := ""
		if keyless {
			hint = fmt.Sprintf("; its %d rows of %d values have no keys, and count as those of nodes 0, 1, 2 and so on", row, dim)
		}
		return 0, fmt.Errorf("%s has no row for node %s: want features of every node%s", name, quote(g.Keys[first+n]), hint)
	}
	g.Features, g.FeatureDim = features, width
	return unused, nil
}
