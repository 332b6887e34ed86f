package graph

import (
	"slices"
	"strconv"

	"github.com/flashdb/flashdb/train"
)

// A Direction says whether an edge between nodes of one kind is the same edge as its reverse.
type Direction uint8

// The directions.
const (
	FindOut    Direction = iota // found out from how the edges are listed, see Listing
	Directed                    // an edge and its reverse are two
	Undirected                  // an edge and its reverse are one
)

// A Listing is how a file lists its edges, which tells whether they have a direction.
type Listing uint8

// The listings. Edges of any but Arrows have no direction, unless Options say otherwise.
const (
	Arrows     Listing = iota // none of the others, so the order of the two nodes means something
	BothWays                  // half of the edges or more are there in both directions
	LowerFirst                // each edge is there once, the lower key first
	ByNode                    // each edge is there once, node after node: none leads to a node whose edges came before
	EitherWay                 // each edge is there once, and the order of its nodes looks drawn at random
)

// BothWays means at least this share of edges whose reverse is there too.
const bothWays = 0.5

// fewestOnce edges without a reverse may be listed once each. Among fewer it may be by chance that
// none has a reverse.
const fewestOnce = 1000

// evenOdds is how near to a half the share of edges that guessDirections guesses right must be for
// EitherWay. It is .86 in go-stdlib, and .95 and .97 in two directed graphs that were generated.
const evenOdds = 0.05

// once tells how the training edges are listed if each is there once, by their order in the file.
// It is Arrows if the order does not tell.
func (b *Builder) once() Listing {
	switch edges := b.edges[Train]; {
	case b.lowerFirst(edges):
		return LowerFirst
	case byNode(edges, b.g.Nodes):
		return ByNode
	}
	return Arrows
}

// listing tells how the distinct sorted training edges are listed; once is what their order in the
// file tells. LeadBack is the share of them whose reverse is there too.
func (b *Builder) listing(edges []timedEdge, once Listing) Listing {
	switch {
	case b.o.Relations:
		return Arrows // a triple has a direction, also where most relations are symmetric
	case b.g.LeadBack >= bothWays:
		return BothWays
	case b.g.LeadBack > 0 || len(edges) < fewestOnce:
		return Arrows // an edge that has a reverse only now and then has a direction
	case once != Arrows:
		return once
	}
	if right := guessDirections(edges, b.g.Nodes); right > .5-evenOdds && right < .5+evenOdds {
		return EitherWay
	}
	return Arrows
}

// lowerFirst reports whether the source of each edge has the lower key: as a number if all keys are
// numbers, or else as a string. A list of citations in which all edges lead to older papers has the
// higher number first, which is no such list.
func (b *Builder) lowerFirst(edges []train.Edge) bool {
	lower := func(e train.Edge) bool { return e.Source < e.Target }
	if !b.o.ByNumber {
		keys := b.g.Keys
		lower = func(e train.Edge) bool { return keys[e.Source] < keys[e.Target] }
		if numbers := integers(keys); numbers != nil {
			lower = func(e train.Edge) bool { return numbers[e.Source] < numbers[e.Target] }
		}
	}
	return !slices.ContainsFunc(edges, func(e train.Edge) bool { return e.Source != e.Target && !lower(e) })
}

// integers returns the keys as numbers, or nil if one is none.
func integers(keys []string) []int64 {
	numbers := make([]int64, len(keys))
	for i, key := range keys {
		n, err := strconv.ParseInt(key, 10, 64)
		if err != nil {
			return nil
		}
		numbers[i] = n
	}
	return numbers
}

// byNode reports whether the edges are listed node after node, each with those it is linked to that
// were not listed yet. So programs write an undirected graph that they keep as lists of neighbours.
func byNode(edges []train.Edge, nodes int) bool {
	begun := make([]bool, nodes)
	var at train.Edge // the edge before
	for _, e := range edges {
		if e.Source == e.Target {
			continue
		}
		if begun[e.Target] || (begun[e.Source] && e.Source != at.Source) {
			return false
		}
		begun[e.Source], at = true, e
	}
	return true
}

// guessDirections guesses the direction of each edge from the other edges of its two nodes, and
// returns the share of right guesses. The source is guessed to be the node with the larger share of
// edges that lead away from it. In a directed graph nodes have roles, so that most guesses are
// right. If the order of the two nodes is random, half of them are.
func guessDirections(edges []timedEdge, nodes int) float64 {
	out, in := make([]float64, nodes), make([]float64, nodes)
	for _, e := range edges {
		out[e.Source]++
		in[e.Target]++
	}
	away := func(out, in float64) float64 { return (out - in) / max(1, out+in) }
	right := 0.0
	for _, e := range edges {
		source, target := away(out[e.Source]-1, in[e.Source]), away(out[e.Target], in[e.Target]-1)
		switch {
		case source > target:
			right++
		case source == target:
			right += .5
		}
	}
	return right / float64(len(edges))
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
