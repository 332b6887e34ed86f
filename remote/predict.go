package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// maxK bounds k as flashdb does.
const maxK = 1 << 20

// A query is the reusable state of one Predict.
type query struct {
	view     view
	executor flashlight.Executor
	excluded *roaring.Bitmap
	bound    decoder.Bound
	boundOf  decoder.Decoder
	hits     []index.Hit
}

// Predict returns the k nodes of the collection that score highest against the source, which is the
// node stored under key: see flashdb.Collection.Predict. The scores are exact. Hits of equal score
// come in any order. Verify is not supported: see Eval.
func (c *Collection) Predict(ctx context.Context, key string, k int, opts *flashdb.PredictOptions) (flashdb.Result, error) {
	if key == "" {
		return flashdb.Result{}, fmt.Errorf("predict in %q: %w: the key is empty", c.name, flashdb.ErrInvalid)
	}
	return c.predict(ctx, key, nil, k, opts)
}

// PredictVector returns the k nodes that score highest against a source that is not stored: see
// flashdb.Collection.PredictVector.
func (c *Collection) PredictVector(ctx context.Context, source []float32, k int, opts *flashdb.PredictOptions) (flashdb.Result, error) {
	if opts != nil && opts.SourceCollection != "" {
		return flashdb.Result{}, fmt.Errorf("predict in %q: %w: SourceCollection is %q, and a vector is of none: use Predict with a key", c.name, flashdb.ErrInvalid, opts.SourceCollection)
	}
	return c.predict(ctx, "", source, k, opts)
}

// batchWorkers is how many queries of a PredictBatch run at a time. Most of their time they wait
// for the engine.
const batchWorkers = 4

// PredictBatch calls Predict for every key, some at a time, and yields the results in the order of
// the keys. A query that fails yields its error, and the others go on.
func (c *Collection) PredictBatch(ctx context.Context, keys []string, k int, opts *flashdb.PredictOptions) iter.Seq2[flashdb.Result, error] {
	type answer struct {
		res flashdb.Result
		err error
	}
	return func(yield func(flashdb.Result, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		waiting := make([]chan answer, len(keys))
		begin := func(i int) {
			waiting[i] = make(chan answer, 1)
			running.Go(func() {
				res, err := c.Predict(ctx, keys[i], k, opts)
				res.Source = keys[i]
				waiting[i] <- answer{res, err}
			})
		}
		for i := range min(batchWorkers, len(keys)) {
			begin(i)
		}
		for i := range keys {
			a := <-waiting[i]
			if next := i + batchWorkers; next < len(keys) {
				begin(next)
			}
			if !yield(a.res, a.err) || ctx.Err() != nil {
				return
			}
		}
	}
}

// predict answers for the node under key, or for source when key is empty.
func (c *Collection) predict(ctx context.Context, key string, source []float32, k int, opts *flashdb.PredictOptions) (res flashdb.Result, err error) {
	var o flashdb.PredictOptions
	if opts != nil {
		o = *opts
	}
	start := time.Now()
	if err = c.check(k, &o); err == nil {
		err = c.on(ctx, func(s *served) (err error) {
			q, _ := c.queries.Get().(*query)
			if q == nil {
				q = &query{}
			}
			defer c.queries.Put(q)
			res, err = c.answer(ctx, s, q, key, source, k, &o, nil)
			return err
		})
	}
	if err != nil {
		return flashdb.Result{}, fmt.Errorf("predict in %q: %w", c.name, err)
	}
	res.Source, res.Stats.Elapsed = key, time.Since(start)
	return res, nil
}

// check reports what is wrong with the arguments of a query.
func (c *Collection) check(k int, o *flashdb.PredictOptions) error {
	if k < 1 || k > maxK {
		return fmt.Errorf("%w: k is %d, want 1 to %d", flashdb.ErrInvalid, k, maxK)
	}
	if o.Verify {
		return fmt.Errorf("%w: Verify would read every row of the engine: use Eval", flashdb.ErrInvalid)
	}
	if o.Diversity != 0 || o.Per != nil {
		return fmt.Errorf("%w: Diversity and Per are not supported here: ask a database of this process", flashdb.ErrInvalid)
	}
	if o.SourceCollection == c.name {
		o.SourceCollection = ""
	}
	return o.Validate()
}

// reset begins another query on a version.
func (q *query) reset(c *Collection, s *served) {
	q.view.open(c, s, nil)
	if q.excluded == nil {
		q.excluded = roaring.New()
	}
	q.excluded.Clear()
}

// answer runs one query on a version. seeds, if not nil, are those for a plan by hand.
func (c *Collection) answer(ctx context.Context, s *served, q *query, key string, source []float32, k int, o *flashdb.PredictOptions, seeds *flashlight.Seeds) (flashdb.Result, error) {
	t, err := s.decoder(o.Decoder)
	if err != nil {
		return flashdb.Result{}, err
	}
	d, err := decoder.ForRelation(t.Decoder, o.Relation, o.Reverse)
	if err != nil {
		return flashdb.Result{}, fmt.Errorf("%w: decoder %q: %w", flashdb.ErrInvalid, t.name, err)
	}
	wanted, err := s.filter(o.Filter)
	if err != nil {
		return flashdb.Result{}, err
	}
	q.reset(c, s)
	q.view.filter = wanted
	for _, other := range o.Exclude {
		q.excluded.Add(q.view.id(other))
	}
	if source, err = c.source(ctx, s, q, key, source, o); err != nil {
		return flashdb.Result{}, err
	}
	if q.boundOf != d {
		q.bound, q.boundOf = nil, d
	}
	q.bound = d.Bind(q.bound, source)
	run := flashlight.Query{
		Bound: q.bound, Source: source, K: k, Excluded: q.excluded, MinScore: o.MinScore, Explain: o.Explain,
	}
	words := s.plan(t, key, o, k, &run)
	if seeds != nil {
		run.Seeds = seeds
	}
	var report flashlight.Report
	if run.Plan.Method == flashlight.MethodExact {
		q.hits, report, err = flashlight.Exact(ctx, &run, &q.view, 0, q.hits[:0])
	} else {
		q.hits, report, err = q.executor.Run(ctx, &run, &q.view, &q.view, q.hits[:0])
	}
	if err != nil {
		return flashdb.Result{}, err
	}
	res := flashdb.Result{Stats: flashdb.QueryStats{
		Plan: words, Rounds: report.Rounds, RowsScored: report.RowsScored, Stop: flashdb.Stop(report.Stop),
		ListsProbed: q.view.cost.Lists, RowsVisited: q.view.cost.Rows,
	}}
	if run.Plan.Seed.Learned() && !report.Plan.Seed.Learned() {
		res.Stats.Plan += fmt.Sprintf("; ran %v, as there is no learned seed for this source", report.Plan)
	}
	if q.view.partial != "" {
		res.Stats.Plan += "; of a part of the rows: " + q.view.partial
	}
	if len(q.hits) < k {
		res.Stats.Short = short(len(q.hits), report.Stop)
	}
	if o.Explain {
		res.Stats.Trace = q.trace(report.Trace, t)
	}
	res.Hits = make([]flashdb.Hit, len(q.hits))
	for i, h := range q.hits {
		res.Hits[i] = flashdb.Hit{Key: q.view.keys[h.ID], Score: h.Score, Probability: float32(1 / (1 + math.Exp(-float64(h.Score))))}
	}
	if o.WithNode {
		err = c.describe(ctx, s, res.Hits)
	}
	return res, err
}

// source returns the embedding of the source. It excludes the source itself and its known links.
func (c *Collection) source(ctx context.Context, s *served, q *query, key string, source []float32, o *flashdb.PredictOptions) ([]float32, error) {
	if key == "" {
		r, err := s.NewRow(flashdb.Node{Key: "the source", Embedding: source})
		if err != nil {
			return nil, err
		}
		return r.Vector[:s.Dim], nil
	}
	from := s.name
	if o.SourceCollection != "" {
		version, ok := s.Sources[o.SourceCollection]
		if !ok {
			return nil, fmt.Errorf("%w: collection %q was not pushed together with this one, so its rows may be of another model", flashdb.ErrInvalid, o.SourceCollection)
		}
		from = Name{Collection: o.SourceCollection, Version: version}
	} else {
		q.excluded.Add(q.view.id(key))
	}
	r, err := c.row(ctx, s, from, key)
	if err != nil {
		return nil, err
	}
	if !o.IncludeLinked {
		of := flashdb.Edge{SourceCollection: o.SourceCollection, Source: key, Relation: o.Relation}
		if o.Reverse {
			of.Source, of.Target = "", key
		}
		linked, err := c.Linked(ctx, of)
		if err != nil {
			return nil, err
		}
		for _, other := range linked {
			q.excluded.Add(q.view.id(other))
		}
	}
	return r.Vector[:s.Dim], nil
}

// plan sets the plan of a query, and returns in words why it is this one.
func (s *served) plan(t *trained, key string, o *flashdb.PredictOptions, k int, run *flashlight.Query) string {
	exact := func(why string) string {
		run.Plan = flashlight.Plan{Method: flashlight.MethodExact}
		return "exact: " + why
	}
	measured := t.plans
	if measured != nil && key != "" && measured.SourcesFrom != o.SourceCollection {
		measured = nil // plans and seeds were learned from other sources
	}
	recall := cmp.Or(o.Recall, defaultRecall)
	switch {
	case o.Exact:
		return exact("asked for")
	case o.Plan != nil:
		run.Plan = o.Plan.Completed(k, s.rows)
		if measured != nil {
			run.Seeds = measured.Seeds
		}
		return run.Plan.String()
	case measured == nil && o.Recall > 0:
		return exact(fmt.Sprintf("no calibration says which plan reaches recall %g", o.Recall))
	case measured == nil:
		run.Plan = flashlight.DefaultPlan(k, s.rows)
		return "uncalibrated: " + run.Plan.String()
	}
	if o.Filter != "" { // of the rows that a filter keeps a plan misses more
		recall = 1 - (1-recall)/filteredMisses
	}
	frontier, ok := measured.For(k)
	if !ok {
		return exact("the calibration has no plan")
	}
	point, ok := frontier.Choose(recall)
	if !ok {
		return exact(fmt.Sprintf("no plan reached recall %g: the best is at least %.4g", recall, point.Bound))
	}
	point = frontier.Scaled(point, k)
	run.Plan, run.Seeds = point.Plan, measured.Seeds
	fallback := flashlight.DefaultPlan(k, s.rows)
	run.Fallback = &fallback
	return fmt.Sprintf("calibrated for recall %g: %v (measured %.4g, at least %.4g with 95%% confidence, %d sources)", recall, point.Plan, point.Mean, point.Bound, measured.Sources)
}

// defaultRecall is what PredictOptions.Recall means when it is zero.
const defaultRecall = .98

// filteredMisses is by which factor a plan must miss less than asked where a filter applies: as in
// an embedded flashdb.
const filteredMisses = 2

// short says why fewer than k hits came back.
func short(found int, stop flashlight.Stop) string {
	switch stop {
	case flashlight.StopBudget:
		return "as many rows were scored as may be (Plan.MaxScored)"
	case flashlight.StopDeadline:
		return "the deadline passed"
	case flashlight.StopMinScore:
		return "the others score below MinScore"
	}
	return fmt.Sprintf("only %d nodes match the filter and are not excluded", found)
}

// describe fills in tags and payloads.
func (c *Collection) describe(ctx context.Context, s *served, hits []flashdb.Hit) error {
	keys, at := make([]string, len(hits)), map[string]int{}
	for i, h := range hits {
		keys[i], at[h.Key] = h.Key, i
	}
	rows, err := c.db.engine.Get(ctx, s.name, keys)
	if err != nil {
		return gone(err)
	}
	for _, r := range rows {
		if i, ok := at[r.Key]; ok {
			if hits[i].Tags, hits[i].Attributes, err = s.attributesOf(r.Tags); err != nil {
				return fmt.Errorf("row %q: %w", r.Key, err)
			}
			hits[i].Payload = r.Payload
		}
	}
	return nil
}

// trace returns the rounds with keys in place of numbers.
func (q *query) trace(rounds []flashlight.Round, t *trained) []flashdb.Round {
	out := make([]flashdb.Round, len(rounds))
	for i, r := range rounds {
		out[i] = flashdb.Round{
			Probes: r.Probes, Lists: r.Cost.Lists, Rows: r.Cost.Rows, Codes: r.Cost.Codes,
			Scored: r.Scored, Entered: r.Entered, Best: r.Best, Widening: r.Widening, Elapsed: r.Elapsed,
		}
		for _, a := range r.Aims {
			aim := flashdb.Aim{From: a.From, Neurons: a.Neurons, Changed: a.Changed}
			for _, id := range a.Anchors {
				aim.Anchors = append(aim.Anchors, q.view.keys[id])
			}
			for _, id := range a.Sources {
				aim.Sources = append(aim.Sources, t.plans.seedKeys[id])
			}
			out[i].Aims = append(out[i].Aims, aim)
		}
	}
	return out
}

// Score returns the decoder's scores of candidates against a source, in the order of the
// candidates: see flashdb.Collection.Score. Every key must exist.
func (c *Collection) Score(ctx context.Context, source string, candidates []string, opts *flashdb.ScoreOptions) (hits []flashdb.Hit, err error) {
	var o flashdb.ScoreOptions
	if opts != nil {
		o = *opts
	}
	err = c.on(ctx, func(s *served) error {
		hits, err = c.score(ctx, s, source, candidates, &o)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("score in %q: %w", c.name, err)
	}
	return hits, nil
}

func (c *Collection) score(ctx context.Context, s *served, source string, candidates []string, o *flashdb.ScoreOptions) ([]flashdb.Hit, error) {
	t, err := s.decoder(o.Decoder)
	if err != nil {
		return nil, err
	}
	d, err := decoder.ForRelation(t.Decoder, o.Relation, o.Reverse)
	if err != nil {
		return nil, fmt.Errorf("%w: decoder %q: %w", flashdb.ErrInvalid, t.name, err)
	}
	var q query
	q.reset(c, s)
	vector, err := c.source(ctx, s, &q, source, nil, &flashdb.PredictOptions{SourceCollection: o.SourceCollection, IncludeLinked: true})
	if err != nil {
		return nil, err
	}
	rows, err := c.db.engine.Get(ctx, s.name, candidates)
	if err != nil {
		return nil, gone(err)
	}
	byKey := map[string]*Row{}
	for i := range rows {
		if err := s.verify(&rows[i]); err != nil {
			return nil, err
		}
		byKey[rows[i].Key] = &rows[i]
	}
	values := make([]float32, 0, len(candidates)*s.Dim)
	var errs []error
	for _, key := range candidates {
		r := byKey[key]
		if r == nil {
			errs = append(errs, fmt.Errorf("node %q %w", key, flashdb.ErrNotFound))
			continue
		}
		values = append(values, r.Vector[:s.Dim]...)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	scores := make([]float32, len(candidates))
	var scratch decoder.Scratch
	d.Bind(nil, vector).Score(&scratch, scores, values)
	hits := make([]flashdb.Hit, len(candidates))
	for i, key := range candidates {
		hits[i] = flashdb.Hit{Key: key, Score: scores[i], Probability: float32(1 / (1 + math.Exp(-float64(scores[i]))))}
	}
	return hits, nil
}
