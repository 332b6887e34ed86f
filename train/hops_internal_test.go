package train

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestFreeShares lets one step change the free embeddings of nodes with more and with fewer links.
func TestFreeShares(t *testing.T) {
	g := &Graph{Nodes: 6}
	links := []Edge{{Source: 0, Target: 1}, {Source: 0, Target: 2}, {Source: 0, Target: 3}, {Source: 0, Target: 4}}
	o := Options{Dim: 2, Cores: 1, FreeLinks: 4}.withDefaults(g, len(links))
	h := newHops(crew{1}, g, &o, &params{crew: crew{1}}, rand.New(rand.NewPCG(1, 1)))
	h.see(links)
	h.see(links[:1]) // of a fold
	h.nodes, h.grads = []uint32{0, 1, 5}, []float32{1, 1, 1, 1, 1, 1}
	h.update(adam{rate: 1})
	assert.InDelta(t, -0.5, h.t.row(0)[1], 1e-5, "four links")
	assert.InDelta(t, -0.2, h.t.row(1)[1], 1e-5, "one link")
	assert.Zero(t, h.t.row(5)[1], "none")
	assert.Zero(t, h.t.row(2)[1], "not of the batch")
}
