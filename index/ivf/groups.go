package ivf

import (
	"context"
	"math"
	"slices"

	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/kmeans"
)

// Many lists are clustered into groups by their centroids. The lists of a group follow each other in the file: their centroids are one block of memory.

const (
	// groupedLists is the number of lists from which on they are grouped: with fewer, only queries of a few thousand rows
	// would gain from it.
	groupedLists = 8192
	// listsPerGroup is the mean number of lists of a group.
	listsPerGroup = 32
)

// groupLists sorts the trained lists, whose centroids are given in that order, by groups, and sets where each group begins.
func (y *layout) groupLists(ctx context.Context, trained []uint32, centroids []float32, seed uint64, workers int) error {
	centres, err := kmeans.Train(ctx, centroids, y.dim, kmeans.Options{
		K: len(trained) / listsPerGroup, Seed: seed, Workers: workers,
	})
	if err != nil {
		return err
	}
	assigner, err := kmeans.NewAssigner(ctx, centres, y.dim, workers)
	if err != nil {
		return err
	}
	group := make([]uint32, len(trained))
	if err := assigner.Assign(ctx, group, centroids, workers); err != nil {
		return err
	}
	members := make([][]uint32, len(centres)/y.dim)
	for i, g := range group {
		members[g] = append(members[g], trained[i])
	}
	y.groups = []uint32{0}
	sorted := trained[:0]
	for _, m := range members {
		if len(m) > 0 {
			sorted = append(sorted, m...)
			y.groups = append(y.groups, uint32(len(sorted)))
		}
	}
	return nil
}

// groups is what an open index knows of its groups of lists. All but the bounds derives from the lists.
type groups struct {
	begin     []uint32  // group g holds the lists begin[g] to begin[g+1]; empty without groups
	centroids []float32 // mean of the centroids of its lists: row-major, groups x dim
	profile   []float32 // their variance in each dimension, as a multiple of its mean over all: row-major, groups x dim
	reach     []float32 // root of that mean, times sqrt(2 ln m) of m lists: the expected maximum of m Gaussians
	breadth   []float32 // largest breadth of its lists
}

func (g *groups) len() int { return max(0, len(g.begin)-1) }

// loadGroups verifies the bounds of the groups and sets what derives from them.
func (ix *Index) loadGroups(s *section) error {
	begin := slices.Clone(format.Uint32s(ix.bytes(s)[:s.length/4*4]))
	if n := len(begin); s.length%4 != 0 || n < 2 || begin[0] != 0 || int(begin[n-1]) != ix.header.lists {
		return ix.corrupt(s, 0, "%d bytes: want the bounds of groups from list 0 to %d", s.length, ix.header.lists)
	}
	for i := 1; i < len(begin); i++ {
		if begin[i] <= begin[i-1] {
			return ix.corrupt(s, 4*int64(i), "group %d has the lists %d to %d", i-1, begin[i-1], begin[i])
		}
	}
	ix.groups = newGroups(begin, ix.centroids, ix.breadth, ix.header.dim)
	return nil
}

// newGroups returns what derives from the bounds and from the centroids, row-major, and breadths of the lists.
func newGroups(begin []uint32, centroids, breadth []float32, d int) groups {
	n := len(begin) - 1
	g := groups{
		begin: begin, centroids: make([]float32, n*d), profile: make([]float32, n*d),
		reach: make([]float32, n), breadth: make([]float32, n),
	}
	variances := make([]float64, d)
	for i := range n {
		first, end := int(begin[i]), int(begin[i+1])
		lists := centroids[first*d : end*d]
		var total float64
		for j := range d {
			mean, variance := column(lists, d, j)
			g.centroids[i*d+j], variances[j] = float32(mean), variance
			total += variance / float64(d)
		}
		for j, v := range variances {
			if total > 0 {
				g.profile[i*d+j] = float32(v / total)
			}
		}
		g.reach[i] = float32(min(math.MaxFloat32, math.Sqrt(2*math.Log(float64(end-first))*total)))
		g.breadth[i] = slices.Max(breadth[first:end])
	}
	return g
}

// column returns the mean and the variance of dimension j of rows, row-major.
func column(rows []float32, d, j int) (mean, variance float64) {
	n := float64(len(rows) / d)
	for i := j; i < len(rows); i += d {
		mean += float64(rows[i]) / n
	}
	for i := j; i < len(rows); i += d {
		by := float64(rows[i]) - mean
		variance += by * by / n
	}
	return mean, variance
}
