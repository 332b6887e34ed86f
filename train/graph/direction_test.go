package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// differentPairs draws different pairs of n nodes, the lower first, so that some nodes are in many.
func differentPairs(rng *rand.Rand, n, m int) [][2]int {
	seen := map[[2]int]bool{}
	var all [][2]int
	for len(all) < m {
		a, b := rng.IntN(n), int(float64(n)*rng.Float64()*rng.Float64())
		if p := [2]int{min(a, b), max(a, b)}; a != b && !seen[p] {
			seen[p] = true
			all = append(all, p)
		}
	}
	return all
}

// listed writes edges as lines, the nodes by the keys given.
func listed(edges [][2]int, key func(node int) string) string {
	var b strings.Builder
	for _, e := range edges {
		fmt.Fprintf(&b, "%s\t%s\n", key(e[0]), key(e[1]))
	}
	return b.String()
}

func TestListing(t *testing.T) {
	t.Parallel()
	const n, m = 400, 3000
	rng := rand.New(rand.NewPCG(1, 2))
	lower := differentPairs(rng, n, m)
	renamed := rng.Perm(n)
	number := func(node int) string { return fmt.Sprint(node) }
	name := func(node int) string { return fmt.Sprintf("n%03d", node) }
	other := func(node int) string { return fmt.Sprint(renamed[node]) }
	turned := func(edges [][2]int, turn func(i int) bool) [][2]int {
		edges = slices.Clone(edges)
		for i, e := range edges {
			if turn(i) {
				edges[i] = [2]int{e[1], e[0]}
			}
		}
		return edges
	}
	always := func(int) bool { return true }
	atRandom := turned(lower, func(int) bool { return rng.IntN(2) == 0 })
	sorted := slices.SortedFunc(slices.Values(lower), func(x, y [2]int) int { return x[0] - y[0] })

	for name, c := range map[string]struct {
		text    string
		options *Options
		want    Listing
	}{
		"lower number first":           {listed(lower, number), nil, LowerFirst},
		"lower name first":             {listed(lower, name), nil, LowerFirst},
		"node after node":              {listed(sorted, other), nil, ByNode},
		"node after node, self loops":  {listed(sorted, other) + other(0) + "\t" + other(0) + "\n", nil, ByNode},
		"at random":                    {listed(atRandom, number), nil, EitherWay},
		"one of them in both ways too": {listed(append(atRandom, turned(lower[:1], always)...), number), nil, Arrows},
		"half of them in both ways":    {listed(append(turned(lower[:m/2], always), lower...), number), nil, BothWays},
		"few":                          {listed(sorted[:fewestOnce-1], number), nil, Arrows},
		// Numbers that do not follow the order of the edges, which are not listed node after node.
		"arrows": {listed(lower, other), nil, Arrows},
		// As papers are numbered by time and cite older ones, or are listed from the oldest on.
		"higher number first": {listed(turned(lower, always), number), nil, Arrows},
		"triples":             {strings.ReplaceAll(listed(lower, number), "\t", "\tr\t"), &Options{Relations: true}, Arrows},
		// Most triples of WordNet are of symmetric relations, and others lead up to broader words.
		"triples in both ways": {strings.ReplaceAll(listed(append(turned(lower[:m/2], always), lower...), number), "\t", "\tr\t"), &Options{Relations: true}, Arrows},
		"triples as edges":     {strings.ReplaceAll(listed(append(turned(lower[:m/2], always), lower...), number), "\t", "\tr\t"), nil, BothWays},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := build(t, c.options, map[Part]string{Train: c.text})
			require.NoError(t, err)
			assert.Equal(t, c.want, g.Listing)
			assert.Equal(t, c.want == Arrows, g.Directed)
		})
	}
	g, err := build(t, &Options{Direction: Directed}, map[Part]string{Train: listed(lower, number)})
	require.NoError(t, err)
	assert.True(t, g.Directed)
}
