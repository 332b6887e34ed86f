package remote

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/flashdb/flashdb"
)

// EvalOptions are the options of one Eval. The zero value, or nil, means the defaults.
type EvalOptions struct {
	// Keys are the sources. Empty means Sources evenly drawn ones.
	Keys       []string
	Sources    int // default 100
	K          int // default 100
	RandomSeed uint64
	// Predict are the options of the queries.
	Predict flashdb.PredictOptions
	// Progress is called from time to time.
	Progress func(stage string, done, total int64)
}

// An Evaluation says how queries compare with the exact answers.
type Evaluation struct {
	Sources, K        int
	Mean, P5, Worst   float64       // recall
	P50, P99          time.Duration // of a query
	PlainP50          time.Duration // of a plain search of the engine for k rows nearest to the source
	Rounds, RowsFound float64       // round trips and rows that came back, means for a query
	Scan              time.Duration // of the exact answers of all sources together
	Plan              string        // of the first query
}

// Eval reads every row once for the exact answers of some sources, runs a query for each, and
// compares. Filters are not supported, because the exact answers are of all rows.
func (c *Collection) Eval(ctx context.Context, opts *EvalOptions) (e Evaluation, err error) {
	var o EvalOptions
	if opts != nil {
		o = *opts
	}
	o.Sources, o.K = cmp.Or(o.Sources, 100), cmp.Or(o.K, 100)
	if o.Predict.Filter != "" {
		return e, fmt.Errorf("evaluate %q: %w: a filter is set, and exact answers are of all rows", c.name, flashdb.ErrInvalid)
	}
	if err := c.check(o.K, &o.Predict); err != nil {
		return e, fmt.Errorf("evaluate %q: %w", c.name, err)
	}
	err = c.on(ctx, func(s *served) error {
		e, err = c.eval(ctx, s, &o)
		return err
	})
	if err != nil {
		return e, fmt.Errorf("evaluate %q: %w", c.name, err)
	}
	return e, nil
}

func (c *Collection) eval(ctx context.Context, s *served, o *EvalOptions) (e Evaluation, err error) {
	t, err := s.decoder(o.Predict.Decoder)
	if err != nil {
		return e, err
	}
	rng := rand.New(rand.NewPCG(o.RandomSeed, 2))
	keys := o.Keys
	if len(keys) == 0 {
		from := s.name
		if o.Predict.SourceCollection != "" {
			from = Name{Collection: o.Predict.SourceCollection, Version: s.Sources[o.Predict.SourceCollection]}
		}
		if keys, err = c.sample(ctx, from, o.Sources, rng); err != nil {
			return e, err
		}
	}
	all, err := c.askersOf(ctx, s, t, keys, &o.Predict, rng)
	if err != nil {
		return e, err
	}
	if len(all) == 0 {
		return e, fmt.Errorf("%w: none of the sources is stored", flashdb.ErrInvalid)
	}
	progress := func(stage string, done, total int64) {
		if o.Progress != nil {
			o.Progress(stage, done, total)
		}
	}
	began := time.Now()
	if err := c.answers(ctx, s, t, all, o.K, false, func(done int64) { progress("exact answers", done, int64(s.rows)) }); err != nil {
		return e, err
	}
	e.Scan = time.Since(began)
	var recalls []float64
	var times, plain []time.Duration
	q := &query{}
	for i, a := range all {
		progress("queries", int64(i), int64(len(all)))
		p := o.Predict
		p.Relation, p.Reverse = a.relation, a.reverse
		began := time.Now()
		res, err := c.answer(ctx, s, q, a.key, nil, o.K, &p, nil)
		if err != nil {
			return e, err
		}
		times = append(times, time.Since(began))
		recalls = append(recalls, a.recall(res.Hits, o.K))
		e.Rounds += float64(q.view.cost.Lists) / float64(len(all))
		e.RowsFound += float64(q.view.cost.Rows) / float64(len(all))
		if i == 0 {
			e.Plan = res.Stats.Plan
		}
		began = time.Now()
		near := &Query{Vectors: [][]float32{asked(nil, a.vector, s.Norm)}, N: o.K, Effort: o.K}
		if _, err := c.db.engine.Search(ctx, s.name, near); err != nil {
			return e, gone(err)
		}
		plain = append(plain, time.Since(began))
	}
	slices.Sort(recalls)
	slices.Sort(times)
	slices.Sort(plain)
	e.Sources, e.K = len(all), o.K
	for _, r := range recalls {
		e.Mean += r / float64(len(recalls))
	}
	e.P5, e.Worst = recalls[len(recalls)/20], recalls[0]
	e.P50, e.P99, e.PlainP50 = times[len(times)/2], times[len(times)*99/100], plain[len(plain)/2]
	return e, nil
}
