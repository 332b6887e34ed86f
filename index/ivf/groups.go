package ivf

import (
	"context"
	"math"
	"slices"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/kmeans"
	"github.com/flashdb/flashdb/internal/simd"
)

// If there are many lists, they are clustered into groups by their centroids. A query that visits
// few lists then need not read the centroids of all. The lists of a group follow each other in the
// file, so their centroids are one block of memory.

const (
	// groupedLists is the least number of lists that are grouped. With fewer, only queries that
	// visit a few thousand rows would gain from it.
	groupedLists = 8192
	// listsPerGroup is the mean number of lists of a group.
	listsPerGroup = 32
	// A query chooses by groups if there are at least this many lists for each list that it visits.
	// If it visits more, most groups may hold one of them, and groups cost more than they save.
	fewLists = 256
	// The best groups, one for each leadGroups lists to visit, are examined first. Their lists give
	// the threshold that the other groups must reach.
	leadGroups = 4
	// groupBenefit is how far above the mean of its group the best list is assumed to lie, in
	// multiples of the expected maximum. Its breadth is assumed to be the largest of the group. Of
	// values from .15 to 2, .85 is the smallest that kept recall: see docs/measurements.md.
	groupBenefit = 0.85
)

// groupLists sorts the trained lists, whose centroids are given in that order, by groups, and sets
// where each group begins.
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

// groups describes the groups of lists of an open index. All but begin is computed from the lists.
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

// newGroups returns the groups with these bounds, for lists with these centroids, row-major, and
// breadths.
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

// wantsFew reports whether the budget is so small that query vectors choose lists by groups.
func (s *Search) wantsFew(probes index.Probes) bool {
	lists := s.ix.header.lists
	return s.ix.groups.len() > 0 && !probes.All() && (s.cost.Lists+s.missing(probes))*fewLists <= lists
}

// rateGroups estimates the highest priority of the lists of each group.
func (q *queryVector) rateGroups(ix *Index) {
	q.resize(ix)
	g := &ix.groups
	q.examined = resize(q.examined, (g.len()+wordBits-1)/wordBits)
	clear(q.examined)
	q.tops, q.alongs = resize(q.tops, g.len()), resize(q.alongs, g.len())
	q.squares = resize(q.squares, ix.header.dim)
	simd.Mul(q.squares, q.vector, q.vector)
	simd.DotRows(q.tops, q.vector, g.centroids)
	simd.DotRows(q.alongs, q.squares, g.profile)
	simd.Axpy(q.tops, q.unit, g.breadth)
	for i, v := range q.alongs {
		q.tops[i] += groupBenefit * g.reach[i] * float32(math.Sqrt(float64(v)))
	}
}

// chooseByGroup is choose for a query vector that has rated the groups but not the lists. It skips
// groups that are unlikely to hold one of the n lists.
func (q *queryVector) chooseByGroup(ix *Index, n int, visited bitset) {
	q.leading.Reset(1 + n/leadGroups)
	for g, top := range q.tops {
		q.leading.Offer(index.Candidate{ID: uint32(g), Score: ordered(top)})
	}
	q.wanted.Reset(n)
	q.lead = resize(q.lead, len(q.examined))
	clear(q.lead)
	for _, c := range q.leading.Kept() {
		q.lead.add(int(c.ID))
		q.examine(ix, int(c.ID), visited)
	}
	q.wanted.Kept() // raises the threshold
	for g, top := range q.tops {
		if !q.lead.has(g) && !(top < q.wanted.Threshold()) {
			q.examine(ix, g, visited)
		}
	}
	q.turns = q.wanted.Sorted(q.turns[:0])
}

// examine offers wanted the unvisited lists of a group.
func (q *queryVector) examine(ix *Index, g int, visited bitset) {
	begin, end := int(ix.groups.begin[g]), int(ix.groups.begin[g+1])
	if !q.examined.has(g) {
		q.examined.add(g)
		q.rateLists(ix, begin, end)
	}
	floor := q.wanted.Threshold()
	for i, p := range q.priorities[begin:end] {
		if p = ordered(p); p >= floor && !visited.has(begin+i) {
			q.wanted.Offer(index.Candidate{ID: uint32(begin + i), Score: p})
		}
	}
}

// computeMissingProducts computes the products with the centroids of lists, given in ascending
// order, whose groups the query has not examined.
func (q *queryVector) computeMissingProducts(ix *Index, lists []uint32) {
	d, g := ix.header.dim, 0
	for _, list := range lists {
		for ix.groups.begin[g+1] <= list {
			g++
		}
		if l := int(list); !q.examined.has(g) {
			q.products[l] = simd.Dot(q.vector, ix.centroids[l*d:(l+1)*d])
		}
	}
}
