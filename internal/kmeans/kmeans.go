// Package kmeans clusters rows by Lloyd's algorithm under the Euclidean distance: the lists of an
// inverted file and the codebooks of a product quantizer.
//
// Results depend on the rows, the options and the seed only, never on the number of workers: rows
// are cut into tasks of fixed size, each row is assigned by itself, and the rows of a centroid are
// summed up in ascending order in float64. (The kernel class of internal/simd does matter, as it
// decides how inner products are rounded.)
//
// Everything here may be called from any goroutine; an Assigner is immutable and safe for
// concurrent use.
package kmeans

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
)

const (
	defaultIterations = 10
	// defaultTwoLevel is the K beyond which assigning every row to every centroid in every
	// iteration costs too much.
	defaultTwoLevel = 512
	// defaultPointsPerCentroid bounds the rows used: the mean of 64 is steady enough.
	defaultPointsPerCentroid = 64
	// settled stops the iterations when fewer than one in so many rows changed their centroid.
	settled = 1000
)

// Options says how to train. The zero value of each field but K is its default.
type Options struct {
	K          int    // centroids wanted
	Iterations int    // Lloyd iterations at most; default 10
	Seed       uint64 // of every random choice
	Workers    int    // goroutines; default GOMAXPROCS; the result does not depend on it
	TwoLevel   int    // K beyond which training goes by two levels; default 512

	// PointsPerCentroid times K rows are sampled when there are more, so that the time of training
	// does not grow with the rows; default 64.
	PointsPerCentroid int
}

func (o Options) withDefaults() Options {
	if o.Iterations == 0 {
		o.Iterations = defaultIterations
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.TwoLevel == 0 {
		o.TwoLevel = defaultTwoLevel
	}
	if o.PointsPerCentroid == 0 {
		o.PointsPerCentroid = defaultPointsPerCentroid
	}
	return o
}

func (o Options) validate(n int) error {
	switch {
	case o.K < 1 || o.K > n:
		return fmt.Errorf("%d centroids of %d rows: want 1 to the number of rows", o.K, n)
	case o.Iterations < 0 || o.Workers < 0 || o.TwoLevel < 0 || o.PointsPerCentroid < 0:
		return fmt.Errorf("negative iterations %d, workers %d, two-level bound %d or points a centroid %d",
			o.Iterations, o.Workers, o.TwoLevel, o.PointsPerCentroid)
	}
	return nil
}

// Train returns K centroids (row-major, K x d) of rows (row-major, n x d), which it only reads.
// When fewer than K rows are distinct, some centroids are equal.
func Train(ctx context.Context, rows []float32, d int, opt Options) ([]float32, error) {
	if d < 1 || len(rows)%d != 0 {
		panic(fmt.Sprintf("kmeans: %d values are no rows of %d", len(rows), d))
	}
	if err := opt.validate(len(rows) / d); err != nil {
		return nil, fmt.Errorf("train k-means: %w", err)
	}
	opt = opt.withDefaults()
	t := trainer{ctx: ctx, d: d, iterations: opt.Iterations, seed: opt.Seed}
	rows = sample(rows, d, opt.PointsPerCentroid*opt.K, t.rng(streamSample, 0))
	var centroids []float32
	var err error
	if opt.K > opt.TwoLevel {
		centroids, err = t.twoLevel(rows, opt.K, opt.Workers)
	} else {
		centroids, err = t.lloyd(rows, opt.K, opt.Workers, t.rng(streamFlat, 0))
	}
	if err != nil {
		return nil, fmt.Errorf("train k-means: %w", err)
	}
	return centroids, nil
}

// trainer holds what all steps of one training share.
type trainer struct {
	ctx        context.Context
	d          int
	iterations int
	seed       uint64
}

// Random numbers are drawn from one stream a purpose, so that no step depends on how many another
// one drew.
const (
	streamSample = iota
	streamFlat
	streamCoarse
	streamCoarseSample
	streamGroup
	streamRefine
)

func (t *trainer) rng(stream, part uint64) *rand.Rand {
	return rand.New(rand.NewPCG(t.seed, stream<<32|part))
}

// sample returns rows, or a random size of them in their order when there are more.
func sample(rows []float32, d, size int, rng *rand.Rand) []float32 {
	n := len(rows) / d
	if n <= size {
		return rows
	}
	out := make([]float32, 0, size*d)
	for i, wanted := 0, size; wanted > 0; i++ { // selection sampling (Knuth, TAOCP 2, algorithm S)
		if rng.IntN(n-i) < wanted {
			out = append(out, rows[i*d:(i+1)*d]...)
			wanted--
		}
	}
	return out
}

// lloyd clusters rows around k centroids, each iteration assigning every row to every centroid.
func (t *trainer) lloyd(rows []float32, k, workers int, rng *rand.Rand) ([]float32, error) {
	c := newClustering(rows, t.d, k)
	if err := c.start(t.ctx, workers, rng); err != nil {
		return nil, err
	}
	a := &Assigner{d: t.d, groups: flatGroups(k)}
	for range t.iterations {
		a.pack(c.centroids)
		changed, err := c.assign(t.ctx, a, workers)
		if err != nil {
			return nil, err
		}
		if err := c.update(t.ctx, workers, rng); err != nil {
			return nil, err
		}
		if changed < 1+c.n/settled {
			break
		}
	}
	return c.centroids, nil
}

// isqrt returns the square root of k, rounded to the nearest integer.
func isqrt(k int) int { return int(math.Round(math.Sqrt(float64(k)))) }
