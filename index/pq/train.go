package pq

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/flashdb/flashdb/internal/kmeans"
	"github.com/flashdb/flashdb/internal/simd"
)

const (
	trainIterations = 20
	pointsPerCenter = 256  // codebooks are small and serve every list, so they are trained well
	lossRows        = 2048 // on which the loss is measured
)

// Options says how to train. Zero fields are defaults.
type Options struct {
	Bits    int    // bits per sub-vector: 4 (default) or 8
	SubDim  int    // dimensions of a sub-vector: see Shape
	Seed    uint64 // of every random choice
	Workers int    // goroutines; default GOMAXPROCS; the result does not depend on it
}

// Train returns a quantizer for rows such as these (row-major, n x d; n at least 1), which it only
// reads.
func Train(ctx context.Context, rows []float32, d int, opt Options) (*Quantizer, error) {
	shape := Shape{Dim: d, Bits: opt.Bits, SubDim: opt.SubDim}.WithDefaults()
	if err := shape.Validate(); err != nil {
		return nil, fmt.Errorf("train product quantizer: %w", err)
	}
	if len(rows) == 0 || len(rows)%d != 0 {
		panic(fmt.Sprintf("pq: %d values are no rows of %d", len(rows), d))
	}
	books := make([]float32, shape.subs()*shape.points()*shape.SubDim)
	if err := trainBooks(ctx, books, rows, shape, opt); err != nil {
		return nil, fmt.Errorf("train product quantizer: %w", err)
	}
	q := newQuantizer(shape, books)
	q.measure(rows)
	return q, nil
}

// measure sets the loss, from rows evenly spread over those given.
func (q *Quantizer) measure(rows []float32) {
	d := q.shape.Dim
	n := len(rows) / d
	code, decoded := make([]byte, q.shape.CodeBytes()), make([]float32, d)
	var lost, total float64
	for i := 0; i < n; i += max(1, n/lossRows) {
		row := rows[i*d : (i+1)*d]
		q.Encode(code, row)
		q.decode(decoded, code)
		lost += float64(simd.SquaredL2(row, decoded))
		total += float64(simd.Dot(row, row))
	}
	if total > 0 {
		q.loss = float32(min(1, lost/total)) // more than all, where rows of the measure were not trained on
	}
}

// trainBooks trains the codebooks side by side, each on one goroutine.
func trainBooks(ctx context.Context, books, rows []float32, shape Shape, opt Options) error {
	workers := opt.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	errs := make([]error, shape.subs())
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, shape.subs()) {
		wg.Go(func() {
			for {
				s := int(next.Add(1)) - 1
				if s >= shape.subs() {
					return
				}
				size := shape.points() * shape.SubDim
				errs[s] = trainBook(ctx, books[s*size:(s+1)*size], rows, shape, s, opt.Seed)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// trainBook clusters sub-vector s of all rows. With fewer rows than points, the rest of the book
// repeats its first point, which no row prefers.
func trainBook(ctx context.Context, book, rows []float32, shape Shape, s int, seed uint64) error {
	n := len(rows) / shape.Dim
	first, end := s*shape.SubDim, min(shape.Dim, (s+1)*shape.SubDim)
	subs := make([]float32, n*shape.SubDim)
	for i := range n {
		copy(subs[i*shape.SubDim:], rows[i*shape.Dim+first:i*shape.Dim+end])
	}
	trained, err := kmeans.Train(ctx, subs, shape.SubDim, kmeans.Options{
		K:                 min(n, shape.points()),
		Iterations:        trainIterations,
		Seed:              seed + uint64(s),
		Workers:           1,
		PointsPerCentroid: pointsPerCenter,
	})
	if err != nil {
		return err
	}
	for done := copy(book, trained); done < len(book); {
		done += copy(book[done:], trained[:shape.SubDim])
	}
	return nil
}
