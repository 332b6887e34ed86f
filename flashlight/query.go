package flashlight

import (
	"context"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/index"
)

// Searcher finds rows by inner product. It holds the state of one query: its search set only grows.
type Searcher interface {
	// Search extends the search set, by the most promising rows for these queries, until it has
	// reached probes, and stores in dst[i] the n rows of highest inner product with queries[i] that
	// the filter keeps, best first, reusing dst[i]'s memory: fewer than n only when the search set
	// holds no more. There are 1 to 16 queries, of finite values, and len(dst) = len(queries).
	Search(ctx context.Context, queries [][]float32, n int, probes index.Probes, filter index.Filter,
		dst [][]index.Candidate) error
	// Cost is the work done for this query so far.
	Cost() index.Cost
	// Exhausted reports whether the search set holds every row.
	Exhausted() bool
}

// Rows gives access to the rows that a Searcher searches.
type Rows interface {
	// Dim is the length of a row.
	Dim() int
	// Gather copies the rows of candidates to dst: row-major, len(c) x Dim.
	Gather(dst []float32, c []index.Candidate) error
	// Rows calls fn with every row once, in blocks: rows is row-major, len(ids) x Dim. The slices
	// stay as they are until Rows returns, so that other goroutines may read them meanwhile.
	Rows(ctx context.Context, fn func(ids []uint32, rows []float32) error) error
}

// Query is one question: the K rows that Bound scores highest.
type Query struct {
	Bound    decoder.Bound
	Source   []float32       // the source's row; needed by the seeds source and both; learned falls back without it
	Seeds    *Seeds          // of this decoder, for the learned seed; nil: Fallback is run, or Plan with the ones seed
	Start    []float32       // when set, rows, row-major: the first query is the mean gradient there, and not the seed of the plan
	K        int             // hits wanted
	Plan     Plan            // how to find them
	Fallback *Plan           // when set, run in place of a Plan whose learned seed cannot be had; nil: Plan with the ones seed
	Allowed  *roaring.Bitmap // when set, only these ids
	Excluded *roaring.Bitmap // when set, not these ids; Executor.Run adds those it has scored, as far as it searches again
	MinScore *float32        // when set, drop hits that score less
	Explain  bool            // fill Report.Trace
}

// validate reports everything that is wrong with the query, for rows of dim floats.
func (q *Query) validate(dim int) error {
	var errs []error
	if q.Bound == nil {
		errs = append(errs, errors.New("query: no bound decoder"))
	}
	if q.K < 1 {
		errs = append(errs, fmt.Errorf("query: k is %d: want at least 1", q.K))
	}
	if err := q.Plan.Validate(); err != nil {
		errs = append(errs, err)
	}
	if q.Fallback != nil {
		if err := q.Fallback.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("fallback: %w", err))
		}
		if q.Fallback.Method == MethodExact || q.Fallback.Seed != SeedOnes {
			errs = append(errs, errors.New("fallback: want a plan with the ones seed"))
		}
	}
	if len(q.Start)%dim != 0 {
		errs = append(errs, fmt.Errorf("query: %d values to start from are no rows of %d floats", len(q.Start), dim))
	}
	seeded := q.Plan.Seed == SeedSource || q.Plan.Seed == SeedBoth
	if q.Plan.Method != MethodExact && seeded && len(q.Source) != dim {
		errs = append(errs, fmt.Errorf("query: seed %s needs the source's row of %d floats, not %d",
			q.Plan.Seed, dim, len(q.Source)))
	}
	return errors.Join(errs...)
}
