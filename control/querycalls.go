package control

import (
	"context"
	"errors"
	"iter"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/wire"
)

type question struct {
	Key     string                  `json:"key"`
	K       int                     `json:"k"`
	Options *flashdb.PredictOptions `json:"options,omitempty"`
}

var predict = onCollection("predict", func(ctx context.Context, c *flashdb.Collection, r question, _ out) (flashdb.Result, error) {
	return c.Predict(ctx, r.Key, r.K, r.Options)
})

// Predict is that of flashdb.Collection.
func (c *Collection) Predict(ctx context.Context, key string, k int, opts *flashdb.PredictOptions) (flashdb.Result, error) {
	return predict.ask(ctx, c, question{key, k, opts}, out{})
}

type vectorQuestion struct {
	Vector  wire.Vector             `json:"vector"`
	K       int                     `json:"k"`
	Options *flashdb.PredictOptions `json:"options,omitempty"`
}

var predictVector = onCollection("predictvector", func(ctx context.Context, c *flashdb.Collection, r vectorQuestion, _ out) (flashdb.Result, error) {
	return c.PredictVector(ctx, r.Vector, r.K, r.Options)
})

// PredictVector is that of flashdb.Collection.
func (c *Collection) PredictVector(ctx context.Context, source []float32, k int, opts *flashdb.PredictOptions) (flashdb.Result, error) {
	return predictVector.ask(ctx, c, vectorQuestion{source, k, opts}, out{})
}

type questions struct {
	Keys    []string                `json:"keys"`
	K       int                     `json:"k"`
	Options *flashdb.PredictOptions `json:"options,omitempty"`
}

// An answer is the result of one of many queries, or its error.
type answer struct {
	Result flashdb.Result `json:"result"`
	Failed failed         `json:"error"`
}

var predictBatch = onCollection("predictbatch", func(ctx context.Context, c *flashdb.Collection, r questions, o reply[answer]) (none, error) {
	return none{}, send(ctx, c.PredictBatch(ctx, r.Keys, r.K, r.Options), o)
})

// errEnough ends a reply that the caller does not read to its end. The owner notices and does not
// compute the rest.
var errEnough = errors.New("enough")

// PredictBatch is that of flashdb.Collection. If the connection fails, its error is the last one
// yielded.
func (c *Collection) PredictBatch(ctx context.Context, keys []string, k int, opts *flashdb.PredictOptions) iter.Seq2[flashdb.Result, error] {
	return answers(ctx, c, predictBatch, questions{keys, k, opts})
}

type vectorQuestions struct {
	Vectors []wire.Vector           `json:"vectors"`
	K       int                     `json:"k"`
	Options *flashdb.PredictOptions `json:"options,omitempty"`
}

var predictVectors = onCollection("predictvectors", func(ctx context.Context, c *flashdb.Collection, r vectorQuestions, o reply[answer]) (none, error) {
	sources := make([][]float32, len(r.Vectors))
	for i, v := range r.Vectors {
		sources[i] = v
	}
	return none{}, send(ctx, c.PredictVectors(ctx, sources, r.K, r.Options), o)
})

// PredictVectors is that of flashdb.Collection, as PredictBatch is.
func (c *Collection) PredictVectors(ctx context.Context, sources [][]float32, k int, opts *flashdb.PredictOptions) iter.Seq2[flashdb.Result, error] {
	vectors := make([]wire.Vector, len(sources))
	for i, v := range sources {
		vectors[i] = v
	}
	return answers(ctx, c, predictVectors, vectorQuestions{vectors, k, opts})
}

// send sends answers as they come.
func send(ctx context.Context, all iter.Seq2[flashdb.Result, error], o reply[answer]) error {
	for res, err := range all {
		if err := o.item(answer{res, failed{ended(ctx, err)}}); err != nil {
			return err
		}
	}
	return nil
}

// answers runs many queries in one call, and yields their answers.
func answers[Req any](ctx context.Context, c *Collection, k call[*flashdb.Collection, Req, answer, none], r Req) iter.Seq2[flashdb.Result, error] {
	return func(yield func(flashdb.Result, error) bool) {
		_, err := k.ask(ctx, c, r, reply[answer]{item: func(a answer) error {
			if !yield(a.Result, a.Failed.error) {
				return errEnough
			}
			return nil
		}})
		if err != nil && !errors.Is(err, errEnough) {
			yield(flashdb.Result{}, err)
		}
	}
}

type candidates struct {
	Source     string                `json:"source"`
	Candidates []string              `json:"candidates"`
	Options    *flashdb.ScoreOptions `json:"options,omitempty"`
}

var score = onCollection("score", func(ctx context.Context, c *flashdb.Collection, r candidates, _ out) ([]flashdb.Hit, error) {
	return c.Score(ctx, r.Source, r.Candidates, r.Options)
})

// Score is that of flashdb.Collection.
func (c *Collection) Score(ctx context.Context, source string, of []string, opts *flashdb.ScoreOptions) ([]flashdb.Hit, error) {
	return score.ask(ctx, c, candidates{source, of, opts}, out{})
}

type whyQuestion struct {
	Source  string              `json:"source"`
	Hits    []string            `json:"hits"`
	Options *flashdb.WhyOptions `json:"options,omitempty"`
}

var why = onCollection("why", func(ctx context.Context, c *flashdb.Collection, r whyQuestion, _ out) ([]flashdb.Reason, error) {
	return c.Why(ctx, r.Source, r.Hits, r.Options)
})

// Why is that of flashdb.Collection.
func (c *Collection) Why(ctx context.Context, source string, hits []string, opts *flashdb.WhyOptions) ([]flashdb.Reason, error) {
	return why.ask(ctx, c, whyQuestion{source, hits, opts}, out{})
}

type nearest struct {
	Vector  wire.Vector            `json:"vector"`
	K       int                    `json:"k"`
	Options *flashdb.SearchOptions `json:"options,omitempty"`
}

var search = onCollection("search", func(ctx context.Context, c *flashdb.Collection, r nearest, _ out) (flashdb.Result, error) {
	return c.Search(ctx, r.Vector, r.K, r.Options)
})

// Search is that of flashdb.Collection.
func (c *Collection) Search(ctx context.Context, vec []float32, k int, opts *flashdb.SearchOptions) (flashdb.Result, error) {
	return search.ask(ctx, c, nearest{vec, k, opts}, out{})
}

var rebuild = onCollection("rebuild", func(ctx context.Context, c *flashdb.Collection, r flashdb.RebuildOptions, o out) (flashdb.RebuildResult, error) {
	r.Progress = o.progress
	return c.Rebuild(ctx, &r)
})

// Rebuild is that of flashdb.Collection.
func (c *Collection) Rebuild(ctx context.Context, opts *flashdb.RebuildOptions) (flashdb.RebuildResult, error) {
	o := deref(opts)
	return rebuild.ask(ctx, c, o, out{progress: o.Progress})
}

var calibrate = onCollection("calibrate", func(ctx context.Context, c *flashdb.Collection, r flashdb.CalibrateOptions, o out) ([]flashdb.Calibration, error) {
	r.Progress = o.progress
	return c.Calibrate(ctx, &r)
})

// Calibrate is that of flashdb.Collection.
func (c *Collection) Calibrate(ctx context.Context, opts *flashdb.CalibrateOptions) ([]flashdb.Calibration, error) {
	o := deref(opts)
	return calibrate.ask(ctx, c, o, out{progress: o.Progress})
}

var calibrations = onCollection("calibrations", func(ctx context.Context, c *flashdb.Collection, _ none, _ out) ([]flashdb.Calibration, error) {
	return c.Calibrations(ctx)
})

// Calibrations is that of flashdb.Collection.
func (c *Collection) Calibrations(ctx context.Context) ([]flashdb.Calibration, error) {
	return calibrations.ask(ctx, c, none{}, out{})
}
