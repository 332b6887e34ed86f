package kmeans

import (
	"context"
	"math"
	"runtime"
	"slices"

	"github.com/flashdb/flashdb/internal/simd"
)

const (
	// flatLimit is the largest k that an Assigner compares with every row.
	flatLimit = 1024
	// flatWidth is the number of centroids compared at a time: a tile of scores stays in the
	// second-level cache.
	flatWidth = 256
	tileRows  = 256
	// probedGroups is how many groups of centroids a row is compared with. Of 109 groups of the
	// 11,794 lists of a graph of 755k nodes, 16 hold the nearest centroid of 98% of the rows (8:
	// 94%, 24: 99%).
	probedGroups = 16
	// groupIterations suffice to group centroids: the groups only steer the search.
	groupIterations = 4
)

// Assigner finds the nearest of k centroids for many rows. Up to 1024 centroids it compares a row
// with all of them. Beyond, the centroids lie in sqrt(k) groups and a row is compared with the
// groups' centres, then with the members of the nearest groups; the centroid found may then not be
// the very nearest.
type Assigner struct {
	d      int
	groups []group
	coarse *block // centres of the groups; nil: every row is compared with every group
	probes int    // groups that a row is compared with, when there is a coarse block
}

// group is a set of centroids that are compared with a row together.
type group struct {
	block
	members []uint32 // numbers of the centroids, ascending
}

// block scores rows against a set of centroids by one matrix product: x.c - |c|^2/2, which is
// highest where |x-c| is least.
type block struct {
	matrix *simd.Matrix
	bias   []float32 // -|c|^2/2
}

func newBlock(into block, centroids []float32, d int) block {
	k := len(centroids) / d
	b := block{matrix: simd.Pack(into.matrix, centroids, k, d, nil), bias: into.bias}
	if len(b.bias) != k {
		b.bias = make([]float32, k)
	}
	for i := range k {
		c := centroids[i*d : (i+1)*d]
		b.bias[i] = -simd.Dot(c, c) / 2
	}
	return b
}

// scores sets dst, row-major n x k, to the scores of n rows.
func (b *block) scores(dst, rows []float32, n int) { b.matrix.Mul(dst, rows, b.bias, n) }

// NewAssigner prepares the assignment of rows to centroids (row-major, k x d), which it copies.
func NewAssigner(ctx context.Context, centroids []float32, d, workers int) (*Assigner, error) {
	k := len(centroids) / d
	workers = max(1, workers)
	if k <= flatLimit {
		a := &Assigner{d: d, groups: flatGroups(k)}
		a.pack(centroids)
		return a, nil
	}
	t := trainer{ctx: ctx, d: d, iterations: groupIterations}
	centres, err := t.lloyd(centroids, isqrt(k), workers, t.rng(streamCoarse, 0))
	if err != nil {
		return nil, err
	}
	c := newClustering(centroids, d, len(centres)/d)
	flat := &Assigner{d: d, groups: flatGroups(c.k)}
	flat.pack(centres)
	if _, err := c.assign(ctx, flat, workers); err != nil {
		return nil, err
	}
	c.group()
	members := make([][]uint32, c.k)
	for i := range members {
		members[i] = c.members(i)
	}
	return newGrouped(centroids, centres, members, d, probedGroups), nil
}

// newGrouped returns an Assigner over groups of centroids with the given centres (row-major,
// len(members) x d), which compares a row with the nearest probes of them. Groups without members
// are left out.
func newGrouped(centroids, centres []float32, members [][]uint32, d, probes int) *Assigner {
	a := &Assigner{d: d}
	var used []float32
	for i, m := range members {
		if len(m) > 0 {
			a.groups = append(a.groups, group{members: m})
			used = append(used, centres[i*d:(i+1)*d]...)
		}
	}
	coarse := newBlock(block{}, used, d)
	a.coarse, a.probes = &coarse, min(probes, len(a.groups))
	a.pack(centroids)
	return a
}

// flatGroups cuts 0..k-1 into runs.
func flatGroups(k int) []group {
	var groups []group
	for first := 0; first < k; first += flatWidth {
		g := group{members: make([]uint32, min(flatWidth, k-first))}
		for i := range g.members {
			g.members[i] = uint32(first + i)
		}
		groups = append(groups, g)
	}
	return groups
}

// pack sets the centroids, keeping the groups.
func (a *Assigner) pack(centroids []float32) {
	var packed []float32
	for i := range a.groups {
		g := &a.groups[i]
		packed = packed[:0]
		for _, c := range g.members {
			packed = append(packed, centroids[int(c)*a.d:(int(c)+1)*a.d]...)
		}
		g.block = newBlock(g.block, packed, a.d)
	}
}

// Assign sets dst[i] to the centroid nearest to row i of rows (row-major, len(dst) x d). Of equally
// near ones it is the one with the lowest number.
func (a *Assigner) Assign(ctx context.Context, dst []uint32, rows []float32, workers int) error {
	return a.assign(ctx, dst, rows[:len(dst)*a.d], max(1, workers))
}

func (a *Assigner) assign(ctx context.Context, dst []uint32, rows []float32, workers int) error {
	scratch := make([]*assignScratch, workers)
	return parallel(ctx, workers, tasks(len(dst)), func(worker, task int) {
		if scratch[worker] == nil {
			scratch[worker] = &assignScratch{}
		}
		first, end := task*taskRows, min(len(dst), (task+1)*taskRows)
		a.task(scratch[worker], dst[first:end], rows[first*a.d:end*a.d])
	})
}

// assignScratch is the working memory of one worker.
type assignScratch struct {
	best   []float32 // score of the nearest centroid so far, per row
	scores []float32 // one tile: row-major, rows x centroids of a group
	better []uint64  // which scores of a row are not below its best so far
	tile   []float32 // rows of a tile, gathered
	probed []uint32  // groups to compare each row with: row-major, rows x probes
	begin  []int     // rows to compare with group g are order[begin[g]:begin[g+1]]
	order  []uint32
}

// task assigns at most taskRows rows.
func (a *Assigner) task(s *assignScratch, dst []uint32, rows []float32) {
	clear(dst)
	s.best = resize(s.best, len(dst))
	for i := range s.best {
		s.best[i] = float32(math.Inf(-1))
	}
	if a.coarse == nil {
		for first := 0; first < len(dst); first += tileRows {
			end := min(len(dst), first+tileRows)
			for g := range a.groups {
				a.groups[g].compare(s, rows[first*a.d:end*a.d], end-first, func(i int) int { return first + i }, dst)
			}
		}
		return
	}
	a.probe(s, rows, len(dst))
	s.tile = resize(s.tile, tileRows*a.d)
	for g := range a.groups {
		runtime.Gosched() // a query beside a build would wait for 10 ms else
		for queue := s.order[s.begin[g]:s.begin[g+1]]; len(queue) > 0; {
			part := queue[:min(tileRows, len(queue))]
			for i, row := range part {
				copy(s.tile[i*a.d:(i+1)*a.d], rows[int(row)*a.d:])
			}
			a.groups[g].compare(s, s.tile, len(part), func(i int) int { return int(part[i]) }, dst)
			queue = queue[len(part):]
		}
	}
}

// compare scores n rows against the group and keeps what is better than the best so far; row(i) is
// the number in dst of row i of the tile.
func (g *group) compare(s *assignScratch, tile []float32, n int, row func(int) int, dst []uint32) {
	k := len(g.members)
	s.scores = resize(s.scores, n*k)
	g.scores(s.scores, tile, n)
	s.better = resize(s.better, (k+63)/64)
	for i := range n {
		r, scores := row(i), s.scores[i*k:(i+1)*k]
		// Few groups have one, and argmax takes as long as the matrix product.
		if simd.AtLeast(s.better, scores, s.best[r]); !slices.ContainsFunc(s.better, isSet) {
			continue
		}
		at, score := argmax(scores)
		if score > s.best[r] || (score == s.best[r] && g.members[at] < dst[r]) {
			s.best[r], dst[r] = score, g.members[at]
		}
	}
}

func isSet(word uint64) bool { return word != 0 }

// argmax returns the first index of the highest score; scores is not empty.
func argmax(scores []float32) (at int, score float32) {
	score = scores[0]
	for i, x := range scores {
		if x > score {
			at, score = i, x
		}
	}
	return at, score
}

// probe finds the nearest groups of each of n rows and lists the rows by group.
func (a *Assigner) probe(s *assignScratch, rows []float32, n int) {
	groups := len(a.groups)
	p := a.probes
	s.probed = resize(s.probed, n*p)
	for first := 0; first < n; first += tileRows {
		end := min(n, first+tileRows)
		s.scores = resize(s.scores, (end-first)*groups)
		a.coarse.scores(s.scores, rows[first*a.d:end*a.d], end-first)
		for i := first; i < end; i++ {
			topGroups(s.probed[i*p:(i+1)*p], s.scores[(i-first)*groups:(i-first+1)*groups])
		}
	}
	s.begin = resize(s.begin, groups+1)
	clear(s.begin)
	for _, g := range s.probed {
		s.begin[g+1]++
	}
	for g := range groups {
		s.begin[g+1] += s.begin[g]
	}
	s.order = resize(s.order, n*p)
	next := append([]int(nil), s.begin[:groups]...)
	for i, g := range s.probed {
		s.order[next[g]] = uint32(i / p)
		next[g]++
	}
}

// topGroups fills dst with the indices of the highest scores, best first.
func topGroups(dst []uint32, scores []float32) {
	n := 0
	for g, score := range scores {
		if n == len(dst) && !(score > scores[dst[n-1]]) {
			continue
		}
		if n < len(dst) {
			n++
		}
		at := n - 1
		for at > 0 && score > scores[dst[at-1]] {
			dst[at] = dst[at-1]
			at--
		}
		dst[at] = uint32(g)
	}
}

// resize returns a slice of n elements, s itself when it is large enough; the contents are
// unspecified.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
