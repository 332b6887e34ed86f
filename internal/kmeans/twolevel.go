package kmeans

import (
	"cmp"
	"slices"
)

const (
	// coarsePoints is the number of rows a centroid that the coarse level is trained on.
	coarsePoints = 256
	// refineIterations of Lloyd's algorithm over all centroids repair the borders between the
	// groups of the coarse level.
	refineIterations = 3
	refineProbes     = 8
)

// twoLevel clusters the rows around sqrt(k) coarse centroids, splits each coarse cluster into a
// share of the k centroids that is in proportion to its rows, and then lets all rows and centroids
// settle together.
func (t *trainer) twoLevel(rows []float32, k, workers int) ([]float32, error) {
	g := isqrt(k)
	centres, err := t.lloyd(sample(rows, t.d, g*coarsePoints, t.rng(streamCoarseSample, 0)), g, workers, t.rng(streamCoarse, 0))
	if err != nil {
		return nil, err
	}
	coarse := newClustering(rows, t.d, g)
	a := &Assigner{d: t.d, groups: flatGroups(g)}
	a.pack(centres)
	if _, err := coarse.assign(t.ctx, a, workers); err != nil {
		return nil, err
	}
	coarse.group()
	first := apportion(coarse.begin, k)
	centroids := make([]float32, k*t.d)
	if err := t.split(centroids, coarse, first, workers); err != nil {
		return nil, err
	}
	return t.refine(rows, centroids, centres, first, workers)
}

// apportion divides k centroids among groups in proportion to their rows (largest remainders), at
// least one to each group that has rows and never more than it has rows. begin holds the running
// sums of rows, the result those of centroids. k is at least the number of groups and at most the
// number of rows.
func apportion(begin []int, k int) []int {
	groups, n := len(begin)-1, begin[len(begin)-1]
	share := make([]int, groups)
	left := k
	for g := range share {
		if size := begin[g+1] - begin[g]; size > 0 {
			share[g] = max(1, int(int64(k)*int64(size)/int64(n)))
			left -= share[g]
		}
	}
	// The groups by how far their share falls short of the proportion, in units of 1/n centroids.
	order := make([]int, groups)
	for g := range order {
		order[g] = g
	}
	short := func(g int) int64 { return int64(k)*int64(begin[g+1]-begin[g]) - int64(share[g])*int64(n) }
	for left != 0 {
		slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(short(b), short(a)), cmp.Compare(a, b)) })
		if left < 0 { // many tiny groups took one each: the others give back
			slices.Reverse(order)
		}
		for _, g := range order {
			switch size := begin[g+1] - begin[g]; {
			case left > 0 && share[g] < size:
				share[g]++
				left--
			case left < 0 && share[g] > 1:
				share[g]--
				left++
			}
		}
	}
	first := make([]int, groups+1)
	for g, s := range share {
		first[g+1] = first[g] + s
	}
	return first
}

// split trains the centroids first[g]..first[g+1] of each coarse cluster g on its rows alone. The
// clusters are small and many, so each is left to one worker.
func (t *trainer) split(centroids []float32, coarse *clustering, first []int, workers int) error {
	errs := make([]error, coarse.k)
	err := parallel(t.ctx, workers, coarse.k, func(_, g int) {
		members := coarse.members(g)
		if len(members) == 0 {
			return
		}
		rows := make([]float32, 0, len(members)*t.d)
		for _, i := range members {
			rows = append(rows, coarse.row(int(i))...)
		}
		part, err := t.lloyd(rows, first[g+1]-first[g], 1, t.rng(streamGroup, uint64(g)))
		copy(centroids[first[g]*t.d:], part)
		errs[g] = err
	})
	if err != nil {
		return err
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// refine runs Lloyd iterations over all rows and centroids; a row looks for its centroid in the
// nearest groups only.
func (t *trainer) refine(rows, centroids, centres []float32, first []int, workers int) ([]float32, error) {
	members := make([][]uint32, len(first)-1)
	for g := range members {
		for c := first[g]; c < first[g+1]; c++ {
			members[g] = append(members[g], uint32(c))
		}
	}
	a := newGrouped(centroids, centres, members, t.d, refineProbes)
	c := newClustering(rows, t.d, len(centroids)/t.d)
	copy(c.centroids, centroids)
	rng := t.rng(streamRefine, 0)
	for range refineIterations {
		a.pack(c.centroids)
		if _, err := c.assign(t.ctx, a, workers); err != nil {
			return nil, err
		}
		if err := c.update(t.ctx, workers, rng); err != nil {
			return nil, err
		}
	}
	return c.centroids, nil
}
