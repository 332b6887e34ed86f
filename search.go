package flashdb

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// Search returns the k nodes nearest to vec by a similarity, without a decoder. By default the
// similarity is the inner product.
func (c *Collection) Search(ctx context.Context, vec []float32, k int, opts *SearchOptions) (Result, error) {
	leave, err := c.db.enter()
	if err != nil {
		return Result{}, err
	}
	defer leave()
	var o SearchOptions
	if opts != nil {
		o = *opts
	}
	res, err := c.search(ctx, vec, k, o)
	c.db.metrics.query(&c.db.metrics.searches, &res.Stats, err)
	if err != nil {
		return Result{}, fmt.Errorf("search %q: %w", c.name, err)
	}
	return res, nil
}

func (c *Collection) search(ctx context.Context, vec []float32, k int, o SearchOptions) (Result, error) {
	start := time.Now()
	if err := validateK(k); err != nil {
		return Result{}, err
	}
	if err := o.validate(); err != nil {
		return Result{}, err
	}
	vec, err := c.sourceVector(vec)
	if err != nil {
		return Result{}, err
	}
	filter, err := parsedFilter(o.Filter)
	if err != nil {
		return Result{}, err
	}
	return c.ask(ctx, selection{exclude: o.Exclude, filter: filter}, func(q *query) (Result, error) {
		q.source = append(q.source[:0], vec...)

		q.run.MinScore = o.MinScore
		if o.Similarity == SimilarityL2 || (o.Similarity == SimilarityCosine && !c.schema.Normalize) {
			q.run.Bound = newSimilarityBound(o.Similarity, vec)
			return q.answer(ctx, k, exactPlan("the index does not serve similarity "+string(o.Similarity)+" here"), answerOptions{start: start, withNode: o.WithNode})
		}
		q.bind(c.dot)
		how := PredictOptions{Exact: o.Exact}
		if o.Probes != (index.Probes{}) && q.view.pinned.gen != nil {
			how.Plan = &flashlight.Plan{Probes: o.Probes}
		}
		return q.answer(ctx, k, q.plan(how, k), answerOptions{start: start, withNode: o.WithNode})
	})
}

// similarityBound scores rows by cosine or by minus the squared distance. It is used for exact
// scans only.
type similarityBound struct {
	by    Similarity
	query []float32
	norm  float64 // of query
}

func newSimilarityBound(by Similarity, query []float32) *similarityBound {
	return &similarityBound{by: by, query: slices.Clone(query), norm: math.Sqrt(squaredNorm(query))}
}

func squaredNorm(v []float32) (sum float64) {
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return sum
}

// Score implements decoder.Bound.
func (b *similarityBound) Score(_ *decoder.Scratch, dst, rows []float32) {
	d := len(b.query)
	for i := range dst {
		row := rows[i*d : (i+1)*d]
		var sum, norm float64
		if b.by == SimilarityL2 {
			for j, x := range row {
				diff := float64(x) - float64(b.query[j])
				sum -= diff * diff
			}
			dst[i] = float32(sum)
			continue
		}
		for j, x := range row {
			sum += float64(x) * float64(b.query[j])
			norm += float64(x) * float64(x)
		}
		if norm > 0 && b.norm > 0 {
			sum /= math.Sqrt(norm) * b.norm
		}
		dst[i] = float32(sum)
	}
}

// Gradient implements decoder.Bound. An exact scan never calls it.
func (b *similarityBound) Gradient(*decoder.Scratch, []float32, []float32, []float32) {
	panic("flashdb: similarityBound has no gradient")
}

// Ones implements decoder.Bound. An exact scan never calls it.
func (b *similarityBound) Ones(dst []float32) { copy(dst, b.query) }

// Linear implements decoder.Bound.
func (b *similarityBound) Linear() bool { return false }
