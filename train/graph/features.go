package graph

import (
	"fmt"
	"math"
	"slices"
)

// SetFeatures gives the nodes features: next writes the dim values of a row to dst and returns the
// key of its node, or no key where rows are nodes by number; it ends with ok false. Every node must
// have a row. Rows of nodes that the graph has not are counted, and left out.
func (g *Graph) SetFeatures(name string, dim int, next func(dst []float32) (key string, ok bool, err error)) (unused int, err error) {
	if g.Sources > 0 {
		return 0, fmt.Errorf("%s: features are for one kind of node", name)
	}
	numbers := make(map[string]int, len(g.Keys))
	for i, key := range g.Keys {
		numbers[key] = i
	}
	features, seen := make([]float32, g.Nodes*dim), make([]bool, g.Nodes)
	values := make([]float32, dim)
	for row := 0; ; row++ {
		key, ok, err := next(values)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		if i := slices.IndexFunc(values, func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }); i >= 0 {
			return 0, fmt.Errorf("%s: row %d: value %d is %v: want finite numbers", name, row, i, values[i])
		}
		if key == "" {
			key = fmt.Sprint(row)
		}
		n, known := numbers[key]
		switch {
		case !known:
			unused++
			continue
		case seen[n]:
			return 0, fmt.Errorf("%s: row %d: node %s has features already", name, row, quote(key))
		}
		seen[n] = true
		copy(features[n*dim:], values)
	}
	if n := slices.Index(seen, false); n >= 0 {
		return 0, fmt.Errorf("%s has no row for node %s: want features of every node", name, quote(g.Keys[n]))
	}
	g.Features, g.FeatureDim = features, dim
	return unused, nil
}
