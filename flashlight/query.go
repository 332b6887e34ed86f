package flashlight

import (
	"context"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/index"
)

// Searcher finds rows by inner product. It holds the state of one query, whose search set only
// grows.
type Searcher interface {
	// Search extends the search set by the most promising rows for these query vectors until it has
	// reached probes. In dst[i] it stores the n rows of the search set that match the filter and
	// have the highest inner product with queries[i], best first. There are fewer than n only if
	// the search set holds no more. It reuses the memory of dst[i]. There are 1 to 16 queries with
	// finite values, and len(dst) = len(queries).
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
	// are not changed until Rows returns, so other goroutines may read them meanwhile.
	Rows(ctx context.Context, fn func(ids []uint32, rows []float32) error) error
}

// Query asks for the K rows that Bound scores highest.
type Query struct {
	Bound    decoder.Bound
	Source   []float32       // the row of the source; the seeds source and both need it, and a learned seed falls back without it
	Seeds    *Seeds          // of this decoder, for a learned seed; nil means that Fallback is run, or Plan with the ones seed
	Start    []float32       // if set, rows, row-major; the first query vector is the mean gradient at them, and not the seed of the plan
	K        int             // hits wanted
	Plan     Plan            // how to find them
	Fallback *Plan           // if set, run in place of a Plan whose learned seed is not available; nil means Plan with the ones seed
	Allowed  *roaring.Bitmap // if set, only these ids
	Excluded *roaring.Bitmap // if set, not these ids; before each further search Executor.Run adds those it has scored
	MinScore *float32        // if set, drop hits that score less
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
