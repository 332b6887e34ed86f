package kmeans

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/flashdb/flashdb/internal/simd"
)

// plusPlusLimit is the largest k started by k-means++, whose time grows as that of an iteration
// without the help of a matrix product. With hundreds of centroids random rows are as good a start.
const plusPlusLimit = 64

// clustering is the state of Lloyd's algorithm on one set of rows.
type clustering struct {
	rows      []float32 // row-major, n x d
	n, d, k   int
	centroids []float32 // row-major, k x d
	nearest   []uint32  // centroid of each row
	previous  []uint32
	begin     []int    // members of centroid c are order[begin[c]:begin[c+1]]
	order     []uint32 // rows by centroid, ascending inside each
}

func newClustering(rows []float32, d, k int) *clustering {
	n := len(rows) / d
	c := &clustering{
		rows: rows, n: n, d: d, k: k,
		centroids: make([]float32, k*d),
		nearest:   make([]uint32, n),
		previous:  make([]uint32, n),
		begin:     make([]int, k+1),
		order:     make([]uint32, n),
	}
	for i := range c.nearest {
		c.nearest[i] = math.MaxUint32 // no centroid yet: the first assignment changes every row
	}
	return c
}

func (c *clustering) row(i int) []float32      { return c.rows[i*c.d : (i+1)*c.d] }
func (c *clustering) centroid(i int) []float32 { return c.centroids[i*c.d : (i+1)*c.d] }
func (c *clustering) members(i int) []uint32   { return c.order[c.begin[i]:c.begin[i+1]] }

// start sets the centroids to k rows: chosen by k-means++ when k is small, else at random.
func (c *clustering) start(ctx context.Context, workers int, rng *rand.Rand) error {
	if c.k > plusPlusLimit {
		copy(c.centroids, sample(c.rows, c.d, c.k, rng))
		return nil
	}
	return c.plusPlus(ctx, workers, rng)
}

// plusPlus draws each next centroid among the rows with odds in proportion to the squared distance
// to the nearest one drawn so far (Arthur and Vassilvitskii, "k-means++: the advantages of careful
// seeding", SODA 2007, section 2.2).
func (c *clustering) plusPlus(ctx context.Context, workers int, rng *rand.Rand) error {
	distance := make([]float32, c.n)
	for i := range distance {
		distance[i] = math.MaxFloat32
	}
	chosen := rng.IntN(c.n)
	for k := range c.k {
		drawn := c.centroid(k)
		copy(drawn, c.row(chosen))
		err := parallel(ctx, workers, tasks(c.n), func(_, task int) {
			for i := task * taskRows; i < min(c.n, (task+1)*taskRows); i++ {
				distance[i] = min(distance[i], simd.SquaredL2(c.row(i), drawn))
			}
		})
		if err != nil {
			return err
		}
		chosen = draw(distance, rng)
	}
	return nil
}

// draw returns a random index with odds in proportion to weights, or any index when all of them are
// zero.
func draw(weights []float32, rng *rand.Rand) int {
	var total float64
	for _, w := range weights {
		total += float64(w)
	}
	if total == 0 {
		return rng.IntN(len(weights))
	}
	left := rng.Float64() * total
	for i, w := range weights {
		if left -= float64(w); left < 0 {
			return i
		}
	}
	return len(weights) - 1
}

// assign finds the nearest centroid of every row and returns how many rows changed theirs.
func (c *clustering) assign(ctx context.Context, a *Assigner, workers int) (changed int, err error) {
	c.nearest, c.previous = c.previous, c.nearest
	if err := a.assign(ctx, c.nearest, c.rows, workers); err != nil {
		return 0, err
	}
	for i, k := range c.nearest {
		if k != c.previous[i] {
			changed++
		}
	}
	return changed, nil
}

// update moves every centroid to the mean of its rows. A centroid without rows moves onto a random
// row of the largest cluster and so splits it.
func (c *clustering) update(ctx context.Context, workers int, rng *rand.Rand) error {
	c.group()
	sums := make([][]float64, workers)
	err := parallel(ctx, workers, c.k, func(worker, k int) {
		if sums[worker] == nil {
			sums[worker] = make([]float64, c.d)
		}
		c.mean(k, sums[worker])
	})
	if err != nil {
		return err
	}
	sizes := make([]int, c.k)
	for k := range sizes {
		sizes[k] = len(c.members(k))
	}
	for k := range sizes {
		if len(c.members(k)) > 0 {
			continue
		}
		largest := 0
		for other, size := range sizes {
			if size > sizes[largest] {
				largest = other
			}
		}
		from := c.members(largest)
		copy(c.centroid(k), c.row(int(from[rng.IntN(len(from))])))
		sizes[largest] = (sizes[largest] + 1) / 2 // never 0: who gives once may have to give again
	}
	return nil
}

// group sorts the rows by centroid (a counting sort, so rows stay ascending inside each).
func (c *clustering) group() {
	clear(c.begin)
	for _, k := range c.nearest {
		c.begin[k+1]++
	}
	for k := range c.k {
		c.begin[k+1] += c.begin[k]
	}
	next := make([]int, c.k)
	copy(next, c.begin)
	for i, k := range c.nearest {
		c.order[next[k]] = uint32(i)
		next[k]++
	}
}

// mean sets centroid k to the mean of its rows, if it has any. sum is scratch, d long.
func (c *clustering) mean(k int, sum []float64) {
	members := c.members(k)
	if len(members) == 0 {
		return
	}
	clear(sum)
	for _, i := range members {
		for j, x := range c.row(int(i)) {
			sum[j] += float64(x)
		}
	}
	centroid := c.centroid(k)
	for j, s := range sum {
		centroid[j] = float32(s / float64(len(members)))
	}
}
