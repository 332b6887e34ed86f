package train

import (
	"errors"
	"math/rand/v2"
)

// Split is a partition of the edges of a graph. A model is fitted to Train; Valid decides when to
// stop and which epoch is kept; Test is held out of both, for Evaluate. Valid and Test may be
// empty.
type Split struct {
	Train, Valid, Test []Edge
	// ValidNegatives, if set, is one list of negatives that all validation edges are ranked among,
	// as in OGB. The epoch with the best Hits@Options.ValidHits is then kept. Without it, the one
	// with the best MRR among negatives drawn for each edge is.
	ValidNegatives []Edge
	// ValidCandidates, if set, are the negatives of each edge of Valid, by node number. The epoch
	// with the best MRR among them is then kept. ValidNegatives must not be set with it.
	ValidCandidates [][]uint32
}

// check lists what is wrong with a split of a graph.
func (s *Split) check(g *Graph) error {
	faults := []error{
		g.checkEdges("training ", s.Train), g.checkEdges("validation ", s.Valid),
		g.checkEdges("validation negative ", s.ValidNegatives),
		checkCandidates(s.ValidCandidates, len(s.Valid), g.Nodes),
	}
	if s.ValidNegatives != nil && s.ValidCandidates != nil {
		faults = append(faults, errors.New("ValidNegatives and ValidCandidates exclude each other"))
	}
	return errors.Join(faults...)
}

// mostValid bounds the validation edges of a split. More cost time and hardly change the mean.
const mostValid = 20_000

// RandomSplit deals the edges of a graph into a split at random. Valid and test are shares of the
// edges, 0 to 1; the validation share gives at most 20,000 edges. Self loops and repeated edges are
// left out of all three, so that no test edge is a training edge too; an undirected edge and its
// reverse are one edge. The graph's edges are not changed.
func RandomSplit(g *Graph, valid, test float64, seed uint64) Split {
	edges := g.distinctEdges()
	rng := rand.New(rand.NewPCG(seed, streamSplit))
	rng.Shuffle(len(edges), func(i, j int) { edges[i], edges[j] = edges[j], edges[i] })
	nTest := int(float64(len(edges)) * test)
	nValid := min(int(float64(len(edges))*valid), mostValid, len(edges)-nTest)
	return Split{Train: edges[nTest+nValid:], Valid: edges[nTest : nTest+nValid], Test: edges[:nTest]}
}
