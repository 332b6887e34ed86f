package flashdb

import (
	"context"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/storage"
)

// maxK bounds k, so that no argument can exhaust memory.
const maxK = 1 << 20

func validateK(k int) error {
	if k < 1 || k > maxK {
		return fmt.Errorf("%w: k is %d, want 1 to %d", ErrInvalid, k, maxK)
	}
	return nil
}

// Predict returns the k nodes of the collection that score highest against the source, which is the
// node stored under key. The source is a node of PredictOptions.SourceCollection, or of the
// collection itself where that is empty. The source is left out, and so are the nodes it is linked
// to unless PredictOptions.IncludeLinked is set.
func (c *Collection) Predict(ctx context.Context, key string, k int, opts *PredictOptions) (Result, error) {
	leave, err := c.db.enter()
	if err != nil {
		return Result{}, err
	}
	defer leave()
	if err := validateKey(key); err != nil {
		return Result{}, fmt.Errorf("predict in %q: %w", c.name, err)
	}
	return c.predict(ctx, key, nil, k, opts)
}

// PredictVector returns the k nodes that score highest against a source that is not stored.
// PredictOptions.SourceCollection must be empty.
func (c *Collection) PredictVector(ctx context.Context, source []float32, k int, opts *PredictOptions) (Result, error) {
	leave, err := c.db.enter()
	if err != nil {
		return Result{}, err
	}
	defer leave()
	if opts != nil && opts.SourceCollection != "" {
		return Result{}, fmt.Errorf("predict in %q: %w: SourceCollection is %q, and a vector is of none: use Predict with a key", c.name, ErrInvalid, opts.SourceCollection)
	}
	source, err = c.sourceVector(source)
	if err != nil {
		return Result{}, fmt.Errorf("predict in %q: %w", c.name, err)
	}
	return c.predict(ctx, "", source, k, opts)
}

// sourceVector checks a query vector, and normalizes it if the schema says so.
func (c *Collection) sourceVector(v []float32) ([]float32, error) {
	if len(v) != c.schema.Dim {
		return nil, fmt.Errorf("%w: the vector has %d values, the collection holds %d", ErrDim, len(v), c.schema.Dim)
	}
	if i := firstNonFinite(v); i >= 0 {
		return nil, fmt.Errorf("%w: vector value %d is %v, want a finite number", ErrInvalid, i, v[i])
	}
	if c.schema.Normalize {
		return unit(v)
	}
	return v, nil
}

// predict answers for the node under key, or for source when key is empty.
func (c *Collection) predict(ctx context.Context, key string, source []float32, k int, opts *PredictOptions) (Result, error) {
	var o PredictOptions
	if opts != nil {
		o = *opts
	}
	start := time.Now()
	res, err := c.predictWith(ctx, start, key, source, k, o)
	c.db.metrics.query(&c.db.metrics.predicts, &res.Stats, err)
	if err != nil {
		return Result{}, fmt.Errorf("predict in %q: %w", c.name, err)
	}
	res.Source = key
	return res, nil
}

func (c *Collection) predictWith(ctx context.Context, start time.Time, key string, source []float32, k int, o PredictOptions) (Result, error) {
	if err := validateK(k); err != nil {
		return Result{}, err
	}
	if err := o.Validate(); err != nil {
		return Result{}, err
	}
	filter, err := parsedFilter(o.Filter)
	if err != nil {
		return Result{}, err
	}
	t, err := c.trained(o.Decoder)
	if err == nil {
		_, err = t.of(o.Relation, o.Reverse)
	}
	if err != nil { // refused before any row is read
		return Result{}, err
	}
	if o.SourceCollection == c.name {
		o.SourceCollection = ""
	}
	sel := selection{
		source: key, from: o.SourceCollection, links: !o.IncludeLinked, exclude: o.Exclude, filter: filter,
		decodes: true, decoder: o.Decoder, relation: o.Relation, reverse: o.Reverse,
	}
	return c.ask(ctx, sel, func(q *query) (Result, error) {
		if key == "" {
			q.source = append(q.source[:0], source...)
		}
		q.bind(q.asked)
		q.measured = q.decoder.on(&q.view.pinned)
		if of := q.measured; of != nil && of.Seeds.Len() > 0 {
			q.run.Seeds = of.Seeds
			if key != "" && of.SourcesFrom != o.SourceCollection {
				// Learned seeds of another collection of sources mislead, and the plans were
				// measured with them.
				q.measured, q.run.Seeds = nil, nil
			}
		}
		q.run.MinScore = o.MinScore
		q.run.Explain = o.Explain
		var excluded *roaring.Bitmap // a copy, because the run adds to the bitmap
		if o.Verify {
			excluded = q.excluded.Clone()
		}
		how := answerOptions{start: start, withNode: o.WithNode, probability: true}
		if o.varied() {
			return q.varied(ctx, k, o, how)
		}
		res, err := q.answer(ctx, k, q.plan(o, k), how)
		if err == nil && o.Verify {
			res.Stats.Verification, err = q.verify(ctx, excluded)
		}
		return res, err
	})
}

// answerOptions say what to fill in of a result.
type answerOptions struct {
	start       time.Time
	withNode    bool
	probability bool
}

// answer runs the plan and names the hits.
func (q *query) answer(ctx context.Context, k int, p planned, o answerOptions) (Result, error) {
	report, err := q.find(ctx, k, p)
	if err != nil {
		return Result{}, err
	}
	return q.finish(k, p, report, o)
}

// find runs the plan, and leaves the best k in q.hits.
func (q *query) find(ctx context.Context, k int, p planned) (report flashlight.Report, err error) {
	q.run.Source = q.source
	q.run.K = k
	q.run.Plan, q.run.Fallback = p.plan, p.fallback
	q.run.Allowed, q.run.Excluded = q.allowed, q.excluded
	var rows flashlight.Rows = &q.view
	if p.subset {
		rows = &filteredRows{&q.view, q.allowed}
	}
	if p.plan.Method == flashlight.MethodExact {
		q.hits, report, err = flashlight.Exact(ctx, &q.run, rows, q.c.db.opts.Workers, q.hits[:0])
	} else {
		q.hits, report, err = q.executor.Run(ctx, &q.run, &q.view, rows, q.hits[:0])
	}
	return report, err
}

// finish makes the result of q.hits.
func (q *query) finish(k int, p planned, report flashlight.Report, o answerOptions) (res Result, err error) {
	res = Result{Stats: q.stats(report)}
	if res.Hits, err = q.named(o.withNode, o.probability); err != nil {
		return Result{}, err
	}
	res.Stats.Plan = p.describe
	if p.plan.Seed.Learned() && !report.Plan.Seed.Learned() {
		res.Stats.Plan += fmt.Sprintf("; ran %v, as there is no learned seed for this source", report.Plan)
	}
	if q.run.Explain {
		if res.Stats.Trace, err = q.trace(report.Trace); err != nil {
			return Result{}, err
		}
	}
	if len(res.Hits) < k {
		res.Stats.Short = q.short(len(res.Hits), report)
	}
	res.Stats.Elapsed = time.Since(o.start)
	return res, nil
}

// short says why fewer than k hits came back.
func (q *query) short(found int, report flashlight.Report) string {
	switch {
	case found < len(q.hits):
		return fmt.Sprintf("%d nodes that were found have been deleted since", len(q.hits)-found)
	case q.capped != "":
		return q.capped
	case report.Stop == flashlight.StopBudget:
		return "as many rows were scored as may be (Plan.MaxScored)"
	case report.Stop == flashlight.StopDeadline:
		return "the deadline passed"
	case report.Stop == flashlight.StopMinScore:
		return fmt.Sprintf("the others score below %v", *q.run.MinScore)
	case q.allowed != nil:
		switch found {
		case 0:
			return "no node matches the filter, or all that do are excluded"
		case 1:
			return "only 1 node matches the filter and is not excluded"
		}
		return fmt.Sprintf("only %d nodes match the filter and are not excluded", found)
	case found == 1:
		return "the collection has only 1 other node that is not excluded"
	}
	return fmt.Sprintf("the collection has only %d other nodes that are not excluded", found)
}

// Score returns the decoder's scores of candidates against the node stored under source. Candidates
// are keys of nodes of the collection. The hits are in the order of the candidates.
func (c *Collection) Score(ctx context.Context, source string, candidates []string, opts *ScoreOptions) ([]Hit, error) {
	leave, err := c.db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var o ScoreOptions
	if opts != nil {
		o = *opts
	}
	hits, err := c.score(ctx, source, candidates, o)
	if err != nil {
		return nil, fmt.Errorf("score in %q: %w", c.name, err)
	}
	return hits, nil
}

func (c *Collection) score(ctx context.Context, source string, candidates []string, o ScoreOptions) ([]Hit, error) {
	dim := c.schema.Dim
	from, rows := make([]float32, dim), make([]float32, len(candidates)*dim)
	var dec decoder.Decoder
	err := c.viewedWith(ctx, o.Decoder, func(v *storage.View, t *trained) error {
		var err error
		if dec, err = t.of(o.Relation, o.Reverse); err != nil {
			return err
		}
		info, err := c.rowsOfSources(v, o.SourceCollection)
		if err != nil {
			return err
		}
		if _, err := c.sourceRow(v, info, from, source); err != nil {
			return err
		}
		for i, key := range candidates {
			if _, err := c.sourceRow(v, c.itself(), rows[i*dim:(i+1)*dim], key); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var scratch decoder.Scratch
	scores := make([]float32, len(candidates))
	dec.Bind(nil, from).Score(&scratch, scores, rows)
	hits := make([]Hit, len(candidates))
	for i, s := range scores {
		hits[i] = Hit{Key: candidates[i], Score: s, Probability: decoder.Probability(s)}
	}
	return hits, nil
}
